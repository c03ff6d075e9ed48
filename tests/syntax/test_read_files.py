"""Everything that exists is read: golden files, fragments, other projects' programs, thousands of printed programs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Constant, Expr, Function, IRModule, MetaRef, TensorType, node_count, scalar_type
from relaylang.ir.structural import structural_diff
from relaylang.ops import OPS
from relaylang.syntax import astext, parse
from relaylang.syntax.format import format_text
from relaylang.typing import infer
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


def prints_as_it_reads(node: IRModule | Expr) -> None:
    """Its text in both styles reads as the same program, and prints as the same text, types included."""
    for style in ("lossless", "tvm"):
        printed = astext(node, style=style)
        again = parse(printed)
        if again.module is not None:
            infer(again.module)
        assert structural_diff(node, again.value, map_free_vars=True) is None
        assert astext(again.value, style=style) == printed


#: What TVM took and is refused here: errors, and in how many of the corpus's texts.
REFUSED = {
    "`left_shift`: argument 1 (lhs) must be a tensor of whole numbers or bool, not of float32": 2,
    "`dyn.image.resize2d`: argument 2 (size) must be a tensor of whole numbers, not of float32": 3,
    "unknown operator `custom_broadcast_add`": 1,  # TVM does not have it either
}


def _types_and_prints(texts: list[str]) -> dict[str, int]:
    """The errors in these texts, and how often; all other texts are typed and printed as they read."""
    wrong: dict[str, int] = {}
    for text in texts:
        try:
            result = parse(text)
        except RelayError as e:
            said = [d.title for d in e.diagnostics]
        else:
            said = [d.title for d in infer(result.module) if d.severity == "error"] if result.module is not None else []
            if not said:
                prints_as_it_reads(result.value)
        for title in said:
            wrong[title] = wrong.get(title, 0) + 1
    return wrong


def _corpus() -> list[str]:
    path = CORPUS / "tvm_passes.jsonl.gz"
    if not path.exists():
        pytest.skip("no corpus of passes")
    with gzip.open(path, "rt") as lines:
        programs = [json.loads(line) for line in lines]
    return list(dict.fromkeys(program[side] for program in programs for side in ("in", "out")))


def test_some_programs_that_tvm_printed_have_types_and_print_as_they_read() -> None:
    assert _types_and_prints(_corpus()[::150]) == {}


@pytest.mark.sweep
def test_every_program_that_tvm_printed_has_types_and_prints_as_it_reads() -> None:
    texts = _corpus()
    assert len(texts) > 2000 and _types_and_prints(texts) == REFUSED


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=[pytest.mark.sweep] if p.stat().st_size > 12_000 else []) for p in _files()], ids=lambda p: p.name
)
def test_every_file_prints_and_formats_as_it_reads(path: Path) -> None:
    text = path.read_text()
    node = parse(text).value
    assert not isinstance(node, IRModule) or [d.title for d in infer(node) if d.severity == "error"] == []
    prints_as_it_reads(node)
    made = format_text(text)
    assert format_text(made) == made


#: Wrong fragments and the codes of their errors.
WRONG = {
    "ck": ["R0103"],  # the metadata section has a string where an expression stands
    "cs": ["R0301"],  # an axis of a tensor of two dimensions is 99
    "esc": ["R0105"],  # a string's escape has no digits
    "lrn": ["R0301"],  # a window of no numbers
    "mi": ["R0304"],  # the metadata section lacks the value
}


@pytest.mark.parametrize("path", sorted(FRAGMENTS.rglob("*.relay")), ids=lambda p: p.stem)
def test_every_fragment_is_read_checked_printed_and_formatted(path: Path) -> None:
    text = path.read_text()
    if path.stem in WRONG:
        try:
            module = parse(text).module
        except RelayError as e:
            said = e.diagnostics
        else:
            assert module is not None
            said = [d for d in infer(module) if d.severity == "error"]
        assert [d.code for d in said] == WRONG[path.stem] and all(d.span is not None for d in said)
        return
    result = parse(text)
    if result.module is not None:
        assert [d.title for d in infer(result.module) if d.severity == "error"] == []
    prints_as_it_reads(result.value)
    made = format_text(text)
    assert format_text(made) == made
    assert structural_diff(parse(made).value, result.value, map_free_vars=True) is None
