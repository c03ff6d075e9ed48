"""A text that is read by parts: the same is said of it as if it had been read anew.

`python -m tests.lsp.test_document FIRST COUNT` tries the seeds from FIRST on, twelve edits each.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Sequence

import pytest

from relaylang.diagnostics import Diagnostic
from relaylang.ir import Expr, Let, Var
from relaylang.lsp import features, stretches, structure
from relaylang.lsp.analysis import Analysis, Whole
from relaylang.lsp.completion import completion
from relaylang.lsp.document import Document, NotByParts, start_of
from relaylang.lsp.segments import Part
from relaylang.syntax.symbols import SymbolTable
from relaylang.syntax.tokeniser import tokenise
from relaylang.syntax.tree import Tree
from relaylang.typing.scopes import Scopes

TEXT = """\
#[version = "0.0.5"]
// `def` in a comment begins nothing
type Tree { Leaf(int32), Fork(Tree, Tree), }
def @sum(%t: Tree) -> int32 {
  match (%t) { Leaf(%n) => %n, Fork(%l, %r) => add(@sum(%l), @sum(%r)) }
}
/* def @no() { } */
def @twice[A](%x: A, %"odd name": int32) -> (A, A) { let %f = fn (%y) { (%y, %x) }; %f(%x) }
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
  let %y = nn.dense(%x, %w, units=4); // the end } "
  %0 = nn.relu(%y);
  %1 = @open(%0, meta[relay.Constant][0] /* ty=int32 */);
  add(%0, %1)
}
def @open(%a, %b) { %a }
def @last() -> int32 { @sum(Leaf(3)) }
"""
PIECES = [
    *("{", "}", "(", ")", ";", ",", "%", "@", '"', "#", "//", "/*", "*/", "\n", "=>", "3", "x", "  "),
    *("def ", "def @open() { 1 }\n", "let %z = 1;", "@sum", "@main", "nn.relu(%x)", "type T { A, B(T) }\n", "-> int32"),
    *("%x", "match", 'import "prelude.rly"\n', "extern type Q\n"),
]


def edited(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text))
    if chance.random() < 0.5:
        return text[:at] + chance.choice(PIECES) + text[at:]
    count = chance.choice((1, 1, 2, 5, 20, 100))
    if chance.random() < 0.6:
        return text[:at] + text[at + count :]
    other = chance.randrange(len(text))
    return text[:at] + text[other : other + count] + text[at:]


def told(found: list[Diagnostic]) -> list[object]:
    """Diagnostics with the places that they have in the text."""
    return sorted(
        (
            d.code,
            start_of(d),
            d.title,
            d.notes,
            [(label.span.source.base + label.span.start, label.span.source.base + label.span.end, label.text) for label in d.labels],
            (d.fix.span.source.base + d.fix.span.start, d.fix.replacement) if d.fix is not None else None,
        )
        for d in found
    )


def named(table: SymbolTable) -> list[object]:
    """The names of a text with all their places."""
    facts = [
        (
            s.kind,
            s.name,
            s.begin if s.definition else 0,
            s.end,
            s.value_start,
            [t.start for t in s.places()],
            [c.name for c in s.children],
        )
        for s in table.symbols
    ]
    return sorted(facts, key=repr)


def is_sound(found: list[Diagnostic]) -> bool:
    return not any(d.severity == "error" for d in found)


def opened(text: str) -> Document | None:
    try:
        return Document(text, "net.relay")
    except NotByParts:
        return None


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(20))
def test_edits_say_what_reading_anew_says(seed: int) -> None:
    chance = random.Random(seed)
    texts = [TEXT]
    document = opened(TEXT)
    for _ in range(12):
        back = len(texts) > 1 and chance.random() < 0.3
        texts.append(texts[-2] if back else edited(texts[-1], chance))
        anew = opened(texts[-1])
        try:
            document = document.changed(texts[-1]) if document is not None else anew
        except NotByParts:
            document = None
        assert (document is None) == (anew is None)
        if document is not None and anew is not None:
            tree = SymbolTable(texts[-1], document.parts)
            assert [(t.kind, t.text, t.start) for t in tree.tokens] == [(t.kind, t.text, t.start) for t in tokenise(texts[-1])]
            assert named(tree) == named(SymbolTable(texts[-1]))
            assert told(document.diagnostics) == told(anew.diagnostics)
            assert is_sound(document.diagnostics) == is_sound(Whole(texts[-1], "net.relay").diagnostics)


def long_function(chance: random.Random, count: int = 200) -> str:
    """A function whose statements use others, near and far."""
    lines = ["def @callee(%n: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { %n }", "def @main(%a0: Tensor[(2, 3), float32]) {"]
    known = ["%a0"]
    for i in range(1, count):
        one, other = chance.choice(known[-5:]), chance.choice(known)
        values = [
            f"add({one}, {other})",
            f"nn.relu({one})",
            f"@callee({one})",
            f"({one}, {other}).1",
            f"fn (%z) {{ add(%z, {one}) }}({other})",
        ]
        values.append(f"if (True) {{\n    %{i + count} = nn.relu({one});\n    add(%{i + count}, {other})\n  }} else {{ {one} }}")
        name, value = (f"%{i}" if chance.random() < 0.3 else f"%a{i}"), chance.choice(values)
        lines.append(f"  {name} = {value};" if name[1].isdigit() else f"  let {name} = {value};")
        known.append(name)
    return "\n".join([*lines, f"  {known[-1]}", "}", "def @after() -> int32 { 1 }"]) + "\n"


WORDS = [
    "%a7",
    "%a40",
    "%b",
    "relu",
    "nn.relu",
    "@callee",
    "axis=1",
    "1f",
    "(1f, 2f)",
    " ",
    "\n",
    "let %c = 1;\n",
    "%a9 = 1;\n",
    ".0",
    "x",
    "// ",
]


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(16))
def test_edits_of_statements_say_what_reading_anew_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    text = long_function(chance)
    document = Document(text, "net.relay")
    assert document.parts[2].stretches is not None
    texts = [text]
    inside = 0
    for _ in range(8):
        back = len(texts) > 1 and chance.random() < 0.4
        text = chance.choice((texts[0], texts[-2])) if back else texts[-1]
        if not back:
            begins = [found.start() for found in re.finditer(r"[%@\w.]+|\n", text)]
            at = chance.choice(begins)
            word = re.compile(r"[%@\w.]*").match(text, at)
            assert word is not None
            end = word.end() if chance.random() < 0.6 else at
            text = text[:at] + chance.choice([*WORDS, *texts[0][at : at + 200].split()[:1]]) + text[end:]
        texts.append(text)
        document = document.changed(text)
        inside += len(document.parts) > 2 and document.parts[2].stretches is not None
        with monkeypatch.context() as patch:
            patch.setattr(stretches, "_LONG", 1 << 40)
            anew = Document(text, "net.relay")
        assert told(document.diagnostics) == told(anew.diagnostics)
        assert not document.sound or _types(document) == _types(anew)
        tables = SymbolTable(text, document.parts), SymbolTable(text)
        places = [chance.randrange(len(text)) for _ in range(20)]
        assert [_named_at(tables[0], at) for at in places] == [_named_at(tables[1], at) for at in places]
    assert inside


def _named_at(table: SymbolTable, offset: int) -> object:
    known = table.symbol_at(offset)
    if known is None:
        return table.token_at(offset)
    token, symbol = known
    uses = [use.start for use in symbol.uses]
    return token, symbol.kind, symbol.name, symbol.definition, uses, symbol.begin, symbol.end, symbol.value_start


def _types(document: Document) -> list[tuple[int, str]]:
    """The types of variables that lets bind, by their places."""
    starts = [found.end() for found in re.finditer(r"let (?=%)", document.text)]
    return [(at, str(node.checked_type)) for at in starts for node in document.nodes_at(at) if isinstance(node, Var)]


def functions(count: int) -> str:
    lines = ["def @f0(%n: int32) -> int32 { %n }"]
    lines += [f"def @f{i}(%n: int32) -> int32 {{\n  let %m = @f{i - 1}(%n);\n  add(%m, {i})\n}}" for i in range(1, count)]
    return "\n".join(lines) + "\n"


@pytest.fixture
def parts_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the parts that are read."""
    names: list[str] = []
    read = Part.read

    def counted(self: Part, *args: object) -> None:
        names.append(self.name)
        read(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Part, "read", counted)
    return names


