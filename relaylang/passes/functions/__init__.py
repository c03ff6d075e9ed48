"""Passes over functions as such: inlining, lifting, specialisation, closures."""
