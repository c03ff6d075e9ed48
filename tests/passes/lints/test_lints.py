"""Each lint: texts with its findings and repairs, and texts without; and none on programs that others wrote well."""

from __future__ import annotations

import pytest

from relaylang.diagnostics import Diagnostic
from relaylang.diagnostics.source import SourceFile
from relaylang.ir import IRModule
from relaylang.passes.lints import CODES, apply_fixes, lint
from relaylang.stdlib.library import read
from relaylang.typing import check
from tests.shared import CORPUS, ROOT, golden, needs_shared

T = "Tensor[(2, 3), float32]"


def findings(text: str, name: str = "net.relay") -> list[Diagnostic]:
    module = read(text, name).module
    assert module is not None
    check(module)
    return lint(module, SourceFile(name, text))


def main(body: str, params: str = f"%x: {T}") -> str:
    return f"def @main({params}) {{ {body} }}"


def places(found: list[Diagnostic]) -> list[tuple[str, str]]:
    return [(d.code, d.span.text) for d in found if d.span is not None]


#: A text, its findings in order, and the text after the repairs.
FOUND = {
    "let": (main("let %y = exp(%x); %x"), [("R1001", "%y")], main("%x")),
    "graph binding": (main("%0 = exp(%x); %x"), [("R1001", "%0")], main("%x")),
    "a binding that ends with its line": (
        main("\n  %0 = exp(%x)\n  %1 = tanh(%x);\n  %1\n"),
        [("R1001", "%0")],
        main("\n  %1 = tanh(%x);\n  %1\n"),
    ),
    "a chain of bindings": (
        main("\n  let %a = exp(%x);  // why\n  let %b = exp(%a); let %c = exp(%b);\n  %x\n"),
        [("R1001", "%a"), ("R1001", "%b"), ("R1001", "%c")],
        main("\n  // why\n  %x\n"),
    ),
    "a function that calls itself": (
        main(f"let %f = fn (%y: {T}) -> {T} {{ %f(%y) }}; %x"),
        [("R1001", "%f")],
        main("%x"),
    ),
    "a long type": (
        main(f"let %y: ({', '.join([T] * 60)}) = ({', '.join(['%x'] * 60)}); %x"),
        [("R1001", "%y")],
        main("%x"),
    ),
    "a comment in a binding": (main("let %y = exp(/* why */ %x); %x"), [("R1001", "%y")], None),
    "pattern": (
        "type P { P(int32, int32) }\n" + main("match (%p) { P(%a, %b) => %b }", "%p: P"),
        [("R1001", "%a")],
        "type P { P(int32, int32) }\n" + main("match (%p) { P(_, %b) => %b }", "%p: P"),
    ),
    "parameter": (
        f"def @f(%x: {T}, %y: {T}) {{ %x }}\n" + main("@f(%x, %x)"),
        [("R1002", "%y")],
        f"def @f(%x: {T}, %_y: {T}) {{ %x }}\n" + main("@f(%x, %x)"),
    ),
    "parameter whose new name is taken": (
        f"def @f(%y: {T}, %_y: {T}) {{ %_y }}\n" + main("@f(%x, %x)"),
        [("R1002", "%y")],
        f"def @f(%__y: {T}, %_y: {T}) {{ %_y }}\n" + main("@f(%x, %x)"),
    ),
    "function": (
        f"def @f(%x: {T}) -> {T} {{ @g(%x) }}\ndef @g(%x: {T}) -> {T} {{ @f(%x) }}\n" + main("%x"),
        [("R1003", "@f"), ("R1003", "@g")],
        None,
    ),
    "shadowed by a let": (main("let %x = exp(%x); %x"), [("R1004", "%x")], None),
    "shadowed by a parameter": (main(f"let %f = fn (%x: {T}) {{ exp(%x) }}; %f(%x)"), [("R1004", "%x")], None),
    "redundant clause": (
        "type C { R, G, B }\n" + main("match (%c) { R => 1, G => 2, B => 3, R => 4 }", "%c: C"),
        [("R1005", "R => 4")],
        "type C { R, G, B }\n" + main("match (%c) { R => 1, G => 2, B => 3 }", "%c: C"),
    ),
    "redundant pair": (
        "type C { R, G }\n" + main("match ((%c, %d)) { (R, _) => 1, (_, R) => 2, (R, G) => 3, _ => 4 }", "%c: C, %d: C"),
        [("R1005", "(R, G) => 3")],
        "type C { R, G }\n" + main("match ((%c, %d)) { (R, _) => 1, (_, R) => 2, _ => 4 }", "%c: C, %d: C"),
    ),
    "constant condition": (main("if (logical_not(less(1, 2))) { exp(%x) } else { %x }"), [("R1006", "logical_not(less(1, 2))")], None),
    "condition of a name": (main("let %c = less(1, 2); if (%c) { exp(%x) } else { %x }"), [("R1006", "%c")], None),
    "sum": (
        main('exp(%x) * cast(%x - 1f, dtype="float32")'),
        [("R1007", 'cast(%x - 1f, dtype="float32")')],
        main("exp(%x) * (%x - 1f)"),
    ),
    "sum in a call": (
        main('exp(cast(%x - 1f, dtype="float32"))'),
        [("R1007", 'cast(%x - 1f, dtype="float32")')],
        main("exp(%x - 1f)"),
    ),
    "minus": (main('%x - cast(-%x, dtype="float32")'), [("R1007", 'cast(-%x, dtype="float32")')], main("%x - (-%x)")),
    "branches": (
        main('%x - cast(if (%c) { %x } else { exp(%x) }, dtype="float32")', f"%x: {T}, %c: bool"),
        [("R1007", 'cast(if (%c) { %x } else { exp(%x) }, dtype="float32")')],
        main("%x - (if (%c) { %x } else { exp(%x) })", f"%x: {T}, %c: bool"),
    ),
    "a comment in a call": (
        main('exp(cast(%x // the input\n, dtype="float32"))'),
        [("R1007", 'cast(%x // the input\n, dtype="float32")')],
        None,
    ),
    "a comment in an operand": (
        main('cast(exp(/* why */ %x), dtype="float32")'),
        [("R1007", 'cast(exp(/* why */ %x), dtype="float32")')],
        main("exp(/* why */ %x)"),
    ),
    "layout": (
        main('layout_transform(%i, src_layout="NCHW", dst_layout="NCHW")', "%i: Tensor[(1, 2, 3, 4), float32]"),
        [("R1007", 'layout_transform(%i, src_layout="NCHW", dst_layout="NCHW")')],
        main("%i", "%i: Tensor[(1, 2, 3, 4), float32]"),
    ),
    "slice": (
        main("strided_slice(%x, begin=[0, 0], end=[2, 9])"),
        [("R1007", "strided_slice(%x, begin=[0, 0], end=[2, 9])")],
        main("%x"),
    ),
    "padding": (
        main("nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0]])"),
        [("R1007", "nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0]])")],
        main("%x"),
    ),
    "clips": (
        main("clip(clip(%x, a_min=0f, a_max=6f), a_min=0f, a_max=6f)"),
        [("R1007", "clip(clip(%x, a_min=0f, a_max=6f), a_min=0f, a_max=6f)")],
        main("clip(%x, a_min=0f, a_max=6f)"),
    ),
    "requantize by a scale that is not known": (
        main('qnn.requantize(%q, %s, 3, %s, 3, out_dtype="int8")', "%q: Tensor[(2), int8], %s: float32"),
        [("R1007", 'qnn.requantize(%q, %s, 3, %s, 3, out_dtype="int8")')],
        None,
    ),
    "reverses": (main("reverse(reverse(%x, axis=1), axis=1)"), [("R1008", "reverse(reverse(%x, axis=1), axis=1)")], main("%x")),
    "apart, by lets": (main("let %a = negative(%x); let %b = negative(%a); %b"), [("R1008", "negative(%a)")], None),
    "cast": (main('exp(cast(%x, dtype="float32"))'), [("R1007", 'cast(%x, dtype="float32")')], main("exp(%x)")),
    "transposition": (main("exp(transpose(%x, axes=[0, -1]))"), [("R1007", "transpose(%x, axes=[0, -1])")], main("exp(%x)")),
    "reshape": (main("reshape(%x, newshape=[2, -1])"), [("R1007", "reshape(%x, newshape=[2, -1])")], main("%x")),
    "relu": (main("nn.relu(nn.relu(%x))"), [("R1007", "nn.relu(nn.relu(%x))")], main("nn.relu(%x)")),
    "requantize": (
        main('qnn.requantize(%q, 0.5f, 3, 0.5f, 3, out_dtype="int8")', "%q: Tensor[(2), int8]"),
        [("R1007", 'qnn.requantize(%q, 0.5f, 3, 0.5f, 3, out_dtype="int8")')],
        main("%q", "%q: Tensor[(2), int8]"),
    ),
    "two transpositions": (
        main("transpose(transpose(%x, axes=[1, 0]), axes=[1, 0])"),
        [("R1008", "transpose(transpose(%x, axes=[1, 0]), axes=[1, 0])")],
        main("%x"),
    ),
    "apart": (main("%0 = negative(%x); negative(%0)"), [("R1008", "negative(%0)")], None),
    "there and back": (
        main('cast(cast(%i, dtype="int32"), dtype="int8")', "%i: Tensor[(2), int8]"),
        [("R1008", 'cast(cast(%i, dtype="int32"), dtype="int8")')],
        main("%i", "%i: Tensor[(2), int8]"),
    ),
    "shapes": (
        main("reshape(expand_dims(%x, axis=0), newshape=[2, 3])"),
        [("R1008", "reshape(expand_dims(%x, axis=0), newshape=[2, 3])")],
        main("%x"),
    ),
    "quantised": (
        main('qnn.quantize(qnn.dequantize(%q, 0.5f, 3), 0.5f, 3, out_dtype="int8")', "%q: Tensor[(2), int8]"),
        [("R1008", 'qnn.quantize(qnn.dequantize(%q, 0.5f, 3), 0.5f, 3, out_dtype="int8")')],
        main("%q", "%q: Tensor[(2), int8]"),
    ),
    "twice": (main("add(exp(%x), tanh(exp(%x)))"), [("R1009", "exp(%x)")], None),
    "twice with what is on it": (main("add(tanh(exp(%x)), tanh(exp(%x)))"), [("R1009", "tanh(exp(%x))")], None),
    "float64": (
        main('multiply(%x, cast(2f64, dtype="float32"))'),
        [("R1010", "2f64")],
        main("multiply(%x, 2f)"),
    ),
    "float64 beside a cast": (main('(%x, cast(nn.relu(2f64), dtype="float32"))'), [("R1010", "2f64")], None),
    "a float64 number that float32 does not hold": (
        main('multiply(%x, cast(1e300f64, dtype="float32"))'),
        [("R1010", "1e300f64")],
        None,
    ),
    "overflow of names": (main("let %k = 100000; add(%n, multiply(%k, %k))", "%n: int32"), [("R1011", "multiply(%k, %k)")], None),
    "overflow of a result": (
        main("add(%n, multiply(multiply(1000, 1000), 10000))", "%n: int32"),
        [("R1011", "multiply(multiply(1000, 1000), 10000)")],
        None,
    ),
    "shift": (main("left_shift(1, 40)", ""), [("R1011", "left_shift(1, 40)")], None),
    "power": (main("power(10, 12)", ""), [("R1011", "power(10, 12)")], None),
    "the least number": (main("abs(-2147483648)", ""), [("R1011", "abs(-2147483648)")], None),
    "a float": (main('cast(3e9f, dtype="int8")', ""), [("R1011", 'cast(3e9f, dtype="int8")')], None),
    "code of no lint": (main("%x // relay: ignore[R0801]\n"), [("R1012", "R0801")], None),
    "comment in vain": (main("%x // relay: ignore\n"), [("R1012", "relay: ignore")], None),
    "overflow": (main("add(%n, multiply(100000, 100000))", "%n: int32"), [("R1011", "multiply(100000, 100000)")], None),
    "a misspelt attribute": (
        main(f"let %f = fn (%y: {T}, Primitve=1) {{ exp(%y) }}; %f(%x)"),
        [("R1013", "Primitve")],
        main(f"let %f = fn (%y: {T}, Primitive=1) {{ exp(%y) }}; %f(%x)"),
    ),
    "a misspelt attribute of a definition": (
        f'def @f(%x: {T}, Compilr="npu", Inline=1) {{ %x }}\n' + main("@f(%x)"),
        [("R1013", "Compilr")],
        f'def @f(%x: {T}, Compiler="npu", Inline=1) {{ %x }}\n' + main("@f(%x)"),
    ),
    "mixed elements": (
        main("nn.dense(%x, %w, units=4)", f"%x: {T}, %w: Tensor[(4, 3), float16]"),
        [("R1014", "%w")],
        None,
    ),
    "mixed elements of a convolution": (
        main("nn.conv2d(%x, %w)", "%x: Tensor[(1, 3, 8, 8), float16], %w: Tensor[(4, 3, 3, 3), float32]"),
        [("R1014", "%w")],
        None,
    ),
    "a condition of floats": (main("where(%x, exp(%x), %x)"), [("R1014", "%x")], None),
    "narrow": (main('cast(300, dtype="int8")', ""), [("R1011", 'cast(300, dtype="int8")')], None),
}
#: Texts without findings.
CLEAN = {
    "effects": main("let %r = ref(%x); let %u = ref_write(%r, exp(%x)); ref_read(%r)"),
    "other attributes of functions": f'def @f(%x: {T}, Name="x", my_key=1, Primitive=1) {{ 1 }}\n' + main("%x"),
    "products of whole numbers": main("nn.dense(%x, %w, units=4)", "%x: Tensor[(2, 3), uint8], %w: Tensor[(4, 3), int8]"),
    "a name that tells": main("let %_y = exp(%x); %x"),
    "parameters of @main": main("%x", f"%x: {T}, %y: {T}"),
    "functions of a code generator": f'def @f(%x: {T}, Compiler="npu", global_symbol="f") {{ 1 }}\n' + main("%x"),
    "a library": f"def @f(%x: {T}) {{ %x }}\ndef @g(%x: {T}) {{ %x }}",
    "siblings": main(f"let %f = fn (%y: {T}) {{ exp(%y) }}; let %g = fn (%y: {T}) {{ tanh(%y) }}; add(%f(%x), %g(%x))"),
    "a type of functions": f"def @f(%x: {T}) -> fn ({T}) -> {T} {{ fn (%y: {T}) {{ add(%x, %y) }} }}\n"
    + main("let %f = @f(%x); %f(%x)"),
    "branches": main("if (%c) { exp(%x) } else { add(exp(%x), %x) }", f"%x: {T}, %c: bool"),
    "a narrow cast and back": main('cast(cast(%x, dtype="int32"), dtype="float32")'),
    "integers that float64 rounds": main('cast(cast(%i, dtype="float64"), dtype="int64")', "%i: Tensor[(2), int64]"),
    "integers that float32 rounds": main(
        'qnn.quantize(qnn.dequantize(%i, 0.5f, 3), 0.5f, 3, out_dtype="int32")', "%i: Tensor[(2), int32]"
    ),
    "other scales": main('qnn.quantize(qnn.dequantize(%q, 0.5f, 3), 0.25f, 3, out_dtype="int8")', "%q: Tensor[(2), int8]"),
    "another reshape": main("reshape(reshape(%x, newshape=[6]), newshape=[3, 2])"),
    "an unknown extent": main("reshape(%x, newshape=[-1, 3])", "%x: Tensor[(?, 3), float32]"),
    "a float64 program": main("multiply(%x, 2f64)", "%x: Tensor[(2), float64]"),
    "weights of one fill": main("add(full(2f, shape=[2, 3]), multiply(%x, full(2f, shape=[2, 3])))", "%x: Tensor[(2, 3), float32]"),
    "float64 arithmetic": main('cast(add(cast(%x, dtype="float64"), 2f64), dtype="float32")'),
    "the clip of another range": main("clip(clip(%x, a_min=0f, a_max=6f), a_min=1f, a_max=6f)"),
    "reverses of other axes": main("reverse(reverse(%x, axis=1), axis=0)"),
    "a scale whose products are too great": main(
        'qnn.quantize(qnn.dequantize(%q, 1e38f, 3), 1e38f, 3, out_dtype="int8")', "%q: Tensor[(2), int8]"
    ),
    "the first values of variables": "def @initial_state() { 1f }\n" + main("%x"),
    "a float64 result": main("(%x, nn.relu(2f64))"),
    "a float64 field": "type P { P(float64), }\n" + main("match (P(2f64)) { P(%d) => (%x, %d) }"),
    "what fits": main("multiply(100, 100)", ""),
    "all clauses": "type C { R, G }\n" + main("match ((%c, %d)) { (R, _) => 1, (_, R) => 2, _ => 3 }", "%c: C, %d: C"),
}


