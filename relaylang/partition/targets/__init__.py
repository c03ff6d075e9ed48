"""The accelerators: one file each with its pattern table, its checks and its recipe."""
