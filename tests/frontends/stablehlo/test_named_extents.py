"""Open extents of StableHLO have names: those that JAX gives them, or those of their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.export import export_onnx
from relaylang.frontends.options import Options
from relaylang.frontends.stablehlo import import_stablehlo
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule, type_text
from relaylang.syntax import parse
from relaylang.typing import check
from tests.frontends.stablehlo.test_recorded import leaves, same

#: A function whose inputs have one batch, as the assertion says; the second one has the double width.
TEXT = """module @jit_f {
  func.func public @main(%arg0: tensor<?x?xf32>, %arg1: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
    %1 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
    %2 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
    %3 = stablehlo.get_dimension_size %arg1, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
    %4 = stablehlo.compare EQ, %2, %0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%4, %2) {error_message = "batches"} : (tensor<i1>, tensor<i32>) -> ()
    %5 = stablehlo.multiply %1, %c : tensor<i32>
    %6 = stablehlo.compare EQ, %3, %5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%6, %3) {error_message = "widths"} : (tensor<i1>, tensor<i32>) -> ()
    %7 = call @inner(%0, %1, %arg0, %arg1)
      : (tensor<i32>, tensor<i32>, tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
    return %7 : tensor<?x?xf32>
  }
  func.func private @inner(%arg0: tensor<i32> {NAME0}, %arg1: tensor<i32> {NAME1}, %arg2: tensor<?x?xf32>,
                           %arg3: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %c = stablehlo.constant dense<2> : tensor<1xi32>
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.concatenate %0, %c, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %3 = stablehlo.dynamic_reshape %arg3, %2 : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x2x?xf32>
    %4 = stablehlo.dynamic_broadcast_in_dim %arg2, %2, dims = [0, 2] : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<?x2x?xf32>
    %5 = stablehlo.add %3, %4 : tensor<?x2x?xf32>
    %6 = stablehlo.multiply %1, %c : tensor<1xi32>
    %7 = stablehlo.concatenate %0, %6, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %8 = stablehlo.dynamic_reshape %5, %7 : (tensor<?x2x?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    return %8 : tensor<?x?xf32>
  }
}
"""
NAMED = TEXT.replace("NAME0", 'jax.global_constant = "b"').replace("NAME1", 'jax.global_constant = "t"')
UNNAMED = TEXT.replace(" {NAME0}", "").replace(" {NAME1}", "")
X, Y = np.arange(6, dtype="float32").reshape(2, 3), np.arange(12, dtype="float32").reshape(2, 6)


def main_type(mod: IRModule) -> str:
    ty = mod["main"].checked_type
    assert ty is not None
    return type_text(ty)


@pytest.mark.parametrize(
    ("text", "b", "t"), [(NAMED, "b", "t"), (UNNAMED, "arg0_0", "arg0_1")], ids=["names of JAX", "names of places"]
)
def test_names(text: str, b: str, t: str) -> None:
    mod = import_stablehlo(text).module
    tensor = f"Tensor[({b}, 2 * {t}), float32]"
    assert main_type(mod) == f"fn [{b}, {t}](Tensor[({b}, {t}), float32], {tensor}) -> {tensor}"
    program = compile_vm(mod)
    assert not program.fallbacks()
    wanted = Y + np.tile(X, 2)
    np.testing.assert_array_equal(program.run(X, Y), wanted)
    np.testing.assert_array_equal(evaluate(mod, X, Y), wanted)
    again = parse(str(mod)).module
    check(again)
    assert str(again) == str(mod)


@pytest.mark.parametrize("run", [lambda mod, *args: evaluate(mod, *args), lambda mod, *args: compile_vm(mod).run(*args)])
@pytest.mark.parametrize("other", [Y[:1], Y[:, :5]], ids=["batch", "width"])
def test_assertions_of_a_program_hold(run: Callable[..., Any], other: np.ndarray) -> None:
    mod = import_stablehlo(NAMED).module
    with pytest.raises(RelayError) as failed:
        run(mod, X, other)
    assert all(d.code.startswith("R04") for d in failed.value.diagnostics)


@pytest.mark.parametrize(
    ("shapes", "types"),
    [
        ({"b": (2,)}, "fn [t](Tensor[(2, t), float32], Tensor[(2, 2 * t), float32]) -> Tensor[(2, 2 * t), float32]"),
        ({"arg1": (2, 6)}, "fn (Tensor[(2, 3), float32], Tensor[(2, 6), float32]) -> Tensor[(2, 6), float32]"),
        ({"b": (2,), "t": (3,)}, "fn (Tensor[(2, 3), float32], Tensor[(2, 6), float32]) -> Tensor[(2, 6), float32]"),
    ],
    ids=["a name", "an input", "both names"],
)
def test_options_give_names_numbers(shapes: Mapping[str, tuple[int, ...]], types: str) -> None:
    assert main_type(import_stablehlo(NAMED, Options(shapes=dict(shapes))).module) == types


def test_broadcasts_to_names_are_exported() -> None:
    runtime = pytest.importorskip("onnxruntime")
    body = """%c = stablehlo.constant dense<2> : tensor<1xi32>
