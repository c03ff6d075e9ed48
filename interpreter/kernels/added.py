"""Kernels of operators that scripts and installed packages add (`relaylang.ops.extensions`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError, np_dtype
from relaylang.ir import TensorType, TupleType, Type, type_text
from relaylang.ops.extensions import EXTENSIONS


def added_kernel(name: str, ty: Type | None) -> Kernel | None:
    """The kernel of an added operator, for a call of a type; None where there is none.

    What it raises, and a value of another type, become a `KernelError`: the checker has told the type to others.
    """
    found = EXTENSIONS.get(name)
    if found is None or not callable(found.kernel):
        return None
    own = found.kernel

    def kernel(attrs: Any, *inputs: Any) -> Any:
        try:
            made = own(attrs, *inputs)
        except (KernelError, MemoryError):
            raise
        except Exception as problem:
            raise KernelError(f"its kernel raised {type(problem).__name__}: {problem}") from problem
        return _fitted(made, ty)

    return kernel


def _fitted(made: Any, ty: Type | None) -> Any:
    if isinstance(ty, TupleType):
        if not isinstance(made, (tuple, list)) or len(made) != len(ty.fields):
            raise KernelError(f"its kernel returned {_said(made)}, not a tuple of {len(ty.fields)}")
        return tuple([_fitted(part, field) for part, field in zip(made, ty.fields)])
    if not isinstance(made, (np.ndarray, np.generic, bool, int, float)):
        raise KernelError(f"its kernel returned {_said(made)}, not an array")
    if not isinstance(ty, TensorType):
        return made
    if not isinstance(made, (np.ndarray, np.generic)):
        made = np.asarray(made, np_dtype(ty.dtype))
    same = made.dtype == np_dtype(ty.dtype) and made.ndim == len(ty.shape)
    if not same or any(isinstance(d, int) and d != n for d, n in zip(ty.shape, made.shape)):
        raise KernelError(f"its kernel returned {made.dtype}{list(made.shape)}, and the call's type is {type_text(ty)}")
    return made


def _said(made: Any) -> str:
    return "nothing (None)" if made is None else f"a value of type {type(made).__name__}"


__all__ = ["added_kernel"]
