"""ManifestLifetimes: where values end."""

from __future__ import annotations

import re
from typing import Any

import pytest

import relaylang as relay
from relaylang.ir import Function, IRModule, Let, TensorType, Var
from relaylang.ops.build import op_call
from relaylang.passes.functions.manifest_lifetimes import manifest_lifetimes
from relaylang.testing.generators.programs import Programs, inputs
from relaylang.transform import InferType, ManifestLifetimes, PassContext, ToANormalForm, Verify
from tests.growth import Run, assert_linear


def ended(text: str) -> list[str]:
    """The lines of @main, with `kill %x` for an end."""
    with PassContext(instruments=[Verify()]):
        mod = ManifestLifetimes()(InferType()(relay.parse(f"def @main(%x: int32, %c: bool) -> int32 {{ {text} }}")))
    lines = [line.strip().rstrip(";") for line in relay.astext(mod, show_types=False).splitlines()[2:-1]]
    return [re.sub(r"let %_\d*(?:: \(\))? = memory\.kill\((%\w+)\)", r"kill \1", line) for line in lines]


def test_behind_the_last_use() -> None:
    assert ended("let %y = add(%x, %x); let %z = multiply(%y, %x); let %w = negative(%y); %w") == [
        "let %y = add(%x, %x)",
        "let %z = multiply(%y, %x)",
        "kill %x",
        "let %w = negative(%y)",
        "kill %y",
        "%w",
    ]


def test_branches_end_what_they_alone_use() -> None:
    text = "let %y = if (%c) { let %a = add(%x, 1); let %b = negative(%a); %b } else { %x }; let %z = negative(%y); %z"
    assert ended(text) == [
        "let %y = if (%c) {",
        "let %a = add(%x, 1)",
        "kill %x",
        "let %b = negative(%a)",
        "kill %a",
        "%b",
        "} else {",
        "%x",
        "}",
        "kill %c",
        "let %z = negative(%y)",
        "kill %y",
        "%z",
    ]


def test_what_is_needed_behind_a_branch_stays() -> None:
    text = "let %y = if (%c) { let %a = add(%x, 1); %a } else { 2 }; let %z = add(%y, %x); %z"
    assert ended(text)[1:3] == ["let %a = add(%x, 1)", "%a"] and ended(text)[-3:] == ["kill %y", "kill %x", "%z"]


def test_functions_keep_what_they_use() -> None:
    assert ended("let %f = fn (%p: int32) { add(%p, %x) }; let %y = %f(1); %y")[-4:] == ["kill %x", "let %y = %f(1)", "kill %f", "%y"]


@pytest.mark.parametrize("seed", range(8))
def test_meaning(seed: int) -> None:
    mod = InferType()(ToANormalForm()(Programs(seed).module()))
    made = InferType()(ManifestLifetimes()(mod))
    given = inputs(seed, mod["main"])
    assert str(relay.evaluate(made, *given)) == str(relay.evaluate(mod, *given))


@pytest.mark.sweep
def test_long_and_deep_programs_cost_no_more() -> None:
    def prepare(n: int) -> Run:
        x, c = Var("x", TensorType((), "int32")), Var("c", TensorType((), "bool"))
        body: Any = x
        for i in range(n):
            y = Var(f"y{i}", TensorType((), "int32"))
            value = relay.If(c, body, x) if i % 2 else op_call("negative", [x])
            body = Let(y, value, y if i % 2 else body)
        mod = InferType()(IRModule.from_expr(Function([x, c], body)))
        return lambda: manifest_lifetimes(mod["main"])

    assert_linear(prepare, small=100)
    prepare(3_000)()
