"""The device of every value of a planned program, as the program's own marks say it."""

from __future__ import annotations

from relaylang.ir import Call, Constructor, Expr, Function, GlobalVar, IRModule, Let, Var
from relaylang.ops.record import Op
from relaylang.passes.devices.calls import inside, on_device_of
from relaylang.passes.devices.virtual_device import UNKNOWN, VirtualDevice
from relaylang.passes.rewriting import is_primitive


def devices_of(expr: Expr, mod: IRModule | None = None) -> dict[Expr, VirtualDevice]:
    """The device of every value in a planned expression; the unknown one where nothing says it.

    A value lies where the function or the `on_device(..., constrain_result=True)` around it says. Variables and functions
    have their own devices. Operators and constructors have none. `mod` holds the functions that it calls. Raises
    `RelayError` (R0529).
    """
    devices: dict[Expr, VirtualDevice] = {}
    of_variables: dict[Var, VirtualDevice] = {}

    def device(node: Expr, around: VirtualDevice) -> VirtualDevice:
        match node:
            case Var():
                return of_variables.get(node, UNKNOWN)
            case GlobalVar():
                called = mod.functions.get(node) if mod is not None else None
                return VirtualDevice.of(called.attrs.get("virtual_device")) if called is not None else UNKNOWN
            case Function() if not is_primitive(node):
                return VirtualDevice.of(node.attrs.get("virtual_device"))
            case Call() if (said := on_device_of(node)) is not None and said.constrains_body and said.constrains_result:
                return said.device
        return around

    stack = [(expr, UNKNOWN)]
    while stack:
        node, around = stack.pop()
        if node in devices or isinstance(node, (Op, Constructor)):
            continue
        if isinstance(node, Function):
            of_variables.update((p, VirtualDevice.of(p.virtual_device)) for p in node.params)
        elif isinstance(node, Let):
            of_variables[node.variable] = device(node.value, around)
        here = devices[node] = device(node, around)
        own = (node.variable,) if isinstance(node, Let) else node.params if isinstance(node, Function) else ()
        below = here if isinstance(node, (Call, Function)) else around
        stack += [(child, below) for child in (*own, *inside(node))[::-1]]
    return devices
