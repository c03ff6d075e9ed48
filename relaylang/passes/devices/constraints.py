"""The constraints of a program on the devices of its values: domains that must agree, and defaults for the rest."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.diagnostics import Diagnostic, error
from relaylang.ir import (
    Call,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    pattern_vars,
)
from relaylang.ops.record import Op
from relaylang.passes.devices.calls import (
    callee_and_operands,
    copy_of,
    downwards,
    on_device_of,
    stripped,
)
from relaylang.passes.devices.domains import Domains
from relaylang.passes.devices.virtual_device import UNKNOWN, CompilationConfig, VirtualDevice
from relaylang.passes.rewriting import is_primitive
from relaylang.rules.placement import RULES, Place


class Constraints:
    """The domain of every expression of a typed module's functions. `problems` are those that cannot agree."""

    def __init__(self, functions: dict[GlobalVar, Function], mod: IRModule, config: CompilationConfig) -> None:
        self.config = config
        self.domains = Domains(config.canonical)
        self.problems: list[Diagnostic] = []
        self._functions = functions
        self._of: dict[int, int] = {}
        self._types = {gv.name_hint: func.checked_type for gv, func in mod.functions.items()}
        self._globals: dict[str, int] = {}
        self._callees: dict[int, tuple[int, ...]] = {}
        self._host = self.domains.new(config.host)
        for gv, func in functions.items():
            self._agree(self.domain(gv), self.domain(func), func, f"the callers of @{gv.name_hint} want it")
            for node in downwards(func):
                self._collect(node)

    # -- domains

    def domain(self, expr: Expr) -> int:
        """The domain of an expression's value."""
        if isinstance(expr, GlobalVar):
            if expr.name_hint not in self._globals:
                self._globals[expr.name_hint] = self.domains.of_type(self._types.get(expr.name_hint) or expr.checked_type)
            return self._globals[expr.name_hint]
        if id(expr) not in self._of:
            known = expr.checked_type or (expr.type_annotation if isinstance(expr, Var) else None)
            self._of[id(expr)] = self.domains.of_type(known)
        return self._of[id(expr)]

    def device(self, expr: Expr) -> VirtualDevice:
        """Where a value lies, looking through `on_device`; known once the defaults are set."""
        device = self.domains.device(self.domain(stripped(expr)))
        return self.config.canonical(device.filled(self.config.default))

    def device_of_domain(self, domain: int) -> VirtualDevice:
        return self.config.canonical(self.domains.device(domain).filled(self.config.default))

    def callee(self, call: Call) -> tuple[int, ...]:
        """The domains of a callee's parameters and of its result. Each call of an operator has its own."""
        domains = self._callees.get(id(call))
        if domains is None:
            domains = self._callees[id(call)] = self._new_callee(call)
        return domains

    def _new_callee(self, call: Call) -> tuple[int, ...]:
        domains, canonical = self.domains, self.config.canonical
        on_device, copy = on_device_of(call), copy_of(call)
        if on_device is not None:
            device = canonical(on_device.device)
            ty = on_device.body.checked_type
            return (
                domains.of_type(ty, device if on_device.constrains_body else UNKNOWN),
                domains.of_type(ty, device if on_device.constrains_result else UNKNOWN),
            )
        if copy is not None:
            body, source, target = copy
            return domains.of_type(body.checked_type, canonical(source)), domains.of_type(body.checked_type, canonical(target))
        callee, operands = callee_and_operands(call)
        if isinstance(callee, Op):
            return self._operator(callee, call)
        if isinstance(callee, Constructor):
            return (domains.new(),) * (len(operands) + 1)
        parts = domains.parts(self.domain(callee))
        if parts is not None and len(parts) == len(operands) + 1:
            return parts
        return (self.domain(callee),) * (len(operands) + 1)  # of a type that is a variable: one device throughout

    def _operator(self, op: Op, call: Call) -> tuple[int, ...]:
        result = self.domains.new()
        rule = RULES.get(op.name)
        if rule is None or not rule.operands:
            return (result,) * (len(call.args) + 1)
        if rule.result is Place.HOST:
            result = self._host
        elif rule.result is Place.ATTRIBUTE:
            device = VirtualDevice.of(getattr(call.attrs, "virtual_device", None))
            result = self.domains.new(self.config.canonical(device))
        params = [
            self._host if p is Place.HOST else result if p is Place.RESULT else self.domains.of_type(a.checked_type)
            for p, a in zip(rule.operands, call.args, strict=False)
        ]
        return (*params, result)

    # -- constraints

    def _agree(self, a: int, b: int, at: Expr, who: str, than: str = "it is on") -> None:
        apart = self.domains.unify(a, b)
        if apart is not None:
            notes = ["on_device(...) around a value, or a device_copy of it, lets it go from one device to another"]
            title = f"{who} on {apart[0]}, and {than} {apart[1]}"
            self.problems.append(error("R0528", title, at.span, "this value" if at.span else "", notes=notes))

    def _with(self, node: Expr, children: Sequence[Expr], who: str) -> None:
        for child in children:
            self._agree(self.domain(node), self.domain(child), child, f"{who} wants this value")

    def _placed(self, node: Expr, device: object, part: int, who: str) -> None:
        known_device = VirtualDevice.of(device)
        if known_device.known:
            wanted = self.domains.of_type(node.checked_type, self.config.canonical(known_device))
            self._agree(wanted, part, node, f"the annotation of {who} says")

    def _collect(self, node: Expr) -> None:
        match node:
            case Call():
                parts = self.callee(node)
                callee, operands = callee_and_operands(node)
                name = callee.name if isinstance(callee, Op) else "the function"
                for number, (part, operand) in enumerate(zip(parts, operands, strict=False)):
                    self._agree(part, self.domain(operand), operand, f"{name} wants operand {number}")
                self._agree(parts[-1], self.domain(node), node, f"{name} gives a value", "one is wanted on")
            case Function():
                parts = self.domains.parts(self.domain(node)) or ()
                for param, part in zip(node.params, parts, strict=False):
                    self._agree(part, self.domain(param), param, f"the function wants %{param.name_hint}")
                    self._placed(param, param.virtual_device, part, f"%{param.name_hint}")
                if parts and node.body is not None:
                    if not is_primitive(node):
                        self._agree(parts[-1], self.domain(node.body), node.body, "the function gives a value")
                    self._placed(node.body, node.attrs.get("virtual_device"), parts[-1], "the result")
            case Let():
                self._agree(self.domain(node.variable), self.domain(node.value), node.value, f"%{node.variable.name_hint} is wanted")
                self._with(node, (node.body,), "the let")
            case Tuple():
                self._with(node, node.fields, "the tuple")
            case TupleGetItem():
                self._with(node, (node.tuple_value,), "the projection")
            case If():
                self._with(node, (node.cond, node.true_branch, node.false_branch), "the if")
            case Match():
                self._with(node, (node.data, *[c.rhs for c in node.clauses]), "the match")
                for clause in node.clauses:
                    self._with(node.data, list(pattern_vars(clause.lhs)), "the match")
            case RefCreate():
                self._with(node, (node.value,), "the reference")
            case RefRead():
                self._with(node, (node.ref,), "the reading")
            case RefWrite():
                self._with(node, (node.ref, node.value), "the writing")

    # -- defaults

    def set_defaults(self) -> None:
        """Give every value a device. A free `on_device` is no boundary where none is needed. A function's result is on
        the configuration's default device. Its parameters are where its result is, and so are variables of lets.
        """
        for func in self._functions.values():
            for node in downwards(func):
                said = on_device_of(node)
                if said is not None and not said.constrains_body and not said.constrains_result:
                    self.domains.try_unify(self.domain(node), self.domain(said.body))
        for func in self._functions.values():
            for node in downwards(func):
                if isinstance(node, Function) and not is_primitive(node):
                    self._default(self.domains.parts(self.domain(node)) or (self.domain(node),))
                elif isinstance(node, Call):
                    self._default(self.callee(node))
                elif isinstance(node, Let):
                    self.domains.default(self.domain(node.variable), self.device_of_domain(self.domain(node)))

    def _default(self, parts: tuple[int, ...]) -> None:
        result = self.domains.result(parts[-1])
        self.domains.default(result, self.config.default)
        for part in parts:
            self.domains.default(part, self.domains.device(result))


__all__ = ["Constraints"]
