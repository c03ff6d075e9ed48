"""Passes between float operators, the qnn dialect and integer operators."""
