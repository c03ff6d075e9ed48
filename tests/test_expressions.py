"""No regular expression of the package tries one text in exponentially many ways."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from relaylang.syntax import parse
from relaylang.syntax.spellings import has_old_header
from tests.test_project import ALL, nodes_of

try:
    from re import _constants as constants  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as constants  # type: ignore[no-redef]
    import sre_parse as parser  # type: ignore[no-redef]

#: What every repeated group has: its end and its number.
_GROUP = re.compile(r"\)[*+{]")
REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT)


def repeats_alone(body: Any) -> bool:
    """Whether a repeated part may be a repetition without end and nothing else."""
    if len(body) == 1 and body[0][0] is constants.BRANCH:
        return any(map(repeats_alone, body[0][1][1]))
    if len(body) == 1 and body[0][0] is constants.SUBPATTERN:
        return repeats_alone(body[0][1][-1])
    needed = [value for op, value in body if op not in REPEATS or value[0] > 0]
    endless = [value for op, value in body if op in REPEATS and value[1] == constants.MAXREPEAT]
    return bool(endless) and (not needed or (len(needed) == 1 and any(value is needed[0] for value in endless)))


def ambiguous(pattern: Any) -> bool:
    for op, value in pattern:
        if op in REPEATS and ((value[1] == constants.MAXREPEAT and repeats_alone(value[2])) or ambiguous(value[2])):
            return True
        if op is constants.SUBPATTERN and ambiguous(value[-1]):
            return True
        if op is constants.BRANCH and any(map(ambiguous, value[1])):
            return True
    return False


def expressions(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, Any]]:
    """The strings that may be regular expressions, parsed."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _GROUP.search(node.value):
            for flags in (0, constants.SRE_FLAG_VERBOSE):
                try:
                    yield node.lineno, parser.parse(node.value, flags)
                except Exception:  # no regular expression
                    continue


@pytest.mark.sweep
def test_no_repetition_stands_alone_in_a_repetition() -> None:
    assert ambiguous(parser.parse(r"(?:\s+|x)*y")) and ambiguous(parser.parse(r"(?:-*a+)*"))
    assert not ambiguous(parser.parse(r"(?:\s|x)*y")) and not ambiguous(parser.parse(r"(?:-+a+)*"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        using = [name for name in ALL if "import re\n" in ALL[name].read_text()]
        found = [(name, line) for name in using for line, pattern in expressions(nodes_of(name)) if ambiguous(pattern)]
    assert found == []


@pytest.mark.parametrize("before", [" ", "\n", "// c\n", "/* c */", "/**", "# c\n", " \n\t"])
def test_a_header_behind_much_else(before: str) -> None:
    old, new = (f'#[version = "0.0.{n}"]\n1' for n in (4, 5))
    assert has_old_header(before * 500 + old) == (before != "/**")
    assert not has_old_header(before * 500 + new)
    if before != "/**":
        assert parse(before * 500 + new).value is not None
