"""Completion in a text with a cursor: the first offers, in texts that are wrong or unfinished there."""

from __future__ import annotations

import pytest

from relaylang.lsp.analysis import Analysis
from relaylang.lsp.completion import completion
from relaylang.syntax.symbols import SymbolTable

#: The cursor's line stands at the mark.
TEXT = """\
type Tree { Leaf(int32), Fork(Tree, Tree), Empty, }
type Pair[A, B] { Pair(A, B), }
def @sum(%t: Tree) -> int32 {
  match (%t) { Leaf(%n) => %n, Fork(%l, %r) => add(@sum(%l), @sum(%r)), Empty => 0 }
}
def @scale(%x: Tensor[(2, 3), float32], %by: float32) -> Tensor[(2, 3), float32] { multiply(%x, %by) }
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32], %b: Tensor[(4), float32], %t: Tree, %p: (int32, bool), %c: bool) {
  let %y = nn.dense(%x, %w, units=4);
  let %q = cast(%y, dtype="int8");
  |
  %y
}
"""
KNOWN = Analysis(TEXT.replace("|", ""), "net.relay")
TENSORS = ["Tensor[(4), float32]", "Tensor[(4, 3), float32]", "Tensor[(2, 3), float32]"]


def offers(marked: str, known: Analysis = KNOWN) -> list[str]:
    """The offers at the mark of a text."""
    at = marked.index("|")
    return [s.text for s in completion(marked[:at] + marked[at + 1 :], at, known)]