def test_a_keystroke_concerns_one_function(parts_read: list[str]) -> None:
    text = functions(300)
    document = Document(text, "net.relay")
    steps = {
        "let %m = @f149(%n);": "let %m = @f149(%n, 1);",  # a wrong type
        "@f149(%n, 1);": "@f149(%n, ;",  # wrong syntax
        "@f149(%n, ;": "@g149(%n);",  # an unknown name
        "@g149(%n);": "@f149(%n) ;",
    }
    for old, new in steps.items():
        text = text.replace(old, new)
        del parts_read[:], document.checker.looked_at[:]
        document = document.changed(text)
        assert is_sound(document.diagnostics) == (new == "@f149(%n) ;")
        assert parts_read == ["f150"]
        assert set(document.checker.looked_at) <= {"f150"}


@pytest.mark.parametrize("piece", [" ", "x", "("])
def test_an_edit_binds_the_variables_of_its_statements(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lets = "".join(f"  let %a{i} = add(%a{i - 1}, %a0);\n" for i in range(1, 2001))
    text = f"def @main(%a0: Tensor[(2), float32]) -> Tensor[(2), float32] {{\n{lets}  %a2000\n}}\n"
    document = Document(text, "net.relay")
    bound: list[str] = []
    bind_let = Scopes.bind_let

    def counted(self: Scopes, let: Let, variable: Var, value: Expr) -> None:
        bound.append(variable.name_hint)
        bind_let(self, let, variable, value)

    monkeypatch.setattr(Scopes, "bind_let", counted)
    document = document.changed(text.replace("add(%a999,", f"{piece}add(%a999,"))
    assert is_sound(document.diagnostics) == (piece == " ")
    assert "a1000" in bound and len(bound) <= 64
    document = document.changed(text)
    assert is_sound(document.diagnostics) and len(bound) <= 128


def test_an_answer_beside_an_edit_looks_at_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    trees: list[str] = []
    build = Tree.__init__

    def counted(self: Tree, text: str, lead: Sequence[str] = ()) -> None:
        trees.append(text)
        build(self, text, lead)

    monkeypatch.setattr(Tree, "__init__", counted)
    text = functions(300)
    analysis = Analysis(text, "net.relay")
    list(features.colors(analysis, 0, len(text)))
    assert len(trees) == 300
    old = "let %m = @f149(%n);"
    for new in ("let %m = @f149( %n);", "let %m = @f149(%n, ;", "let %m = @f149(%k);"):
        del trees[:]
        changed = text.replace(old, new)
        analysis = Analysis(changed, "net.relay", before=analysis)
        at = changed.index(new) + 4
        shown = features.hover(analysis, at)
        assert shown is not None and "int32" in shown[1]
        assert completion(changed, changed.index("(", at) + 1, analysis)
        features.definition(analysis, at + 6)
        list(features.hints(analysis, at, at + 20))
        structure.selections(analysis, at)
        assert [tree.split("(")[0] for tree in trees].count("def @f150") == len(trees) - trees.count("")
        assert len(trees) <= 5


def test_a_name_that_goes_and_comes_concerns_those_that_mention_it(parts_read: list[str]) -> None:
    text = functions(300)
    document = Document(text, "net.relay")
    for new, wrong in (("@other(%n: int32)", ["R0206"]), ("@f150(%n: int32)", []), ("@f150(%n: bool)", ["R0302", "R0302"])):
        old = "@other(%n: int32)" if new.startswith("@f150(%n: int") else "@f150(%n: int32)"
        text = text.replace(f"def {old}", f"def {new}")
        del parts_read[:]
        document = document.changed(text)
        assert [d.code for d in document.diagnostics] == wrong or len(document.diagnostics) == len(wrong)
        assert len(parts_read) <= 2
    assert told(document.diagnostics) == told(Document(text, "net.relay").diagnostics)


def test_types_of_sound_functions_are_known_beside_a_broken_one() -> None:
    text = TEXT.replace("add(%0, %1)", "add(%0, ")
    analysis = Analysis(text, "net.relay", before=Analysis(TEXT, "net.relay"))
    types = {s.name: analysis.symbol_type(s) for s in analysis.table.symbols if s.kind in ("variable", "function")}
    assert not analysis.good
    assert types["%n"] == "int32" and types["@sum"] == "fn (Tree[]) -> int32"
    assert types["%y"] == "Tensor[(2, 4), float32]"  # as it was


@pytest.mark.parametrize("wrong", ["add(%0, ", "add(%0 %1);", "let %v = ;", "match (%x) { ", "%0."])
def test_hover_hints_and_names_answer_beside_a_syntax_error(wrong: str) -> None:
    text = f"""def @main(%x: Tensor[(2, 3), float32]) {{
  let %y = nn.relu(%x);
  %0 = (%y, %x);
  {wrong}
}}
def @other(%n: int32) {{
  let %m = add(%n, 1);
  %m
}}
"""
    analysis = Analysis(text, "net.relay")  # with no version before it
    assert not analysis.good
    for name, ty in (("%y", "Tensor[(2, 3), float32]"), ("%m", "int32")):
        at = text.index(f"let {name}") + 4
        shown = features.hover(analysis, at)
        assert shown is not None and ty in shown[1]
        assert (at + 2, f": {ty}") in list(features.hints(analysis, 0, len(text)))
        used = text.index(name, at + 2)
        definition = features.definition(analysis, used)
        assert definition is not None and definition.start == at
        assert [(token.start, new) for token, new in features.rename(analysis, used, "%new")] == [(at, "%new"), (used, "%new")]
    assert [symbol.name for symbol in features.outline(analysis)] == ["@main", "@other"]


def test_an_unknown_variable_has_no_type_of_another_functions_one() -> None:
    one = "def @f(%t: int32) -> int32 { let %r = add(%t, 1); %r }\n"
    before = Analysis(one + "def @g(%x: float32) { %x }\n", "net.relay")
    analysis = Analysis(one + "def @g(%x: float32) { let %r = c2d(%x); %x }\n", "net.relay", before=before)
    types = [analysis.symbol_type(s) for s in analysis.table.symbols if s.name == "%r"]
    assert types == ["int32", None]


@pytest.mark.parametrize("text", ["%x", "add(%x, 1)", 'import "prelude.rly"\ndef @f() { 1 }', "def @f() { 1 }\n@f()", ""])
def test_other_texts_are_read_as_a_whole(text: str) -> None:
    with pytest.raises(NotByParts):
        Document(text, "net.relay")
    assert is_sound(Analysis(text, "net.relay").diagnostics)


def test_a_text_that_loses_its_definitions_is_read_as_a_whole() -> None:
    before = Analysis("def @f() { 1 }\n(", "net.relay")
    assert isinstance(before.reading, Document)
    assert isinstance(Analysis("(", "net.relay", before=before).reading, Whole)


def test_a_function_that_is_defined_twice() -> None:
    document = Document("def @f() { 1 }\ndef @g() { @f() }\n", "net.relay").changed("def @f() { 1 }\ndef @f() { @f() }\n")
    (found,) = document.diagnostics
    assert found.code == "R0205" and start_of(found) == 19


@pytest.mark.parametrize(
    "before, after",
    [
        # the name behind the comment that does not end is read, too
        ("def @f() { 1 }\ndef; /* def @g() { @f() }", "def -> @f() { 1 }\ndef; /* def @g() { @f() }"),
        # a comment in front of a definition that begins on the same line
        ("def @f() { %x def @g() { 1 }\n, 2 }\n", "def @f() { // %x def @g() { 1 }\n, 2 }\n"),
        ("def @f() { 1 } def @g() { @f() }\n", "def @f() { 1 } # def @g() { @f() }\n"),
    ],
)
def test_comments_that_reach_further(before: str, after: str) -> None:
    document = Document(before, "net.relay").changed(after)
    assert told(document.diagnostics) == told(Document(after, "net.relay").diagnostics)
    assert [part.text for part in document.parts] == [part.text for part in Document(after, "net.relay").parts]


if __name__ == "__main__":
    begin, count = map(int, sys.argv[1:])
    for number in range(begin, begin + count):
        print(f"seed {number}", end="\r", flush=True)
        test_edits_say_what_reading_anew_says(number)
    print(f"{12 * count} edits, no difference")
