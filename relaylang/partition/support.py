"""Calls that an accelerator takes outside composites: the recipe's checks, and those that users register."""

from __future__ import annotations

from collections.abc import Callable

from relaylang.diagnostics import RelayError
from relaylang.ir import Call
from relaylang.ops.record import Op
from relaylang.partition.entries import asked_about
from relaylang.partition.recipe import OpCheck
from relaylang.partition.targets import recipe_of
from relaylang.passes.manager import raised_in

#: target -> operator -> check, as users register them. They come before the checks of the target's recipe.
OP_SUPPORT: dict[str, dict[str, OpCheck]] = {}


def op_verdict(target: str, call: Call) -> bool | str:
    """Whether a target takes a call of an operator outside a composite: True, False, or why not.

    Raises `RelayError` where the check raises.
    """
    assert isinstance(call.op, Op)
    name = call.op.name
    test: Callable[[Call], bool | str | None] | None = OP_SUPPORT.get(target, {}).get(name) or recipe_of(target).operators.get(name)
    if test is None:
        return False
    try:
        verdict = test(call)
        return verdict if isinstance(verdict, str) else bool(verdict)
    except (RelayError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as problem:
        said = asked_about(raised_in(f"target.{target} of {name}", problem, "the check"), call)
        raise RelayError(said) from problem


__all__ = ["OP_SUPPORT", "op_verdict"]
