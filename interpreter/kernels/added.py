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
    extension = EXTENSIONS.get(name)
    if extension is None or not callable(extension.kernel):
        return None
    own = extension.kernel

    def kernel(attrs: Any, *inputs: Any) -> Any:
        try:
            results = own(attrs, *inputs)
        except (KernelError, MemoryError):
            raise
        except Exception as problem:
            raise KernelError(f"its kernel raised {type(problem).__name__}: {problem}") from problem
        return _fitted(results, ty)

    return kernel


def _fitted(result: Any, ty: Type | None) -> Any:
    if isinstance(ty, TupleType):
        if not isinstance(result, (tuple, list)) or len(result) != len(ty.fields):
            raise KernelError(f"its kernel returned {_said(result)}, not a tuple of {len(ty.fields)}")
        return tuple([_fitted(part, field) for part, field in zip(result, ty.fields)])
    if not isinstance(result, (np.ndarray, np.generic, bool, int, float)):
        raise KernelError(f"its kernel returned {_said(result)}, not an array")
    if not isinstance(ty, TensorType):
        return result
    if not isinstance(result, (np.ndarray, np.generic)):
        result = np.asarray(result, np_dtype(ty.dtype))
    same = result.dtype == np_dtype(ty.dtype) and result.ndim == len(ty.shape)
    if not same or any(isinstance(d, int) and d != n for d, n in zip(ty.shape, result.shape)):
        raise KernelError(f"its kernel returned {result.dtype}{list(result.shape)}, and the call's type is {type_text(ty)}")
    return result


def _said(result: Any) -> str:
    return "nothing (None)" if result is None else f"a value of type {type(result).__name__}"


__all__ = ["added_kernel"]
