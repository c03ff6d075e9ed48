"""`relay fmt`: the canonical form of a text is the same program, keeps its comments, and is its own canonical form."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path

import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir.structural import structural_diff
from relaylang.syntax import astext, format, parse, tokens
from relaylang.syntax.format import format_text
from relaylang.syntax.reader import tables
from relaylang.syntax.tokens import TokenSource
from relaylang.testing.generators.any_ir import AnyPrograms
from tests.growth import Run, assert_linear
from tests.shared import CORPUS, FRAGMENTS, GOLDEN, few, needs_shared

ROOT = Path(__file__).resolve().parents[2]


def formatted(text: str) -> str:
    made = format_text(text)
    assert format_text(made) == made
    assert structural_diff(parse(text).value, parse(made).value, map_free_vars=True) is None
    return made


@pytest.mark.sweep
@needs_shared
def test_what_the_printer_writes_is_canonical() -> None:
    paths = [*GOLDEN.glob("*.relay"), *FRAGMENTS.glob("*.relay"), *CORPUS.glob("calyx*/*.relay")]
    for path in paths:
        text = path.read_text()
        printed = astext(parse(text).value)
        printed = printed if printed.endswith("\n") else printed + "\n"
        assert format_text(printed) == printed, path.name
        if "golden" not in path.parts or "typed" in path.name:
            formatted(text)


@pytest.mark.sweep
@needs_shared
def test_programs_that_tvm_printed() -> None:
    with gzip.open(CORPUS / "tvm_passes.jsonl.gz", "rt") as lines:
        texts = list(dict.fromkeys(json.loads(line)["out"] for line in lines))[::3]
    done = 0
    for text in texts:
        try:
            printed = astext(parse(text).value).rstrip("\n") + "\n"
        except RelayError:
            continue
        assert formatted(text) is not None
        assert format_text(printed) == printed
        done += 1
    assert done > 200


def test_examples_are_canonical_but_for_the_dialect() -> None:
    for path in (ROOT / "examples").glob("*.relay"):
        made = formatted(path.read_text())
        assert (made == path.read_text()) == (path.stem != "numbers"), path.name


def sprinkled(text: str, rng: random.Random) -> tuple[str, list[str]]:
    """A text with other white space, and comments wherever there may be any. Returns it and the comments."""
    source = TokenSource("x", text, tables())
    tokens = source.tokens()
    out, comments, end = [], [], 0
    for i in range(len(tokens) - 1):
        start = source.start_of(i)
        gap = text[end:start]
        kind = rng.randrange(12)
        if kind < 2 and i:
            said = f"/* c{len(comments)} */" if kind else f"// c{len(comments)}"
            comments.append(f"c{len(comments)}")
            out.append(f"{rng.choice((' ', chr(10)))}{said}{' ' if kind else chr(10)}")
            out.append(" " * len(gap))
        elif kind == 2 and gap:
            out.append(rng.choice((" ", "\n", "\n\n\n", "\t", "\r\n")))
        else:
            out.append(gap)
        end = source.end_of(i)
        out.append(text[start:end])
    return "".join(out) + text[end : source.end] + text[source.end :], comments


@pytest.mark.parametrize("seed", few(range(60), *range(12)))
def test_comments_stay_wherever_they_stand(seed: int) -> None:
    rng = random.Random(seed)
    text = astext(AnyPrograms(rng).module(4))
    messy, comments = sprinkled(text, rng)
    made = formatted(messy)
    assert re.findall(r"(?://|/\*) (c[0-9]+)\b", made) == comments
    plain = format_text(text)
    assert plain == text or plain.rstrip("\n") == text.rstrip("\n")


DIALECT = """# A type
data Numbers {
  Empty : () -> Numbers   # nothing
  Pair : (Tensor[(), int32], Tensor[(), int32]) -> Numbers
}
data List<a> { Cons : (a, List<a>) -> List<a>  Nil : () -> List<a> }
def @sum(%n : Numbers[]) -> Tensor[(), int32] {
  match(%n) {
    case Empty() { 0 }      # none
    case Pair(x, y) { x + y }
  }
}
def @f(%x:int32) {
  %1 = @sum(Pair(%x,1))
  # then
  let %f = fn(%y) { %y }
  if(%x<3){%f(%1)}else{match?(%x){%z=>%z}}
}
"""

CANONICAL = """#[version = "0.0.5"]
// A type
type Numbers {
  Empty, // nothing
  Pair(Tensor[(), int32], Tensor[(), int32]),
}

