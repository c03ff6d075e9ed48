"""ConvertLayout: change operators to wanted layouts, with as few changes of layout as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Expr, IRModule, TupleType
from relaylang.ops.record import Op
from relaylang.passes.layout.conversions import converted, problem_with
from relaylang.passes.layout.registry import CONVERT
from relaylang.passes.layout.rewriter import Rewriter
from relaylang.passes.manager import Pass, raised_in
from relaylang.passes.rewriting import per_function
from relaylang.rules.conversions import RULES as CONVERSIONS
from relaylang.rules.layout.rule import named


def tensors(call: Call) -> list[Any]:
    """The types of a call's operands, the fields of tuples one by one."""
    types: list[Any] = []
    for arg in call.args:
        ty = arg.checked_type
        types += ty.fields if isinstance(ty, TupleType) else [ty]
    return types


def checked_call(made: Any, call: Call, what: str) -> Call | None:
    """What a user's function returned: a call of an operator with as many operands, or None. Raises `RelayError`."""
    if made is None:
        return None
    if not isinstance(made, Expr):
        raise RelayError(error("R0503", f"{what} returned a {type(made).__name__}, not an expression", call.span))
    if not isinstance(made, Call) or not isinstance(made.op, Op):
        raise RelayError(error("R0503", f"{what} returned no call of an operator", call.span))
    if made.span is None:
        made.span = call.span
    return made


def refusal(what: str) -> Any:
    """Says that a user's function made a call that cannot be."""

    def refuse(call: Call, new: Call, problem: str) -> None:
        name = named(call)
        raise RelayError(error("R0504", f"{what} of {name} made a call of {named(new)} that is wrong: {problem}", call.span))

    return refuse


def convert_layout(mod: IRModule, desired_layouts: Mapping[str, Sequence[str]]) -> IRModule:
    """A typed module in which the named operators have the layouts `[data, kernel]` (or `[data]`). Their extents must
    divide into the layout's blocks; other calls stay. The layout "default" makes the kernel's follow from the data's.
    Operators before and behind them change their layouts along with them. Raises `RelayError` for operators and layouts
    that there are not, and for what a registered function made wrong.
    """
    if not isinstance(desired_layouts, Mapping):
        notes = ['it takes layouts by operator: {"nn.conv2d": ["NHWC", "default"]}']
        raise RelayError(error("R0501", f"ConvertLayout takes no {type(desired_layouts).__name__}", notes=notes))
    wrong = [problem_with(name, layouts) for name, layouts in desired_layouts.items()]
    if any(wrong):
        raise RelayError([w for w in wrong if w is not None])

    def change(call: Call, attrs: Any, args: list[Expr]) -> Call | None:
        name = named(call)
        own = CONVERT.get(name)
        if own is None:
            return converted(name, attrs, args, tensors(call), desired_layouts[name])
        try:
            new_call = own(attrs, args, tensors(call), list(desired_layouts[name]))
        except RelayError:
            raise
        except Exception as problem:
            raise RelayError(raised_in(f"FTVMConvertOpLayout of {name}", problem, "the function")) from problem
        return checked_call(new_call, call, f"the function FTVMConvertOpLayout of {name}")

    def refuse(call: Call, new: Call, problem: str) -> None:
        if named(call) in CONVERT:
            refusal("the function FTVMConvertOpLayout")(call, new, problem)

    names = {name for name in desired_layouts if name in CONVERSIONS or name in CONVERT}
    return per_function(mod, lambda f: Rewriter(mod, names.__contains__, change, refuse).rewrite(f))


@dataclass(frozen=True)
class ConvertLayout(Pass):
    """Change operators to other layouts: {"nn.conv2d": ["NHWC", "default"]}."""

    desired_layouts: dict[str, list[str]]

    opt_level = 3

    def run(self, mod: IRModule) -> IRModule:
        return convert_layout(mod, self.desired_layouts)
