"""The parser's tables: built by Lark from `grammar/relay.lark`, kept in a file of the user's cache directory.

The file is plain JSON: the terminals with their patterns, the rules, and the states with an action per symbol. It counts
only for the same grammar text, version of Lark and layout of tables. A damaged or unreadable file is made anew.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any as AnyValue

from relaylang.grammar import patterns
from relaylang.grammar import text as grammar_text
from relaylang.runtime.files import atomic_write

#: Raised where the layout of the cached file changes.
LAYOUT = 4

#: Kinds of tokens that no rule has. COMMENT is a comment that is not in front of a token. DASHED is a name with a dash or
#: slash in it, perhaps a subtraction. BAD are characters that form no token.
SPECIAL = ("COMMENT", "DASHED", "BAD")

#: A rule's action: the number of the part that it belongs to, and the function `(part, values, first, last) -> value`.
Action = tuple[int, Callable[[AnyValue, AnyValue, int, int], AnyValue]]
Row = list[AnyValue]


def cache_directory() -> Path:
    """Where tables are kept between runs: RELAYLANG_CACHE, or the platform's directory for such files.

    Raises `OSError` where the user has no home directory.
    """
    named = os.environ.get("RELAYLANG_CACHE")
    if named:
        return Path(named)
    try:
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "relaylang"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "relaylang"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relaylang"
    except RuntimeError as e:
        raise FileNotFoundError(errno.ENOENT, str(e)) from None


def _lark_version() -> str:
    """Lark's version, without importing it: good input never needs it."""
    spec = importlib.util.find_spec("lark")
    if spec is None or spec.origin is None:
        return "none"
    match = re.search(r"""__version__[^=]*=\s*["']([^"']+)""", Path(spec.origin).read_text("utf-8"))
    return match[1] if match else "unknown"


def lark_parser() -> AnyValue:
    """Lark's own parser of the grammar, without a lexer: its input are this package's tokens."""
    from lark import Lark
    from lark.lexer import Lexer

    class Tokens(Lexer):
        """Stands where Lark wants a lexer."""

        def __init__(self, conf: AnyValue) -> None:
            self.conf = conf

        def lex(self, data: AnyValue) -> AnyValue:  # type: ignore[override]
            yield from data

    return Lark(grammar_text(), parser="lalr", lexer=Tokens)


def build() -> dict[str, AnyValue]:
    """The tables, made by Lark."""
    from lark.parsers.lalr_analysis import Shift

    lark = lark_parser()
    table = lark.parser.parser._parse_table
    rules: dict[AnyValue, int] = {}
    listed: list[tuple[str, int, str | None]] = []
    states: list[dict[str, int]] = []
    numbers = {state: i for i, state in enumerate(table.states)}
    for actions in table.states.values():
        row = {}
        for symbol, (kind, argument) in actions.items():
            if kind is Shift:
                row[symbol] = numbers[argument]
                continue
            rule = rules.get(argument)
            if rule is None:
                rule = rules[argument] = len(listed)
                listed.append((argument.origin.name, len(argument.expansion), argument.alias))
            row[symbol] = ~rule
        states.append(row)
    terminals = [
        (t.name, t.pattern.type, t.pattern.value, "".join(t.pattern.flags), t.priority)
        for t in lark.terminals
        if t.name not in lark.ignore_tokens
    ]
    return {
        "terminals": terminals,
        "rules": listed,
        "states": states,
        "start": numbers[table.start_states["start"]],
        "end": numbers[table.end_states["start"]],
    }


def _key(grammar: str) -> str:
    return hashlib.sha256(f"{LAYOUT}\n{_lark_version()}\n{grammar}".encode()).hexdigest()[:24]


def _usable(data: AnyValue) -> bool:
    """Whether a cached file has the form that `build` makes, so that a damaged one never misleads a parse."""
    try:
        count, rules = len(data["states"]), len(data["rules"])
        return (
            all(-rules <= n < count for row in data["states"] for n in row.values())
            and all(isinstance(n, str) and length >= 0 for n, length, _ in data["rules"])
            and 0 <= data["start"] < count
            and 0 <= data["end"] < count
            and bool(data["terminals"])
        )
    except (TypeError, KeyError, AttributeError, ValueError):
        return False


def load() -> dict[str, AnyValue]:
    """The tables from the cache, or made anew and put there. An unwritable cache is no error."""
    key = _key(grammar_text())
    name = f"tables-{key}.json"
    try:
        kept = json.loads((cache_directory() / name).read_bytes())
        if kept.get("key") == key and _usable(kept):
            return kept
    except (OSError, ValueError, AttributeError, RecursionError):
        pass
    tables = {"key": key, **build()}
    with contextlib.suppress(OSError):
        cache_directory().mkdir(parents=True, exist_ok=True)
        atomic_write(cache_directory() / name, json.dumps(tables, separators=(",", ":")), durable=False)
    return tables


