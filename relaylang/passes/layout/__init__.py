"""Passes that change the layouts of tensors."""
