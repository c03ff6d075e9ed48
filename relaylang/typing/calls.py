"""Calls of functions and constructors: their types, with an unknown for each type parameter."""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.ir.expr import Call, Constructor, Expr
from relaylang.ir.typemaps import parts
from relaylang.ir.types import FuncType, IncompleteType, Type, TypeVar
from relaylang.typing.call_text import call_span
from relaylang.typing.definitions import Definitions
from relaylang.typing.places import argument_span
from relaylang.typing.report import Report
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, OpenTensor, Unknown, find, fresh_for, map_type, substitute
from relaylang.typing.texts import name_of, show


class Calls:
    """Types calls of functions, constructors and values. `types` has the types of callee and arguments."""

    def __init__(self, solver: Solver, report: Report, types: Mapping[Expr, Type], definitions: Definitions) -> None:
        self._solver = solver
        self._report = report
        self._types = types
        self._definitions = definitions

    def call(self, node: Call) -> Type:
        """The type of a call of a function, a constructor or a value."""
        op = node.op
        if isinstance(op, Constructor):
            callee = find(self._definitions.constructor_type(op, node.span))
        else:
            callee = find(self._types[op])
        args = [self._types[a] for a in node.args]
        if type(callee) is Unknown:
            result = Unknown(node, True)
            if not self._solver.unify(callee, FuncType(args, result)):
                self._report.cannot_be(node, name_of(op), callee, FuncType(args, result))
                return POISON
            return result
        if callee is POISON:
            return POISON
        if not isinstance(callee, FuncType):
            self._report.say(
                "R0305",
                f"{name_of(op)} is called, but it is not a function: it is `{show(callee)}`",
                call_span(node),
                also=[self._report.origin(op)],
            )
            return POISON
        if len(args) != len(callee.arg_types):
            count = len(callee.arg_types)
            self._report.say(
                "R0303",
                f"{name_of(op)} takes {count} argument{'s' * (count != 1)}, not {len(args)}",
                call_span(node),
                also=[(self._report.callee_span(op), "it is defined here")],
                notes=(f"its type is `{self._report.shown(callee)}`",),
            )
            return POISON
        opened = self._instantiate(node, callee) if callee.type_params else callee
        unify = self._solver.unify
        fine = True
        for i, (wanted, have) in enumerate(zip(opened.arg_types, args)):
            if find(wanted) is not find(have) and not unify(wanted, have):
                self._refuse(node, i, wanted, have, callee)
                fine = False
        if opened is not callee and fine:  # an extent that two type parameters make is known once both are
            for i, (wanted, have) in enumerate(zip(opened.arg_types, args)):
                if type(wanted) is OpenTensor and not unify(wanted, have):
                    self._refuse(node, i, wanted, have, callee)
                    fine = False
        return self._solver.head(opened.ret_type) if fine else POISON

    def _instantiate(self, node: Call, callee: FuncType) -> FuncType:
        """The callee's type with the call's type arguments, and unknowns where it gives none."""
        mapping = fresh_for(callee.type_params, node)
        if len(node.type_args) > len(callee.type_params):
            self._report.say(
                "R0303",
                f"{name_of(node.op)} has {len(callee.type_params)} type parameters, not {len(node.type_args)}",
                call_span(node),
                also=[(self._report.callee_span(node.op), "it is defined here")],
            )
        for param, argument in zip(callee.type_params, node.type_args):
            if id(param) in mapping:
                opened = map_type(argument, lambda ty: Unknown() if type(ty) is IncompleteType else ty)
                self._solver.unify(mapping[id(param)], opened)
        instance = substitute(FuncType(callee.arg_types, callee.ret_type), mapping)
        assert isinstance(instance, FuncType)
        return instance

    def _refuse(self, node: Call, index: int, wanted: Type, have: Type, callee: FuncType) -> None:
        """Report an argument of the wrong type. `callee` is the type of the callee as it is declared."""
        report = self._report
        also = [report.parameter(node.op, index)]
        if not isinstance(node.args[index], Call):
            also.append(report.origin(node.args[index]))
        declared = callee.arg_types
        also += [report.origin(node.args[j]) for j in range(index) if _share(declared[index], declared[j])]
        what = f"argument {index + 1} of {name_of(node.op)}"
        report.mismatch(what, wanted, have, argument_span(node, index), also=also, node=node.args[index])


def _share(left: Type, right: Type) -> bool:
    """Whether two declared types speak of one type parameter."""
    return not _parameters(left).isdisjoint(_parameters(right))


def _parameters(ty: Type) -> set[int]:
    parameters: set[int] = set()
    stack = [ty]
    while stack:
        node = stack.pop()
        if type(node) is TypeVar:
            parameters.add(id(node))
        stack.extend(parts(node))
    return parameters


__all__ = ["Calls"]
