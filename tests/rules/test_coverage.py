"""Every table of rules against the registry: each operator has a rule, or a reason among the table's gaps.

`gaps/<table>.txt` has a paragraph per reason. The reason is a sentence at the margin; the indented lines below it name the
operators. A word there is an operator's name, a pattern (`random.*`), a trait (`COMPARISON`), or an attribute (`.layout`). A
line that begins with `all but` names every operator that the rest of the line does not. Single names must have no rule; the
other words leave out operators that have one. Lines that begin with `#` are comments.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from relaylang import rules
from relaylang.ops import OPS, Trait, having

GAPS = Path(__file__).parent / "gaps"
TABLES: dict[str, Mapping[str, Any]] = {
    module.name: importlib.import_module(f"relaylang.rules.{module.name}").RULES for module in pkgutil.iter_modules(rules.__path__)
}


def paragraphs(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each reason with the lines that name operators."""
    reason, lines = "", list[str]()
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith(" "):
            lines.append(line.strip())
            continue
        if reason and lines:
            yield reason, lines
            reason, lines = "", []
        reason = f"{reason} {line}".strip()
    if reason:
        yield reason, lines


def named(word: str) -> set[str]:
    """The operators of one word."""
    if word.isupper():
        return set(having(getattr(Trait, word)))
    if word.startswith("."):
        return {name for name, op in OPS.items() if word[1:] in op.schema}
    return {name for name in OPS if fnmatchcase(name, word)}


def selected(line: str) -> set[str]:
    """The operators of one line."""
    if line.startswith("all but"):
        return set(OPS).difference(*[named(word) for word in line.split()[2:]])
    return set().union(*[named(word) for word in line.split()])


def exact(line: str) -> list[str]:
    """The words of a line that are the names of single operators."""
    return [] if line.startswith("all but") else [w for w in line.split() if not w.isupper() and "*" not in w and w[0] != "."]


def gaps_of(table: str) -> list[tuple[str, list[str]]]:
    return list(paragraphs((GAPS / f"{table}.txt").read_text()))


def test_every_table_has_gaps_and_every_list_of_gaps_a_table() -> None:
    assert {file.stem for file in GAPS.glob("*.txt")} == set(TABLES)


def test_the_package_lists_its_tables() -> None:
    assert {
        name
        for line in (rules.__doc__ or "").splitlines()
        for name in re.findall(r"`(\w+)`", line.split(" | ")[0])
        if line.startswith("| `")
    } == set(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_rules_are_for_operators(table: str) -> None:
    assert [name for name in TABLES[table] if name not in OPS] == []


@pytest.mark.parametrize("table", TABLES)
def test_every_operator_has_a_rule_or_a_reason(table: str) -> None:
    explained = set().union(*[selected(line) for _, lines in gaps_of(table) for line in lines])
    assert [name for name in OPS if name not in TABLES[table] and name not in explained] == []


@pytest.mark.parametrize("table", TABLES)
def test_gaps_are_gaps(table: str) -> None:
    """No name is listed twice, has a rule, or is no operator's; every line names an operator without a rule."""
    names = [name for _, lines in gaps_of(table) for line in lines for name in exact(line)]
    assert sorted(names) == sorted(set(names) & set(OPS) - set(TABLES[table]))
    idle = [line for _, lines in gaps_of(table) for line in lines if selected(line) <= set(TABLES[table])]
    assert idle == []


@pytest.mark.parametrize("table", TABLES)
def test_every_reason_is_a_sentence_for_some_operators(table: str) -> None:
    for reason, lines in gaps_of(table):
        assert reason[0].isupper() and reason.endswith("."), reason
        assert lines, reason


@pytest.mark.parametrize(
    ("wrong", "test"),
    [
        ("Reason.\n    nn.relu\n    all but nn.relu\n", test_gaps_are_gaps),
        ("Reason.\n    nn.conv9d\n    all but add\n", test_gaps_are_gaps),
        ("Reason.\n    all but nn.prelu\n", test_every_operator_has_a_rule_or_a_reason),
        ("no sentence\n    all but add\n", test_every_reason_is_a_sentence_for_some_operators),
    ],
)
def test_a_wrong_list_is_found(wrong: str, test: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gradient.txt").write_text(wrong)
    monkeypatch.setitem(globals(), "GAPS", tmp_path)
    with pytest.raises(AssertionError):
        test("gradient")
