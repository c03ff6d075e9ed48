"""The lossless syntax tree of a text: every token, comment, blank and wrong piece is in it.

The reader's loop and its tables build the tree, with actions that note each reduction. A text with an error goes through
`recovery`, whose ERROR phrases are nodes as well. The tree is compact: lists of leaves, and three arrays of nodes.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any as AnyValue
from typing import NamedTuple

from relaylang.grammar import compiled
from relaylang.ir.bulk import gc_paused
from relaylang.syntax.literals import string
from relaylang.syntax.reader import CutAnew, SyntaxStop, run
from relaylang.syntax.tables import Action, Tables
from relaylang.syntax.tables import data as table_data
from relaylang.syntax.tokeniser import Brackets, Token, tokenise
from relaylang.syntax.tokens import OpenComment, TokenSource

#: Rules of lists, which make no node: the items are children of the phrase that holds the list.
LISTS = frozenset(
    "defs_one defs_more text_defs text_both text_block text_empty list_one list_more list_two list_closed stmts_one stmts_more"
    " tvar_first tvar_more attrs_coarse attrs_one attrs_more amap_first amap_more tuple_first tuple_more"
    " t_list_first t_list_more open_add".split()
)
_CODELESS = frozenset({"comment", "header", "metadata"})


class Tree:
    """The tree of a text. Positions are offsets in this text.

    `tokens` are the leaves but for white space, `code` those that are no comments, header or metadata. Node `n` is the
    phrase of the grammar's rule `rules[n]`. It comprises `code[firsts[n]]` to `code[lasts[n]]`. Nodes stand after
    their children.

    A piece of a text is read behind `lead`, tokens that are not in it.
    """

    __slots__ = ("_brackets", "code", "firsts", "lasts", "rules", "text", "tokens")

    def __init__(self, text: str, lead: Sequence[str] = ()) -> None:
        self.text = text
        with gc_paused():
            self.tokens = list(tokenise(text))
            self.code = [token for token in self.tokens if token.kind not in _CODELESS]
            self.rules, self.firsts, self.lasts = _nodes(text, self.code, lead)
        self._brackets: Brackets | None = None

    @property
    def brackets(self) -> Brackets:
        """The brackets of `code`."""
        if self._brackets is None:
            self._brackets = Brackets(self.code)
        return self._brackets

    def leaves(self) -> Iterator[str]:
        """The texts of all leaves, white space too. Joined they are the text."""
        at = 0
        for token in self.tokens:
            if token.start > at:
                yield self.text[at : token.start]
            yield token.text
            at = token.end
        if at < len(self.text):
            yield self.text[at:]

    def children(self, node: int) -> list[int]:
        """The nodes directly below a node, in order."""
        children = []
        at, first = node - 1, self.firsts[node]
        while at >= 0 and self.firsts[at] >= first:
            children.append(at)
            inner = self.firsts[at]
            at -= 1
            while at >= 0 and self.firsts[at] >= inner:
                at -= 1
        return children[::-1]


# -- nodes

_Node = tuple[str, int, int]


def _noting(rule: str) -> Action:
    """The action that notes a rule's reduction: the nodes are the loop's one part."""
    if rule in LISTS:
        return 0, lambda nodes, value, first, last: None
    return 0, lambda nodes, value, first, last: nodes.append((rule, first, last))


@lru_cache(maxsize=1)
def _actions() -> dict[str, Action]:
    return {rule: _noting(rule) for _, _, rule in table_data()["rules"] if rule is not None}


@lru_cache(maxsize=1)
def tables() -> Tables:
    """The parser's tables with actions that note nodes."""
    return Tables(table_data(), _actions())


def _nodes(text: str, code: Sequence[Token], lead: Sequence[str]) -> tuple[list[str], array[int], array[int]]:
    """The nodes of a text, as numbers of its tokens."""
    tab = tables()
    source = TokenSource("", text, tab, lead)
    nodes: list[_Node] = []
    tokens = source.tokens()
    while True:
        nodes.clear()
        try:
            run(tab, tokens, (nodes,), source)
        except CutAnew:
            try:
                tokens = source.cut_anew(tokens)
            except OpenComment as comment:
                source.end = comment.at
                tokens = source.tokens()
            continue
        except SyntaxStop as stop:
            if not source.names_split and tab.numbers["DASHED"] in map(tab.kind_of, tokens):
                tokens = source.split_dashes(tokens)
                continue
            if any(tokens[stop.at + 1 :]):
                nodes.clear()
                _recovered(tab, tokens, source, nodes)
            else:
                # The text's end, or a wrong word there, cuts phrases off: those that no token need follow are noted.
                numbers = {id(row): number for number, row in enumerate(tab.rows)}
                _default_reductions(tab, nodes, [numbers[id(row)] for row in stop.rows], stop.firsts, stop.at - 1)
        return _packed(nodes, source, code)


def _recovered(tab: Tables, tokens: Sequence[str], source: TokenSource, nodes: list[_Node]) -> None:
    """Note the nodes of a text with an error."""
    from relaylang.syntax.recovery import Automaton, Recovery

    recovery = Recovery(tab, tokens, source)
    notes: AnyValue = SimpleNamespace(parts=(nodes,), errors=SimpleNamespace(unknown={}))
    recovery.machine = Automaton(tab.data, notes, _actions())
    recovery.run()
    _default_reductions(tab, nodes, recovery.machine.stack, recovery.machine.firsts, recovery.machine.read)


