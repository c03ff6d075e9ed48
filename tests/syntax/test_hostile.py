"""Hostile input: a result or a diagnostic, in time and memory linear in the input. `benchmarks/hostile.py` does it at full size."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Constant, Expr, Function, Let, Tuple, Var, const, structural_equal, structural_hash
from relaylang.ops import OPS
from relaylang.passes.normal_forms.to_a_normal_form import to_anf
from relaylang.syntax import astext, parse
from relaylang.syntax.format import format_text
from relaylang.testing.hostile import SMALL, TEXTS, survive
from relaylang.typing import infer
from tests.cli.command import one_diagnostic, relay
from tests.growth import Run, assert_linear
from tests.shared import few

#: Python's own recursion limit is 1000.
DEEP = 1_500
#: Texts whose letters count, not their nodes.
OF_LETTERS = [name for name in TEXTS if name.startswith("a long")]


@pytest.mark.parametrize("name", few(TEXTS, "parentheses", "lets in a row"))
def test_work_grows_with_the_text(name: str) -> None:
    def prepare(size: int) -> Run:
        text = TEXTS[name](size)
        return lambda: survive(text)

    # the types of references to references grow up to a size
    assert_linear(prepare, small=6_000 if name in OF_LETTERS else 800 if "references" in name else 200, times=4)


@pytest.mark.parametrize(
    "name",
    few(
        [
            "parentheses",
            "calls",
            "lets in a row",
            "tuples",
            "matches",
            "tuple types",
            "each twice",
            "a long comment",
            "brackets never closed",
            "unknown operators",
            "lists of lists",
        ],
        "calls",
        "a long comment",
    ),
)
def test_memory_grows_with_the_text(name: str) -> None:
    def peak(size: int) -> int:
        text = TEXTS[name](size)
        survive(text)
        tracemalloc.start()
        survive(text)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    small = 100 if name != "tuples" else 500
    assert peak(4 * small) < 6 * peak(small) + 200_000


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "name",
    [
        "parentheses",
        "calls",
        "functions",
        "ifs",
        "matches",
        "lets as values",
        "tuple types",
        "tuple patterns",
        "function types",
        "nested comments",
        "references",
        "constructors",
    ],
)
def test_depth_beyond_pythons_stack(name: str) -> None:
    assert not isinstance(survive(TEXTS[name](DEEP)), RelayError) or name == "nested comments"


@pytest.mark.parametrize("name", SMALL)
def test_small_texts_with_large_meanings(name: str) -> None:
    tracemalloc.start()
    result = survive(SMALL[name])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
    if "tensor" in name or "double" in name:
        assert isinstance(result, RelayError) and result.diagnostics[0].code == "R0010"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "name",
    [
        "parentheses",
        "calls",
        "ifs",
        "matches",
        "lets as values",
        "comments never closed",
        "brackets never closed",
        "tuple types",
        "lists of lists",
        "nested comments",
    ],
)
def test_the_formatter_survives_them(name: str) -> None:
    try:
        assert format_text(TEXTS[name](1_100))
    except RelayError as wrong:
        assert wrong.diagnostics


def test_the_errors_are_few_and_short() -> None:
    for name in ("unknown operators", "type errors", "brackets never opened", "one name again and again", "quotes"):
        result = survive(TEXTS[name](2_000))
        assert isinstance(result, RelayError)
        assert 1 <= len(result.diagnostics) <= 21
        assert len(str(result)) < 40_000, name


@pytest.mark.sweep
def test_deep_programs_made_by_hand() -> None:
    """Graphs that no text ever was: printed, checked, compared, hashed, normalised and freed."""

    def chain() -> Expr:
        x = Var("x")
        node: Expr = x
        for _ in range(10_000):
            node = Call(OPS["log"], [node])
        return Function([x], node)

    def lets() -> Expr:
        node: Expr = const(1.0)
        for i in range(3_000):
            node = Let(Var(f"v{i}"), Call(OPS["log"], [const(1.0)]), node)
        return node

    for make in (chain, lets):
        one, other = make(), make()
        assert structural_equal(one, other) and structural_hash(one) == structural_hash(other)
        again = parse(astext(one)).value
        assert structural_equal(one, again)
        infer(one, fragment=True)
        to_anf(one)  # type: ignore[type-var]
        del one, other, again
        gc.collect()


def test_sharing_without_end_by_hand() -> None:
    node: Expr = Constant(const(1.0).data)
    for _ in range(200):
        node = Tuple([node, node])
    infer(node, fragment=True)
    text = astext(node)
    assert len(text) < 2_000_000
    assert structural_equal(node, parse(text).value)
    assert len(str(node.checked_type)) < 2_000_000


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff\xfe1", "R0003"),
        (b"add(1, \xc3)", "R0003"),
        (b"1\x00", "R0003"),
        (b"\xed\xa0\x80", "R0003"),
        (b"   \n", "R0002"),
        (b"", "R0002"),
        (b"1\n#[metadata]\n{", "R0010"),
    ],
)
def test_files_that_are_no_text(data: bytes, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.relay"
    path.write_bytes(data)
    for verb in ("check", "print", "fmt", "run"):
        one_diagnostic(relay(capsys, verb, path), 1, code)


def test_line_ends_and_a_byte_order_mark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.relay"
    path.write_bytes(b"\xef\xbb\xbffn (%x) {\r\n  %1 = log(%x)\r\n  %1\r\n}\r\n")
    assert relay(capsys, "check", "-q", path).status == 0
