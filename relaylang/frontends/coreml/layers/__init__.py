"""Conversions of the layers of neural networks, by groups."""