class Tables:
    """The tables as the loop runs them.

    `start` is a row. A row is a list with an entry for every symbol. An entry that is a row shifts the terminal. An entry
    `(length, part, action, symbol, completes)` reduces a rule before the terminal. With `completes`, the terminal is the
    rule's last symbol, and never goes on the stack. A nonterminal likewise leads to a row or completes a further rule.
    None is a syntax error.

    `kind_of(text)` is the number of a token's terminal. `tokens` finds the tokens of a text, each with the white space and
    the comment in front of it.
    """

    def __init__(self, data: dict[str, AnyValue], actions: dict[str, Action]) -> None:
        self.data = data
        names = [t[0] for t in data["terminals"]]
        self.numbers = {name: i for i, name in enumerate([*names, "ERROR", "INNER", "$END", *SPECIAL])}
        self.names = list(self.numbers)
        self._local, self._graph = self.numbers["LOCAL"], self.numbers["GRAPHBIND"]
        for origin, _, _ in data["rules"]:
            self.numbers.setdefault(origin, len(self.numbers))
        self._make_patterns()
        self._make_rows(actions)

    def _make_patterns(self) -> None:
        literals = [(value, name) for name, kind, value, _, _ in self.data["terminals"] if kind == "str"]
        regexps = [t for t in self.data["terminals"] if t[1] == "re"]
        regexps.sort(key=lambda t: -t[4])
        signs = sorted((re.escape(v) for v, _ in literals if not v[0].isalpha()), key=lambda v: (-len(v), v))
        expressions = [f"(?s:{v})" if "s" in flags else v for _, _, v, flags, _ in regexps]
        comment = f"{patterns()['BLOCK_COMMENT']}|{patterns()['LINE_COMMENT']}"
        # an unterminated string runs to the text's end, so its rest is not searched again
        broken = r'"[^"\\]*(?:\\[\s\S][^"\\]*)*\\?\Z'
        kinds = "|".join(["[,;)]", comment, r"/\*", *expressions, *signs, broken, r"\S", r"\Z"])
        self.tokens = re.compile(rf"\s*(?:(?:{comment})\s*)?({kinds})")
        self._literals = {value: self.numbers[name] for value, name in literals}
        alone = [(name, re.sub(r"\(\?[=!](?:\[[^\]]*\]|[^()\[\]])*\)$", "", v), flags) for name, _, v, flags, _ in regexps]
        self._classes = re.compile("|".join(f"(?P<{name}>{f'(?s:{v})' if 's' in flags else v})" for name, v, flags in alone))
        self.kinds: dict[str, int] = {}
        self.forget()

    def forget(self) -> None:
        """Empty the table of known token texts, which is to stay within a processor's cache."""
        self.kinds.clear()
        self.kinds.update(self._literals)
        self.kinds[""] = self.numbers["$END"]

    def kind_of(self, text: str) -> int:
        """The number of the terminal that a token's text is, or of one of `SPECIAL`."""
        kind = self.kinds.get(text)
        if kind is None:
            # most of the texts that a long program has only once are names
            local = text[0] == "%"
            if local and text[-1] == "=":
                kind = self._graph
            elif local and ((name := text[1:]).isidentifier() or name.isdecimal()):
                kind = self._local
            elif (match := self._classes.fullmatch(text)) is not None:
                kind = self.numbers[match.lastgroup]  # type: ignore[index]
                if match.lastgroup == "LOCAL" and ("-" in text or "/" in text) and text[1] != '"':
                    kind = self.numbers["DASHED"]
            elif text.startswith(("//", "#")) or (text.startswith("/*") and len(text) > 2):
                kind = self.numbers["COMMENT"]
            else:
                kind = self.numbers["BAD"]
            if len(text) < 200:
                if len(self.kinds) > 20_000:
                    self.forget()
                self.kinds[text] = kind
        return kind

    def _make_rows(self, actions: dict[str, Action]) -> None:
        width = len(self.numbers)
        states = self.data["states"]
        rows: list[Row] = [[None] * width for _ in states]
        rules = []
        for origin, length, alias in self.data["rules"]:
            if alias is not None and alias not in actions:
                raise AssertionError(f"the grammar's action {alias} has no function")
            rules.append((length, *(actions[alias] if alias else (0, None)), self.numbers[origin]))
        only: list[int | None] = []
        for state in states:
            told = set(state.values())
            code = next(iter(told)) if len(told) == 1 else 0
            only.append(~code if code < 0 and rules[~code][0] > 0 else None)
        for row, state in zip(rows, states):
            for symbol, code in state.items():
                target: AnyValue
                if code < 0:
                    target = (*rules[~code], False)
                elif only[code] is not None:
                    target = (*rules[only[code]], True)
                else:
                    target = rows[code]
                row[self.numbers[symbol]] = target
        self.start = rows[self.data["start"]]
        end = rows[self.data["end"]]
        end[self.numbers["$END"]] = [None] * width
        self.rows = rows


@lru_cache(maxsize=1)
def data() -> dict[str, AnyValue]:
    """The tables' data, read once a process."""
    return load()
