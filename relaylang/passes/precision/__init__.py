"""Passes that change the width of floating-point numbers."""