%0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
%1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
%2 = stablehlo.multiply %1, %c : tensor<1xi32>
%3 = stablehlo.concatenate %2, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
%4 = stablehlo.constant dense<7.0> : tensor<f32>
%5 = stablehlo.dynamic_broadcast_in_dim %4, %3, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
return %5 : tensor<?x?xf32>"""
    mod = import_stablehlo(f"func.func @main(%x: tensor<?x3xf32>) -> tensor<?x?xf32> {{\n{body}\n}}").module
    assert "broadcast_to" in str(mod) and "[2 * x_0, x_0]" in str(mod)
    session = runtime.InferenceSession(export_onnx(mod).SerializeToString())
    (exported,) = session.run(None, {"x": np.ones((2, 3), "float32")})
    np.testing.assert_array_equal(exported, np.full((4, 2), 7, "float32"))


def test_extents_that_nobody_reads_have_no_name() -> None:
    body = "%0 = stablehlo.add %x, %x : tensor<?x3xf32>\nreturn %0 : tensor<?x3xf32>"
    text = f"func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {{\n{body}\n}}"
    assert main_type(import_stablehlo(text).module) == "fn (Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32]"


def test_a_name_that_is_an_own_one_of_another_axis() -> None:
    text = NAMED.replace('"b"', '"arg0_1"')
    assert main_type(import_stablehlo(text).module).startswith("fn [arg0_1, t](Tensor[(arg0_1, t), float32],")


# ---- programs that JAX writes


def layer(x: Any, mask: Any, weights: Mapping[str, Any]) -> Any:
    """An encoder's layer of 4 heads, width 32."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    b, t, width = x.shape
    q, k, v = [(x @ weights[n]).reshape(b, t, 4, width // 4).transpose(0, 2, 1, 3) for n in "qkv"]
    scores = jnp.where(mask[:, None, None, :] > 0, q @ k.transpose(0, 1, 3, 2) / np.sqrt(8), -1e9)
    x = x + (jax.nn.softmax(scores, -1) @ v).transpose(0, 2, 1, 3).reshape(b, t, width) @ weights["o"]
    x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x + jax.nn.gelu(x @ weights["f"]) @ weights["g"]


def encoder() -> Callable[[Any, Any], Any]:
    jnp = pytest.importorskip("jax").numpy
    rng = np.random.default_rng(1)
    shapes = {**dict.fromkeys("qkvo", (32, 32)), "f": (32, 64), "g": (64, 32)}
    layers = [{n: (rng.normal(size=s) * 0.1).astype("float32") for n, s in shapes.items()} for _ in range(2)]
    words, places = (jnp.asarray(rng.normal(size=(n, 32)).astype("float32")) for n in (50, 64))

    def encode(ids: Any, mask: Any) -> Any:
        x = words[ids] + places[jnp.arange(ids.shape[1])]
        for weights in layers:
            x = layer(x, mask, weights)
        return x

    return encode


def agrees(function: Any, names: str, constraints: list[str], inputs: list[tuple[str, str]], sizes: list[dict[str, int]]) -> IRModule:
    """The program of a function of open extents, which gives JAX's results in the interpreter and on the VM."""
    jax = pytest.importorskip("jax")
    from jax import export

    scope = export.symbolic_shape(names, constraints=constraints)[0].scope
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), dtype) for shape, dtype in inputs]
    mod = import_stablehlo(export.export(jax.jit(function))(*specs)).module
    program = compile_vm(mod)
    assert not program.fallbacks()
    rng = np.random.default_rng(2)
    for numbers in sizes:
        shapes = [[eval(d, {}, dict(numbers)) for d in shape.split(", ")] for shape, _ in inputs]
        operands = [
            rng.normal(size=s).astype(dtype) if dtype == "float32" else rng.integers(0, 50, s).astype(dtype)
            for s, (_, dtype) in zip(shapes, inputs)
        ]
        wanted = [np.asarray(w) for w in jax.tree.leaves(jax.jit(function)(*operands))]
        same(leaves(evaluate(mod, *operands)), wanted, 1e-5)
        same(leaves(program.run(*operands)), wanted, 1e-5)
    return mod


