"""Additions from outside: entry points of installed packages, and Python files given to `--load`."""
