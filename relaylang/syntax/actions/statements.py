"""Actions for statements and blocks: lets, graph bindings, free variables."""

from __future__ import annotations

from typing import Any as AnyValue

from relaylang.diagnostics import Fix, error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Expr, Let, Var
from relaylang.syntax.actions.attributes import AttributeActions
from relaylang.syntax.actions.locals import Locals, Pending, local_key, name_of
from relaylang.syntax.actions.reports import Reports, shown
from relaylang.syntax.actions.types import TypeActions, tensor_type


class Block:
    """The statements of a block: those that bind names, by name; its lets; its last statement."""

    __slots__ = ("last", "lets", "seen")

    def __init__(self) -> None:
        self.seen: dict[str, AnyValue] = {}
        self.lets: list[AnyValue] = []
        self.last: AnyValue = None


class StatementActions:
    """Makes blocks. A statement is `(key, hidden, value, first token, variable)`; graph bindings have no variable."""

    def __init__(self, reports: Reports, locals: Locals, type_actions: TypeActions, attributes: AttributeActions) -> None:
        self.reports = reports
        self.source = reports.source
        self.locals = locals
        self.names = locals.names
        self.type_actions = type_actions
        self.attributes = attributes
        #: the blocks that have ended with the values of their names, where somebody wants them
        self.closed: list[tuple[Block, dict[str, AnyValue]]] | None = None

    def on_stmts_one(self, v: AnyValue, first: int, last: int) -> Block:
        return self.on_stmts_more([Block(), v], first, last)

    def on_stmts_more(self, v: list[AnyValue], first: int, last: int) -> Block:
        block, statement = v
        key, _, _, at, var = statement
        if key is not None:
            known = block.seen.setdefault(key, statement)
            if known is not statement and (known[4] is None or var is None):
                self.reports.twice(f"`{key}`", at, known[3])
        if var is not None:
            block.lets.append(statement)
        block.last = statement
        return block

    # -- graph bindings

    def on_graph(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        key = v[0][:-1].rstrip()
        locals = self.locals
        if locals.first_graph is None:
            locals.first_graph = int(key[1:]) if len(key) < 12 else 0
        names = self.names
        hidden = names.get(key)
        names[key] = v[1]
        return key, hidden, v[1], first, None

    def on_graph_head(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self.on_graph(v, first, last)

    def on_graph_spaced(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        key = local_key(v[0])
        locals = self.locals
        if locals.first_graph is None and key[1:].isdigit():
            locals.first_graph = int(key[1:]) if len(key) < 12 else 0
        return key, locals.bind(key, v[2]), v[2], first, None

    def on_graph_value(self, v: list[AnyValue], first: int, last: int) -> Expr:
        key, hidden = v[0][:2]
        self.locals.ended.append(({key: v[0]}, last + 1))
        self.locals.unbind(key, hidden)
        return v[2]

    def on_seq(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return None, None, v[0], first, Var("_", None, self.reports.span(first, last))

    # -- lets

    def _let(self, token: str, ty: AnyValue, first: int, at: int) -> AnyValue:
        key = local_key(token)
        known = self.locals.again.pop(key, None) if self.locals.again else None
        if known is not None and known.type_annotation == ty and known.virtual_device is None:
            var = known
            var.type_annotation, var.span = ty, Span(self.source, at, at)
        else:
            var = Var(name_of(key), ty, Span(self.source, at, at))
        names = self.names
        hidden = names.get(key)
        names[key] = Pending(var, at, self.locals.fn_depth, hidden)
        return key, hidden, None, first, var

    def on_let_plain(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._let(v[1], None, first, first + 1)

    def on_let_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._let(v[1], v[3], first, first + 1)

    def on_let_coarse(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        name, _, ty = v[1].partition(": ")
        return self._let(name, tensor_type(ty, first + 1, self.reports), first, first + 1)

    def on_let_named(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._let(v[1], self.type_actions.on_t_name(v[3][:-1], last, last), first, first + 1)

    def on_let_extras(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        binding = self._let(v[1], None, first, first + 1)
        binding[4].virtual_device = self.attributes.virtual_device(v[3], first + 1)
        return binding

    def on_let_extras_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        binding = self._let(v[1], v[6], first, first + 1)
        binding[4].virtual_device = self.attributes.virtual_device(v[3], first + 1)
        return binding

    def on_let_extras_named(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        v[6] = self.type_actions.on_t_name(v[6][:-1], last, last)
        return self.on_let_extras_typed(v, first, last)

    def on_let_bound(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        key, hidden, _, at, var = v[0]
        self.names[key] = var
        return key, hidden, v[1], at, var

    def on_let_value(self, v: list[AnyValue], first: int, last: int) -> Expr:
        key, hidden, value, at, var = v[0]
        self.locals.unbind(key, hidden)
        return Let(var, value, v[1], self.reports.span(at, last))

    # -- free variables

    def _free(self, token: str, ty: AnyValue, at: int) -> AnyValue:
        key = local_key(token)
        var = Var(name_of(key), ty, self.reports.span(at, at))
        self.locals.free_vars.append(var)
        self.names[key] = var
        return None, None, var, at, None

    def on_free_plain(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._free(v[1], None, first + 1)

    def on_free_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._free(v[1], v[3], first + 1)

    def on_free_extras(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        binding = self._free(v[1], None, first + 1)
        binding[2].virtual_device = self.attributes.virtual_device(v[3], first + 1)
        return binding

    def on_free_extras_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        binding = self._free(v[1], v[6], first + 1)
        binding[2].virtual_device = self.attributes.virtual_device(v[3], first + 1)
        return binding

    def on_free_coarse(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        name, _, ty = v[1].partition(": ")
        return self._free(name, tensor_type(ty, first + 1, self.reports), first + 1)

    # -- blocks

    def on_block_expr(self, v: Expr, first: int, last: int) -> Expr:
        return v

    def close(self, block: Block, value: Expr, first: int, last: int) -> Expr:
        """The block's value inside its lets. Ends the scope of the block's names."""
        names = self.names
        if self.closed is not None:
            self.closed.append((block, {key: names.get(key) for key in block.seen}))
        if block.seen:
            self.locals.ended.append((block.seen, last + 1))
        for key, (_, hidden, _, _, _) in block.seen.items():
            if hidden is None:
                names.pop(key, None)
            else:
                names[key] = hidden
        for _, _, bound, at, var in reversed(block.lets):
            value = Let(var, bound, value, Span(self.source, at, last))
        return value

    def on_block_stmts(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return self.close(v[0], v[1], first, last)

    def on_block_open(self, v: Block, first: int, last: int) -> Expr:
        key, _, value, at, var = v.last
        if key is None and var is not None:  # `e;` at the end: its value
            v.lets.pop()
            return self.close(v, value, first, last)
        end = self.source.end_of(last)
        what = f"the binding of `{shown(key)}`" if key else "a declaration"
        title = f"this block ends with {what} and has no value"
        behind = Span(self.source.plain, end, end)
        fix = Fix(behind, f" {key}", f"end the block with `{shown(key)}`") if key else None
        self.reports.add(error("R0104", title, self.reports.place(at, last), "nothing follows this", fix=fix))
        return self.close(v, value if var is None else var, first, last)

    def on_sequence(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return self.close(v[0], v[1], first, last)

    def on_top_stmts(self, v: list[AnyValue], first: int, last: int) -> Expr:
        locals = self.locals
        locals.bindings = {key[1:]: self.names[key] for key in v[0].seen}
        closed = self.close(v[0], v[1], first, last)
        locals.check_reused(closed)
        return closed

    def on_top_open(self, v: Block, first: int, last: int) -> Expr:
        key, _, value, _, var = v.last
        if key is None and var is not None:
            v.lets.pop()
        elif var is not None:
            value = var
        return self.on_top_stmts([v, value], first, last)


__all__ = ["Block", "StatementActions"]