def test_an_encoder() -> None:
    sizes = [{"b": 3, "t": 7}, {"b": 1, "t": 2}, {"b": 2, "t": 64}]
    inputs = [("b, t", "int32")] * 2
    mod = agrees(encoder(), "b, t", ["t <= 64", "t >= 2"], inputs, sizes)
    tensor = "Tensor[(b, t), int32]"
    assert main_type(mod) == f"fn [b, t]({tensor}, {tensor}) -> Tensor[(b, t, 32), float32]"
    assert "dyn." not in str(mod)


def join_halves(x: Any, y: Any) -> Any:
    jnp = pytest.importorskip("jax").numpy
    return jnp.concatenate([x.reshape(x.shape[0] // 2, 2, -1).sum(1), y[:, : x.shape[1]]], 0)


def pad_to_threes(x: Any, y: Any) -> Any:
    jnp = pytest.importorskip("jax").numpy
    return jnp.pad(x, ((0, 0), (0, 3 - x.shape[1] % 3)))[::2].sum(0) + jnp.arange(y.shape[0]).max()


def pad_to_fours(x: Any) -> Any:
    return pytest.importorskip("jax").numpy.pad(x, ((0, 1), (1, 4 - x.shape[1] % 4)), constant_values=2)


def causal(x: Any) -> Any:
    jnp = pytest.importorskip("jax").numpy
    return jnp.where(jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool)), x @ x.swapaxes(1, 2), -1e9)


@pytest.mark.parametrize(
    ("function", "names", "constraints", "shapes", "sizes", "result"),
    [
        (join_halves, "b, t", [], ["2 * b, t", "b + 1, t"], [{"b": 3, "t": 5}, {"b": 1, "t": 1}], "(2 * b + 1, t)"),
        (pad_to_threes, "b, t", ["mod(t, 3) == 1", "t >= 4"], ["b, t", "2 * b + t"], [{"b": 3, "t": 7}, {"b": 4, "t": 4}], "(t + 2)"),
        (pad_to_fours, "b, t", [], ["b, t"], [{"b": 3, "t": 7}, {"b": 1, "t": 4}], "(b + 1, t - floormod(t, 4) + 5)"),
        (causal, "b, t", [], ["b, t, 8"], [{"b": 3, "t": 7}, {"b": 1, "t": 1}], "(b, t, t)"),
        (lambda x: x.reshape(-1, 4).repeat(2, 0), "b, t", [], ["b, t, 4"], [{"b": 2, "t": 3}], "(2 * b * t, 4)"),
        (lambda x, y: x.reshape(-1) * y, "b, t", [], ["b, t", "b * t"], [{"b": 2, "t": 3}], "(b * t)"),
        (lambda x: x.mean(0) / x.shape[1], "b, t", [], ["b, t"], [{"b": 2, "t": 3}], "(t)"),
    ],
    ids=["halves", "pad", "computed pad", "mask", "rows", "product", "mean"],
)
def test_functions_of_open_extents(
    function: Any, names: str, constraints: list[str], shapes: list[str], sizes: list[dict[str, int]], result: str
) -> None:
    mod = agrees(function, names, constraints, [(shape, "float32") for shape in shapes], sizes)
    assert main_type(mod).endswith(f"-> Tensor[{result}, float32]")
