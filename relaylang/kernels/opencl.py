"""Kernels as OpenCL C 1.2. 64-bit floats need `cl_khr_fp64`.

    text, launches = program(kernel)

Build the text with `-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt`, where the device has the latter.
A function has a variant for each combination of address spaces that it is called with.
"""

from __future__ import annotations

from relaylang.kernels import device
from relaylang.kernels.device import Kernel, Language, Launch

OPENCL = Language(
    head="opencl.h",
    kernel="__kernel",
    function="static",
    shared="__global",
    table="__constant",
    table_space="__constant",
    restrict="restrict",
    index="long",
    number="get_global_id(0)",
    bits={
        ("", ""): "(({type})({0}))",
        **{
            (source, target): f"as_{name}({{0}})"
            for sources, targets in (
                (("float32", "int32", "uint32"), {"float32": "float", "int32": "int", "uint32": "uint"}),
                (("float64", "int64", "uint64"), {"float64": "double", "int64": "long", "uint64": "ulong"}),
            )
            for source in sources
            for target, name in targets.items()
        },
    },
)


def program(kernel: Kernel) -> tuple[str, list[Launch]]:
    """A kernel as OpenCL C, and its launches in their order. Raises `Unrendered`."""
    return device.program(OPENCL, kernel)
