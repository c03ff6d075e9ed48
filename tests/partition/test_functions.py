"""Partitions lifted into the module, handed over, and given up again."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Function, IRModule, post_order
from relaylang.ir.structural import structural_equal
from relaylang.op.contrib import partition_for_dnnl
from relaylang.syntax import parse
from relaylang.transform import (
    Inline,
    InlineCompilerFunctionsBoundTo,
    MarkCompilerFunctionsAsExtern,
    OutlineCompilerFunctionsWithExistingGlobalSymbols,
    ToANormalForm,
)

TEXT = """
def @main(%x: Tensor[(2, 8), float32]) {
  let %w = ones(shape=[8, 8], dtype="float32");
  nn.relu(subtract(nn.dense(sin(nn.relu(nn.dense(%x, %w, units=8))), %w, units=8), 3f))
}
"""
X = np.random.default_rng(3).normal(size=(2, 8)).astype("float32")


@pytest.fixture
def partitioned() -> IRModule:
    mod = partition_for_dnnl(parse(TEXT).module)
    assert len(partitions(mod)) >= 2
    return mod


def partitions(mod: IRModule) -> list[str]:
    return [gv.name_hint for gv, f in mod.functions.items() if "Compiler" in f.attrs]


def inlined(mod: IRModule) -> IRModule:
    """The module with its partitions where they are called."""
    marked = {
        gv: Function(f.params, f.body, f.ret_type, f.type_params, {**f.attrs, "Inline": 1}) if "Compiler" in f.attrs else f
        for gv, f in mod.functions.items()
    }
    return Inline()(mod.with_functions(marked))


@pytest.mark.parametrize("lets", [False, True])
def test_outlining_is_the_inverse_of_inlining(partitioned: IRModule, lets: bool) -> None:
    flat = inlined(partitioned)
    assert partitions(flat) == []
    if lets:
        flat = ToANormalForm()(flat)
    again = OutlineCompilerFunctionsWithExistingGlobalSymbols()(flat)
    assert sorted(partitions(again)) == sorted(partitions(partitioned))
    assert not any(isinstance(n, Function) and "Compiler" in n.attrs for n in post_order(again["main"].body))
    np.testing.assert_array_equal(evaluate(again, X), evaluate(partitioned, X))


def test_outlining_one_compiler_only(partitioned: IRModule) -> None:
    flat = inlined(partitioned)
    assert structural_equal(OutlineCompilerFunctionsWithExistingGlobalSymbols("other")(flat), flat)
    assert partitions(OutlineCompilerFunctionsWithExistingGlobalSymbols("dnnl")(flat))


def test_a_name_that_another_function_has(partitioned: IRModule) -> None:
    flat = inlined(partitioned)
    name = partitions(partitioned)[0]
    flat[name] = parse("def @f(%x: int32) { %x }").module["f"]
    with pytest.raises(RelayError, match=f"another function @{name}"):
        OutlineCompilerFunctionsWithExistingGlobalSymbols()(flat)


def test_extern_takes_the_place_of_all_attributes(partitioned: IRModule) -> None:
    done = MarkCompilerFunctionsAsExtern("dnnl")(partitioned)
    assert all(done[name].attrs == {"Extern": 1} for name in partitions(partitioned))
    assert partitions(MarkCompilerFunctionsAsExtern("other")(partitioned)) == partitions(partitioned)
    assert "Compiler" in partitioned[partitions(partitioned)[0]].attrs


def test_partitions_that_are_given_up(partitioned: IRModule) -> None:
    first, *rest = partitions(partitioned)
    done = InlineCompilerFunctionsBoundTo([first])(partitioned)
    assert partitions(done) == rest
    assert not any(isinstance(n, Function) and "Composite" in n.attrs for n in post_order(done["main"].body))
    np.testing.assert_allclose(evaluate(done, X), evaluate(partitioned, X), rtol=1e-6)
    flat = InlineCompilerFunctionsBoundTo([partitioned.get_global_var(n) for n in partitions(partitioned)])(partitioned)
    assert partitions(flat) == []
    np.testing.assert_allclose(evaluate(flat, X), evaluate(parse(TEXT).module, X), rtol=1e-6)


def test_nothing_to_give_up_changes_nothing(partitioned: IRModule) -> None:
    assert structural_equal(InlineCompilerFunctionsBoundTo([])(partitioned), partitioned)


@pytest.mark.parametrize("name", ["main", "nothing"])
def test_what_is_no_partition(partitioned: IRModule, name: str) -> None:
    with pytest.raises(RelayError, match=f"@{name} is no partition"):
        InlineCompilerFunctionsBoundTo([name])(partitioned)