@pytest.mark.parametrize("name", FOUND)
def test_findings_and_repairs(name: str) -> None:
    text, wanted, repaired = FOUND[name]
    found = findings(text)
    assert places(found) == wanted
    assert all(d.severity == "warning" for d in found)
    if repaired is None:
        assert [d.fix for d in found] == [None] * len(found)
        return
    made = text
    while fixes := [d.fix for d in findings(made) if d.fix is not None]:
        made = apply_fixes(made, fixes)
    assert made == repaired
    assert findings(made) == []


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found(name: str) -> None:
    assert places(findings(CLEAN[name])) == []


def test_every_lint_has_a_case() -> None:
    assert {code for _, wanted, _ in FOUND.values() for code, _ in wanted} == set(CODES)


@pytest.mark.parametrize(
    ("comment", "count"),
    [("// relay: ignore[R1001]", 0), ("// relay: ignore", 0), ("# relay: ignore[R1004, R1001]", 0), ("// relay: ignore[R1004]", 1)],
)
def test_comments_silence_a_line(comment: str, count: int) -> None:
    behind = f"def @main(%x: {T}) {{\n  let %y = exp(%x);  {comment}\n  %x\n}}\n"
    above = f"def @main(%x: {T}) {{\n  {comment}\n  let %y = exp(%x);\n  %x\n}}\n"
    elsewhere = f"def @main(%x: {T}) {{\n  let %y = exp(%x);\n  %x  {comment}\n}}\n"
    found = [[d.code for d in findings(text)] for text in (behind, above, elsewhere)]
    assert [codes.count("R1001") for codes in found] == [count, count, 1]
    idle = comment.count("R1004")
    assert [codes.count("R1012") for codes in found] == [idle, idle, max(1, comment.count("R1"))]


