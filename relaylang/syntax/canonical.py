"""Finds where a text departs from the canonical form of the language, token by token.

The documented dialect has `data`, `case`, bare variables, and `->` behind constructors. The reader also forgives statements
that end with their line, and arms without braces. Each of these has one canonical spelling. `rewritings` reads a text and
notes where that spelling belongs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any as AnyValue

from relaylang.diagnostics import RelayError, error
from relaylang.ir.bulk import gc_paused
from relaylang.ir.expr import Call, Constant, Expr, Tuple, Var
from relaylang.ir.module import IRModule
from relaylang.ir.types import TupleType
from relaylang.ops.record import Op
from relaylang.syntax.actions import ACTIONS, PARTS, Action, Build
from relaylang.syntax.attribute_text import AttributeText
from relaylang.syntax.literal_text import scalar_text
from relaylang.syntax.reader import CutAnew, run
from relaylang.syntax.spellings import Spelling
from relaylang.syntax.tables import Tables
from relaylang.syntax.tables import data as table_data
from relaylang.syntax.tokens import TokenSource


class Rewritings:
    """Notes the changes that a text needs while `build` reads it. Every key is the number of a token.

    - `texts`: a token's new text; an empty one removes the token
    - `behind`, `before`: text to insert behind or in front of a token
    - `lists`: the closing braces around arms and constructors
    - `maps`: the opening braces around attribute values
    - `blocks`: the opening parentheses around statements
    - `tops`, `ends`: the first and the last token of each definition
    """

    def __init__(self, build: Build) -> None:
        self.source = build.reports.source
        self.tokens = build.reports.tokens
        self.parts = build.parts  # while the text is read
        self.texts: dict[int, str] = {}
        self.behind: dict[int, str] = {}
        self.before: dict[int, str] = {}
        self.lists: set[int] = set()
        self.maps: set[int] = set()
        self.blocks: set[int] = set()
        self.tops: set[int] = set()
        self.ends: set[int] = set()
        self.closing: dict[int, int] = {}  # braces around a block that is an expression
        self.grouped: dict[int, int] = {}  # parentheses around an expression, and those of a tuple
        self.binds: set[int] = set()  # the `=` of lets
        self.fresh: dict[int, str] = {}  # arguments and attributes to insert in front of a token

    def concerned(self) -> set[int]:
        """The tokens that are not taken over as they stand, but for the signs around them."""
        return {*self.texts, *self.behind, *self.before, *self.fresh, *self.tops, *self.ends, *self.binds}

    def is_empty(self) -> bool:
        """Whether the text has the canonical form's tokens."""
        return not (self.texts or self.behind or self.before or self.fresh)

    def statement_ends(self, last: int) -> None:
        if self.tokens[last] != ";":
            self.behind[last] = ";"

    def old_call(self, row: Spelling, call: Call, args: int, attrs: list[int], at: int, last: int) -> None:
        """Give the call today's name, and today's further arguments and attributes for its attributes."""
        if row.makes is not None:
            title = f"`{row.name}` as {row.reading} has no short form today"
            raise RelayError(error("R0152", title, self.source.offsets(at), notes=["`relay print` writes what it means"]))
        token = self.tokens[at]
        self.texts[at] = row.now + token[len(token.rstrip("(")) :]
        end = last
        while self.tokens[end - 1] == "," or self.is_comment(end - 1):
            end -= 1
        begin = min(attrs, default=end)
        write = AttributeText("lossless", lambda key, value: f"meta[{key}][0]")
        said = [_argument(arg) for arg in call.args[args:]] + (write.call(call.attrs, True) if call.attrs is not None else [])
        comma = begin - 1 if begin < end else None
        if comma is None and args and said:
            said[0] = ", " + said[0]
        if comma is not None and not said and self.tokens[comma] == ",":
            self.texts[comma] = ""
        for i in range(begin, end):
            self.texts[i] = ""
        self.fresh[end] = ", ".join(said)

    def behind_comments(self, at: int) -> int:
        """The number of the first token from `at` on that is not a comment."""
        while self.is_comment(at):
            at += 1
        return at

    def is_comment(self, at: int) -> bool:
        """Whether a token is a comment that says a type or a place."""
        tables = self.source.tables
        return bool(tables.kind_of(self.tokens[at]) == tables.numbers["COMMENT"])

    def following(self, at: int) -> str:
        """The token behind one, comments left out."""
        return self.tokens[self.behind_comments(at + 1)]

    def definition(self, first: int, last: int) -> None:
        self.tops.add(first)
        self.ends.add(last)


