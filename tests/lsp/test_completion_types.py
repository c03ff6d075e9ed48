"""Completion by types of expressions that are not checked yet: nested calls, literals, new lets, annotations."""

from __future__ import annotations

import pytest

from relaylang.lsp.analysis import Analysis
from relaylang.lsp.completion import completion

TEXT = """\
type Tree { Leaf(int32), Fork(Tree, Tree), Empty, }
type Opt[A] { Some(A), Missing, }
def @sum(%t: Tree) -> int32 { 1 }
def @two(%x: Tensor[(2, 3), float32]) -> (Tensor[(2, 3), float32], Tree) { (%x, Empty) }
def @apply[A, B](%f: fn (A) -> B, %a: A) -> B { %f(%a) }
def @main(%data: Tensor[(1, 3, 8, 8), float32], %image: Tensor[(1, 8, 8, 3), float32],
          %weight: Tensor[(16, 3, 3, 3), float32], %hwio: Tensor[(3, 3, 3, 16), float32], %bias: Tensor[(16), float32],
          %a: Tensor[(2, 3), float32], %b: Tensor[(4, 3), float32], %i: Tensor[(3), int32], %q: Tensor[(2, 3), int8],
          %t: Tree, %o: Opt[Tree], %c: bool, %r: ref(Tree), %f: fn (Tree) -> int32) {
  |
  %a
}
"""
#: The text was read before its line was typed, and was never right.
KNOWN = [Analysis(TEXT.replace("|", ""), "net.relay"), Analysis(TEXT.replace("|", "@@"), "net.relay")]

#: Lines in the function's body, and their first offers. An empty list: there are none.
LINES: list[tuple[str, list[str]]] = [
    # arguments that are calls or literals
    ("nn.bias_add(nn.conv2d(%data, %weight, padding=[1, 1, 1, 1]), |", ["%bias"]),
    ("nn.bias_add(nn.conv2d(%data, |", ["%weight", "%data"]),
    ("multiply(nn.relu(%q), |", ["%q"]),
    ("add(1, |", ["%i"]),
    ("add(2f, %|", ["%b", "%a", "%bias"]),
    ("concatenate((nn.relu(%a), |", ["%b", "%a"]),
    ("@apply(@sum, |", ["%t"]),
    ("@apply(%f, |", ["%t"]),
    ("%f(|", ["%t"]),
    ("nn.dense(%a, |", ["%b", "%a", "%q"]),
    ("qnn.quantize(%a, 0.5f, |", ["%i"]),
    ("nn.max_pool2d(|", ["%hwio", "%weight", "%image", "%data"]),
    # lets of lines that were typed since
    ("let %z = nn.conv2d(%data, %weight); nn.bias_add(%z, |", ["%bias"]),
    ("let %z = @two(%a); let %y = %z.1; @sum(|", ["%y", "%t"]),
    ("let %z = (%t, %c); match (%z) { (|", ["Leaf", "Fork", "Empty", "_"]),
    ("let %z = split(%a, indices_or_sections=2); %z.|", ["%z.0", "%z.1"]),
    # the place's own type
    ("let %z: Tree = |", ["%t"]),
    ("let %z: Tensor[(4, 3), float32] = |", ["%b"]),
    ("let %z: int32 = @|", ["@sum", "@two"]),
    ("match (|", ["%o", "%t"]),
    ("match? (|", ["%o", "%t"]),
    ("ref_read(|", ["%r"]),
    ("ref_write(%r, |", ["%t"]),
    ("%c == |", ["%c"]),
    # clauses for values of calls
    ("match (@sum(%t)) { |", ["_"]),
    ("match (Some(%t)) { |", ["Some", "Missing", "_"]),
    ("match (Some(%t)) { Some(|", ["Leaf", "Fork", "Empty", "_"]),
    ("match (@two(%a).1) { |", ["Leaf", "Fork", "Empty", "_"]),
    # fields behind a bracket
    ("@two(%a).|", [".0", ".1"]),
    ("(%a, %c).|", [".0", ".1"]),
    ("nn.relu(%a).|", []),
    # constants of the metadata section
    ("meta[|", ["relay.Constant"]),
    ("meta[relay.Constant][|", ["0"]),
    ("add(meta[relay.Constant][0], meta[relay.Constant][|", ["1", "0"]),
    # values that the call takes first
    ("nn.conv2d(%image, %hwio, data_layout=|", ['"NCHW"', '"NHWC"', '"NCHW16c"']),
    ('nn.conv2d(%image, %hwio, data_layout="NHWC", kernel_layout=|', ['"HWIO"', '"OIHW"']),
    ('nn.conv2d(%image, %weight, data_layout="NHWC", kernel_layout="|', ['"OIHW"', '"OHWI"']),
    ("reinterpret(%q, dtype=|", ['"int8"', '"uint8"']),
    ("arange(0f, 10f, 1f, dtype=|", ['"float32"']),
    ("arange(0, 10, 1, dtype=|", ['"int32"']),
    ('nn.dense(%a, %b, out_dtype="|', ['"float32"', '"int32"']),
    ("qnn.quantize(%a, 0.5f, 0, out_dtype=|", ['"int8"', '"uint8"', '"int16"', '"uint16"', '"int32"']),
    ("qnn.dequantize(%q, 0.5f, 0, out_dtype=|", ['"float32"', '"float16"']),
    ("qnn.dense(%q, %q, 0, 0, 1f, 1f, units=2, out_dtype=|", ['"int32"', '"int64"', "None"]),
    ("qnn.requantize(%q, 1f, 0, 1f, 0, compute_dtype=|", ['"None"', '"float32"', '"float64"', '"int64"']),
    ("argsort(%a, dtype=|", ['"int32"', '"int64"']),
    ("nn.max_pool3d(%data, out_layout=|", ['"NCDHW"', '"NDHWC"', '"NCDHW16c"']),
    # the commoner operators first
    ("nn.|", ["nn.conv2d", "nn.dense", "nn.bias_add", "nn.relu"]),
    ("nn.b|", ["nn.bias_add", "nn.batch_norm", "nn.batch_flatten"]),
    ("qnn.|", ["qnn.conv2d", "qnn.dense", "qnn.requantize"]),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("known", KNOWN, ids=["checked", "unchecked"])
@pytest.mark.parametrize(("line", "wanted"), LINES, ids=[line for line, _ in LINES])
def test_offers(line: str, wanted: list[str], known: Analysis) -> None:
    marked = TEXT.replace("|", line)
    at = marked.index("|")
    found = [s.text for s in completion(marked[:at] + marked[at + 1 :], at, known)][:5]
    assert found[: len(wanted)] == wanted and bool(found) == bool(wanted)


def test_values_in_strings_are_strings() -> None:
    marked = TEXT.replace("|", 'nn.dense(%a, %b, out_dtype="|')
    at = marked.index("|")
    assert all(s.text.startswith('"') for s in completion(marked[:at] + marked[at + 1 :], at, KNOWN[0]))
