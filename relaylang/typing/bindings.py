"""Variables and functions: what binds a name gives it its type."""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.ir.expr import Expr, Function, GlobalVar, Let, Var
from relaylang.ir.module import IRModule
from relaylang.ir.types import FuncType, TensorType, Type
from relaylang.typing.annotations import Annotations
from relaylang.typing.report import last_value, name_of, place, result_span
from relaylang.typing.solver import POISON, Unknown, find
from relaylang.typing.steps import FUNCTION, GLOBAL, VISIT, Stale, Step


class Bindings(Annotations):
    """The part of an inference that types what is bound: by functions, lets and the module."""

    def __init__(
        self, module: IRModule | None, fragment: bool, fresh: bool, assume: Mapping[Var, Type] | None = None
    ) -> None:
        super().__init__(module)
        self.fragment = fragment
        self.fresh = fresh
        self.assume = dict(assume or {})
        self.skipped = False
        self.given: Mapping[str, Type] = {}  # types of functions that are not looked at
        self.order: list[Expr] = []  # nodes that get a type, children first
        self.found: list[Type] = []  # their types, in the same order, when nothing is unknown any more
        self.signatures: dict[int, FuncType] = {}  # of functions, before their bodies are seen
        self.declared: set[int] = set()  # variables that stand for a function inside its own body
        self.started: set[int] = set()  # functions of the module whose bodies are being looked at, or were
        self.misfits: set[int] = set()  # matches with a pattern that does not fit
        self.late: set[int] = set()  # variables of lets whose values use them
        self.loose: list[Var] = []  # variables met where nothing had bound them
        self.parameters: set[int] = set()
        self.named: set[int] = set()  # functions whose type others can see while their bodies are looked at

    def is_done(self, expr: Expr) -> bool:
        """Whether a node has a type from an earlier inference."""
        known = expr.checked_type
        if known is None or self.fresh:
            return False
        known = self.intern(known) if type(known) is TensorType else self.resolve(known)
        if not self.is_known(known):
            return False
        self.types[id(expr)] = known
        self.skipped = True
        return True

    def bind_var(self, var: Var, given: Type | None) -> Type:
        """Give a variable its type: its annotation, made to agree with `given`, or that alone."""
        if self.assume and var in self.assume:
            ty = self.open(self.assume[var], var)
        elif var.type_annotation is not None:
            ty = self.open(var.type_annotation, var)
        else:
            ty = Unknown(var) if given is None else given
        before = var.checked_type
        if before is not None and not self.fresh and self.is_known(self.resolve(before)):
            ty = self.resolve(ty)
            if ty != before if self.is_known(ty) else not self.unify(ty, before):
                raise Stale
        self.types[id(var)] = ty
        self.order.append(var)
        return ty

    def check_scopes(self) -> None:
        super().check_scopes()
        if self.fragment:
            return
        for var in dict.fromkeys(self.loose):
            if id(var) not in self.late:
                self.say("R0312", f"nothing binds the variable {name_of(var)}", var.span)

    def signature(self, function: Function) -> FuncType:
        """A function's type from its annotations; what they leave out is unknown."""
        made = self.signatures.get(id(function))
        if made is None:
            self.bound.update(map(id, function.type_params))
            params = []
            for i, p in enumerate(function.params):
                if id(p) in self.parameters and any(p is other for other in function.params[:i]):
                    self.say("R0316", f"the parameter {name_of(p)} is bound twice", p.span or function.span)
                self.parameters.add(id(p))
                params.append(self.types.get(id(p)) or self.bind_var(p, None))
            result = (
                self.open(function.ret_type, function) if function.ret_type is not None else Unknown(function, True)
            )
            made = self.signatures[id(function)] = FuncType(params, result, function.type_params)
        return made

    def enter(self, function: Function, name: Expr, stack: list[Step]) -> None:
        self.signature(function)
        stack.append((FUNCTION, function, 0))
        if function.body is not None:
            stack.append((VISIT, function.body, 0))

    def leave(self, function: Function) -> None:
        signature = self.signatures[id(function)]
        if function.body is not None:
            body = self.types[id(function.body)]
            result = find(signature.ret_type)
            if type(result) is Unknown and id(function) not in self.named:
                # Nobody has seen this unknown yet: it need not be bound, nor looked for inside the body's type.
                signature = FuncType(signature.arg_types, body, signature.type_params)
                result = body
            if type(result) is Unknown:
                if not self.unify(result, body):
                    self.cannot_be(function, "a function's result", result, body)
            else:
                agreed = self.agree(result, body)
                if agreed is None:
                    self.mismatch(
                        "what a function returns", result, body, place(last_value(function.body), function.span, True),
                        also=[(result_span(function), "it is declared here")],
                    )  # fmt: skip
                elif agreed is not result:
                    signature = FuncType(signature.arg_types, agreed, signature.type_params)
                    self.signatures[id(function)] = signature
        elif function.ret_type is None:
            self.say("R0304", "an external function must have a result type", function.span)
        self.types[id(function)] = signature
        self.order.append(function)

    def visit_global(self, var: GlobalVar, stack: list[Step]) -> None:
        """The type of a module's function: from its annotations, or from its body, which is looked at first."""
        function = self.functions.get(var.name_hint)
        if var.name_hint in self.given:
            self.types[id(var)] = self.given[var.name_hint]
        elif function is None:
            self.say("R0312", f"the module has no function `@{var.name_hint}`", var.span)
            self.types[id(var)] = POISON
        elif id(function) in self.types or id(function) in self.started:
            self.types[id(var)] = self.signature(function) if id(function) in self.started else self.types[id(function)]
        elif self.is_done(function):
            self.types[id(var)] = self.types[id(function)]
        else:
            stack.append((GLOBAL, function, var))
            return
        self.order.append(var)

    def bind_let(self, let: Let, variable: Var, value: Expr) -> None:
        ty = self.types[id(value)]
        if id(variable) in self.declared:
            if variable.type_annotation is not None:
                wanted = self.open(variable.type_annotation, variable)
                if not self.unify(wanted, ty):
                    self.mismatch(f"the value of {name_of(variable)}", wanted, ty, place(value, let.span))
            return
        if id(variable) in self.types and not (variable.checked_type is not None and not self.fresh):
            self.late.add(id(variable))
            self.say(
                "R0314", f"the variable {name_of(variable)} is used in its own value, which is not a function",
                variable.span or let.span,
            )  # fmt: skip
            return
        bound = self.bind_var(variable, ty)
        if bound is ty:
            return
        agreed = self.agree(bound, ty)
        if agreed is not None:
            self.types[id(variable)] = agreed
        else:
            self.mismatch(
                f"the value of {name_of(variable)}", bound, ty, place(value, let.span),
                also=[(variable.span, "declared here")],
            )  # fmt: skip
