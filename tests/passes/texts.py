"""Passes over programs that tests write as text."""

from __future__ import annotations

import relaylang as relay
from relaylang.ir import Call, IRModule, post_order, structural_equal
from relaylang.transform import InferType, Pass, PassContext, Sequential
from tests.passes.meaning import keeps_meaning


def made(text: str) -> Pass:
    (found,) = relay.transform.parse_passes(text)
    return found


def module(text: str) -> IRModule:
    return InferType()(relay.parse(text))


def after(name: str, text: str) -> IRModule:
    """The module after a pass, which must keep its meaning."""
    with PassContext(opt_level=4):
        return keeps_meaning(Sequential([made(name)]), module(text))


def ops(mod: IRModule, entry: str = "main") -> list[str]:
    return [n.op.name for n in post_order(mod[entry]) if isinstance(n, Call) and hasattr(n.op, "name")]


def main(body: str, params: str = "%x: Tensor[(2, 3), float32]") -> str:
    return f"def @main({params}) {{ {body} }}"


def same(found: IRModule, text: str) -> bool:
    """Whether a module equals the module of a text, types included."""
    return structural_equal(InferType()(found), module(text))
