"""Programs as StableHLO in IREE, and as Relax text in TVM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.export import export_relax, export_stablehlo
from relaylang.export.relax.table import RULES as RELAX
from relaylang.export.stablehlo.table import RULES as STABLEHLO
from tests.export.peers import Iree, Relax
from tests.export.programs import Case, cases, difference, interpreted
from tests.export.test_onnx import BRANCH, CALLS, LOOP, QUANTISED, module

#: What the tools do otherwise or do not compile, by operator.
APART: dict[str, dict[str, str]] = {
    "stablehlo": {
        "cast": "a number that is not a number becomes another truth value",
        "sign": "the sign of what is not a number",
        "nn.relu": "relu of what is not a number",
        "power": "powers of numbers below 0",
    },
    "relax": {"cast": "a number that is not a number becomes another truth value"},
}
#: What compilers print for a kernel that they cannot make.
LACKS = ("undefined symbol", "unknown intrinsic", "failed to legalize", "LLVM Translation failed")


def stablehlo(mod: Any) -> tuple[str, dict[str, np.ndarray]]:
    return export_stablehlo(mod), {}


def together(kind: Callable[..., Any], items: list[tuple[Case, str, dict[str, np.ndarray]]]) -> dict[str, str]:
    """The faults of programs that are compiled together; halves are tried where that fails."""
    try:
        ran = kind([text for _, text, _ in items])
    except Exception as wrong:
        if len(items) == 1:
            lacks = any(word in str(wrong) for word in LACKS)
            return {} if lacks else {items[0][0].says: f"does not compile: {str(wrong)[-300:]}"}
        half = len(items) // 2
        return {**together(kind, items[:half]), **together(kind, items[half:])}
    found = {}
    for number, (case, _, params) in enumerate(items):
        try:
            fault = difference(case, ran.run(number, [*case.inputs, *params.values()]))
        except Exception as wrong:
            fault = str(wrong)[:300]
        if fault:
            found[case.says] = fault
    return found


FORMATS = {"stablehlo": (stablehlo, STABLEHLO, Iree), "relax": (export_relax, RELAX, Relax)}


def first_of_each(found: list[Case]) -> list[Case]:
    """A case of each operator in float32, or its first one."""
    chosen: dict[str, Case] = {}
    for case in found:
        real = all(x.dtype == np.float32 and np.isfinite(x).all() for x in case.inputs[:1])
        if case.name not in chosen or (real and case.name not in chosen):
            chosen[case.name] = case
    return list(chosen.values())


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", FORMATS)
def test_every_operator(name: str, every: bool) -> None:
    export, rules, kind = FORMATS[name]
    pytest.importorskip({"stablehlo": "iree.compiler.tools", "relax": "tvm"}[name])
    items = []
    found = list(cases(rules))
    first = first_of_each(found)
    for case in [*first[::2], *found[::24]] if every else first[::6]:
        if any(x.dtype.name in ("float64", "bfloat16") for x in case.inputs) and name == "stablehlo":
            continue  # IREE has no functions of these in its libraries
        try:
            items.append((case, *export(case.module)))
        except RelayError as refused:
            assert [d.code for d in refused.diagnostics] == ["R0806"]
    failed: dict[str, str] = {}
    for begin in range(0, len(items), 48):
        failed |= together(kind, items[begin : begin + 48])
    assert {says: why for says, why in failed.items() if says.split()[0] not in APART[name]} == {}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("text", ["branch", "loop", "calls", "quantised"])
def test_programs(name: str, text: str) -> None:
    export, _, kind = FORMATS[name]
    mod = module({"branch": BRANCH, "loop": LOOP, "calls": CALLS, "quantised": QUANTISED}[text])
    if (name, text) == ("relax", "loop"):
        with pytest.raises(RelayError):
            export(mod)
        return
    made, params = export(mod)
    rng = np.random.default_rng(0)
    inputs = []
    for p in mod["main"].params:
        ty = p.checked_type
        real = ty.dtype == "float32"
        inputs.append(np.asarray(rng.standard_normal(ty.shape) if real else rng.integers(0, 2, ty.shape)).astype(ty.dtype))
    pytest.importorskip({"stablehlo": "iree.compiler.tools", "relax": "tvm"}[name])
    ran = kind([made]).run(0, [*inputs, *params.values()])
    for found, wanted in zip(ran, interpreted(mod, inputs), strict=True):
        assert found.dtype == wanted.dtype and np.allclose(found, wanted, rtol=1e-6, atol=0 if wanted.dtype.kind == "i" else 1e-6)


@pytest.mark.parametrize("name", FORMATS)
def test_reductions(name: str) -> None:
    """Without axes, `exclude` says nothing; along empty axes, there is a value, too."""
    export, _, kind = FORMATS[name]
    pytest.importorskip({"stablehlo": "iree.compiler.tools", "relax": "tvm"}[name])
    forms = ("exclude=True, keepdims=True", "axis=[]", "axis=[0], exclude=True")
    texts = [
        f"def @main(%x: Tensor[{shape}, float32]) {{ {op}(%x, {form}) }}"
        for op in ("sum", "max", "min", "prod")
        for shape in ("(2, 3)", "(2, 0)")
        for form in forms
    ]
    mods = [module(text) for text in texts]
    ran = kind([export(mod)[0] for mod in mods])
    for number, (mod, text) in enumerate(zip(mods, texts)):
        shape = [int(n) for n in mod["main"].params[0].checked_type.shape]
        x = np.linspace(-2, 2, 0 if "0)" in text else 6, dtype=np.float32).reshape(shape)
        found, wanted = ran.run(number, [x])[0], interpreted(mod, [x])[0]
        assert found.shape == wanted.shape, text
        np.testing.assert_allclose(found, wanted, 1e-5, err_msg=text)


@pytest.mark.parametrize("name", FORMATS)
def test_open_extents_are_refused(name: str) -> None:
    with pytest.raises(RelayError) as raised:
        FORMATS[name][0](module("def @main(%x: Tensor[(?, 4), float32]) { nn.relu(%x) }"))
    assert [d.code for d in raised.value.diagnostics] == ["R0806"]


@pytest.mark.parametrize("name", FORMATS)
def test_long_programs(name: str) -> None:
    x = relay.var("x", shape=(2,), dtype="float32")
    wide = x
    for _ in range(5_000):
        wide = relay.add(wide, wide)
    text, _ = FORMATS[name][0](relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], wide))))
    assert text.count("add") == 5_000