#: Lines in the function's body, and their first offers. An empty list: there are none.
IN_BODY: list[tuple[str, list[str]]] = [
    # variables: those that fit the argument, the last one first
    ("nn.bias_add(%y, |", ["%b"]),
    ("nn.dense(%x, |", ["%w", "%x", "%q", "%y"]),
    ("nn.dense(%x, %|", ["%w", "%x", "%q"]),
    ("nn.dense(|", ["%q", "%y", "%b", "%w", "%x"]),
    ("add(%x, |", ["%x", "%q"]),
    ("add(|, %x)", ["%q", "%y", "%c", "%b", "%w"]),
    ("@scale(|", ["%x"]),
    ("@sum(|", ["%t", "%q"]),
    ("@sum(Fork(%t, |", ["%t"]),
    ("Fork(|", ["%t"]),
    ("if (|", ["%c"]),
    ("%y + |", ["%y", "%b", "%w", "%x", "%q"]),
    ("let %z = fn (%a: Tensor[(2, 3), float32]) { nn.relu(|", ["%a", "%q", "%y"]),
    # a value does not have its own variable, a function in it has
    ("let %z = add(%z|", []),
    ("let %z: int32 = add((%z|", []),
    ("let %z = fn (%a: int32) { %z|", ["%z"]),
    ("%|", ["%q", "%y", "%c", "%p", "%t"]),
    ("%p.|", ["%p.0", "%p.1"]),
    ("%y|", ["%y"]),
    # attributes that are not given, those first that must be
    ("nn.dense(%x, %w, |", ["units=", "out_dtype="]),
    ("nn.dense(%x, %w, units=4, |", ["out_dtype="]),
    ("nn.dense(%x, %w, o|", ["out_dtype="]),
    ("nn.conv2d(%x, %w, strides=[1, 1], |", ["padding=", "dilation=", "groups=", "channels=", "kernel_size="]),
    ("nn.conv2d(%x, %w, la|", ["data_layout=", "kernel_layout=", "out_layout="]),
    ("nn.conv2d(%x, %w, k|", ["kernel_size=", "kernel_layout="]),
    ("reshape(%x, |", ["newshape=", "allowzero="]),
    ("zeros(|", ["shape=", "dtype="]),
    # their values
    ("nn.conv2d(%x, %w, data_layout=|", ['"NCHW"', '"NHWC"', '"NCHW16c"']),
    ('nn.conv2d(%x, %w, data_layout="|', ['"NCHW"', '"NHWC"', '"NCHW16c"']),
    ('nn.conv2d(%x, %w, data_layout="NH|', ['"NHWC"']),
    ('nn.conv2d(%x, %w, data_layout="NH|", groups=1)', ['"NHWC']),
    ("nn.conv2d(%x, %w, kernel_layout=|", ['"OIHW"', '"HWIO"', '"HWOI"', '"OHWI"']),
    ("nn.conv1d(%x, %w, data_layout=|", ['"NCW"', '"NWC"', '"NCW16c"']),
    ("nn.conv2d(%x, %w, out_layout=|", ['"NCHW"', '"NHWC"']),
    ("nn.dense(%x, %w, out_dtype=|", ['"float32"', '"int32"', '"int8"', '"uint8"', '"bool"']),
    ('cast(%x, dtype="int|', ['"int32"', '"int8"', '"int64"', '"int16"']),
    ("take(%x, %y, mode=|", ['"clip"', '"wrap"', '"fast"']),
    ("nn.max_pool2d(%x, ceil_mode=|", ["True", "False"]),
    ("nn.max_pool2d(%x, ceil_mode=F|", ["False"]),
    ("image.resize2d(%x, method=|", ['"nearest_neighbor"', '"linear"', '"cubic"']),
    ("image.resize3d(%x, layout=|", ['"NCDHW"', '"NDHWC"']),
    ("nn.softmax(%x, axis=|", ["-1"]),
    ("nn.pad(%x, pad_mode=|", ['"constant"', '"edge"', '"reflect"']),
    ("nn.conv2d(%x, %w, strides=[|", []),
    # clauses
    ("match (%t) { |", ["Leaf", "Fork", "Empty", "_"]),
    ("match? (%t) { |", ["Leaf", "Fork", "Empty", "_"]),
    ("match (%t) { Leaf(%n) => 1, |", ["Fork", "Empty", "_"]),
    ("match (%t) { Leaf(%n) => 1, Fork(Leaf(%n), _) => 2, |", ["Fork", "Empty", "_"]),
    ("match (%t) { Leaf(%n) => 1, E|", ["Empty"]),
    ("match (%t) { Fork(|", ["Leaf", "Fork", "Empty", "_"]),
    ("match (%t) { Fork(Leaf(%a), |", ["Leaf", "Fork", "Empty", "_"]),
    ("match (%t) { Leaf(%|", []),
    ("match (%t) { Leaf(%n) => |", ["let", "match", "if", "fn", "%n"]),
    ("match (%t) { Leaf(%n) => %|", ["%n", "%q"]),
    ("match (%t) { Leaf(%n) => add(%n, |", ["%n"]),
    # types
    ("let %z: |", [*TENSORS, "Tree", "Pair["]),
    ("let %z: Te|", [*TENSORS, "Tensor["]),
    ("let %z: Tensor[|", ["(4)", "(4, 3)", "(2, 3)"]),
    ("let %z: Tensor[(|", ["4", "2", "3", "?"]),
    ("let %z: Tensor[(2, |", ["3", "4", "2", "?"]),
    ("let %z: Tensor[(2, 3), |", ["float32", "bool", "int32", "int8", "uint8"]),
    ("let %z: Tensor[(2, 3), u|", ["uint8", "uint16", "uint32", "uint64"]),
    ("let %z: Pair[|", TENSORS),
    ("let %z: Pair[int32, |", TENSORS),
    ("let %z: (int32, |", TENSORS),
    ("let %z: fn (|", TENSORS),
    ("let %z: fn (int32) -> |", TENSORS),
    ("let %z: b|", ["bool", "bfloat16"]),
    ("let %z = fn (%a: |", TENSORS),
    ("let %z = fn (%a) -> |", TENSORS),
    # new names
    ("let %|", []),
    ("let %z = fn (|", []),
    ("let %z = fn (%a: int32, %|", []),
    # names by their letters
    ("let|", ["let"]),
    ("l|", ["let", "log"]),
    ("nn.sof|", ["nn.softmax"]),
    ("dense|", ["nn.dense", "qnn.dense"]),
    ("let %z = relu|", ["nn.relu"]),
    ("c2d|", ["nn.conv2d", "qnn.conv2d"]),
    ("nbm|", ["nn.batch_matmul"]),
    ("let %z = mat|", ["matrix_set_diag", "match"]),
    ("let %z = mu|", ["multiply"]),
    ("@s|", ["@sum", "@scale"]),
    ("@|", ["@sum", "@scale", "@main"]),
    ("F|", ["Fork", "False", "fn"]),
    ("if (%c) { 1 } |", ["else"]),
    ("|", ["let", "match", "if", "fn", "%q"]),
    # places where nothing can be named
    ("%c |", []),
    ("nn.relu(%y) |", []),
    ("// nn.re|", []),
    ("/* nn.re|", []),
    ('"nn.re|', []),
    ("add(%x, 1|", []),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("line", "wanted"), IN_BODY, ids=[line for line, _ in IN_BODY])
def test_offers_in_a_body(line: str, wanted: list[str]) -> None:
    found = offers(TEXT.replace("|", line))[:5]
    assert found[: len(wanted)] == wanted and bool(found) == bool(wanted)


