"""ToMixedPrecision: products in 16 bits."""
