"""Regions between annotations, with the annotations in them."""

from __future__ import annotations

import pytest

import relaylang as relay
from relaylang.analysis import AnnotatedRegionSet
from relaylang.diagnostics import RelayError
from relaylang.ir import Expr

BEGIN, END = relay.ops.get("annotation.compiler_begin"), relay.ops.get("annotation.compiler_end")
begin, end = relay.annotation.compiler_begin, relay.annotation.compiler_end


def test_regions_join_where_values_meet() -> None:
    x = relay.var("x", shape=(2,))
    first, second = begin(x, "a"), begin(x, "a")
    left, right = relay.exp(first), relay.tanh(second)
    both = relay.add(left, right)
    out, early = end(both, "a"), end(left, "a")
    other = begin(early, "b")
    done = end(relay.exp(other), "b")
    found = AnnotatedRegionSet(relay.Function([x], relay.multiply(out, done)), BEGIN, END)
    assert len(found) == 2 and [r.target for r in found] == ["a", "b"]
    region = found.get_region(right)
    assert region is found.get_region(first) and region is not None
    assert set(region.args) == {first, second} and set(region.rets) == {out, early}
    assert set(region.nodes) == {first, second, left, right, both, out, early}
    assert found.get_region(x) is None and found.get_region(done) is found.get_region(other)


def test_targets_that_touch() -> None:
    x = relay.var("x", shape=(2,))
    node: Expr = relay.add(begin(x, "a"), begin(x, "b"))
    with pytest.raises(RelayError, match="regions of a and b touch"):
        AnnotatedRegionSet(node, BEGIN, END)