def _default_reductions(tab: Tables, nodes: list[_Node], states: list[int], firsts: list[int], last: int) -> None:
    """Reduce at an end without asking for the next token, as long as one rule alone can be meant."""
    rows, rules, actions = tab.data["states"], tab.data["rules"], _actions()
    while True:
        meant = {code for code in rows[states[-1]].values() if code < 0}
        if len(meant) != 1:
            return
        origin, length, rule = rules[~meant.pop()]
        if not length or length >= len(states):
            return
        first = firsts[len(states) - length]
        if rule is not None:
            actions[rule][1](nodes, None, first, last)
        del states[len(states) - length :], firsts[len(firsts) - length :]
        following = rows[states[-1]].get(origin, -1)
        if following < 0:
            return
        states.append(following)
        firsts.append(first)


def _packed(nodes: list[_Node], source: TokenSource, code: Sequence[Token]) -> tuple[list[str], array[int], array[int]]:
    """The nodes over fine tokens."""
    starts = source.places()[0]
    places = [token.start for token in code]
    numbers = {start: number for number, start in enumerate(places)}
    begins = [0] * len(source.lead) + [numbers[start] if start in numbers else bisect_left(places, start) for start in starts]
    begins.append(len(code))
    rules: list[str] = []
    firsts, lasts = array("i"), array("i")
    siblings: list[int] = []
    for rule, first, last in nodes:
        begin, stop = begins[first], begins[last + 1] - 1
        while siblings and firsts[siblings[-1]] >= begin:
            siblings.pop()
        if siblings:  # recovery puts tokens in, which are not in the text
            begin = max(begin, lasts[siblings[-1]] + 1)
        if begin <= stop and (not lasts or lasts[-1] <= stop):
            siblings.append(len(rules))
            rules.append(rule)
            firsts.append(begin)
            lasts.append(stop)
    return rules, firsts, lasts


# -- definitions

TYPES = frozenset({"type", "data", "extern"})
_BEGINS = TYPES | {"def"}
#: A word that may begin a definition.
_WORD = re.compile(r"(?<![%@\w])(?:def|type|data|extern)(?!\w)")
_HEAD = re.compile(r"def\s+")


class Piece(NamedTuple):
    """A definition with what follows it up to the next one.

    `word` is what it begins with; the first piece of a text begins with nothing. `mentions` are the names of functions in it.
    """

    text: str
    word: str = ""
    name: str = ""
    mentions: frozenset[str] = frozenset()


def begins_definitions(text: str) -> bool:
    """Whether there may be a definition in a text."""
    return _WORD.search(text) is not None


def cut(text: str) -> tuple[list[Piece], bool]:
    """The definitions of a text, and whether its comments and strings end for certain.

    A word that begins a definition stands nowhere else, so a text can be cut in front of each.
    """
    tab = tables()
    source = TokenSource("", text, tab)
    if (open_at := source.blank_comments()) is not None:
        source = TokenSource("", text[:open_at], tab)
        source.blank_comments()
    alone = _definition_alone(source) if open_at is None else None
    if alone is not None:
        return [Piece(""), alone], _line_ends(text)
    starts: list[int] = []
    heads: list[list[str]] = []  # the first word of each piece and its name
    mentions: list[set[str]] = [set()]
    before, at = "", 0
    for match in tab.tokens.finditer(source.scanned, source.begin, source.end):
        token = match[1]
        if not token or token[:2] in ("//", "/*"):
            continue
        if token in _BEGINS and before != "extern":
            starts.append(match.start(1))
            heads.append([token])
            mentions.append(set())
        elif heads and len(heads[-1]) == 1 and token != "type":
            heads[-1].append(global_name(token) if token[:1] == "@" else token.rstrip("([{"))
        if token[:1] == "@":
            mentions[-1].add(global_name(token))
        before, at = token, match.start(1)
    open_string = before[:1] == '"' and tab.kind_of(before) == tab.numbers["BAD"]
    if open_at is not None or open_string:  # the reader goes on after a comment or string that does not end
        rest = open_at + 2 if open_at is not None else at + 1
        names = (match[1] for match in tab.tokens.finditer(text, rest))
        mentions[-1].update(global_name(token) for token in names if token[:1] == "@")
    closed = open_at is None and not open_string and _line_ends(text)
    begins = [0, *starts, len(text)]
    pieces = [Piece(text[: begins[1]], mentions=frozenset(mentions[0]))]
    for i, head in enumerate(heads):
        called = head[1] if len(head) > 1 else ""
        pieces.append(Piece(text[begins[i + 1] : begins[i + 2]], head[0], called, frozenset(mentions[i + 1])))
    return pieces, closed


def _definition_alone(source: TokenSource) -> Piece | None:
    """The piece of a text with one function and nothing before it, None for a text that needs the tokeniser.

    Most keystrokes change such a text, which may be long. This function makes no tokens.
    """
    text = source.scanned
    head = _HEAD.match(text)
    name = compiled("GLOBAL").match(text, head.end()) if head is not None else None
    if name is None or len(_WORD.findall(text)) != 1:
        return None
    hidden = compiled("GLOBAL", "STRING", "LINE_COMMENT")
    if '"' in hidden.sub("", text):
        return None
    mentions = {global_name(match[0]) for match in hidden.finditer(text) if match.lastgroup == "GLOBAL"}
    return Piece(source.text, "def", global_name(name[0]), frozenset(mentions))


def _line_ends(text: str) -> bool:
    """Whether no comment of the last line may swallow what follows."""
    line = text[text.rfind("\n") + 1 :]
    return "//" not in line and "#" not in line


def global_name(token: str) -> str:
    """The name of a function that a token such as `@f` or `@"a b"` has."""
    token = token[1:].rstrip("(")
    return string(token) if token[:1] == '"' else token


__all__ = ["LISTS", "TYPES", "Piece", "Tree", "begins_definitions", "cut", "global_name", "tables"]
