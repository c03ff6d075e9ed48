"""Layouts of tensors: what operators do with them, and the rewriting that AlterOpLayout and ConvertLayout share."""
