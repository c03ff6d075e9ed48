"""Reduce actions for definitions, statements and expressions: the IR is made as the rules are reduced."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from relaylang.diagnostics import Fix, error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    If,
    Let,
    MetaRef,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relaylang.ops.extensions import EXTENSIONS
from relaylang.ops.record import Op
from relaylang.syntax.build_match import MatchActions
from relaylang.syntax.nodes import MetaNode, kind_of_meta
from relaylang.syntax.scope import Pending, local_key, name_of, shown
from relaylang.syntax.spellings import BY_NAME, OldOp
from relaylang.syntax.values import LiteralError, scalar, string

#: Literals by text: the array (which nobody can write to) and its element type.
_NUMBERS: dict[str, tuple[np.ndarray, str]] = {}
_BOOLS = {"True": np.array(True), "False": np.array(False)}
for _array in _BOOLS.values():
    _array.flags.writeable = False

#: Operators by the token that opens their call.
_CALLEES: dict[str, Expr] = {}

#: How tight each infix operator binds, and the operator that it calls.
_INFIX = {
    "*": (4, "multiply"),
    "/": (4, "divide"),
    "+": (3, "add"),
    "-": (3, "subtract"),
    "<": (2, "less"),
    "<=": (2, "less_equal"),
    ">": (2, "greater"),
    ">=": (2, "greater_equal"),
    "==": (1, "equal"),
    "!=": (1, "not_equal"),
}


class Signature:
    """A function's head while it is read: its parameters and what their names hid."""

    __slots__ = ("attrs", "binders", "hid", "name", "params", "ret_type", "seen")

    def __init__(self, name: str | None, binders: AnyValue) -> None:
        self.name = name
        self.binders = binders
        self.params: list[Var] = []
        self.attrs: list[AnyValue] = []
        self.hid: list[tuple[str, AnyValue]] = []
        self.seen: dict[str, int] = {}
        self.ret_type: AnyValue = None


class Block:
    """The statements of a block: what its names hid, its lets, its last statement."""

    __slots__ = ("last", "lets", "seen")

    def __init__(self) -> None:
        self.seen: dict[str, tuple[AnyValue, int, bool]] = {}
        self.lets: list[AnyValue] = []
        self.last: AnyValue = None


