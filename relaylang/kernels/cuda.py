"""Kernels as CUDA C++. Compile the text with `--fmad=false`.

Usage:

    text, launches = program(kernel)
"""

from __future__ import annotations

from relaylang.kernels import device
from relaylang.kernels.device import Kernel, Language, Launch

_INTO = {"float32": "__int_as_float((int)({0}))", "float64": "__longlong_as_double((long long)({0}))"}

CUDA = Language(
    head="cuda.h",
    kernel='extern "C" __global__',
    function="static __device__",
    shared="",
    table="static __device__ const",
    table_space="",
    restrict="__restrict__",
    index="long long",
    number="(long long)blockIdx.x * blockDim.x + threadIdx.x",
    bits={
        ("", ""): "(({type})({0}))",
        ("float32", ""): "(({type})__float_as_int({0}))",
        ("float64", ""): "(({type})__double_as_longlong({0}))",
        **{(f"{kind}{bits}", f"float{bits}"): _INTO[f"float{bits}"] for kind in ("int", "uint") for bits in (32, 64)},
    },
)


def program(kernel: Kernel) -> tuple[str, list[Launch]]:
    """A kernel as CUDA C++, and its launches in their order. Raises `Unrendered`."""
    return device.program(CUDA, kernel)
