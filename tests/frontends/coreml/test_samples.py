"""Operators of ML programs that take pictures at computed places, as PyTorch and the tests of coremltools have them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.diagnostics import RelayError
from relaylang.frontends.coreml import import_coreml
from tests.frontends.coreml.test_networks import results, same

pytest.importorskip("google.protobuf", reason="protobuf reads the files")

#: Element types, by their numbers in programs.
TYPES = {"bool": 1, "str": 2, "float16": 10, "float32": 11, "int32": 23}
SIDE = {"sampling_mode": "bilinear", "padding_mode": "constant", "padding_value": 0.0, "align_corners": True}


def _type(tensor: Any, kind: str, shape: tuple[int, ...]) -> None:
    tensor.dataType, tensor.rank = TYPES[kind], len(shape)
    for extent in shape:
        tensor.dimensions.add().constant.size = extent


def _constant(argument: Any, value: Any) -> None:
    kind = "str" if isinstance(value, str) else np.asarray(value).dtype.name.replace("64", "32")
    shape = () if isinstance(value, str) else np.shape(value)
    bind = argument.arguments.add().value
    _type(bind.type.tensorType, kind, shape)
    tensor = bind.immediateValue.tensor
    if kind == "str":
        tensor.strings.values.append(value)
    elif kind == "float32":
        tensor.floats.values.append(np.asarray(value, "<f4").tobytes())
    else:
        {"int32": tensor.ints, "bool": tensor.bools}[kind].values.extend(np.ravel(value).tolist())


def program(kind: str, operands: Mapping[str, np.ndarray], extents: tuple[int, ...], **attributes: Any) -> bytes:
    """A model of one operator; its operands are the inputs."""
    from relaylang.frontends.coreml.schema import coreml

    made = coreml()["Model"](specificationVersion=8)
    function = made.mlProgram.functions["main"]
    function.opset = "CoreML7"
    block = function.block_specializations["CoreML7"]
    operation = block.operations.add(type=kind)
    for name, array in operands.items():
        made.description.input.add(name=name).type.multiArrayType.shape.extend(array.shape)
        _type(function.inputs.add(name=name).type.tensorType, array.dtype.name, array.shape)
        operation.inputs[name].arguments.add(name=name)
    for name, value in attributes.items():
        _constant(operation.inputs[name], value)
    made.description.output.add(name="y")
    _type(operation.outputs.add(name="y").type.tensorType, next(iter(operands.values())).dtype.name, extents)
    block.outputs.append("y")
    return bytes(made.SerializeToString())


def resampled(x: np.ndarray, places: np.ndarray, **how: Any) -> relay.IRModule:
    shape = (*x.shape[:2], *places.shape[1:3])
    return import_coreml(program("resample", {"x": x, "coordinates": places}, shape, **{**SIDE, **how})).module


X = np.random.default_rng(4).normal(size=(2, 3, 5, 7)).astype("float32")


@pytest.mark.parametrize(
    ("method", "padding", "align"), list(product(("bilinear", "nearest"), ("zeros", "border", "reflection"), (True, False)))
)
def test_places_from_minus_one_to_one(method: str, padding: str, align: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch computes the results")
    places = np.random.default_rng(1).uniform(-2.5, 2.5, (2, 4, 6, 2)).astype("float32")
    wanted = torch.nn.functional.grid_sample(torch.from_numpy(X), torch.from_numpy(places), method, padding, align).numpy()
    folded = "reflection" if align else "symmetric"
    own = {"zeros": "constant", "border": "border", "reflection": folded}[padding]
    how = {"sampling_mode": method, "padding_mode": own, "align_corners": align}
    last, shift = (np.array([7, 5]) - align, 0 if align else 0.5)
    other = (places.astype("float64") + 1) / 2
    for mode, points in (
        ("normalized_minus_one_to_one", places),
        ("normalized_zero_to_one", other.astype("float32")),
        ("unnormalized", (other * last - shift).astype("float32")),
    ):
        mod = resampled(X, points, coordinates_mode=mode, **how)
        same(results(mod, X, points), [wanted])
        compiled = compile_module(mod, "c").run(x=X, coordinates=points)
        same([np.asarray(compiled)], [wanted])


def test_results_of_core_ml() -> None:
    """What Core ML gives in coremltools' own tests of resample, affine and resize."""
    x = np.array([11, 22, 33, 44], "float32").reshape(1, 1, 2, 2)
    points = np.array([-1, -2, -3.7, -1, 0, 0, 3.5, 1.2], "float32").reshape(1, 2, 2, 2)
    whole = np.array([0, 0, 1, 1, 0, 0, 1, 1], "int32").reshape(1, 2, 2, 2)
    for method, padding, value, mode, align, wanted, of_whole in (
        ("bilinear", "constant", 6.17, "normalized_minus_one_to_one", True, [8.585, 6.17, 27.5, 6.17], [27.5, 44, 27.5, 44]),
        ("nearest", "border", -1.0, "unnormalized", False, [11, 11, 11, 44], [11, 44, 11, 44]),
        ("bilinear", "reflection", -1.0, "normalized_zero_to_one", True, [22, 36.3, 11, 34.1], [11, 44, 11, 44]),
        ("nearest", "symmetric", -1.0, "normalized_zero_to_one", False, [22, 33, 11, 33], [11, 44, 11, 44]),
    ):
        how = {"sampling_mode": method, "padding_mode": padding, "padding_value": value}
        for places, right in ((points, wanted), (whole, of_whole)):
            mod = resampled(x, places, coordinates_mode=mode, align_corners=align, **how)
            same(results(mod, x, places), [np.array(right, "float32").reshape(1, 1, 2, 2)])
    matrix = np.array([[-1, -2, -3.7, -1, 3.5, 1.2]], "float32")
    for size, wanted in (
        ((3, 3), [10.752501, 2.5025, 0, 1.9799997, 0, 0, 0, 0, 0]),
        ((2, 5), [10.752501, 5.94, 2.5025, 0.44000006, 0, 0, 0, 0, 0, 0]),
    ):
        how = {**SIDE, "coordinates_mode": "normalized_minus_one_to_one", "output_height": size[0], "output_width": size[1]}
        mod = import_coreml(program("affine", {"x": x, "transform_matrix": matrix}, (1, 1, *size), **how)).module
        same(results(mod, x, matrix), [np.array(wanted, "float32").reshape(1, 1, *size)])
    column = np.array([-6.174, 9.371], "float32").reshape(1, 1, 2, 1)
    ways: tuple[tuple[str, dict[str, Any]], ...] = (
        ("resize", {"shape": np.array([1, 1, 3, 2]), "resized_dims": 2, "interpolation_mode": "NEAREST_NEIGHBOR"}),
        ("resize_nearest_neighbor", {"target_size_height": 3, "target_size_width": 2}),
    )
    for kind, attributes in ways:
        mod = import_coreml(program(kind, {"x": column}, (1, 1, 3, 2), **attributes)).module
        same(results(mod, column), [np.array([-6.174] * 2 + [9.371] * 4, "float32").reshape(1, 1, 3, 2)])
    row = np.array([1.5, -2.5, 3.5], "float32").reshape(1, 1, 1, 3)
    factors = {"scale_factor_height": 3.17, "scale_factor_width": 0.67}
    mod = import_coreml(program("upsample_nearest_neighbor", {"x": row}, (1, 1, 3, 2), **factors)).module
    same(results(mod, row), [np.array([1.5, -2.5] * 3, "float32").reshape(1, 1, 3, 2)])


