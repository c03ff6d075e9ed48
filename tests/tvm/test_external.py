"""Code generators that scripts for TVM register as `relay.ext.NAME`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.runtime.artifact import load
from relaylang.runtime.external import CODEGENS
from relaylang.tvm import nd
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
    register_func("relay.ext.ext", lambda func: "int ext_0(const float* a, float* b) "
                  "{ for (int i = 0; i < 4; i++) b[i] = a[i] + 2; return 0; }")  # fmt: skip
    lib = relay.build(relay.parse(TEXT), "llvm -num-threads=1")
    lib.export_library(tmp_path / "net.so", options=["-g"])
    assert load(tmp_path / "net.so").run(X).tolist() == [6, 9, 12, 15]
    with pytest.raises(RelayError, match="R0609"):
        lib.export_library(tmp_path / "net.o")


@pytest.mark.parametrize("hook", ["constant_updater", "relay_to_tir", "RelayToTIR", "optimize", "other"])
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
