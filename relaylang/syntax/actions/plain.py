"""The statements that long programs are made of, read without the parser's tables: each binds a call of plain names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem, Var
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
        begin, shift, limit = at, first - at, len(words) - 8
        while at < limit:
            head = self._head(words, at, at + shift)
            if head is None or head[0] in seen:
                break
            key, open_at, var = head
            callee = _PLAIN.get(words[open_at]) or _callee(words[open_at])
            end = open_at + 2
            args: list[Expr | None] = [names.get(words[end - 1])]
            while words[end] == "," and end < limit:
                end += 2
                args.append(names.get(words[end - 1]))
            known = all(arg.__class__ in _VALUES for arg in args)
            if callee is None or not known or words[end] != ")" or words[end + 1] != ";":
                break
            call = Call(callee[0], args, callee[1], (), Span(source, open_at + shift, end + shift))  # type: ignore[arg-type]
            block.last = seen[key] = key, names.get(key), call, at + shift, var
            if var is not None:
                names[key] = var
                block.lets.append(block.last)
            else:
                names[key] = call
                if locals.first_graph is None:
                    locals.first_graph = int(key[1:]) if len(key) < 12 else 0
            at = end + 2
        return at - begin

    def _head(self, words: Sequence[str], at: int, first: int) -> tuple[str, int, Var | None] | None:
        """The name that a statement binds, where its value begins, and the variable of a let."""
        word = words[at]
        if word[0] == "%" and word[-1] == "=":
            return word[:-1].rstrip(), at + 1, None
        key = words[at + 1]
        if word != "let" or words[at + 2] != "=" or not (key[1:].isidentifier() or key[1:].isdecimal()) or self.locals.again:
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
