"""Compiled code gives the interpreter's values and element types: `make consistency`.

The calls are of every operator that has code, with every element type.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from relaylang.ops import OPS
from tests.consistency.calls import I64, Made, calls
from tests.consistency.compiled import differences

SHARDS = 8
#: Calls in one library.
TOGETHER = 1000


def empty() -> Iterator[Made]:
    """Tensors without elements, and results that are sums or extremes of nothing."""
    f = np.float32
    conv = {"channels": 2, "kernel_size": [3, 3], "padding": [1, 1, 1, 1]}
    yield "nn.dense", {}, [np.ones((2, 0), f), np.ones((3, 0), f)]
    yield "nn.dense", {}, [np.ones((0, 4), f), np.ones((3, 4), f)]
    yield "nn.matmul", {}, [np.ones((2, 0), f), np.ones((0, 3), f)]
    yield "nn.batch_matmul", {"transpose_b": True}, [np.ones((2, 3, 0), f), np.ones((2, 4, 0), f)]
    yield "nn.conv2d", conv, [np.ones((1, 0, 4, 4), f), np.ones((2, 0, 3, 3), f)]
    yield "nn.conv2d", conv, [np.ones((1, 2, 0, 4), f), np.ones((2, 2, 3, 3), f)]
    yield "nn.conv2d", conv, [np.ones((0, 2, 4, 4), f), np.ones((2, 2, 3, 3), f)]
    quantised = [np.int32(1), np.int32(2), f(0.5), f(0.5)]
    yield "qnn.dense", {"units": 3, "out_dtype": "int32"}, [np.ones((2, 0), np.int8), np.ones((3, 0), np.int8), *quantised]
    yield "qnn.conv2d", {**conv, "out_dtype": "int32"}, [np.ones((1, 0, 4, 4), np.int8), np.ones((2, 0, 3, 3), np.int8), *quantised]
    yield "nn.softmax", {"axis": -1}, [np.ones((2, 0), f)]
    yield "nn.log_softmax", {"axis": 0}, [np.ones((0, 3), f)]
    for name in ("sum", "prod", "max", "min", "mean", "variance"):
        more = [np.ones((2, 1), f)] if name == "variance" else []
        yield name, {"axis": [1], "keepdims": False}, [np.ones((2, 0), f), *more]
    for name in ("all", "any", "sum"):
        yield name, {"axis": [0], "keepdims": True}, [np.ones((0, 3), np.bool_)]
    yield "nn.global_max_pool2d", {}, [np.ones((1, 2, 0, 3), f)]
    yield "nn.adaptive_avg_pool2d", {"output_size": [2, 2]}, [np.ones((1, 2, 0, 3), f)]
    yield "nn.max_pool2d", {"pool_size": [2, 2], "padding": [1, 1]}, [np.ones((1, 2, 0, 3), f)]
    yield "concatenate", {"axis": 0}, [(np.ones((0, 3), f), np.ones((2, 3), f), np.ones((0, 3), f))]
    yield "take", {"axis": 0}, [np.ones((3, 2), f), np.ones(0, I64)]
    yield "gather", {"axis": 0}, [np.ones((0, 2), f), np.ones((0, 2), I64)]
    yield "scatter_elements", {"axis": 0}, [np.ones((3, 2), f), np.ones((0, 2), I64), np.ones((0, 2), f)]
    yield "scatter_nd", {"mode": "add"}, [np.ones((0, 2), f), np.ones((1, 0), I64), np.ones((0, 2), f)]
    yield "nn.pad", {"pad_width": [[1, 1], [0, 0]]}, [np.ones((0, 2), f), f(2)]
    yield "image.resize2d", {"size": [0, 4], "roi": [0.0] * 4}, [np.ones((1, 2, 3, 3), f)]
    yield "nn.cross_entropy", {}, [np.ones((0, 3), f), np.ones((0, 3), f)]


def test_empty_tensors() -> None:
    assert differences(empty()) == {}


@pytest.mark.sample(4)
@pytest.mark.sweep
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_call(shard: int) -> None:
    every = calls(2, [name for name in OPS if zlib.crc32(name.encode()) % SHARDS == shard])
    found: dict[str, str] = {}
    while some := list(itertools.islice(every, TOGETHER)):
        found.update(differences(some))
    assert found == {}