class Builder(MatchActions):
    """All actions. A statement is `(key, hidden, value, first token, variable)`; graph bindings have no variable."""

    # -- leaves

    def on_var(self, v: str, first: int, last: int) -> Expr:
        node = self.names.get(v)
        if node is None or node.__class__ is Pending:
            return self.find_local(v, first)
        return node

    def on_number(self, v: str, first: int, last: int) -> Expr:
        known = _NUMBERS.get(v)
        if known is None:
            known = self.number(v, first, last)
        return Constant(known[0], Span(self.source, first, last), known[1])

    def number(self, text: str, first: int, last: int) -> tuple[np.ndarray, str]:
        try:
            known = scalar(text)
        except LiteralError as e:
            # a minus in front may make it fit; `negative` looks again
            said = error("R0105", str(e), self.place(first, last))
            if text[0] != "-" and self.tokens[first - 1 : first] == ["-"] and self._fits_negated(text):
                self.deferred[first] = said
            else:
                self.report(said)
            return np.array(0, "int32"), "int32"
        if len(text) < 40:
            if len(_NUMBERS) > 50_000:
                _NUMBERS.clear()
            _NUMBERS[text] = known
        return known

    @staticmethod
    def _fits_negated(text: str) -> bool:
        try:
            scalar("-" + text)
        except LiteralError:
            return False
        return True

    def on_neg(self, v: list[AnyValue], first: int, last: int) -> Expr:
        value = v[1]
        if value.__class__ is Constant and value.span is not None and value.span.last == last:
            text = self.tokens[last]
            front = [sign for sign in self.tokens[first:last] if sign[:2] not in ("/*", "//") and sign[:1] != "#"]
            if (text[0].isdigit() or text[:3] in ("inf", "nan")) and front == ["-"] * len(front):
                key = "-" * (len(front) % 2) + text  # TVM counts the signs, and makes one number
                self.deferred.pop(last, None)
                known = _NUMBERS.get(key) or self.number(key, first, last)
                return Constant(known[0], Span(self.source, first, last), known[1])
        return self.infix_call("negative", [value], first, last)

    def on_global_var(self, v: str, first: int, last: int) -> Expr:
        name = string(v[1:]) if v[1] == '"' else v[1:]
        return self.globals.get(name) or self.global_var(name, first)

    def on_meta(self, v: str, first: int, last: int) -> AnyValue:
        value = self.meta_value(v, first)
        if not isinstance(value, Expr):
            self.loose[first] = v, kind_of_meta(value)
            if value.__class__ is not MetaNode:
                return Tuple((), self.span(first, last))
        return value

    def on_av_meta(self, v: str, first: int, last: int) -> AnyValue:
        return self.meta_value(v, first)

    def on_name(self, v: str, first: int, last: int) -> Expr:
        if v in _BOOLS:
            return Constant(_BOOLS[v], Span(self.source, first, last), "bool")
        found = self.find_callee(v, first, len(v))
        if found.__class__ is Constructor and not found.inputs and not self.has_fields(v):  # type: ignore[attr-defined]
            return Call(found, (), None, (), Span(self.source, first, last))  # `Nil` is `Nil()`, as TVM reads it
        return found

    def has_fields(self, name: str) -> bool:
        """Whether a constructor whose definition comes further down has fields there."""
        at = self._definitions_ahead().get(name) if name in self.promised_ctors else None
        if at is None:
            return False
        behind = self.tokens[at + 1 : at + 4]
        if self.tokens[at][-1] == "(":
            return behind[0] != ")"
        return (behind[0] == "(" and behind[1] != ")") or (behind[:2] == [":", "("] and behind[2] != ")")

    def on_string(self, v: str, first: int, last: int) -> Expr:
        self.report(
            error(
                "R0103", "a string is not an expression", self.place(first), notes=["strings are values of attributes"]
            )
        )
        return Tuple((), self.span(first, last))

    def on_proj(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return self.field(v[0], v[1][1:], first, last)

    def on_proj_spaced(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return self.field(v[0], v[2], first, last)

    def field(self, value: Expr, index: str, first: int, last: int) -> Expr:
        if not index.isdigit() or len(index) > 9:
            self.report(error("R0105", "a field's number is a whole number", self.place(last)))
            index = "0"
        return TupleGetItem(value, int(index), self.span(first, last))

    # -- calls

    def on_open_name(self, v: str, first: int, last: int) -> list[AnyValue]:
        callee = _CALLEES.get(v)
        if callee is None:
            callee = self.find_callee(v[:-1], first, len(v) - 1)
            if callee.__class__ is Op and callee.name not in EXTENSIONS:  # type: ignore[attr-defined]
                _CALLEES[v] = callee
        return [callee, first]

    def on_open_value(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        callee = v[0]
        if callee.__class__ is Call and callee.op.__class__ is Constructor and first + 1 == last and not callee.args:
            callee = callee.op  # `Nil ()`: the bare name has already been read as a value
        return [callee, first]

    def on_open_add(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        v[0].append(v[1])
        return v[0]

    def on_call_end(self, v: list[AnyValue], first: int, last: int) -> Expr:
        opened = v[0]
        return self.plain_call(opened[0], opened[2:], opened[1], last)

    def on_call_last(self, v: list[AnyValue], first: int, last: int) -> Expr:
        opened, value = v[0], v[1]
        callee = opened[0]
        if value.__class__ is MetaNode or (value.__class__ is MetaRef and value.type_key.startswith("relay.attrs.")):
            self.loose.pop(last - 1, None)
            return self.meta_call(callee, opened[2:], value, opened[1], last)
        opened.append(value)
        return self.plain_call(callee, opened[2:], opened[1], last)

    def plain_call(self, callee: Expr, args: list[Expr], at: int, last: int) -> Expr:
        """A call without attributes."""
        attrs = None
        if callee.__class__ is Op:
            if callee.name in BY_NAME:  # type: ignore[attr-defined]
                return self.make_call(callee, args, [], at, last)
            attrs = self.no_attrs(callee, at)  # type: ignore[arg-type]
        elif callee.__class__ is OldOp:
            return self.make_call(callee, args, [], at, last)
        return Call(callee, args, attrs, (), Span(self.source, at, last))

    def on_call_attrs(self, v: list[AnyValue], first: int, last: int) -> Expr:
        opened = v[0]
        return self.make_call(opened[0], opened[2:], v[1], opened[1], last)

    # -- brackets

    def on_unit(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return Tuple((), self.span(first, last))

    def on_paren(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return v[1]

    def on_paren_block(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return v[1]

    def on_braces(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return v[1]

    def on_tuple_first(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        return [v[1]]

    def on_tuple_more(self, v: list[AnyValue], first: int, last: int) -> list[AnyValue]:
        v[0].append(v[1])
        return v[0]

    def on_tuple_end(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return Tuple(v[0], self.span(first, last))

    def on_tuple_last(self, v: list[AnyValue], first: int, last: int) -> Expr:
        v[0].append(v[1])
        return Tuple(v[0], self.span(first, last))

    def on_ref(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return RefCreate(v[2], self.span(first, last))

    def on_ref_read(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return RefRead(v[2], self.span(first, last))

    def on_ref_write(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return RefWrite(v[2], v[4], self.span(first, last))

    def on_if_else(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return If(v[2], v[5], v[9], self.span(first, last))

    # -- infix operators

    def infix_call(self, name: str, args: list[Expr], first: int, last: int) -> Expr:
        op = self.find_callee(name, first, 1)
        attrs = self.no_attrs(op, first) if op.__class__ is Op else None  # type: ignore[arg-type]
        return Call(op, args, attrs, (), self.span(first, last))

    def on_infix_op(self, v: str, first: int, last: int) -> tuple[str, int]:
        return v, first

    def on_infix_first(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self.on_infix_more([([(v[0], first, v[1][1] - 1)], []), v[1], v[2]], first, last)

    def on_infix_more(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        operands, waiting = v[0]
        sign, at = v[1]
        self.join(operands, waiting, _INFIX[sign][0])
        waiting.append(sign)
        operands.append((v[2], at + 1, last))
        return v[0]

    def join(self, operands: list[AnyValue], waiting: list[str], power: int) -> None:
        """Make the calls of the waiting operators that bind at least as tight as the next one."""
        while waiting and _INFIX[waiting[-1]][0] >= power:
            (right, _, last), (left, first, _) = operands.pop(), operands.pop()
            operands.append((self.infix_call(_INFIX[waiting.pop()][1], [left, right], first, last), first, last))

    def on_infix(self, v: AnyValue, first: int, last: int) -> Expr:
        operands, waiting = v
        self.join(operands, waiting, 0)
        return operands[0][0]

    # -- statements

    def on_stmts_one(self, v: AnyValue, first: int, last: int) -> Block:
        return self.on_stmts_more([Block(), v], first, last)

    def on_stmts_more(self, v: list[AnyValue], first: int, last: int) -> Block:
        block, statement = v
        key, hidden, _, at, var = statement
        if key is not None:
            known = block.seen.get(key)
            if known is None:
                block.seen[key] = (hidden, at, var is None)
            elif known[2] or var is None:
                self.twice(f"`{key}`", at, known[1])
        if var is not None:
            block.lets.append(statement)
        block.last = statement
        return block

    def on_graph(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        key = v[0][:-1].rstrip()
        if self.first_graph is None:
            self.first_graph = int(key[1:]) if len(key) < 12 else 0
        names = self.names
        hidden = names.get(key)
        names[key] = v[1]
        return key, hidden, v[1], first, None

    def on_graph_head(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self.on_graph(v, first, last)

    def on_graph_spaced(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        key = local_key(v[0])
        if self.first_graph is None and key[1:].isdigit():
            self.first_graph = int(key[1:]) if len(key) < 12 else 0
        return key, self.bind(key, v[2]), v[2], first, None

    def on_graph_value(self, v: list[AnyValue], first: int, last: int) -> Expr:
        key, hidden, value, at = v[0][:4]
        self.gone[key] = (at, last + 1, value)
        self.unbind(key, hidden)
        return v[2]

    def on_seq(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return None, None, v[0], first, Var("_", None, self.span(first, last))

    def _let(self, token: str, ty: AnyValue, first: int, at: int) -> AnyValue:
        key = local_key(token)
        var = Var(name_of(key), ty, self.span(at, at))
        hidden = self.names.get(key)
        self.names[key] = Pending(var, at, self.fn_depth, hidden)
        return key, hidden, None, first, var

    def on_let_plain(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._let(v[1], None, first, first + 1)

    def on_let_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._let(v[1], v[3], first, first + 1)

    def on_let_coarse(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        name, _, ty = v[1].partition(": ")
        return self._let(name, self.on_t_tensor(ty, first + 1, last), first, first + 1)

    def on_let_named(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._let(v[1], self.on_t_name(v[3][:-1], last, last), first, first + 1)

    def on_let_extras(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        made = self._let(v[1], None, first, first + 1)
        made[4].virtual_device = self.virtual_device(v[3], first + 1)
        return made

    def on_let_extras_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        made = self._let(v[1], v[6], first, first + 1)
        made[4].virtual_device = self.virtual_device(v[3], first + 1)
        return made

    def on_let_extras_named(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        v[6] = self.on_t_name(v[6][:-1], last, last)
        return self.on_let_extras_typed(v, first, last)

    def on_let_bound(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        key, hidden, _, at, var = v[0]
        self.names[key] = var
        return key, hidden, v[1], at, var

    def on_let_value(self, v: list[AnyValue], first: int, last: int) -> Expr:
        key, hidden, value, at, var = v[0]
        self.unbind(key, hidden)
        return Let(var, value, v[1], self.span(at, last))

    def _free(self, token: str, ty: AnyValue, at: int) -> AnyValue:
        key = local_key(token)
        var = Var(name_of(key), ty, self.span(at, at))
        self.free_vars.append(var)
        self.names[key] = var
        return None, None, var, at, None

    def on_free_plain(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._free(v[1], None, first + 1)

    def on_free_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return self._free(v[1], v[3], first + 1)

    def on_free_extras(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        made = self._free(v[1], None, first + 1)
        made[2].virtual_device = self.virtual_device(v[3], first + 1)
        return made

    def on_free_extras_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        made = self._free(v[1], v[6], first + 1)
        made[2].virtual_device = self.virtual_device(v[3], first + 1)
        return made

    def on_free_coarse(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        name, _, ty = v[1].partition(": ")
        return self._free(name, self.on_t_tensor(ty, first + 1, last), first + 1)

    # -- blocks

    def on_block_expr(self, v: Expr, first: int, last: int) -> Expr:
        return v

    def close_block(self, block: Block, value: Expr, first: int, last: int) -> Expr:
        """The block's value inside its lets. What its names hid is put back."""
        names, gone = self.names, self.gone
        for key, (hidden, at, graph) in block.seen.items():
            if graph:
                gone[key] = (at, last + 1, names.get(key))
            if hidden is None:
                names.pop(key, None)
            else:
                names[key] = hidden
        for _, _, bound, at, var in reversed(block.lets):
            value = Let(var, bound, value, Span(self.source, at, last))
        return value

    def on_block_stmts(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return self.close_block(v[0], v[1], first, last)

    def on_block_open(self, v: Block, first: int, last: int) -> Expr:
        key, _, value, at, var = v.last
        if key is None and var is not None:  # `e;` at the end: its value
            v.lets.pop()
            return self.close_block(v, value, first, last)
        end = self.source.end_of(last)
        self.report(
            error(
                "R0104",
                f"this block ends with {f'the binding of `{shown(key)}`' if key else 'a declaration'} and has no value",
                self.place(at, last),
                "nothing follows this",
                fix=Fix(Span(self.source.plain, end, end), f" {key}", f"end the block with `{shown(key)}`")
                if key
                else None,
            )
        )
        return self.close_block(v, value if var is None else var, first, last)

    def on_sequence(self, v: list[AnyValue], first: int, last: int) -> Expr:
        return self.close_block(v[0], v[1], first, last)

    def on_top_stmts(self, v: list[AnyValue], first: int, last: int) -> Expr:
        self.bindings = {key[1:]: self.names[key] for key in v[0].seen}
        made = self.close_block(v[0], v[1], first, last)
        self.check_reused(made)
        return made

    def on_top_open(self, v: Block, first: int, last: int) -> Expr:
        key, _, value, _, var = v.last
        if key is None and var is not None:
            v.lets.pop()
        elif var is not None:
            value = var
        return self.on_top_stmts([v, value], first, last)

    # -- functions

    def on_fn_open(self, v: list[AnyValue], first: int, last: int) -> Signature:
        self.fn_depth += 1
        return Signature(None, ())

    def on_fn_open_generic(self, v: list[AnyValue], first: int, last: int) -> Signature:
        self.fn_depth += 1
        return Signature(None, v[1])

    def on_def_name(self, v: list[AnyValue], first: int, last: int) -> tuple[str, int]:
        # names of one function mean nothing in another
        self.names = dict(self.outer)
        self.gone = {}
        self.in_def = True
        self.reused = {}
        self.first_graph = None
        name = string(v[1][1:]) if v[1][1] == '"' else v[1][1:]
        return name, last

    def on_def_open(self, v: list[AnyValue], first: int, last: int) -> Signature:
        return self._define(v[0], ())

    def on_def_open_generic(self, v: list[AnyValue], first: int, last: int) -> Signature:
        return self._define(v[0], v[1])

    def _define(self, head: tuple[str, int], binders: AnyValue) -> Signature:
        name, at = head
        known = self.defined_globals.get(name)
        if known is not None:
            self.twice(f"function `@{name}`", at, known)
        else:
            self.defined_globals[name] = at
        return Signature(name, binders)

    def on_open_param(self, v: list[AnyValue], first: int, last: int) -> Signature:
        self.add_param(v[0], v[1])
        return v[0]

    def add_param(self, sig: Signature, item: AnyValue) -> None:
        """Enter a parameter (token text, type, token, and maybe its virtual device) or attributes into a signature."""
        if item.__class__ is not tuple or len(item) < 3:
            sig.attrs.append(item)
            return
        token, ty, at = item[:3]
        key = local_key(token)
        var = Var(name_of(key), ty, Span(self.source, at, at), *item[3:])
        before = sig.seen.setdefault(key, at)
        if before != at:
            self.twice(f"parameter `{key}`", at, before)
        if sig.attrs:
            self.report(
                error(
                    "R0101",
                    "a parameter behind attributes",
                    self.place(at),
                    notes=["attributes stand behind all parameters"],
                )
            )
        sig.hid.append((key, self.names.get(key)))
        self.names[key] = var
        sig.params.append(var)

    def on_param_coarse(self, v: str, first: int, last: int) -> AnyValue:
        name, _, ty = v.partition(": ")
        return name, self.on_t_tensor(ty, first, last), first

    def on_param_plain(self, v: str, first: int, last: int) -> AnyValue:
        return v, None, first

    def on_param_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0], v[2], first

    def on_param_extras(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0], None, first, self.virtual_device(v[2], first)

    def on_param_extras_typed(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return v[0], v[5], first, self.virtual_device(v[2], first)

    def virtual_device(self, items: list[AnyValue], at: int) -> AnyValue:
        """What the braces behind a variable say where it is bound: its virtual device and nothing else."""
        values = self.attr_values([(item, at + 2) if item.__class__ is str else item for item in items])
        for name in values:
            if name != "virtual_device":
                self.unknown("R0203", "attribute", name, self.place(at + 2), ["virtual_device"])
        return values.get("virtual_device")

    def on_param_attrs(self, v: str, first: int, last: int) -> AnyValue:
        return v, first

    def on_sig_end(self, v: list[AnyValue], first: int, last: int) -> Signature:
        return v[0]

    def on_sig_end_param(self, v: list[AnyValue], first: int, last: int) -> Signature:
        self.add_param(v[0], v[1])
        return v[0]

    def on_sig_ret(self, v: list[AnyValue], first: int, last: int) -> Signature:
        v[0].ret_type = v[3]
        return v[0]

    def on_sig_ret_param(self, v: list[AnyValue], first: int, last: int) -> Signature:
        self.add_param(v[0], v[1])
        v[0].ret_type = v[4]
        return v[0]

    def on_function(self, v: list[AnyValue], first: int, last: int) -> Function:
        sig = v[0]
        self.fn_depth -= 1
        for key, hidden in reversed(sig.hid):
            self.unbind(key, hidden)
        return self._function(sig, v[2], first, last)

    def _function(self, sig: Signature, body: AnyValue, first: int, last: int) -> Function:
        self.close_type_vars(sig.binders)
        attrs = self.attr_values(sig.attrs) if sig.attrs else None
        binders = [b[2] for b in sig.binders]
        return Function(sig.params, body, sig.ret_type, binders, attrs, Span(self.source, first, last))

    def on_def_function(self, v: list[AnyValue], first: int, last: int) -> None:
        sig = v[0]
        function = self._function(sig, v[2], first, last)
        self.check_reused(function)
        self.in_def = False
        self.names = dict(self.outer)
        self.gone = {}
        self.define(sig.name, function, first + 1)

    def define(self, name: str, function: Function, at: int) -> None:
        self.functions.setdefault(self.global_var(name, at), function)

    def on_def_external(self, v: list[AnyValue], first: int, last: int) -> None:
        name = string(v[1][1:]) if v[1][1] == '"' else v[1][1:]
        self._define((name, first + 1), ())
        value = self.meta_value(v[3], first + 3)
        if not isinstance(value, Function):
            value = Function((), None, attrs={"external": value}, span=self.span(first, last))  # type: ignore[arg-type]
        self.define(name, value, first + 1)

    # -- the whole

    def on_start_versioned(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        self.versioned = True
        return v[1]

    def on_text_defs(self, v: AnyValue, first: int, last: int) -> AnyValue:
        return True, None

    def on_text_both(self, v: list[AnyValue], first: int, last: int) -> AnyValue:
        return True, v[1]

    def on_text_block(self, v: AnyValue, first: int, last: int) -> AnyValue:
        self.check_reused(v)
        return False, v

    def on_text_empty(self, v: AnyValue, first: int, last: int) -> AnyValue:
        return False, None

    def on_defs_one(self, v: AnyValue, first: int, last: int) -> None:
        return None

    def on_defs_more(self, v: AnyValue, first: int, last: int) -> None:
        return None
