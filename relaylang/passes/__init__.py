"""Passes: a module in, a module out. A pass is a dataclass in one file of a wing; `PASSES` has them by name.

    PASSES["FuseOps"](fuse_opt_level=2)(mod)

The wings: normal_forms, simplify, fusion, functions, gradient, layout, quantise, precision, devices. Passes of no wing, the pass
manager and what several wings share stand beside them.
"""

from relaylang.passes.registry import PASSES

__all__ = ["PASSES"]
