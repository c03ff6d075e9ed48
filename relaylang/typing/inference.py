"""Type inference: one walk over a program with an explicit stack. The parts type the nodes; a worklist types what waits.

Children come before their parents, so an operator's arguments are usually known when its relation runs. Where they are
not, the call waits for the unknowns among them. An error is reported once: its node's type agrees with every type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any as AnyValue

from relaylang.diagnostics import Diagnostic
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
from relaylang.ir.types import RefType, TensorType, TupleType, Type
from relaylang.ops.record import Op
from relaylang.typing.annotations import Annotations
from relaylang.typing.calls import Calls
from relaylang.typing.definitions import Definitions
from relaylang.typing.functions import Functions
from relaylang.typing.matches import Matches
from relaylang.typing.operators import Operators
from relaylang.typing.places import bare_name
from relaylang.typing.program import Found, Program
from relaylang.typing.report import Report
from relaylang.typing.results import Results
from relaylang.typing.reuse import Earlier, Stale
from relaylang.typing.scopes import Scopes
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, Unknown
from relaylang.typing.texts import name_of
from relaylang.typing.values import Values
from relaylang.typing.worklist import Worklist

# The steps of the walk. The walk visits a node that stands alone on the stack. One of these on top of a node is another step
# with it: a call and other nodes are finished once their children have types. An arm's number, or the name of a module's
# function, stands between the node and the step.
_CALL, _FINISH, _BIND, _ARM, _GLOBAL = range(5)
_Steps = list[Expr | int]


class Inference:
    """One inference over a module or an expression: the parts, and the walk that gives each node to its part.

    `fragment` allows open types and variables. `fresh` looks at nodes that have a type already, too. `assume` has types
    of variables. After a run, `results` writes the types and reports open ones.
    """

    def __init__(
        self,
        program: Program,
        *,
        fragment: bool = False,
        fresh: bool = True,
        assume: Mapping[Var, Type] | None = None,
    ) -> None:
        solver, inferred = Solver(), Found()
        report = Report(solver, inferred.types, program)
        annotations = Annotations(solver, report, program.definitions)
        definitions = Definitions(report, annotations, program.definitions)
        earlier = Earlier(solver, inferred, fresh)
        scopes = Scopes(solver, inferred, report, annotations, earlier, assume)
        functions = Functions(solver, inferred, report, annotations, scopes, earlier, program)
        self.report = report
        self.earlier = earlier
        self.results = Results(solver, inferred, report, functions.parameters, fragment)
        self._program = program
        self._fragment = fragment
        self._solver = solver
        self._found = inferred
        self._annotations = annotations
        self._definitions = definitions
        self._scopes = scopes
        self._functions = functions
        self._operators = Operators(solver, report, inferred.types, program.definitions)
        self._calls = Calls(solver, report, inferred.types, definitions)
        self._matches = Matches(solver, inferred, report, scopes, definitions)
        self._values = Values(solver, report, inferred.types)
        self._worklist = Worklist(solver, report)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """All that has been reported so far."""
        return self.report.diagnostics

    def run_module(self, module: IRModule) -> None:
        """Find the types of a module's functions, and check its type definitions."""
        for data in module.type_definitions.values():
            self._definitions.check(data)
        for var, function in module.functions.items():
            if isinstance(function, Function) and not self._functions.has_started(function):
                if not self.earlier.take_function(var, function):
                    self._walk([function, var, _GLOBAL])
        self._settle()
        self._check_scopes()

    def run_group(self, functions: Iterable[tuple[GlobalVar, Function]], statements: Sequence[Let] = ()) -> None:
        """Find the types of some functions of a module together. The program gives the types of all others.

        Of functions whose bodies have types, only the `statements` are looked at. Raises `Stale` where they need others.
        """
        for var, function in functions:
            if not self._functions.has_started(function):
                self._walk([function, var, _GLOBAL])
        self._walk([step for let in reversed(statements) for step in (let, _BIND, let.value)])
        if statements and self._scopes.has_loose:
            raise Stale
        self._settle()
        self._check_scopes()

    def run_expr(self, expr: Expr) -> None:
        """Find the types of an expression."""
        self._walk([expr])
        self._settle()

    def _settle(self) -> None:
        """Finish what waits, once every node has been seen."""
        self._worklist.work()
        self._operators.settle()

    def _check_scopes(self) -> None:
        self._annotations.report_unbound()
        if not self._fragment:
            self._scopes.report_loose()

    # --- the walk ---

    def _walk(self, stack: _Steps) -> None:
        types, order, ready = self._found.types, self._found.order, self._solver.ready
        operate, call, work = self._operators.call, self._calls.call, self._worklist.work
        take, functions = self.earlier.take, self._program.functions
        pop, push = stack.pop, stack.append
        while stack:
            node: AnyValue = pop()
            if type(node) is int:
                what, node = node, pop()
                if what == _CALL:
                    op = node.op
                    types[node] = operate(node, op) if isinstance(op, Op) else call(node)
                    order.append(node)
                    if ready:
                        work()
                    continue
                self._finish(what, node, stack)
                if ready and what == _FINISH:
                    work()
            elif node in types:
                pass
            elif type(node) is GlobalVar and node.name_hint in functions:
                self._visit_global(node, stack)  # the name may carry the type of a function that was replaced
            elif node.checked_type is not None and take(node):
                pass
            elif type(node) is Call:
                push(node)
                push(_CALL)
                op = node.op
                if not isinstance(op, (Op, Constructor)) and op not in types:
                    push(op)
                for arg in node.args[::-1]:
                    if arg not in types:
                        push(arg)
            else:
                self._visit(node, stack)

    def _visit_global(self, node: GlobalVar, stack: _Steps) -> None:
        first = self._functions.name(node)
        if first is not None:
            stack += (first, node, _GLOBAL)

    def _enter(self, function: Function, stack: _Steps) -> None:
        self._functions.signature(function)
        stack += (function, _FINISH)
        if function.body is not None:
            stack.append(function.body)

    def _declare(self, function: Function, variable: Var) -> None:
        """Note the type of a bound function in front of its body, unless it is known."""
        if not self.earlier.take(function) and function not in self._found.types:
            self._functions.declare(function, variable)

    def _refuse_operator(self, node: Op, stack: _Steps) -> None:
        """Report an operator that stands as a value."""
        started = max((n for n, item in enumerate(stack) if isinstance(item, int)), default=-1)
        holder = next((item for item in reversed(stack[: started + 1]) if isinstance(item, Expr)), None)
        self.report.say(
            "R0305",
            f"the operator {name_of(node)} must be called; it is not a value",
            bare_name(node.name, holder),
            notes=(f"write `fn (...) {{ {node.name}(...) }}`",),
        )
        self._found.types[node] = POISON

    def _visit(self, node: Expr, stack: _Steps) -> None:
        """Type a node without children, or put its steps on the stack."""
        put = self._found.put
        match node:
            case Let(variable, value, body):
                stack += (node, _FINISH, body, node, _BIND, value)
                if isinstance(value, Function):
                    self._declare(value, variable)
            case Var():
                self._scopes.meet(node)
            case Constant():
                put(node, self._solver.intern(TensorType(node.data.shape, node.dtype)))
            case Tuple(fields):
                stack += (node, _FINISH, *fields[::-1])
            case TupleGetItem(value) | RefCreate(value) | RefRead(value):
                stack += (node, _FINISH, value)
            case If(cond, yes, no):
                stack += (node, _FINISH, no, yes, cond)
            case Function():
                self._enter(node, stack)
            case GlobalVar():
                self._visit_global(node, stack)
            case Match(data, clauses):
                stack += (node, _FINISH)
                for i in range(len(clauses) - 1, -1, -1):
                    stack += (clauses[i].rhs, node, i, _ARM)
                stack.append(data)
            case RefWrite(ref, value):
                stack += (node, _FINISH, value, ref)
            case Constructor():
                put(node, self._definitions.constructor_type(node, node.span))
            case MetaRef():
                annotation = node.type_annotation
                put(node, self._annotations.open(annotation, node) if annotation else Unknown(node))
            case Op():
                self._refuse_operator(node, stack)
            case _:
                raise AssertionError(f"{type(node).__name__} is not an expression")

    def _finish(self, what: int, node: Expr | int, stack: _Steps) -> None:
        """Type a node whose children have types, or bind what its next child refers to."""
        types = self._found.types
        if what == _ARM:
            match, number = stack.pop(), node
            assert isinstance(match, Match) and isinstance(number, int)
            self._matches.bind(match, match.clauses[number])
            return
        if what == _GLOBAL:
            function, name = stack.pop(), node
            assert isinstance(function, Function) and isinstance(name, GlobalVar)
            self._functions.start(function, name)
            self._enter(function, stack)
            return
        match node:
            case Let(variable, value, body):
                if what == _BIND:
                    self._scopes.bind_let(node, variable, value)
                    return
                ty = types[body]
            case Tuple(fields):
                ty = TupleType([types[field] for field in fields])
            case TupleGetItem():
                ty = self._values.field(node)
            case If():
                ty = self._values.choose(node)
            case Function():
                self._functions.leave(node)
                return
            case Match(_, clauses):
                ty = self._values.join(node, [c.rhs for c in clauses], "the arms of a `match`")
                self._matches.check(node)
            case RefCreate(value):
                ty = RefType(types[value])
            case RefRead():
                ty = self._values.read(node)
            case RefWrite():
                ty = self._values.write(node)
            case _:
                raise AssertionError(f"{type(node).__name__} has no children")
        types[node] = ty
        self._found.order.append(node)


__all__ = ["Inference"]
