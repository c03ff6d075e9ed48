"""Passes that make a program smaller or cheaper and keep its values."""
