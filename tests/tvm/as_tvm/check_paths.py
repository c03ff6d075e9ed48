"""Paths to parts of objects, and the first difference of two. `tests/tvm/test_as_tvm.py` runs this file."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import relay
from tvm.ir.base import get_first_structural_mismatch
from tvm.runtime import ObjectPath

ROOT = ObjectPath.root()


def test_steps_and_texts() -> None:
    path = ROOT.attr("args").array_index(2).map_value("k").attr(None)
    assert str(path) == '<root>.args[2]["k"].<unknown attribute>' and len(path) == 5
    assert str(ObjectPath.root("mod").missing_array_element(1)) == "mod[<missing element #1>]"
    assert str(ROOT.missing_map_entry()) == "<root>[<missing entry>]"
    assert path.get_prefix(2) == ROOT.attr("args") != ROOT.attr("attrs") and path.get_prefix(5) == path and ROOT.parent is None
    assert ROOT.attr("args").is_prefix_of(path) and not path.is_prefix_of(ROOT) and ROOT.array_index(1) != ROOT.map_value(1)
    assert len({ROOT.attr("a"), ROOT.attr("a"), ROOT.attr("b")}) == 2
    for length in (0, 6):
        with pytest.raises(IndexError):
            path.get_prefix(length)


@pytest.mark.parametrize(
    ("lhs", "rhs", "left", "right"),
    [
        ([1, 2, 3], [1, 4, 3], ROOT.array_index(1).attr("value"), ROOT.array_index(1).attr("value")),
        ([1], [1, {"a": 2}], ROOT.missing_array_element(1), ROOT.array_index(1)),
        ({"a": [1]}, {"a": [2]}, *[ROOT.map_value("a").array_index(0).attr("value")] * 2),
        ({"a": 1}, {}, ROOT.map_value("a"), ROOT.missing_map_entry()),
    ],
)
def test_the_first_difference_of_values(lhs: Any, rhs: Any, left: ObjectPath, right: ObjectPath) -> None:
    lhs, rhs = tvm.runtime.convert(lhs), tvm.runtime.convert(rhs)
    assert get_first_structural_mismatch(lhs, rhs) == (left, right)
    assert get_first_structural_mismatch(rhs, lhs) == (right, left) and get_first_structural_mismatch(lhs, lhs) is None


def test_the_first_difference_of_modules() -> None:
    one, two = (relay.fromtext(f"def @main(%x: int32) {{ add(%x, {n}) }}") for n in (1, 2))
    left, right = get_first_structural_mismatch(one, two)
    assert left == right == ROOT.attr("functions").map_value("main").attr("body").attr("args").array_index(1)
