"""Forms of the text and operators that JAX's programs lack, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.export import export_stablehlo
from relaylang.frontends.options import Options
from relaylang.frontends.stablehlo import import_stablehlo
from relaylang.ir import IRModule
from tests.frontends.stablehlo.recorded import case, members
from tests.frontends.stablehlo.test_recorded import results, same
from tests.growth import assert_linear

rng = np.random.default_rng(5)


def real(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def program(body: str, parameters: str, types: str) -> IRModule:
    """A function of some operations, which end with the values that it returns."""
    return import_stablehlo(f"func.func @main({parameters}) -> ({types}) {{\n{body}\n}}\n").module


X = real(3, 4)
SQUARE = real(2, 5, 5)
POSITIVE = SQUARE @ SQUARE.transpose(0, 2, 1) + np.eye(5, dtype="float32")


def triangular(left: bool, lower: bool, turn: bool) -> np.ndarray:
    """The solution for a triangle of `POSITIVE` and the side `SQUARE`."""
    a = np.tril(POSITIVE) if lower else np.triu(POSITIVE)
    a = a.transpose(0, 2, 1) if turn else a
    if left:
        return np.linalg.solve(a, SQUARE)
    return np.linalg.solve(a.transpose(0, 2, 1), SQUARE.transpose(0, 2, 1)).transpose(0, 2, 1)


#: Name -> the body, the parameters, the types of results, the operands, and the results.
CASES: dict[str, tuple[str, str, str, list[np.ndarray], list[np.ndarray]]] = {
    "cholesky": (
        "%0 = stablehlo.cholesky %x, lower = true : tensor<2x5x5xf32>\nreturn %0 : tensor<2x5x5xf32>",
        "%x: tensor<2x5x5xf32>",
        "tensor<2x5x5xf32>",
        [POSITIVE],
        [np.linalg.cholesky(POSITIVE)],
    ),
    "cholesky_upper": (
        '%0 = "stablehlo.cholesky"(%x) {lower = false} : (tensor<2x5x5xf32>) -> tensor<2x5x5xf32>\nreturn %0 : tensor<2x5x5xf32>',
        "%x: tensor<2x5x5xf32>",
        "tensor<2x5x5xf32>",
        [POSITIVE],
        [np.linalg.cholesky(POSITIVE).transpose(0, 2, 1)],
    ),
    **{
        f"triangular_solve_{left}_{lower}_{word}": (
            '%0 = "stablehlo.triangular_solve"(%x, %y) <{left_side = ' + left + ", lower = " + lower + ", unit_diagonal = false,"
            f" transpose_a = #stablehlo<transpose {word}>}}> : (tensor<2x5x5xf32>, tensor<2x5x5xf32>) -> tensor<2x5x5xf32>\n"
            "return %0 : tensor<2x5x5xf32>",
            "%x: tensor<2x5x5xf32>, %y: tensor<2x5x5xf32>",
            "tensor<2x5x5xf32>",
            [POSITIVE, SQUARE],
            [triangular(left == "true", lower == "true", word != "NO_TRANSPOSE")],
        )
        for left in ("true", "false")
        for lower in ("true", "false")
        for word in ("NO_TRANSPOSE", "TRANSPOSE")
    },
    "generic": (
        '%0 = "stablehlo.transpose"(%x) <{permutation = array<i64: 1, 0>}> : (tensor<3x4xf32>) -> tensor<4x3xf32>\n'
        '"func.return"(%0) : (tensor<4x3xf32>) -> ()',
        "%x: tensor<3x4xf32>",
        "tensor<4x3xf32>",
        [X],
        [X.T],
    ),
    "old attributes": (
        '%0 = "stablehlo.transpose"(%x) {permutation = dense<[1, 0]> : tensor<2xi64>} : (tensor<3x4xf32>) -> tensor<4x3xf32>\n'
        "return %0 : tensor<4x3xf32>",
        "%x: tensor<3x4xf32>",
        "tensor<4x3xf32>",
        [X],
        [X.T],
    ),
    "vhlo": (
        '%0 = "vhlo.transpose_v1"(%x) <{permutation = #vhlo.tensor_v1<dense<[1, 0]> : tensor<2xi64>>}>'
        " : (!vhlo.tensor_v1<3x4x!vhlo.f32_v1>) -> !vhlo.tensor_v1<4x3x!vhlo.f32_v1>\n"
        '"vhlo.return_v1"(%0) : (!vhlo.tensor_v1<4x3x!vhlo.f32_v1>) -> ()',
        "%x: !vhlo.tensor_v1<3x4x!vhlo.f32_v1>",
        "!vhlo.tensor_v1<4x3x!vhlo.f32_v1>",
        [X],
        [X.T],
    ),
    "bits of constants": (
        "%0 = stablehlo.constant dense<[0x7F800000, 0xFF800000, 0x3F800000]> : tensor<3xf32>\n"
        '%1 = stablehlo.constant dense<"0x0000803F000000400000C0BF"> : tensor<3xf32>\n'
        "return %0, %1 : tensor<3xf32>, tensor<3xf32>",
        "",
        "tensor<3xf32>, tensor<3xf32>",
        [],
        [np.float32([np.inf, -np.inf, 1]), np.float32([1, 2, -1.5])],
    ),
    "a tuple": (
        "%0 = stablehlo.tuple %x, %x : tuple<tensor<3x4xf32>, tensor<3x4xf32>>\n"
        "%1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<3x4xf32>, tensor<3x4xf32>>) -> tensor<3x4xf32>\n"
        "return %1 : tensor<3x4xf32>",
        "%x: tensor<3x4xf32>",
        "tensor<3x4xf32>",
        [X],
        [X],
    ),
    "a call that passes": (
        '%0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<3x4xf32>) -> tensor<3x4xf32>\n'
        "%1 = stablehlo.optimization_barrier %0 : tensor<3x4xf32>\n"
        "return %1 : tensor<3x4xf32>",
        "%x: tensor<3x4xf32>",
        "tensor<3x4xf32>",
        [X],
        [X],
    ),
    "numbers of two parts": (
        "%0 = stablehlo.complex %x, %y : tensor<3x4xcomplex<f32>>\n"
        "%1 = stablehlo.multiply %0, %0 : tensor<3x4xcomplex<f32>>\n"
        "%2 = stablehlo.add %1, %0 : tensor<3x4xcomplex<f32>>\n"
        "%3 = stablehlo.divide %2, %0 : tensor<3x4xcomplex<f32>>\n"
        "%4 = stablehlo.real %3 : (tensor<3x4xcomplex<f32>>) -> tensor<3x4xf32>\n"
        "%5 = stablehlo.imag %3 : (tensor<3x4xcomplex<f32>>) -> tensor<3x4xf32>\n"
        "return %4, %5 : tensor<3x4xf32>, tensor<3x4xf32>",
        "%x: tensor<3x4xf32>, %y: tensor<3x4xf32>",
        "tensor<3x4xf32>, tensor<3x4xf32>",
        [X, X[::-1] + 4],
        [X + 1, X[::-1] + 4],
    ),
    "quantised": (
        "%0 = stablehlo.uniform_quantize %x : (tensor<3x4xf32>) -> tensor<3x4x!quant.uniform<i8:f32, 0.5:3>>\n"
        "%1 = stablehlo.add %0, %0 : tensor<3x4x!quant.uniform<i8:f32, 0.5:3>>\n"
        "%2 = stablehlo.uniform_dequantize %1 : (tensor<3x4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<3x4xf32>\n"
        "return %2 : tensor<3x4xf32>",
        "%x: tensor<3x4xf32>",
        "tensor<3x4xf32>",
        [X],
        [2 * np.round(X / 0.5).astype("float32") * np.float32(0.5)],
    ),
    "a normalisation": (
        '%0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %v) <{epsilon = 1.0e-05 : f32, feature_index = 1 : i64}>'
        " : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<3x4xf32>\n"
        '%1:3 = "stablehlo.batch_norm_training"(%x, %s, %s) <{epsilon = 1.0e-05 : f32, feature_index = 1 : i64}>'
        " : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)\n"
        "return %0, %1#0, %1#1, %1#2 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>",
        "%x: tensor<3x4xf32>, %s: tensor<4xf32>, %v: tensor<4xf32>",
        "tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>",
        [X, X[0], np.abs(X[1])],
        [
            (X - X[0]) / np.sqrt(np.abs(X[1]) + np.float32(1e-5)) * X[0] + X[0],
            (X - X.mean(0)) / np.sqrt(X.var(0) + np.float32(1e-5)) * X[0] + X[0],
            X.mean(0),
            X.var(0),
        ],
    ),
    "a map": (
        '%0 = "stablehlo.map"(%x, %x) <{dimensions = array<i64: 0, 1>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
        "  %c = stablehlo.multiply %a, %b : tensor<f32>\n  stablehlo.return %c : tensor<f32>\n"
        "}) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>\nreturn %0 : tensor<3x4xf32>",
        "%x: tensor<3x4xf32>",
        "tensor<3x4xf32>",
        [X],
        [X * X],
    ),
    "negative padding of a convolution": (
        "%0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], "
        "window = {stride = [1], pad = [[-1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
        " : (tensor<1x1x5xf32>, tensor<1x1x2xf32>) -> tensor<1x1x4xf32>\nreturn %0 : tensor<1x1x4xf32>",
        "%x: tensor<1x1x5xf32>, %w: tensor<1x1x2xf32>",
        "tensor<1x1x4xf32>",
        [np.float32([[[1, 2, 3, 4, 5]]]), np.float32([[[1, 10]]])],
        [np.float32([[[32, 43, 54, 5]]])],
    ),
    "a bound that is computed": (
        "%c = stablehlo.constant dense<0> : tensor<i32>\n%d = stablehlo.constant dense<1> : tensor<i32>\n"
        "%0:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i32>, tensor<3x4xf32>\ncond {\n"
        "  %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "  stablehlo.return %t : tensor<i1>\n} do {\n  %j = stablehlo.add %i, %d : tensor<i32>\n"
        "  %w = stablehlo.add %v, %x : tensor<3x4xf32>\n  stablehlo.return %j, %w : tensor<i32>, tensor<3x4xf32>\n}\n"
        "return %0#1 : tensor<3x4xf32>",
        "%x: tensor<3x4xf32>, %n: tensor<i32>",
        "tensor<3x4xf32>",
        [X, np.array(5, np.int32)],
        [6 * X],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operators(name: str) -> None:
    body, parameters, types, operands, wanted = CASES[name]
    same(results(program(body, parameters, types), operands), [np.asarray(w, getattr(w, "dtype", None)) for w in wanted])


def test_aliases_comments_places_and_resources() -> None:
    text = """// a comment