type List[a] { Cons(a, List[a]), Nil }

def @sum(%n: Numbers[]) -> Tensor[(), int32] {
  match (%n) {
    Empty => { 0 }, // none
    Pair(%x, %y) => { %x + %y },
  }
}

def @f(%x: int32) {
  %1 = @sum(Pair(%x, 1));
  // then
  let %f = fn (%y) { %y };
  if (%x < 3) { %f(%1) } else { match? (%x) { %z => { %z } } }
}
"""


def test_the_documented_dialect_becomes_the_canonical_one() -> None:
    assert formatted(DIALECT) == CANONICAL


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("add(%x,1)", "add(%x, 1)\n"),
        (" nn.conv2d(%x,%w,strides=[1,1],padding = [0] )", "nn.conv2d(%x, %w, strides=[1, 1], padding=[0])\n"),
        ("%n -1", "%n - 1\n"),
        ("-%n*-2", "-%n * -2\n"),
        ("%0=1f;%0", "%0 = 1f;\n%0\n"),
        ("// only\nfn(){()}", "// only\nfn () { () }\n"),
        ('fn(%x{virtual_device=1}:int32,"a b"={"k":1}){%x}', 'fn (%x {virtual_device=1}: int32, "a b"={"k": 1}) { %x }\n'),
        ("let %x=1;{let %y=2;%x}", "let %x = 1;\n{\n  let %y = 2;\n  %x\n}\n"),
        ("let %x:int32=(let %a=1;%a);%x", "let %x: int32 = (\n  let %a = 1;\n  %a\n);\n%x\n"),
        ("free_var %x:Tensor[(1,?),float32]\n%x", "free_var %x: Tensor[(1, ?), float32];\n%x\n"),
        ("add(%x, /* why */ 1)", "add(%x, /* why */ 1)\n"),
        ("add(\n%x,// one\n\n\n\n1)", "add(\n  %x, // one\n  1)\n"),
        ("/* a /* b */ c */ 1", "/* a /* b */ c */ 1\n"),
        ("(%t).0.1", "(%t).0.1\n"),
        ("1 .5 .0", "1 .5.0\n"),
        ("fn[A,B](%x:A)->fn(B)->A{fn(%y:B){%x}}", "fn [A, B](%x: A) -> fn (B) -> A { fn (%y: B) { %x } }\n"),
        ("1;2", "1;\n2\n"),
        ("1\r\n  +2", "1\n  + 2\n"),
        ("meta[relay.Constant][0]/* ty=int32 */", "meta[relay.Constant][0] /* ty=int32 */\n"),
        ('%"a b"', '%"a b"\n'),
    ],
)
def test_spacing(text: str, made: str) -> None:
    assert formatted(text) == made


def test_the_metadata_section_is_not_touched() -> None:
    import numpy as np

    from relaylang.ir import Constant, Function, IRModule

    text = astext(IRModule.from_expr(Function([], Constant(np.arange(3)))))
    head, mark, section = text.partition("#[metadata]")
    made = format_text(head.replace("\n\n", "\n").replace("  ", "") + mark + section)
    assert made == text


def test_blank_lines_and_the_header() -> None:
    text = "def @f(){1}\n\n\n\n// about g\ndef @g(){\n\n  %0 = 1;\n\n\n  %0\n\n}\n"
    assert formatted(text) == ('#[version = "0.0.5"]\ndef @f() { 1 }\n\n// about g\ndef @g() {\n  %0 = 1;\n\n  %0\n}\n')


def test_what_cannot_be_read_is_said() -> None:
    with pytest.raises(RelayError, match="R01"):
        format_text("def @f( {")


def test_a_canonical_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has to be compared where the tokens stay the same."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the programs are compared")

    monkeypatch.setattr(format, "structural_diff", refuse)
    text = '#[version = "0.0.5"]\ndef @f(%x: int32) {\n  %0 = add(%x, 1); // one\n  let %y = add(%0, %0);\n  %y\n}\n'
    assert format_text(text) == text
    assert format_text(text.split("\n", 1)[1].replace("\n  ", "\n     ")) == text
    with pytest.raises(AssertionError, match="compared"):
        format_text(text.replace(";", ""))


def test_a_text_of_one_long_chain_is_formatted_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_STRETCH", 1_000)
    for line in ("%v{0} = add(%v{1}, %x);", "let %v{0} = add(%v{1}, %x);"):

        def prepare(n: int, line: str = line) -> Run:
            lines = "\n".join(line.format(i, i - 1) for i in range(1, n))
            text = f"{lines}\n%v{n - 1}\n"
            return lambda: format_text("free_var %x: Tensor[(3), float32];\nlet %v0 = %x;\n" + text)

        assert_linear(prepare)


@pytest.mark.sweep
def test_a_text_of_one_long_chain_and_a_deep_nest() -> None:
    chain = "".join(f"%{i + 1}=add(%{i},%{i})\n" for i in range(4_000))
    assert formatted("%0=1\n" + chain + "%4000").count("\n") == 4_002
    deep = "(" * 5_000 + "1" + ")" * 5_000
    assert formatted(deep) == deep + "\n"
    assert formatted("{" * 3_000 + "1" + "}" * 3_000)


SPACED = """type List [ A ] { Cons ( A , List [ A ] ) , Nil }
def @f ( %x : float32 , %y : int32 ) -> float32 { let %z = nn.relu ( %x ) ; %0 = ( %z , %y )
%4 = -1
-2 ; match ( %y ) { _ => { let %u = 1 ; 2 } , } ; if ( True ) { add ( %0 . 0 , - 1f ) } else { %0 . 0 } }""".split(" ")

SAID = (
    "/* c */",
    "/* c /* c */ c */",
    "// c\n",
    "# c\n",
    "/* ty=int32 */",
    "/* ty=c */",
    "/* c */ /* c */",
    "/* c\nc */",
    "/* ty=int32 */ /* c */",
    "/* c */ // c\n",
    "// c /* c\n",
    "/* span=c:1:2 */",
    "/* c // c */",
    "\n",
    "\n\n",
)


def test_comments_anywhere_stay_in_their_order() -> None:
    rng = random.Random(1)
    for _ in range(120):
        count = 0

        def number(found: re.Match[str]) -> str:
            nonlocal count
            count += 1
            return f"c{count}"

        words = []
        for word in SPACED:
            words += [re.sub(r"\bc\b", number, rng.choice(SAID)) for _ in range(rng.choice((1, 2)) if rng.random() < 0.08 else 0)]
            words.append(word)
        text = " ".join(words)
        made = format_text(text)
        assert re.findall(r"\bc[0-9]+", made) == [f"c{i + 1}" for i in range(count)], text
        assert format_text(made) == made, text


@pytest.mark.parametrize("minus", ["-1", "- 1", "-\n1", "- /* a */ 1", "- /* a */ // b\n 1"])
def test_a_minus_and_a_number_are_one_literal(minus: str) -> None:
    assert structural_diff(parse(f"%0 = 2;\n{minus}\n%0").value, parse("%0 = 2;\n-1;\n%0").value) is None
    format_text(f"%0 = 2;\n{minus}\n%0")
