"""The statements that long programs are made of, read without the parser's tables: each binds a call of plain names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Call, Constant, Tuple, TupleGetItem, Var
from relaylang.ops.record import Op
from relaylang.syntax.actions.calls import CALLEES
from relaylang.syntax.actions.locals import Locals
from relaylang.syntax.actions.operators import ATTRS
from relaylang.syntax.actions.reports import Reports
from relaylang.syntax.actions.statements import Block
from relaylang.syntax.spellings import BY_NAME

#: Operators with the attributes of a call that names none, by the token that opens the call.
_PLAIN: dict[str, tuple[Op, AnyValue]] = {}
#: What a name may stand for. Others are read by the tables.
_VALUES = frozenset((Call, Constant, Tuple, TupleGetItem, Var))


class PlainStatements:
    """Reads statements such as `%1 = add(%0, %x);` and `let %y = tanh(%x);`, as the other actions do."""

    def __init__(self, reports: Reports, locals: Locals) -> None:
        self.source = reports.source
        self.locals = locals

    def read(self, words: Sequence[str], at: int, first: int, block: Block) -> int:
        """Read statements into a block, from `words[at]` on, which is the text's token `first`.

        Returns the tokens that they have. It ends in front of a statement of another form.
        """
        names, seen, source, locals = self.locals.names, block.seen, self.source, self.locals
        values, known_callees, value_of = _VALUES, _PLAIN, self.locals.names.get
        begin, shift, limit = at, first - at, len(words) - 8
        while at < limit:
            word = words[at]
            if word[0] == "%" and word[-1] == "=":
                key, open_at, var = word[:-1].rstrip(), at + 1, None
            else:
                head = self._let(words, at, at + shift)
                if head is None:
                    break
                key, open_at, var = head
            if key in seen:
                break
            callee = known_callees.get(words[open_at]) or _callee(words[open_at])
            end = open_at + 2
            arg = value_of(words[end - 1])
            if callee is None or arg.__class__ not in values:
                break
            args: list[AnyValue] = [arg]
            while words[end] == "," and end < limit:
                end += 2
                arg = value_of(words[end - 1])
                if arg.__class__ not in values:
                    return at - begin
                args.append(arg)
            if words[end] != ")" or words[end + 1] != ";":
                break
            call = Call(callee[0], args, callee[1], (), Span(source, open_at + shift, end + shift))
            block.last = seen[key] = key, value_of(key), call, at + shift, var
            if var is not None:
                names[key] = var
                block.lets.append(block.last)
            else:
                names[key] = call
                if locals.first_graph is None:
                    locals.first_graph = int(key[1:]) if len(key) < 12 else 0
            at = end + 2
        return at - begin

    def _let(self, words: Sequence[str], at: int, first: int) -> tuple[str, int, Var] | None:
        """The name that a let binds, where its value begins, and its variable; None where no plain let begins."""
        key = words[at + 1]
        if words[at] != "let" or words[at + 2] != "=" or not (key[1:].isidentifier() or key[1:].isdecimal()) or self.locals.again:
            return None
        return key, at + 3, Var(key[1:], None, Span(self.source, first + 1, first + 1))


def _callee(word: str) -> tuple[Op, AnyValue] | None:
    """An operator that the tables have met, with its attributes; None for what may need a diagnostic."""
    op = CALLEES.get(word)
    if not isinstance(op, Op) or op.name in BY_NAME:
        return None
    attrs = ATTRS.get((op, ""))
    if attrs is None and op.attrs is not None:
        return None
    _PLAIN[word] = op, attrs
    return _PLAIN[word]


__all__ = ["PlainStatements"]
