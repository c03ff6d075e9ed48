"""Conversions of Caffe's layers, a file per family. Each file ends with its `RULES`."""
