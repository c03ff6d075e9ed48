"""Quantisation: calibration, and networks in whole numbers."""