def test_comments_about_lints_that_do_not_run() -> None:
    """Nobody knows whether they silence something."""
    module = read(text := main("%x // relay: ignore[R1004]\n"), "net.relay").module
    check(module)
    source = SourceFile("net.relay", text)
    assert lint(module, source, ["R1001", "R1012"]) == []
    assert [d.code for d in lint(module, source, ["R1004", "R1012"])] == ["R1012"]


def test_repairs_are_made_inside_of_others() -> None:
    text = main('nn.relu(nn.relu(cast(%x, dtype="float32")))')
    fixes = [d.fix for d in findings(text) if d.fix is not None]
    assert len(fixes) == 2
    assert apply_fixes(text, fixes) == main("nn.relu(%x)")


def test_of_repairs_that_overlap_the_first_is_made() -> None:
    text = main("negative(negative(negative(negative(%x))))")
    fixes = [d.fix for d in findings(text) if d.fix is not None]
    assert len(fixes) == 3
    assert apply_fixes(text, fixes) == main("%x")


#: True findings in others' files: states of an LSTM that nobody reads, a tensor that is flat already, two negations.
TRUE = {"lstm": {"R1001"}, "batch_flatten": {"R1007"}, "duplicate_relay_call": {"R1008"}}


@pytest.mark.sample(3)
@needs_shared
@pytest.mark.parametrize("folder", ["golden", "corpus", "examples"])
def test_good_programs_have_no_findings(folder: str) -> None:
    files = {"golden": golden("*"), "corpus": sorted(CORPUS.rglob("*.relay")), "examples": sorted((ROOT / "examples").glob("*.relay"))}
    wrong = {}
    for file in files[folder]:
        result = read(file.read_text(), str(file))
        if result.module is None:
            continue
        check(result.module)
        known = next((codes for name, codes in TRUE.items() if name in file.name), set())
        found = [d for d in lint(result.module, SourceFile(str(file), file.read_text())) if d.code not in known]
        if found:
            wrong[file.name] = places(found)
    assert files[folder]
    assert wrong == {}


def test_long_and_deep_programs() -> None:
    """Two thousand statements of which none is used, and calls as deep."""
    lines = "\n".join(f"  let %y{i} = exp(%x);" for i in range(2_000))
    found = findings(f"def @main(%x: {T}) {{\n{lines}\n  %x\n}}\n")
    assert len([d for d in found if d.code == "R1001"]) == 2_000
    deep = "nn.relu(" * 2_000 + "%x" + ")" * 2_000
    assert len(findings(main(deep))) == 1_999


def test_shared_operands_are_walked_once() -> None:
    doubled = "\n".join(f"  %{i + 1} = add(%{i}, %{i});" for i in range(60))
    assert findings(f"def @main(%x: {T}) {{\n  %0 = exp(%x);\n{doubled}\n  %60\n}}\n") == []


def test_a_module_that_was_made_elsewhere() -> None:
    """Functions that do not stand in the text have no findings."""
    module = read(main("nn.relu(nn.relu(%x))"), "a.relay").module
    assert isinstance(module, IRModule)
    check(module)
    assert lint(module, SourceFile("b.relay", main("%x"))) == []
