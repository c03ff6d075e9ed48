"""The types of TVM's golden files are found again from the bare programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relaylang.ir import IRModule, TensorType
from relaylang.syntax import astext, parse
from relaylang.typing import infer
from tests.shared import CORPUS, FRAGMENTS, GOLDEN, needs_shared

FILES = sorted(GOLDEN.glob("*.relay"))


@pytest.mark.sample(2)
@needs_shared
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_every_annotated_node(path: Path) -> None:
    text = path.read_text()
    bare = re.sub(r" /\* ty=.*? \*/", "", text)
    module = parse(bare, path.name).module
    assert isinstance(module, IRModule)
    assert infer(module) == []
    assert astext(module, style="tvm").strip() == text.strip()


@needs_shared
@pytest.mark.parametrize("path", sorted(CORPUS.glob("calyx*/*.relay")), ids=lambda p: p.name)
def test_other_projects_programs(path: Path) -> None:
    module = parse(path.read_text(), path.name).module
    assert isinstance(module, IRModule)
    assert infer(module) == []


@needs_shared
def test_quantised_fragment_is_solved_from_its_input() -> None:
    read = parse((FRAGMENTS / "qnn_conv_from_pytorch.relay").read_text())
    assert read.expr is not None
    open_notes = infer(read.expr, fragment=True)
    assert {d.severity for d in open_notes} == {"note"}
    assert read.expr.checked_type is not None and repr(read.expr.checked_type) == "_"
    given = {v: TensorType((1, 3, 224, 224)) for v in read.free_vars if v.name_hint == "input"}
    assert infer(read.expr, fragment=True, assume=given) == []
    assert repr(read.expr.checked_type) == "Tensor[(1, 32, 112, 112), uint8]"
    weights = {v.name_hint: repr(v.checked_type) for v in read.free_vars}
    assert weights["features.0.0_weight"] == "Tensor[(32, 3, 3, 3), float32]"
    assert weights["features.0.0_bias"] == "Tensor[(32), float32]"


@needs_shared
def test_closure_fragment() -> None:
    read = parse((FRAGMENTS / "closure.relay").read_text())
    assert read.expr is not None
    assert [d.title.split(",")[0] for d in infer(read.expr, fragment=True)] == [
        "the type of `%x` is not known",
        "the type of `%y` is not known",
    ]
    assert repr(read.expr.checked_type) == "fn (_) -> fn (_) -> _"
