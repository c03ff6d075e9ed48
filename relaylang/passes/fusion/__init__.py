"""Passes that join operators into kernels, or split them."""
