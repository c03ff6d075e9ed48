"""Conversions of TensorFlow's operators, a file for each family."""
