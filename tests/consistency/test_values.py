"""A value has the type that the checker infers, for every accepted operator and element type: `make consistency`.

If there is no value, the error is the project's own, with a place.
"""

from __future__ import annotations

import itertools
import zlib

import pytest

from relaylang.ops import OPS
from tests.consistency.calls import bases_by_operator, calls, key
from tests.consistency.outcome import wrong

SHARDS = 16
#: Operators that no call of types and values alone can reach: their arguments or attributes are functions or devices.
UNTRIED = {
    "annotation.with_funcid",
    "call_lowered",
    "debug",
    "device_copy",
    "memory.alloc_storage",
    "memory.alloc_tensor",
    "meta_schedule_layout_transform",
    "vm.invoke_tvm_op",
}


def test_every_operator_is_tried() -> None:
    assert set(bases_by_operator()) | UNTRIED == set(OPS)


def test_a_sample_of_calls() -> None:
    """Every fortieth call."""
    found = {key(made): said for made in itertools.islice(calls(1), 7, None, 40) if (said := wrong(made))}
    assert found == {}


@pytest.mark.sample(4)
@pytest.mark.sweep
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("extents", ["known", "open"])
def test_every_call(shard: int, extents: str) -> None:
    operators = [name for name in OPS if zlib.crc32(name.encode()) % SHARDS == shard]
    found = {key(made): said for made in calls(2, operators) if (said := wrong(made, extents == "open"))}
    assert found == {}
