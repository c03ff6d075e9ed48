"""PlanDevices: assign a device to every value of a module, and write it into the program.

    mod = PlanDevices(make_compilation_config(PassContext.current(), ["llvm", "cuda"]))(mod)

`on_device(e, virtual_device=d)` wants `e` on a device, and lets its user be on another: there a `device_copy` is written.
All operands of an operator are where its result is, those of each call on a device of its own. Parameters and results of
functions have one device each, for all calls. Tuples, data and references are on one device with all that they hold.

1. Annotations at the top of functions and behind lets hold for the result and the variable, too. Fields are taken
before they are copied. 2. A value that two calls want on devices that contradict is copied for the second. 3. Domains
are joined (constraints.py), and free ones get a default. 4. The result is written: `virtual_device` of parameters and
functions, and `device_copy`. A value on another device than its surroundings gets `on_device(...,
constrain_result=True)`.

The second run on a planned program changes nothing. The rules are those of TVM 0.16's pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.ir import (
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
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
    rebuild,
    rebuilt,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ir.typed import retype, typed
from relaylang.ops.record import Op
from relaylang.passes.context import PassContext
from relaylang.passes.devices.calls import (
    callee_and_operands,
    copied,
    copy_of,
    fixed,
    inside,
    on_device_of,
    placed,
    upwards,
)
from relaylang.passes.devices.constraints import Constraints
from relaylang.passes.devices.virtual_device import UNKNOWN, CompilationConfig, VirtualDevice, make_compilation_config
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_opaque, is_primitive
from relaylang.rules.placement import RULES

#: The most errors of one run: behind the first, most follow from it.
_MOST = 20


def plan_devices(mod: IRModule, config: CompilationConfig) -> IRModule:
    """A typed module with a device for every value. Raises `RelayError` (R0528 for values that are wanted on two devices,
    R0529 for devices without a target)."""
    with gc_paused():
        planned = {gv: func for gv, func in mod.functions.items() if isinstance(func, Function) and not is_opaque(func)}
        wrong = [problem for func in planned.values() for problem in _wrong_devices(func, config)]
        if wrong:
            raise RelayError(wrong[:_MOST])
        functions = {gv: _separated(_settled(func), config) for gv, func in planned.items()}
        constraints = Constraints(functions, mod, config)
        if constraints.problems:
            raise RelayError(constraints.problems[:_MOST])
        constraints.set_defaults()
        writer = _Writer(constraints)
        new = {gv: writer.written(functions[gv]) if gv in functions else func for gv, func in mod.functions.items()}
    return mod.with_functions(new)  # type: ignore[arg-type]


def _wrong_devices(func: Function, config: CompilationConfig) -> list[Diagnostic]:
    """The errors for devices that a function names, at their places: an invalid device, or one without a target."""
    errors = []
    for node in upwards(func):
        named: list[Any] = []
        if isinstance(node, Function):
            named = [node.attrs.get("virtual_device"), *[p.virtual_device for p in node.params]]
        elif isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in RULES:
            named = [getattr(node.attrs, name) for name in RULES[node.op.name].devices]
        for value in named:
            try:
                config.canonical(VirtualDevice.of(value))
            except RelayError as wrong:
                errors += [error(d.code, d.title, node.span, notes=d.notes) for d in wrong.diagnostics]
    return errors


def _rebuilt(node: Expr, done: dict[int, Expr]) -> Expr:
    """The node with what its children became; kernels as they are."""
    return node if is_primitive(node) else retype(rebuilt(node, done), node)


def _settled(func: Function) -> Function:
    """Annotations at the top of a function or of a let's value hold for the result and the variable."""
    done: dict[int, Expr] = {}
    for node in upwards(func):
        new = _rebuilt(node, done)
        if isinstance(node, (Let, Function)) and inside(node):
            first, *rest = inside(new)
            said = on_device_of(first)
            if said is not None and said.is_normal:
                new = retype(rebuild(new, (placed(said.body, said.device), *rest)), node)
        elif isinstance(new, TupleGetItem):
            said = on_device_of(new.tuple_value)
            if said is not None and said.is_normal:
                new = placed(retype(TupleGetItem(said.body, new.index, new.span), node), said.device, fixed=False)
        done[id(node)] = new
    result = done[id(func)]
    assert isinstance(result, Function)
    return result


def _separated(func: Function, config: CompilationConfig) -> Function:
    """Copies of what calls want on devices that contradict, for all of them but the first.

    Wants go from calls of operators to their operands, users before what they use.
    """
    wanted: dict[int, VirtualDevice] = {}
    apart = False
    order = list(upwards(func, from_right=True))
    home = _homes(order)
    for node in reversed(order):
        if not isinstance(node, Call):
            continue
        want = wanted[id(node)] = _wanted(node, home.get(id(node), UNKNOWN))
        for arg in node.args:
            if on_device_of(arg) is None:
                joined = home.get(id(arg), UNKNOWN).join(want)
                apart = apart or joined is None
                home[id(arg)] = joined or home[id(arg)]
    if not apart:
        return func
    done: dict[int, Expr] = {}
    for node in reversed(order):
        if isinstance(node, Function):  # variables are no children; they stay the same
            done.update((id(p), p) for p in node.params)
    for node in upwards(func):
        new = _rebuilt(node, done)
        if isinstance(node, Call) and isinstance(new, Call):
            want = wanted[id(node)]
            args = list(new.args)
            for number, arg in enumerate(node.args):
                here = home.get(id(arg), UNKNOWN)
                if on_device_of(arg) is None and here.join(want) is None:
                    args[number] = copied(args[number], config.canonical(here), config.canonical(want))
            new = retype(rebuild(new, (*args, new.op)), node)
        done[id(node)] = new
    result = done[id(func)]
    assert isinstance(result, Function)
    return result


