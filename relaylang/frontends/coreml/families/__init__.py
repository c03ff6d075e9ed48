"""Conversions of the operators of ML programs, by groups. Their parameters are the inputs that the operators name."""
