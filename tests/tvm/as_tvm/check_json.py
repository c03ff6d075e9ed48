"""Programs saved as JSON by TVM, and saved here. `tests/tvm/test_as_tvm.py` runs this file."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relay

from tests.tvm.programs import BUILT, TYPED

RECORDED = json.loads((Path(__file__).parents[1] / "programs.json").read_text())


def built(name: str) -> Any:
    names: dict[str, Any] = {"tvm": tvm, "relay": relay}
    exec(BUILT[name], names)
    return names["made"]


@pytest.mark.parametrize("name", BUILT)
def test_what_is_saved_is_tvms(name: str) -> None:
    program = built(name)
    assert json.loads(tvm.ir.save_json(program)) == RECORDED["built"][name]
    loaded = tvm.ir.load_json(json.dumps(RECORDED["built"][name]))
    if name == "attributes":  # a map by variables equals no other map
        (key, value), *_ = loaded.attrs["__params__"].items()
        assert key is loaded.params[0] and value.data.numpy() == 1
        program, loaded = program.without_attr("__params__"), loaded.without_attr("__params__")
    tvm.ir.assert_structural_equal(loaded, program, map_free_vars=True)


def test_a_program_of_tvm_opens() -> None:
    mod = tvm.ir.load_json(json.dumps(RECORDED["typed"]))
    tvm.ir.assert_structural_equal(mod, relay.fromtext(TYPED).with_attr("abc", 3))
    assert mod["main"].checked_type is not None and mod["main"].body.span is None
    again = tvm.ir.load_json(tvm.ir.save_json(mod))
    assert again.astext() == mod.astext() == pickle.loads(pickle.dumps(mod)).astext()


def test_values_and_places() -> None:
    values = {"a": tvm.nd.array(np.arange(3)), "b": [1, 2.5, "x\x01y"], "c": tvm.tir.const(float("inf"), "float64")}
    loaded = tvm.ir.load_json(tvm.ir.save_json(values))
    assert loaded["a"].numpy().tolist() == [0, 1, 2] and loaded["b"][0].value == 1
    assert loaded["b"][1:] == [2.5, "x\x01y"] and loaded["c"].dtype == "float64" and loaded["c"].value == float("inf")
    for name in (None, relay.SourceName("net")):
        span = relay.Span(name, 1, 2, 3, 4)
        back = tvm.ir.load_json(tvm.ir.save_json(span))
        assert back == span and isinstance(back, relay.Span) and back.source_name == name
        assert [back.line, back.end_line, back.column, back.end_column] == [1, 2, 3, 4]
    both = relay.SequentialSpan([relay.Span(None, 1, 2, 3, 4), relay.Span(None, 5, 6, 7, 8)])
    assert [span.line for span in both.spans] == [1, 5] and isinstance(both, relay.Span)


def test_functions_under_names() -> None:
    @tvm.register_func("tests.add_one", override=True)
    def add_one(x: int) -> int:
        return x + 1

    loaded = tvm.ir.load_json(tvm.ir.save_json([tvm.ir.EnvFunc.get("tests.add_one")]))[0]
    assert loaded(1) == loaded.func(1) == 2 and loaded.name == "tests.add_one"


def test_made_nodes() -> None:
    number = tvm.ir.make_node("IntImm", dtype="int32", value=10, span=None)
    assert isinstance(number, tvm.tir.IntImm) and number.value == 10
    attrs = tvm.ir.make_node("DictAttrs", x=1, name="xyz")
    assert isinstance(attrs, tvm.ir.DictAttrs) and attrs.x.value == 1 and attrs["name"] == "xyz"
    assert tvm.ir.make_node("relay.attrs.SoftmaxAttrs", axis=1).axis == 1
    with pytest.raises(AttributeError, match="axes"):
        tvm.ir.make_node("relay.attrs.SoftmaxAttrs", axes=1)
    with pytest.raises(ValueError, match=r"no nodes tir\.For"):
        tvm.ir.make_node("tir.For")