def _argument(arg: Expr) -> str:
    """The text of an argument that an old spelling lacks: a number, a tuple, or a tensor-making call."""
    if isinstance(arg, Constant):
        return scalar_text(arg.data, arg.dtype) or ""
    if isinstance(arg, Tuple):
        return "(" + ", ".join(map(_argument, arg.fields)) + ("," if len(arg.fields) == 1 else "") + ")"
    assert isinstance(arg, Call) and isinstance(arg.op, Op)
    write = AttributeText("lossless", lambda key, value: "")
    return f"{arg.op.name}({', '.join([*map(_argument, arg.args), *write.call(arg.attrs, True)])})"


def _noted(action: Action, note: AnyValue) -> Action:
    """The action, followed by `note`. Its part is the `Rewritings`, which stand behind the parts of `PARTS`."""
    part, act = action

    def both(self: Rewritings, v: AnyValue, first: int, last: int) -> AnyValue:
        value = act(self.parts[part], v, first, last)
        note(self, value, first, last)
        return value

    return len(PARTS), both


def _statement(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.statement_ends(last)


def _list(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.lists.add(last)


def _map(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.maps.add(first)


def _extras(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.maps.add(first + 1)


def _paren_block(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.blocks.add(first)
    self.grouped[last] = first


def _definition(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.definition(first, last)
    if self.tokens[first] == "def" and self.tokens[last] == ";":
        self.texts[last] = ""


def _extern(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.definition(first, last)
    if self.tokens[last] == ";":
        self.texts[last] = ""


def _type_definition(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.definition(first, last)
    self.lists.add(last)
    if self.tokens[first] == "data":
        self.texts[first] = "type"


def _constructor(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    """Constructors follow each other with commas."""
    if self.following(last) not in (",", "}"):
        self.behind[last] = ","


def _empty_constructor(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    name = self.tokens[first]
    if name[-1] == "(":
        self.texts[first] = name[:-1]
        first += 1
    else:
        first += 1
    for i in range(first, last + 1):
        self.texts[i] = ""
    _constructor(self, value, first, last)


def _data_constructor(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    """`Name : (T, U) -> R` is `Name(T, U)`."""
    tokens = self.tokens
    self.texts[first + 1] = ""
    depth, i = 0, first + 2
    while True:
        depth += (tokens[i][-1:] == "(") - (tokens[i] == ")")
        if not depth:
            break
        i += 1
    if i == first + 3:
        self.texts[first + 2] = self.texts[i] = ""
    for j in range(i + 1, last + 1):
        self.texts[j] = ""
    _constructor(self, value, first, last)


def _case(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.texts[first] = ""


def _case_head(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.behind[last] = "=>"


def _case_clause(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    if self.following(last) not in (",", "}"):
        self.behind[last] = ","


def _clause(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    """An arm's value stands in braces."""
    tokens, depth, i = self.tokens, 0, first
    while depth or tokens[i] != "=>":
        depth += (tokens[i][-1] in "([{") - (tokens[i] in (")", "]", "}"))
        i += 1
    begin = self.behind_comments(i + 1)
    if tokens[begin] == "{" and last in self.closing and self.closing[last] == begin:
        return
    self.before[begin] = self.before.get(begin, "") + "{"
    self.behind[last] = self.behind.get(last, "") + "}"


def _match_head(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    """Put the matched value in parentheses."""
    begin = first + 1
    while self.is_comment(begin):
        begin += 1
    if self.grouped.get(last) != begin:
        self.before[begin] = self.before.get(begin, "") + "("
        self.behind[last] = self.behind.get(last, "") + ")"


def _grouped(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.grouped[last] = first


def _let(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.binds.add(last)


def _let_extras(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.maps.add(first + 2)
    self.binds.add(last)


def _free_extras(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.maps.add(first + 2)
    self.statement_ends(last)


def _braces(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.closing[last] = first


def _bare(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    if isinstance(value, Var):
        self.texts[first] = "%" + self.tokens[first]


def _bare_callee(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    if isinstance(value[0], Var):
        self.texts[first] = "%" + self.tokens[first]


def _bare_pattern(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    if getattr(value, "var", None) is not None:
        self.texts[first] = "%" + self.tokens[first]


def _empty_pattern(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    self.texts[first] = self.tokens[first].rstrip("(")
    for i in range(first + 1, last + 1):
        self.texts[i] = ""


def _angles(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    """`<` and `>` around type variables or arguments become square brackets."""
    if self.tokens[last] == ">":
        self.texts[first if self.tokens[first] == "<" else first + 1] = "["
        self.texts[last] = "]"


def _type_alone(self: Rewritings, value: AnyValue, first: int, last: int) -> None:
    """A type alone in parentheses is a tuple of one, which has a comma. In a text of TVM 0.6 they only group."""
    if isinstance(value, TupleType) and value.span is not None and value.span.first == first:
        self.before[last] = ","
    else:
        self.texts[first] = self.texts[last] = ""


_NOTES: dict[str, AnyValue] = {
    "t_paren": _type_alone,
    **dict.fromkeys(("graph", "graph_spaced", "let_bound", "seq", "free_plain", "free_typed", "free_coarse"), _statement),
    **dict.fromkeys(("match", "match_none"), _list),
    **dict.fromkeys(("av_map", "av_empty_map", "av_pairs"), _map),
    **dict.fromkeys(("param_extras", "param_extras_typed"), _extras),
    **dict.fromkeys(("def_function", "def_external"), _definition),
    **dict.fromkeys(("def_type", "def_type_empty"), _type_definition),
    **dict.fromkeys(("ctor_plain", "ctor_args", "ctor_spaced"), _constructor),
    **dict.fromkeys(("data_empty", "data_args"), _data_constructor),
    **dict.fromkeys(("tvars", "t_call"), _angles),
    "def_extern": _extern,
    "ctor_empty": _empty_constructor,
    "paren_block": _paren_block,
    "match_head": _match_head,
    **dict.fromkeys(("paren", "unit", "tuple_end", "tuple_last"), _grouped),
    **dict.fromkeys(("let_coarse", "let_plain", "let_typed", "let_named"), _let),
    **dict.fromkeys(("let_extras", "let_extras_typed", "let_extras_named"), _let_extras),
    **dict.fromkeys(("free_extras", "free_extras_typed"), _free_extras),
    "case": _case,
    "case_head": _case_head,
    "case_clause": _case_clause,
    "clause": _clause,
    "braces": _braces,
    "name": _bare,
    "open_name": _bare_callee,
    "pat_name": _bare_pattern,
    "pat_ctor_empty": _empty_pattern,
}


@lru_cache(maxsize=1)
def _tables() -> Tables:
    return Tables(table_data(), {**ACTIONS, **{alias: _noted(ACTIONS[alias], note) for alias, note in _NOTES.items()}})


def rewritings(text: str, name: str, module: IRModule | None = None) -> tuple[Rewritings, TokenSource]:
    """The changes that bring a text to its canonical form, and its tokens. The text must be correct."""
    tab = _tables()
    source = TokenSource(name, text, tab)
    tokens = source.tokens()
    while True:
        build = Build(source, tokens, module)
        notes = Rewritings(build)
        build.operators.on_old_call = notes.old_call
        try:
            with gc_paused():
                run(tab, tokens, (*build.parts, notes, build.parts[-1]), source)  # plain statements need no change
            notes.parts = ()
            return notes, source
        except CutAnew:
            tokens = source.cut_anew(tokens)
        finally:
            build.operators.on_old_call = None
