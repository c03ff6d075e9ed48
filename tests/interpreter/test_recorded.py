"""Every kernel against what TVM gave for x86-64, recorded: integers exactly, floats to their tolerance."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from relaylang.interpreter import KERNELS
from relaylang.ops import OPS
from tests.interpreter import recorded
from tests.interpreter.agreement import assert_agree, computed
from tests.interpreter.every_case import EVERY, KEYS
from tests.interpreter.values import Case
from tests.shared import check_each

#: Operators without a result of TVM's on x86-64, and why.
UNSEEN = {
    **dict.fromkeys(
        [name for name in KERNELS if name.startswith("annotation.")] + ["on_device", "device_copy", "debug"],
        "gives its argument back",
    ),
    **dict.fromkeys(
        [name for name in KERNELS if name.startswith("dyn.")],
        "reads shapes from arguments and goes on as its static sibling; TVM rewrites it to that one",
    ),
    "memory.kill": "of the virtual machine's",
    "vm.shape_of": "of the virtual machine's",
    "vm.reshape_tensor": "of the virtual machine's",
    "arange": "TVM's text cannot give its attributes",
    "meta_schedule_layout_transform": "its map is a Python function here, a piece of TVM's loop language there",
    "nn.contrib_conv2d_NCHWc": "nn.conv2d between changes of layout (tests/interpreter/test_definitions.py)",
    "nn.contrib_depthwise_conv2d_NCHWc": "nn.conv2d between changes of layout",
    "nn.contrib_conv2d_gemm_without_weight_transform": "TVM computes it on AArch64 only",
    "nn.contrib_conv2d_winograd_without_weight_transform": "TVM computes it on GPUs only",
    "nn.contrib_conv3d_winograd_without_weight_transform": "TVM computes it on GPUs only",
    "nn.internal.sparse_dense_padded": "TVM computes it on GPUs only",
    "qnn.contrib_dense_pack": "TVM computes it on Hexagon only",
    "relay.op.annotation.simulated_quantize": "its class of attributes has the name of another's",
    "nn.dropout": "TVM takes it out before compiling",
    "collapse_sum_to": "TVM has no code for it",
}


@cache
def results() -> dict[str, Any]:
    return recorded.load()


def in_float64(case: Case) -> np.ndarray:
    """The kernel's result for the arguments of a case as float64."""
    name, attrs, args, constant = case
    result: np.ndarray = computed((name, attrs, [np.asarray(a, np.float64) for a in args], constant))
    return result


def agrees(number: int) -> None:
    case, theirs = EVERY[number], results()[KEYS[number]]
    ours = computed(case)
    if isinstance(theirs, str):  # TVM refuses the case: the kernel agrees with itself on float64
        theirs = in_float64(case).astype(ours.dtype)
    assert_agree(case[0], ours, theirs)


def test_kernel() -> None:
    check_each(agrees, range(len(EVERY)), KEYS)


def test_every_kernel_was_compared_or_has_a_reason() -> None:
    seen = {case[0] for key, case in zip(KEYS, EVERY) if not isinstance(results()[key], str)}
    assert set(KERNELS) - seen == set(UNSEEN)
    assert set(UNSEEN) <= set(OPS)


def test_few_cases_were_refused() -> None:
    refused = [key for key in KEYS if isinstance(results()[key], str)]
    assert len(refused) <= 20, refused