def test_a_matrix_for_each_picture_and_for_all() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch computes the results")
    matrices = np.random.default_rng(3).normal(size=(2, 6)).astype("float32")
    how = {**SIDE, "coordinates_mode": "normalized_minus_one_to_one", "output_height": 1, "output_width": 4}
    for used in (matrices, matrices[1:]):
        theta = torch.from_numpy(np.broadcast_to(used, (2, 6)).reshape(2, 2, 3).copy())
        grid = torch.nn.functional.affine_grid(theta, [2, 3, 1, 4], align_corners=True)
        wanted = torch.nn.functional.grid_sample(torch.from_numpy(X), grid, align_corners=True).numpy()
        mod = import_coreml(program("affine", {"x": X, "transform_matrix": used}, wanted.shape, **how)).module
        same(results(mod, X, used), [wanted])


def test_halves_and_pictures_of_one_place() -> None:
    x = np.array([[[[2.0]]], [[[-3.0]]]], "float16")
    places = np.array([[[[0.25, 0.25]]], [[[3.0, -7.0]]]], "float32")
    for padding, wanted in (("border", [2, -3]), ("reflection", [2, -3]), ("symmetric", [2, -3]), ("constant", [2, 1])):
        how = {"padding_mode": padding, "padding_value": 1.0, "sampling_mode": "nearest"}
        for mode in ("unnormalized", "normalized_minus_one_to_one"):
            (found,) = results(resampled(x, places, coordinates_mode=mode, **how), x, places)
            if mode == "unnormalized":
                np.testing.assert_array_equal(found.ravel(), np.array(wanted, "float16"))
            assert found.dtype == np.float16


@pytest.mark.parametrize(
    ("kind", "changed", "wrong"),
    [
        ("resample", {"padding_mode": "mirror"}, "with the padding mirror"),
        ("resample", {"sampling_mode": "bicubic"}, "places by bicubic"),
        ("resample", {"coordinates_mode": "polar"}, "its places are polar"),
        ("resample", {"coordinates": np.zeros((1, 2, 2, 2), "float32")}, "places for 1 pictures"),
        ("resample", {"coordinates": np.zeros((2, 2, 2, 3), "float32")}, "its places have the shape"),
        ("affine", {"align_corners": False}, "align_corners=False"),
        ("affine", {"output_height": 1 << 30}, "places"),
        ("affine", {"output_height": 1 << 23, "output_width": 1 << 23}, "bytes"),
        ("affine", {"transform_matrix": np.zeros((3, 6), "float32")}, "its matrices have the shape"),
        ("affine", {"transform_matrix": np.zeros((2, 5), "float32")}, "its matrices have the shape"),
    ],
)
def test_wrong_samples(kind: str, changed: dict[str, Any], wrong: str) -> None:
    operands: dict[str, np.ndarray] = {"x": X}
    attributes: dict[str, Any] = {**SIDE, "coordinates_mode": "normalized_minus_one_to_one"}
    if kind == "affine":
        operands["transform_matrix"] = np.zeros((2, 6), "float32")
        attributes |= {"output_height": 3, "output_width": 3}
    else:
        operands["coordinates"] = np.zeros((2, 2, 2, 2), "float32")
    for name, value in changed.items():
        (operands if name in operands else attributes)[name] = value
    with pytest.raises(RelayError) as error:
        import_coreml(program(kind, operands, X.shape, **attributes))
    said = " ".join(f"{d.code} {d.title} {' '.join(d.notes)}" for d in error.value.diagnostics)
    assert wrong in said and "R0900" not in said
