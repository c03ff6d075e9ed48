"""Every attribute of every operator, as TVM writes it: read, compared with what it was made from, written again.

recorded.json.gz has what TVM wrote of the cases in cases.py; record.py asks it again.
"""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Function
from relaylang.ops import OPS, get, make_attrs
from relaylang.syntax import astext, parse
from relaylang.syntax.metadata import load_metadata
from relaylang.syntax.metadata_nodes import MetaNode
from relaylang.syntax.metadata_writer import save_metadata
from tests.conformance.attributes.cases import cases
from tests.shared import check_each

#: What TVM does not make, and why.
NOT_MADE = {
    "debug": "its function is one of the compiler's",
    "meta_schedule_layout_transform": "its index map is a tree of TIR",
    "relay.op.annotation.simulated_quantize": "another operator's attributes have the same type key",
}
#: Operators whose attributes the recorded TVM, a fork, declares in another way than 0.16; their texts are the same.
FORKED = {
    "nn.contrib_conv2d_gemm_weight_transform": "adds kernel_layout",
    "nn.lrn": "adds norm_region",
}


@lru_cache(maxsize=1)
def recorded() -> dict[str, Any]:
    found = json.loads(gzip.decompress((Path(__file__).parent / "recorded.json.gz").read_bytes()))
    return {name: value for name, value in found.items() if not isinstance(value, str)}


def plain(value: Any) -> Any:
    """An attribute's value in the form of the cases."""
    if isinstance(value, MetaNode) and value.type_key == "VirtualDevice":
        assert value.parts is not None and value.parts["target"] is None
        attrs = value.attrs
        return {"device": [int(attrs["device_type_int"]), int(attrs["virtual_device_id"]), value.parts["memory_scope"]]}
    if isinstance(value, Constant):
        return {"constant": value.data.tolist()}
    if isinstance(value, dict):
        return {"map": value}
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    return float(np.float32(value)) if isinstance(value, float) else value


def assert_as_given(name: str, attrs: Any) -> None:
    case = cases()[name]
    found = {field: plain(attrs[field]) for field in case["values"]}
    assert found == case["values"]
    kinds = {field: type(value) for field, value in found.items()}
    assert kinds == {field: type(value) for field, value in case["values"].items()}


def test_every_operator_is_recorded() -> None:
    assert set(cases()) - set(recorded()) == set(NOT_MADE)
    assert set(recorded()) <= set(OPS)


def section_is_tvms(name: str) -> None:
    section = recorded()[name][0]
    key = cases()[name]["key"]
    [node] = load_metadata(section)[key]
    assert isinstance(node, MetaNode)
    attrs = make_attrs(get(name).attrs, node.values(get(name).schema))  # type: ignore[arg-type]
    assert_as_given(name, attrs)
    assert save_metadata({key: [attrs]}) == section


def test_section_is_read_and_written_as_tvm_does() -> None:
    check_each(section_is_tvms, sorted(set(recorded()) - set(FORKED)))


def text_is_tvms(name: str) -> None:
    text = recorded()[name][1]
    function = parse(text).value
    assert isinstance(function, Function) and isinstance(function.body, Call)
    assert_as_given(name, function.body.attrs)
    assert astext(function, "tvm") == text
    again = parse(astext(function)).value
    assert isinstance(again, Function) and isinstance(again.body, Call)
    assert_as_given(name, again.body.attrs)


def test_text_is_read_and_printed_as_tvm_does() -> None:
    check_each(text_is_tvms, sorted(name for name, (_, text) in recorded().items() if text))
