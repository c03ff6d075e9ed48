"""Layouts: ConvertLayout and AlterOpLayout, the rewriter that both use, and the functions that users register."""
