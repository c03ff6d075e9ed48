"""The target cmsis-nn: programs for microcontrollers, as `relaylang.backends.bare_metal` compiles them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.target import Target
from relaylang.ir import IRModule
from relaylang.services import service


def compile_for(mod: IRModule, target: Target, fallback: Sequence[Target], params: Mapping[str, np.ndarray], entry: str) -> Any:
    """The backend's door; see `relaylang.backends`."""
    return service("compile for bare metal")(mod, [target, *fallback], params, entry)


__all__ = ["compile_for"]
