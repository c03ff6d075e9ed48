"""Putting tensors together and taking them apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError


def concatenate(attrs: Any, parts: tuple[Any, ...]) -> Any:
    return np.concatenate(parts, axis=attrs.axis)


def stack(attrs: Any, parts: tuple[Any, ...]) -> Any:
    return np.stack(parts, axis=attrs.axis)


def split(attrs: Any, x: Any) -> tuple[Any, ...]:
    how = attrs.indices_or_sections
    if isinstance(how, int):
        count = how
        if x.shape[attrs.axis] % count:
            raise KernelError(f"an extent of {x.shape[attrs.axis]} cannot be split into {count} equal parts")
        return tuple(np.split(x, count, axis=attrs.axis))
    return tuple(np.split(x, [int(i) for i in how], axis=attrs.axis))


KERNELS: dict[str, Kernel] = {
    "concatenate": concatenate,
    "stack": stack,
    "split": split,
}
