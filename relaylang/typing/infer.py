"""Type inference: one walk over a program with an explicit stack, and what it leaves open settled from a worklist.

Children come before their parents, so an operator's arguments are usually known when its relation runs. Where they are
not, the call waits for the unknowns among them. Whatever is wrong is said once: its type agrees with everything after.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    MetaRef,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relaylang.ir.module import IRModule
from relaylang.ir.types import RefType, TensorType, TupleType, Type, scalar_type
from relaylang.ops.record import Op
from relaylang.typing.calls import Waiting
from relaylang.typing.report import bare_name, name_of, place, show
from relaylang.typing.results import Results
from relaylang.typing.solver import POISON, Unknown
from relaylang.typing.steps import (
    ARM,
    BIND,
    CALL,
    FIELD,
    GLOBAL,
    IF,
    LET,
    MATCH,
    NEW,
    READ,
    TUPLE,
    VISIT,
    WRITE,
    Stale,
    Step,
)

_BOOL = scalar_type("bool")
_UNIT = TupleType(())


class Inference(Results):
    """One inference over a module or an expression. `fresh` looks at nodes that have a type already, too."""

    # --- entry points ---

    def run_module(self, module: IRModule) -> None:
        for data in module.type_definitions.values():
            self.check_definition(data)
        for var, function in module.functions.items():
            if not isinstance(function, Function) or id(function) in self.started:
                continue
            known = function.checked_type
            if not self.fresh and known is not None and self.is_known(self.resolve(known)):
                if var.checked_type is not None and var.checked_type != known:
                    raise Stale
                self.types[id(var)] = self.types[id(function)] = known
                self.order.append(var)
                self.skipped = True
                continue
            self.walk([(GLOBAL, function, var)])
        self.settle()
        self.check_scopes()

    def run_group(self, functions: Sequence[tuple[GlobalVar, Function]]) -> None:
        """Functions that are to be checked together; of all others the type is `given`."""
        for var, function in functions:
            if id(function) not in self.started:
                self.walk([(GLOBAL, function, var)])
        self.settle()
        self.check_scopes()

    def run_expr(self, expr: Expr) -> None:
        self.walk([(VISIT, expr, 0)])
        self.settle()

    # --- the walk ---

    def walk(self, stack: list[Step]) -> None:
        types = self.types
        while stack:
            what, node, extra = stack.pop()
            if what == CALL:
                types[id(node)] = self.call(node)  # type: ignore[arg-type]
                self.order.append(node)
                if self.ready:
                    self.work()
            elif what != VISIT:
                self.finish(what, node, extra, stack)
            elif id(node) in types:
                pass
            elif type(node) is GlobalVar and node.name_hint in self.functions:
                self.visit_global(node, stack)  # the name may carry the type of a function that was replaced
            elif self.is_done(node):
                pass
            elif type(node) is Call:
                stack.append((CALL, node, 0))
                op = node.op
                if type(op) is not Op and type(op) is not Constructor and id(op) not in types:
                    stack.append((VISIT, op, 0))
                for arg in reversed(node.args):
                    if id(arg) not in types:
                        stack.append((VISIT, arg, 0))
            else:
                self.visit(node, stack)

    def visit(self, node: Expr, stack: list[Step]) -> None:
        types = self.types
        match node:
            case Var():
                self.bind_var(node, None)
                self.loose.append(node)
            case Constant():
                types[id(node)] = self.intern(TensorType(node.data.shape, node.dtype))
                self.order.append(node)
            case Tuple(fields):
                stack.append((TUPLE, node, 0))
                stack.extend([(VISIT, field, 0) for field in reversed(fields)])
            case TupleGetItem(value):
                stack.append((FIELD, node, 0))
                stack.append((VISIT, value, 0))
            case Let(variable, value, body):
                stack.append((LET, node, 0))
                stack.append((VISIT, body, 0))
                stack.append((BIND, node, 0))
                stack.append((VISIT, value, 0))
                if isinstance(value, Function) and not self.is_done(value) and id(value) not in types:
                    signature = self.signature(value)
                    self.declared.add(id(variable))
                    self.named.add(id(value))
                    types[id(variable)] = signature
                    self.order.append(variable)
            case If(cond, yes, no):
                stack.append((IF, node, 0))
                stack.append((VISIT, no, 0))
                stack.append((VISIT, yes, 0))
                stack.append((VISIT, cond, 0))
            case Function():
                self.enter(node, node, stack)
            case GlobalVar():
                self.visit_global(node, stack)
            case Match(data, clauses):
                stack.append((MATCH, node, 0))
                for i in range(len(clauses) - 1, -1, -1):
                    stack.append((VISIT, clauses[i].rhs, 0))
                    stack.append((ARM, node, i))
                stack.append((VISIT, data, 0))
            case RefCreate(value):
                stack.append((NEW, node, 0))
                stack.append((VISIT, value, 0))
            case RefRead(ref):
                stack.append((READ, node, 0))
                stack.append((VISIT, ref, 0))
            case RefWrite(ref, value):
                stack.append((WRITE, node, 0))
                stack.append((VISIT, value, 0))
                stack.append((VISIT, ref, 0))
            case Constructor():
                types[id(node)] = self.constructor_type(node, node.span)
                self.order.append(node)
            case MetaRef():
                types[id(node)] = self.open(node.type_annotation, node) if node.type_annotation else Unknown(node)
                self.order.append(node)
            case Op():
                holder = next((owner for what, owner, _ in reversed(stack) if what != VISIT), None)
                self.say(
                    "R0305", f"the operator {name_of(node)} must be called; it is not a value",
                    bare_name(node.name, holder), notes=(f"write `fn (...) {{ {node.name}(...) }}`",),
                )  # fmt: skip
                types[id(node)] = POISON
            case _:
                raise AssertionError(f"{type(node).__name__} is not an expression")

    def finish(self, what: int, node: Expr, extra: int | GlobalVar, stack: list[Step]) -> None:
        types = self.types
        if what == GLOBAL:
            assert isinstance(node, Function) and isinstance(extra, GlobalVar)
            self.started.add(id(node))
            self.named.add(id(node))
            types[id(extra)] = self.signature(node)
            self.order.append(extra)
            self.enter(node, extra, stack)
            return
        match node:
            case Tuple(fields):
                made: Type = TupleType([types[id(field)] for field in fields])
            case TupleGetItem():
                made = self.project(node)
            case Let(variable, value, body):
                if what == BIND:
                    self.bind_let(node, variable, value)
                    return
                made = types[id(body)]
            case If(cond, yes, no):
                if not self.unify(types[id(cond)], _BOOL):
                    self.say(
                        "R0307",
                        f"the condition of an `if` must be `bool`, not `{show(self.resolve(types[id(cond)]))}`",
                        place(cond, node.span),
                        also=self.origin_of_variable(cond),
                    )
                made = self.join_arms(node, [yes, no], "the branches of an `if`")
            case Function():
                self.leave(node)
                if self.ready:
                    self.work()
                return
            case Match(_, clauses):
                if what == ARM:
                    assert isinstance(extra, int)
                    self.bind_pattern(node, clauses[extra])
                    return
                made = self.join_arms(node, [c.rhs for c in clauses], "the arms of a `match`")
                self.check_exhaustive(node)
            case RefCreate(value):
                made = RefType(types[id(value)])
            case RefRead(ref):
                made = self.referred(node, ref)
            case RefWrite(ref, value):
                inner = self.referred(node, ref)
                if not self.unify(inner, types[id(value)]):
                    self.mismatch(
                        "what is written into a reference", inner, types[id(value)], place(value, node.span),
                        also=[*self.origin_of_variable(ref), *self.origin_of_variable(value)],
                    )  # fmt: skip
                made = _UNIT
            case _:
                raise AssertionError(what)
        types[id(node)] = made
        self.order.append(node)
        if self.ready:
            self.work()

    # --- the worklist ---

    def work(self) -> None:
        """Look again at what waited for types that are known now."""
        while self.ready:
            waiting = self.ready.pop()
            assert isinstance(waiting, Waiting)
            if waiting.done:
                continue
            node = waiting.node
            if isinstance(node, TupleGetItem):
                waiting.done = True
                made: Type | None = self.project(node)
            else:
                made = self.retry(waiting)
            if made is not None and not self.unify(waiting.result, made):
                self.cannot_be(node, f"the result of {name_of(node)}", self.resolve(waiting.result), made)

    def settle(self) -> None:
        """What is still to be said once every node has been seen."""
        self.work()
        self.check_untaken()
        self.report_stuck()


__all__ = ["Inference", "Stale"]