def _homes(order: Sequence[Expr]) -> dict[int, VirtualDevice]:
    """The devices that annotations give to variables, by id."""
    home: dict[int, VirtualDevice] = {}
    for node in order:
        if isinstance(node, Function):
            home.update((id(p), VirtualDevice.of(p.virtual_device)) for p in node.params if p.virtual_device is not None)
        if isinstance(node, Let) and (said := on_device_of(node.value)) is not None and said.constrains_result:
            home[id(node.variable)] = said.device
    return home


def _wanted(call: Call, here: VirtualDevice) -> VirtualDevice:
    """The device on which a call wants its operands, as far as the call itself fixes it. Its result is wanted on
    `here`.
    """
    said, copy = on_device_of(call), copy_of(call)
    if said is not None:
        return said.device if said.constrains_body else UNKNOWN
    if copy is not None:
        return copy[1]
    if isinstance(call.op, Constructor) or (isinstance(call.op, Op) and call.op.name not in RULES):
        return here
    return UNKNOWN  # a function's parameters have devices of their own


class _Writer:
    """Writes the devices into functions. What a node becomes does not depend on who uses it; edges get what they need."""

    def __init__(self, found: Constraints) -> None:
        self.found = found
        self.done: dict[int, Expr] = {}

    def written(self, func: Function) -> Function:
        order = list(upwards(func))
        for node in order:
            if isinstance(node, Function) and not is_primitive(node):
                for param in node.params:
                    device = self.found.device(param)
                    if VirtualDevice.of(param.virtual_device) != device:
                        new = Var(param.name_hint, param.type_annotation, param.span, device)
                        self.done[id(param)] = typed(new, param.checked_type)
        for node in order:
            if id(node) not in self.done:
                self.done[id(node)] = self.node(node)
        result = self.done[id(func)]
        assert isinstance(result, Function)
        return result

    def edge(self, child: Expr, expected: VirtualDevice, around: VirtualDevice | None) -> Expr:
        """A child as an operand that is expected on a device. Without a mark, a reader would think it on the device
        `around`.
        """
        if isinstance(child, (Op, Constructor)):
            return child
        new, here = self.done[id(child)], self.found.device(child)
        if here != expected:
            new = copied(fixed(new, here), here, expected)
        return fixed(new, expected) if expected != around else new

    def node(self, node: Expr) -> Expr:
        device = self.found.device
        said, copy = on_device_of(node), copy_of(node)
        if said is not None:
            return self.done[id(said.body)]
        if copy is not None:
            here = self.found.device_of_domain(self.found.domain(node))
            return self.edge(copy[0], here, here)
        if is_primitive(node) or not inside(node):
            return node
        match node:
            case Call():
                return self.call(node)
            case Function(body=body) if body is not None:
                parts = self.found.domains.parts(self.found.domain(node)) or (self.found.domain(node),)
                here = self.found.device_of_domain(parts[-1])
                params = [self.done.get(id(p), p) for p in node.params]
                attrs = {**node.attrs, "virtual_device": here}
                new: Expr = Function(params, self.edge(body, here, here), node.ret_type, node.type_params, attrs, node.span)  # type: ignore[arg-type]
            case Let(variable, value, body):
                here = device(node)
                new = Let(variable, self.edge(value, device(variable), None), self.edge(body, here, here), node.span)
            case Match(data, clauses):
                here = device(node)
                arms = [Clause(c.lhs, self.edge(c.rhs, here, here), c.span) for c in clauses]
                new = Match(self.edge(data, here, here), arms, node.complete, node.span)
            case Tuple() | TupleGetItem() | If() | RefCreate() | RefRead() | RefWrite():
                here = device(node)
                new = rebuild(node, tuple([self.edge(c, here, here) for c in inside(node)]))
            case _:
                raise AssertionError(type(node).__name__)
        return retype(new, node)

    def call(self, node: Call) -> Expr:
        here = self.found.device(node)
        parts = self.found.callee(node)
        callee, operands = callee_and_operands(node)
        args = [self.edge(a, self.found.device_of_domain(p), here) for p, a in zip(parts, operands, strict=False)]
        op = self.edge(callee, here, here)
        if callee is not node.op:  # call_lowered
            return retype(Call(node.op, [op, retype(Tuple(args), node.args[1])], node.attrs, node.type_args, node.span), node)
        return retype(rebuild(node, (*args, op)), node)


@dataclass(frozen=True)
class PlanDevices(Pass):
    """Assign a device to every value, and insert copies between devices.

    `config` is a `CompilationConfig`, or the targets that `make_compilation_config` takes: `PlanDevices(["llvm", "cuda"])`.
    The default is one CPU. Parameters and functions get the attribute `virtual_device`.
    """

    config: Any = "llvm"

    def run(self, mod: IRModule) -> IRModule:
        known = isinstance(self.config, CompilationConfig)
        return plan_devices(mod, self.config if known else make_compilation_config(PassContext.current(), self.config))
