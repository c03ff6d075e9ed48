"""Passes that group operators into kernels (FuseOps, DefuseOps, SplitArgs) or combine parallel products."""