#: A text with tuples in arguments, patterns and type definitions.
TUPLES = """\
type Tree { Leaf(int32), Fork(Tree, Tree), }
type Pair[A, B] { Pair(A, B), }
type Both { Both((Tree, bool)), }
def @first(%p: (Tree, (bool, Tree))) -> Tree { %p.0 }
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32], %n: Tensor[(3), int8], %t: Tree, %c: bool,
          %p: (Tree, bool), %v: Pair[Tree, (Tree, bool)]) {
  |
  %c
}
"""
#: Lines in the body of `TUPLES`, and their first offers.
IN_TUPLES: list[tuple[str, list[str]]] = [
    # fields: those that fit the argument first
    ("concatenate((|", ["%n", "%w", "%x", "%v"]),
    ("concatenate((%x, |", ["%w", "%x", "%v", "%p", "%c"]),
    ("concatenate((%x, %w, %|", ["%w", "%x", "%v"]),
    ("stack((%x, |", ["%x", "%v"]),
    ("Both((|", ["%t", "%v"]),
    ("Both((%t, |", ["%c", "%v"]),
    ("Both(%|", ["%p", "%v"]),
    ("@first((|", ["%t", "%v"]),
    ("@first((%t, (|", ["%c", "%v"]),
    ("@first((%t, (%c, |", ["%t", "%v"]),
    ("@first((%c, |", ["%v", "%p", "%t", "%n"]),
    ("nn.relu((|", ["%c", "%n", "%w", "%x", "%v"]),
    ("concatenate([%x, %|", ["%v", "%p", "%c"]),
    # patterns: the parts of the matched type
    ("match (%v) { Pair(|", ["Leaf", "Fork", "_"]),
    ("match (%v) { Pair(_, |", ["_"]),
    ("match (%v) { Pair(_, (|", ["Leaf", "Fork", "_"]),
    ("match (%v) { Pair(_, (Fork(_, |", ["Leaf", "Fork", "_"]),
    ("match (%v) { Pair(_, (_, |", ["_"]),
    ("match (%p) { |", ["_"]),
    ("match (%p) { (|", ["Leaf", "Fork", "_"]),
    ("match (%p) { (Leaf(_), _) => 1, (F|", ["Fork"]),
    ("match (%v.0) { Pair(|", ["_"]),
    ("match (%v) { Pair(%l, (%r, %d)) => if (|", ["%d", "%c"]),
    ("match (%v) { Pair(%l, (%r, _)) => match (%r) { Leaf(%m) => add(%m, |", ["%m"]),
    ("match (%v) { Pair(%l, (%r, _)) => match (%r) { |", ["Leaf", "Fork", "_"]),
    ("match (%t, %v) { (|", ["Leaf", "Fork", "_"]),
    ("match (%t, %v) { (_, |", ["Pair", "_"]),
    ("match ((%c, %t)) { (_, |", ["Leaf", "Fork", "_"]),
    ("match (%t, add(%x, %x)) { (|", ["Leaf", "Fork", "_"]),
    ("match (%t, add(%x, %x)) { (_, |", ["_"]),
    ("match (add(%x, %x)) { |", ["_"]),
    ("match (@other(%x)) { |", ["Leaf", "Fork", "Pair", "Both", "_"]),
    ("concatenate((%x, (%x, |", ["%v"]),
]
KNOWN_TUPLES = Analysis(TUPLES.replace("|", ""), "net.relay")


@pytest.mark.parametrize(("line", "wanted"), IN_TUPLES, ids=[line for line, _ in IN_TUPLES])
def test_offers_in_tuples(line: str, wanted: list[str]) -> None:
    found = offers(TUPLES.replace("|", line), KNOWN_TUPLES)[:5]
    assert found[: len(wanted)] == wanted and bool(found) == bool(wanted)


#: A text in front of the definitions, and the first offers.
AT_TOP: list[tuple[str, list[str]]] = [
    ("|", ["def", "type", "import", "extern", "let"]),
    ("d|", ["def"]),
    ("im|", ["import"]),
    ('import "|', ['"prelude.rly"', '"nat.rly"', '"gradient.rly"', '"core.rly"']),
    ('import "n|"', ['"nat.rly']),
    ("import |", ['"prelude.rly"', '"nat.rly"']),
    ("extern |", ["type"]),
    ("def |", []),
    ("def @|", []),
    ("def @f(|", []),
    ("def @f(%|", []),
    ("def @f(%a|", []),
    ("def @f(%a: |", ["Tree", "Pair[", "Tensor[", "float32", "int32"]),
    ("def @f(%a: int32, %b: in|", ["int32", "int8", "int64", "int16"]),
    ("def @f(%a: int32) -> |", ["Tree", "Pair[", "Tensor[", "int32", "float32"]),
    ("def @f[A, B](%a: |", ["A", "B", "Tree"]),
    ("def @f[n](%a: Tensor[(n, |", ["n", "?"]),
    ("def @f(%a: int32) { |", ["let", "match", "if", "fn", "%a"]),
    ("def @f(%a: int32, %c: bool) { if (%|", ["%c", "%a"]),
    ("def @f(%a: int32) { 1 } |", ["def", "type", "import", "extern", "let"]),
    ("type |", []),
    ("type T { |", []),
    ("type T { A(|", ["Tree", "Pair[", "T", "Tensor[", "float32"]),
    ("type T[A] { C(A, |", ["A", "Tree", "Pair[", "T"]),
    ('#[version = "0.0.|', []),
    ("#[version = |", []),
]


