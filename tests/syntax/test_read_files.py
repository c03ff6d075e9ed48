"""Everything that exists is read: golden files, fragments, other projects' programs, thousands of printed programs."""

from __future__ import annotations

import gzip
import json

import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Constant, Function, IRModule, MetaRef, TensorType, node_count, scalar_type
from relaylang.ops import OPS
from relaylang.syntax import parse
from tests.shared import CORPUS, FRAGMENTS, GOLDEN, needs_shared

pytestmark = needs_shared


def _files() -> list[object]:
    return [*sorted(GOLDEN.glob("*.relay")), *sorted(CORPUS.glob("calyx*/*.relay"))]


@pytest.mark.parametrize("path", _files(), ids=lambda p: p.name)
def test_a_program_reads(path) -> None:
    result = parse(path.read_text(), path.name)
    assert isinstance(result.module, IRModule)
    assert result.expr is None
    assert not result.free_vars
    assert not result.missing
    assert not result.notes
    assert node_count(result.module["main"]) > 3


def test_a_network_is_what_its_text_says() -> None:
    main = parse((GOLDEN / "mlp.typed.relay").read_text()).module["main"]
    assert [p.name_hint for p in main.params][:2] == ["data", "fc1_weight"]
    assert main.params[1].type_annotation == TensorType((128, 784), "float32")
    assert main.ret_type == TensorType((1, 10), "float32")
    softmax = main.body
    assert softmax.op is OPS["nn.softmax"]
    bias_add = softmax.args[0]
    assert bias_add.op is OPS["nn.bias_add"]
    assert bias_add.attrs.axis == -1
    assert bias_add.args[0].attrs.units == 10


def test_every_printed_program_of_the_corpus_reads() -> None:
    """Of 3 148 texts, those fail that use operators which TVM itself does not have."""
    path = CORPUS / "tvm_passes.jsonl.gz"
    if not path.exists():
        pytest.skip("no corpus of passes")
    known = set(json.loads((CORPUS.parent / "reference" / "relay_ops.json").read_text()))
    failures: list[str] = []
    count = 0
    with gzip.open(path, "rt") as lines:
        for line in lines:
            program = json.loads(line)
            for side in ("in", "out"):
                count += 1
                try:
                    parse(program[side])
                except RelayError as e:
                    unknown = [d.title.partition("`")[2].rstrip("`") for d in e.diagnostics if d.code == "R0202"]
                    # an operator that TVM has and the registry does not, or one that not even TVM has
                    if len(unknown) != len(e.diagnostics) or any(name in OPS for name in unknown):
                        failures.append(str(e))
    assert count == 3148
    assert not failures, failures[:3]
    assert "add" in known


def test_the_fragment_of_a_pytorch_import() -> None:
    result = parse((FRAGMENTS / "qnn_conv_from_pytorch.relay").read_text())
    assert result.module is None
    assert [v.name_hint for v in result.free_vars] == ["input", "features.0.0_weight", "features.0.0_bias"]
    assert sorted(result.bindings) == [str(i) for i in range(9)]
    assert result.expr is result.bindings["8"]
    assert result.expr.op is OPS["cast"]
    assert result.expr.attrs.dtype == "uint8"
    conv = result.bindings["3"]
    assert conv.attrs.kernel_size == (3, 3)
    assert conv.args[2].data == 114 and conv.args[2].dtype == "int32"
    assert conv.args[4].dtype == "float32"


def test_the_fragment_of_a_tflite_import_says_what_is_missing() -> None:
    result = parse((FRAGMENTS / "qnn_conv_from_tflite.relay").read_text())
    assert [m.name_hint for m in result.missing] == ["meta[relay.Constant][0]", "meta[relay.Constant][1]"]
    assert [m.type_annotation for m in result.missing] == [
        TensorType((32, 3, 3, 3), "int8"),
        TensorType((32,), "int32"),
    ]
    weight = result.bindings["2"].args[1]
    assert isinstance(weight, MetaRef) and weight is result.missing[0]
    assert [n.code for n in result.notes] == ["R0151"]
    assert result.notes[0].severity == "note"


def test_the_numbers_of_the_documented_dialect() -> None:
    result = parse((FRAGMENTS / "numbers.relay").read_text())
    mod = result.module
    pair = mod.get_constructor("Numbers", "Pair")
    assert pair.inputs == (scalar_type("int32"), scalar_type("int32"))
    assert [c.name_hint for c in mod.type_definitions[mod.get_global_type_var("Numbers")].constructors] == [
        "Empty",
        "Single",
        "Pair",
    ]
    body = mod["sum"].body
    assert [c.lhs.constructor.name_hint for c in body.clauses] == ["Empty", "Single", "Pair"]
    last = body.clauses[2]
    assert last.rhs.op is OPS["add"]
    assert last.rhs.args == tuple(p.var for p in last.lhs.patterns)
    call = parse("@sum(Pair(5, 6))", module=mod).expr
    assert isinstance(call, Call) and call.op is mod.get_global_var("sum")
    assert call.args[0].op is pair
    assert isinstance(call.args[0].args[0], Constant)


def test_the_closure_without_semicolons() -> None:
    function = parse((FRAGMENTS / "closure.relay").read_text()).expr
    assert isinstance(function, Function)
    inner = function.body
    assert isinstance(inner, Function)
    assert inner.body.op is OPS["add"]
    assert inner.body.args[0] is inner.params[0]
    assert inner.body.args[1].op is OPS["log"]
    assert inner.body.args[1].args == function.params