#loc = loc("net.py":3:1)
!t = tensor<2xf32>
module @net attributes {a.b = "x"} {
  func.func public @main(%arg0: !t {jax.buffer_donor = true} loc("x")) -> (!t {jax.result_info = "[0]"}) {
    %0 = stablehlo.constant dense_resource<w> : tensor<2xf32> loc(#loc)
    %1 = stablehlo.add %arg0, %0 : tensor<2xf32> loc(fused[#loc, "y"])
    return %1 : !t loc(#loc)
  } loc(#loc)
} loc(#loc)
{-#
  dialect_resources: { builtin: { w: "0x040000000000803F00000040" } }
#-}
"""
    same(results(import_stablehlo(text).module, [np.float32([1, 1])]), [np.float32([2, 3])])


def test_a_program_comes_back_from_its_export() -> None:
    for name in ("mlp", "cnn", "vit_block", "lstm"):
        text, operands, wanted = case(name)
        first = import_stablehlo(text).module
        again = import_stablehlo(export_stablehlo(relay.transform.InferType()(first)))
        same(results(again.module, operands), wanted)


def test_an_object_with_a_text_is_read() -> None:
    class Lowered:
        __module__ = "jax.stages"

        def as_text(self) -> str:
            return members()["mlp.mlir"].decode()

    mod, params = relay.frontend.from_stablehlo(Lowered())
    assert len(mod["main"].params) == 5 and params == {}


def test_extents_that_the_program_leaves_open_are_given() -> None:
    text = members()["dynamic_mlp.mlir"]
    given = import_stablehlo(text, Options({"arg0": (7, 8)})).module
    assert str(given["main"].params[0].checked_type) == "Tensor[(7, 8), float32]"


def chain(count: int) -> Any:
    lines = [f"%v{i + 1} = stablehlo.add %v{i}, %v{i} : tensor<4xf32>" for i in range(count)]
    text = "\n".join(["func.func @main(%v0: tensor<4xf32>) -> tensor<4xf32> {", *lines, f"return %v{count} : tensor<4xf32>", "}"])
    return lambda: import_stablehlo(text)


def test_the_work_grows_with_the_number_of_operations() -> None:
    assert_linear(chain)


def test_a_part_of_a_cache_is_written_in_place() -> None:
    body = (
        "%c = stablehlo.constant dense<0> : tensor<i32>\n"
        "%0 = stablehlo.dynamic_update_slice %x, %row, %c, %c, %at, %c : "
        "(tensor<1x2x16x4xf32>, tensor<1x2x1x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x16x4xf32>\n"
        "return %0 : tensor<1x2x16x4xf32>"
    )
    mod = program(body, "%x: tensor<1x2x16x4xf32>, %row: tensor<1x2x1x4xf32>, %at: tensor<i32>", "tensor<1x2x16x4xf32>")
    artifact = compile_module(mod, "c -cflags=-O1")
    assert artifact.manifest["in_place"] == [[0, 0]]
    x, row = real(1, 2, 16, 4), real(1, 2, 1, 4)
    for at, place in ((5, 5), (-3, 0), (99, 15)):
        wanted = x.copy()
        wanted[:, :, place : place + 1] = row
        np.testing.assert_array_equal(artifact.run(x, row, np.int32(at)), wanted)