@pytest.mark.parametrize(("head", "wanted"), AT_TOP, ids=[head for head, _ in AT_TOP])
def test_offers_in_front_of_definitions(head: str, wanted: list[str]) -> None:
    found = offers(head + "\n" + TEXT.replace("|", ""))[:5]
    assert found[: len(wanted)] == wanted and bool(found) == bool(wanted)


def test_what_the_library_defines() -> None:
    text = 'import "prelude.rly"\ndef @main(%l: List[int32]) {\n  |@length(%l)\n}\n'
    known = Analysis(text.replace("|", ""), "net.relay")
    assert offers(text.replace("|", "match (%l) { |"), known) == ["Cons", "Nil", "_"]
    assert offers(text.replace("|", "@fol|"), known)[:2] == ["@foldl", "@foldr"]
    assert "List[" in offers(text.replace("|", "let %k: |"), known)
    assert offers(text.replace("|", "@length(|"), known)[0] == "%l"


def test_a_text_that_was_never_right() -> None:
    text = "def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32], %k: int32) {\n  nn.dense(%x, |\n"
    assert offers(text, Analysis(text.replace("|", ""), "net.relay"))[:3] == ["%w", "%x", "%k"]


def test_types_are_found_when_lines_were_put_in_front() -> None:
    text = "// a line\n" + TEXT.replace("|", "nn.bias_add(%y, |")
    assert offers(text)[0] == "%b"


def test_a_request_reads_the_tokens_of_one_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    monkeypatch.setattr("relaylang.repl.completion.place.SymbolTable", lambda text: read.append(len(text)) or SymbolTable(text))
    many = "\n".join(f"def @f{i}(%n: int32) -> int32 {{ add(%n, {i}) }}" for i in range(500))
    text = f"{many}\ndef @g(%n: int32) {{ add(%n, |"
    assert offers(text, Analysis(many, "net.relay"))[0] == "%n"
    assert read == [len("def @g(%n: int32) { add(%n, ")]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "statement", ["let %v{} = nn.relu({});", "let %v{}: Tensor[(2, 3), float32] = nn.relu({});", "%{} = nn.relu({});"]
)
def test_a_long_function_is_read_in_part(monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    sign = "%v" if "let" in statement else "%"
    lines = [f"  {statement.format(i, f'{sign}{i - 1}' if i else '%x')}" for i in range(2000)]
    text = "\n".join(["def @main(%x: Tensor[(2, 3), float32]) {", *lines, "  |", f"  {sign}1999", "}", ""])
    known = Analysis(text.replace("|", ""), "net.relay")
    read: list[int] = []
    monkeypatch.setattr("relaylang.repl.completion.place.SymbolTable", lambda text: read.append(len(text)) or SymbolTable(text))

    def first(fragment: str) -> list[tuple[str, str]]:
        marked = text.replace("|", fragment)
        at = marked.index("|")
        return [(s.text, s.says) for s in completion(marked[:at] + marked[at + 1 :], at, known)][:2]

    ty = "Tensor[(2, 3), float32]"
    assert first("nn.relu(%|") == [(f"{sign}1999", ty), (f"{sign}1998", ty)]
    assert first(f"nn.relu({sign}12|") == [(f"{sign}12", ty), (f"{sign}1299", ty)]
    assert first("nn.relu(%x|")[0] == ("%x", ty)
    assert first("let %z: Tensor[(|")[0][0] == "2"
    assert max(read) < 30_000


@pytest.mark.sweep
def test_every_place_has_an_answer() -> None:
    clauses = 'Leaf(%n) => nn.dense(%x, %w, out_dtype="int8"), Fork(_, _) => if (%c) { %y } else { %y }'
    text = TEXT.replace("|", f"match (%t) {{ {clauses} }}")
    for at in range(0, len(text), 3):
        for letters in ("", "%", "nn."):
            assert all(s.text for s in completion(text[:at] + letters, at + len(letters), KNOWN))
