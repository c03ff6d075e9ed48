"""Code generators that scripts for TVM register as `relay.ext.NAME`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.runtime.artifact import load
from relaylang.runtime.external import CODEGENS, codegen
from relaylang.tvm import nd
from relaylang.tvm.ccompiler import generate
from relaylang.tvm.contrib import graph_executor
from relaylang.tvm.registry import get_global_func, register_func, remove_global_func

TEXT = """#[version = "0.0.5"]
def @f(%a: Tensor[(4), float32], Compiler="ext", Primitive=1, global_symbol="ext_0") -> Tensor[(4), float32] { add(%a, 2f) }
def @main(%x: Tensor[(4), float32]) { multiply(@f(%x), 3f) }
"""
X = np.arange(4, dtype="f4")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    remove_global_func("relay.ext.ext")
    CODEGENS.pop("ext", None)


def run(made: Callable[..., Any], tmp_path: Any) -> None:
    register_func("relay.ext.ext", made)
    lib = relay.build(relay.parse(TEXT), "llvm -num-threads=1")
    module = graph_executor.GraphModule(lib["default"](nd.cpu()))
    module.run(x=X)
    assert module.get_output(0).numpy().tolist() == [6, 9, 12, 15]
    lib.export_library(tmp_path / "net.so")
    assert load(tmp_path / "net.so").run(X).tolist() == [6, 9, 12, 15]


def test_c_text(tmp_path: Any) -> None:
    def generate(func: relay.Function) -> str:
        symbol = func.attrs["global_symbol"]
        return f"int {symbol}(const float* a, float* b) {{ for (int i = 0; i < 4; i++) b[i] = a[i] + 2; return 0; }}"

    run(generate, tmp_path)


def test_a_module_of_c_text_with_constants(tmp_path: Any) -> None:
    def generate(func: relay.Function) -> Any:
        symbol = func.attrs["global_symbol"]
        code = f"int {symbol}(const float* a, const float* c, float* b) {{ for (int i = 0; i < 4; i++) b[i] = a[i] + *c; return 0; }}"
        return get_global_func("runtime.CSourceModuleCreate")(code, "c", [symbol], [f"{symbol}_const_0"])

    run(generate, tmp_path)


@pytest.mark.parametrize("fill", [True, False])
def test_a_python_function_of_tensors(fill: bool, tmp_path: Any) -> None:
    def call(a: nd.NDArray, out: nd.NDArray) -> Any:
        assert isinstance(a, nd.NDArray) and out.shape == (4,)
        if not fill:
            return nd.array(a.numpy() + 2)
        nd.array(a.numpy() + 2).copyto(out)
        return None

    run(lambda func: call, tmp_path)


def test_objects_are_written_with_the_regions(tmp_path: Any) -> None:
    """Another linker gets the regions' objects, too."""
    register_func(
        "relay.ext.ext", lambda func: "int ext_0(const float* a, float* b) { for (int i = 0; i < 4; i++) b[i] = a[i] + 2; return 0; }"
    )
    lib = relay.build(relay.parse(TEXT), "llvm -num-threads=1")
    lib.export_library(tmp_path / "net.so", options=["-g"])
    assert load(tmp_path / "net.so").run(X).tolist() == [6, 9, 12, 15]
    with pytest.raises(RelayError, match="R0609"):
        lib.export_library(tmp_path / "net.o")


@pytest.mark.parametrize("hook", ["constant_updater", "relay_to_tir", "RelayToTIR", "other"])
def test_hooks_say_what_replaces_them(hook: str) -> None:
    with pytest.raises(RelayError) as caught:
        register_func(f"relay.ext.ext.{hook}", lambda *a: None)
    first = caught.value.diagnostics[0]
    assert first.code == "R0609" and first.notes
    assert get_global_func(f"relay.ext.ext.{hook}", allow_missing=True) is None


def test_a_generator_is_forgotten_with_its_function() -> None:
    register_func("relay.ext.ext", lambda func: "")
    remove_global_func("relay.ext.ext")
    with pytest.raises(RelayError, match="R0632"):
        relay.build(relay.parse(TEXT), "llvm")


def test_an_optimizer_gets_each_partition() -> None:
    x, one = relay.var("x", shape=(4,)), relay.const(np.ones(4, "float32"))
    begin = relay.annotation.compiler_begin
    region = relay.add(begin(x, "ext"), relay.add(begin(one, "ext"), begin(one, "ext")))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(relay.annotation.compiler_end(region, "ext"))))

    def partition() -> relay.Function:
        made = relay.transform.PartitionGraph()(relay.transform.InferType()(mod))
        (part,) = [f for gv, f in made.functions.items() if gv.name_hint != "main"]
        np.testing.assert_array_equal(relay.evaluate(made, X), np.exp(X + 2))
        assert part.attrs["Compiler"] == "ext"
        return part

    register_func("relay.ext.ext.optimize", relay.transform.FoldConstant())
    assert sum(isinstance(n, relay.Call) for n in relay.analysis.post_order(partition())) == 1
    register_func("relay.ext.ext.optimize", lambda mod: None, override=True)
    with pytest.raises(RelayError, match="the optimizer of ext returned no module with @main"):
        partition()
    remove_global_func("relay.ext.ext.optimize")
    assert sum(isinstance(n, relay.Call) for n in relay.analysis.post_order(partition())) == 2


def test_the_code_generator_of_tvm() -> None:
    text = """def @main(%x: Tensor[(2, 3), int32], %y: Tensor[(1, 3), int32]) {
      %0 = fn (%a: Tensor[(2, 3), int32], %b: Tensor[(1, 3), int32], Compiler="ccompiler", Primitive=1, global_symbol="part") {
        %1 = multiply(subtract(%a, %b), 3); (%1, add(%b, %b))
      };
      %0(%x, %y)
    }"""
    x, y = np.arange(6, dtype="int32").reshape(2, 3), np.array([[5, 7, 9]], "int32")
    codegen("ccompiler", generate)
    first, second = relay.build(relay.parse(text), "llvm").run(x, y)
    np.testing.assert_array_equal(first, (x - y) * 3)
    np.testing.assert_array_equal(second, y + y)
    with pytest.raises(RelayError, match="ccompiler computes add, subtract, multiply, not divide"):
        relay.build(relay.parse(text.replace("subtract", "divide")), "llvm")
    del CODEGENS["ccompiler"]
