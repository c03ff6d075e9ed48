"""Functions: their signatures before their bodies are seen, their types behind them, and the names of a module's."""

from __future__ import annotations

from relaylang.ir.expr import Function, GlobalVar, Var
from relaylang.ir.types import FuncType
from relaylang.typing.annotations import Annotations
from relaylang.typing.places import last_value, place, result_span
from relaylang.typing.program import Found, Program
from relaylang.typing.report import Report
from relaylang.typing.reuse import Earlier
from relaylang.typing.scopes import Scopes
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, Unknown, find
from relaylang.typing.texts import name_of


class Functions:
    """Types functions. `parameters` has the ids of all parameters that were met."""

    def __init__(
        self,
        solver: Solver,
        found: Found,
        report: Report,
        annotations: Annotations,
        scopes: Scopes,
        earlier: Earlier,
        program: Program,
    ) -> None:
        self.parameters: set[int] = set()
        self._solver = solver
        self._found = found
        self._report = report
        self._annotations = annotations
        self._scopes = scopes
        self._earlier = earlier
        self._program = program
        self._signatures: dict[int, FuncType] = {}
        self._started: set[int] = set()  # functions of the module whose bodies are being looked at, or were
        self._named: set[int] = set()  # functions of the module: others can see their types while their bodies are looked at
        self._variables: dict[int, Var] = {}  # of functions that lets bind, by the function

    def has_started(self, function: Function) -> bool:
        """Whether the walk has come to a function of the module."""
        return id(function) in self._started

    def signature(self, function: Function) -> FuncType:
        """A function's type from its annotations, with unknowns for missing ones."""
        signature = self._signatures.get(id(function))
        if signature is None:
            self._annotations.bind(function.type_params)
            params = []
            for i, p in enumerate(function.params):
                if id(p) in self.parameters and any(p is other for other in function.params[:i]):
                    self._report.say("R0316", f"the parameter {name_of(p)} is bound twice", p.span or function.span)
                self.parameters.add(id(p))
                params.append(self._found.types.get(p) or self._scopes.bind(p, None))
            if function.ret_type is not None:
                result = self._annotations.open(function.ret_type, function)
            else:
                result = Unknown(function, True)
            signature = self._signatures[id(function)] = FuncType(params, result, function.type_params)
        return signature

    def start(self, function: Function, name: GlobalVar) -> None:
        """Begin a function of the module: its name has its signature from here on."""
        self._started.add(id(function))
        self._named.add(id(function))
        self._found.put(name, self.signature(function))

    def declare(self, function: Function, variable: Var) -> None:
        """Begin a function that a let binds: the variable has its signature inside the function."""
        self._scopes.declare(variable, self.signature(function))
        self._variables[id(function)] = variable

    def leave(self, function: Function) -> None:
        """Give a function its type, once its body has one."""
        signature = self._signatures[id(function)]
        if function.body is not None:
            signature = self._with_result(function, signature)
        elif function.ret_type is None:
            self._report.say("R0304", "an external function must have a result type", function.span)
        self._found.put(function, signature)

    def name(self, var: GlobalVar) -> Function | None:
        """Type the name of a module's function. Returns the function where it has to be looked at first."""
        types = self._found.types
        function = self._program.functions.get(var.name_hint)
        if var.name_hint in self._program.given:
            types[var] = self._program.given[var.name_hint]
        elif function is None:
            self._report.undefined(f"the module has no function `@{var.name_hint}`", var.span)
            types[var] = POISON
        elif id(function) in self._started:
            types[var] = self.signature(function)
        elif function in types or self._earlier.take(function):
            types[var] = types[function]
        else:
            return function
        self._found.order.append(var)
        return None

    def _with_result(self, function: Function, signature: FuncType) -> FuncType:
        """The signature with the type of the body as its result."""
        body = self._found.types[function.body]
        result = find(signature.ret_type)
        variable = self._variables.get(id(function))
        seen = id(function) in self._named or (variable is not None and self._scopes.is_met(variable))
        if type(result) is Unknown and not seen:
            # Nobody has seen this unknown yet: it need not be bound, nor looked for inside the body's type.
            signature = FuncType(signature.arg_types, body, signature.type_params)
            result = body
        if type(result) is Unknown:
            if not self._solver.unify(result, body):
                self._report.cannot_be(function, "a function's result", result, body)
            return signature
        agreed = self._solver.agree(result, body)
        if agreed is None:
            self._report.mismatch(
                "a function's result",
                result,
                body,
                place(last_value(function.body), function.span, True),
                also=[(result_span(function), "it is declared here")],
                node=last_value(function.body),
            )
        elif agreed is not result:
            signature = FuncType(signature.arg_types, agreed, signature.type_params)
            self._signatures[id(function)] = signature
        return signature


__all__ = ["Functions"]
