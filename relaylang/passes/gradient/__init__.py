"""Gradients of data flow and of whole programs, and LazyGradientInit for their zeros and ones."""
