"""Differentiation, and the passes that serve it."""
