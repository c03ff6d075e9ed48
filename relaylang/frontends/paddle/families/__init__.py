"""Conversions of PaddlePaddle's operators, a file per family."""
