"""Programs as TVM's JSON come back equal; damaged documents are refused."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir.structural import structural_diff
from relaylang.syntax.program_reader import load_json
from relaylang.syntax.program_writer import save_json
from tests.shared import ROOT, check_each

TEXTS = sorted([*(ROOT / "examples").glob("*.relay"), *(ROOT / "fuzz/seeds").glob("*.relay")])
RECORDED = json.loads((ROOT / "tests/tvm/programs.json").read_text())


#: Programs with attributes of which only the type's name is known.
FORMLESS = {"a_function_s_virtual_device", "a_virtual_device", "an_external_function", "devices"}


def comes_back(path: Path) -> None:
    mod = relay.parse(path.read_text(), str(path))
    if path.stem in FORMLESS:
        with pytest.raises(RelayError, match="R0011"):
            save_json(mod)
        return
    again = load_json(save_json(mod))
    assert structural_diff(again, mod, map_free_vars=True) is None
    assert save_json(load_json(save_json(again))) == save_json(again)


def test_programs_come_back() -> None:
    check_each(comes_back, TEXTS)


@pytest.mark.sweep
def test_depth_and_sharing_are_free() -> None:
    x = relay.var("x", shape=(2,))
    deep = wide = x
    for _ in range(3_000):
        deep = relay.nn.relu(deep)
    for _ in range(30):
        wide = relay.add(wide, wide)
    for made, count in ((deep, 3_000), (wide, 30)):
        for again in (load_json(save_json(made)), pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            node, steps = again, 0
            while isinstance(node, relay.Call):
                assert all(arg is node.args[0] for arg in node.args)
                node, steps = node.args[0], steps + 1
            assert steps == count and node is not x


def test_a_pickle_keeps_types_and_places() -> None:
    mod = relay.parse("type Box[A] { Box(A) }\ndef @main(%x: Box[int32], k=1) { match (%x) { Box(%y) => add(%y, 1) } }")
    relay.transform.InferType()(mod)
    again = pickle.loads(pickle.dumps(mod))
    assert structural_diff(again, mod) is None
    body, old = again["main"].body, mod["main"].body
    assert body.checked_type == old.checked_type and body.clauses[0].rhs.span.text == "add(%y, 1)"
    assert body.clauses[0].rhs.op is old.clauses[0].rhs.op and copy.copy(body).data is body.data


def test_shapes_with_names_and_widths() -> None:
    mod = relay.parse("def @main(%x: Tensor[(2i64, ?), float16]) { %x }")
    assert structural_diff(load_json(save_json(mod)), mod) is None


def _damaged() -> list[dict[str, Any]]:
    """The recorded program with one thing wrong: a node of another kind, without its attributes, or that contains itself."""
    found = []
    for number, node in enumerate(RECORDED["typed"]["nodes"]):
        for change in ({"type_key": "relay.Function"}, {"type_key": "runtime.String", "repr_str": "x"}, {"type_key": ""}):
            found.append((number, change))
        for name in node.get("attrs", {}):
            found.append((number, {**node, "attrs": {**node["attrs"], name: str(number)}}))
            found.append((number, {**node, "attrs": {**node["attrs"], name: "99999"}}))
            found.append((number, {**node, "attrs": {**node["attrs"], name: "x"}}))
    return [
        {**RECORDED["typed"], "nodes": [new if i == n else old for i, old in enumerate(RECORDED["typed"]["nodes"])]}
        for n, new in found[::29]
    ]


def test_damaged_documents_are_refused() -> None:
    refused = 0
    for document in _damaged():
        try:
            load_json(json.dumps(document))
        except RelayError as e:
            assert [d.code for d in e.diagnostics] == ["R0010"]
            refused += 1
    assert refused > 12


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is not JSON"),
        ("[]", "it is not a map"),
        ('{"nodes": [{"type_key": ""}, {"type_key": "Op", "repr_str": "nn.konv"}], "root": 1}', "there is no operator nn.konv"),
        (
            '{"nodes": [{"type_key": ""}, {"type_key": "relay.Tuple", "attrs": {"fields": "2"}}, {"type_key": "Array", "data": [1]}], '
            '"root": 1}',
            "node 1 contains itself",
        ),
        (
            '{"nodes": [{"type_key": ""}, {"type_key": "relay.RefRead", "attrs": {"ref": "0"}}], "root": 1}',
            "ref of node 1, a relay.RefRead, is a NoneType",
        ),
        (
            '{"nodes": [{"type_key": ""}, {"type_key": "IRModule", "attrs": {"functions": "2"}}, {"type_key": "Map", "data": [3, 4]}, '
            '{"type_key": "GlobalVar", "attrs": {"name_hint": "5"}}, {"type_key": "tir.PrimFunc"}, '
            '{"type_key": "runtime.String", "repr_str": "f"}], "root": 1}',
            "has a GlobalVar with a tir.PrimFunc",
        ),
    ],
)
def test_errors_say_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(RelayError, match="R0010") as caught:
        load_json(text)
    assert said in str(caught.value)


def test_values_without_a_form_are_refused() -> None:
    with pytest.raises(RelayError, match="R0011"):
        save_json({"x": object()})


def test_names_of_0_6() -> None:
    nodes = [
        {"type_key": ""},
        {"type_key": "relay.Var", "attrs": {"_checked_type_": "0", "span": "0", "type_annotation": "3", "vid": "2"}},
        {"type_key": "relay.Id", "attrs": {"name_hint": "3"}},
        {"type_key": "relay.TypeVar", "attrs": {"kind": "0", "span": "0", "var": "4"}},
        {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "in0"}},
        {"type_key": "relay.Op", "global_key": "nn.conv2d"},
    ]
    document = {"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}
    var = load_json(json.dumps(document))
    assert var.name_hint == "3" and var.type_annotation.name_hint == "in0"
    assert load_json(json.dumps({**document, "root": 5})) is relay.op.get("nn.conv2d")
