"""Values from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relaylang.cli.inputs import fit_array, literal_array, load_array, split_inputs
from relaylang.diagnostics import RelayError
from relaylang.ir import ANY, TensorType


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", np.array(3)),
        ("-3i64", np.array(-3)),
        ("1.5", np.array(1.5)),
        ("1f", np.array(1.0)),
        ("1e-3f64", np.array(1e-3)),
        ("-inff", np.array(-np.inf)),
        ("True", np.array(True)),
        ("[1, 2, 3]", np.array([1, 2, 3])),
        ("[[1, 2], [3, 4.5]]", np.array([[1, 2], [3, 4.5]])),
        ("[1, 2,]", np.array([1, 2])),
        ("[]", np.array([])),
        ("  [ 1 ,2 ]  ", np.array([1, 2])),
    ],
)
def test_literals(text: str, expected: np.ndarray) -> None:
    array = literal_array(text)
    assert array is not None
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("text", ["", "x", "1 2", "[1 2]", "[1,,2]", "[,1]", "[1", "1]", "Cons(1, Nil)", "1, 2", "3apples", "[1)x"])
def test_what_is_no_literal(text: str) -> None:
    assert literal_array(text) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[1, 2], [3]]", "--input x: row 2 has 1 number, row 1 has 2 numbers"),
        ("[[1], [2, 3], [4]]", "--input x: row 2 has 2 numbers, row 1 has 1 number"),
        ("[[[1, 2], [3, 4]], [[5, 6]]]", "--input x: row 2 has 1 list, row 1 has 2 lists"),
        ("[[[1, 2], [3, 4]], [[5, 6], [7]]]", "--input x: row 2, 2 has 1 number, row 1, 1 has 2 numbers"),
        ("[1, [2]]", "--input x: row 2 has 1 number, row 1 is a number"),
    ],
)
def test_ragged_lists_are_said(text: str, says: str) -> None:
    with pytest.raises(RelayError) as wrong:
        literal_array(text, "--input x")
    assert wrong.value.diagnostics[0].title == says


def test_a_deep_list_is_read_without_recursion() -> None:
    text = "[" * 20_000 + "]" * 20_000
    with pytest.raises(RelayError):
        literal_array(text)


def test_split() -> None:
    assert split_inputs(["data=x.npy", "%n=3", "features.0.0_weight=[1]", "e=a=b"]) == {
        "data": "x.npy",
        "n": "3",
        "features.0.0_weight": "[1]",
        "e": "a=b",
    }
    for wrong in (["data"], ["=3"], ["x=1", "%x=2"]):
        with pytest.raises(RelayError):
            split_inputs(wrong)


def fit(text: str, shape: tuple[object, ...], dtype: str) -> np.ndarray:
    array = literal_array(text)
    assert array is not None
    return fit_array(array, TensorType(shape, dtype), "--input x", exact=False)  # type: ignore[arg-type]


def test_literals_take_the_type_of_the_parameter() -> None:
    assert fit("3", (), "float32").dtype == np.float32
    assert fit("255", (), "uint8") == np.uint8(255)
    assert fit("[1, 2]", (ANY,), "int8").shape == (2,)
    assert fit("1.5", (), "bfloat16").dtype.name == "bfloat16"
    assert fit("[True]", (1,), "bool").dtype == bool


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "says"),
    [
        ("[1, 2]", (3,), "int32", "shape"),
        ("1", (1,), "int32", "shape"),
        ("256", (), "uint8", "does not fit"),
        ("-1", (), "uint8", "does not fit"),
        ("1.5", (), "int32", "a fraction"),
        ("True", (), "int32", "True or False"),
        ("1", (), "bool", "whole number"),
        ("99999999999999999999", (), "int64", "does not fit"),
    ],
)
def test_what_does_not_fit(text: str, shape: tuple[int, ...], dtype: str, says: str) -> None:
    with pytest.raises(RelayError, match=says):
        fit(text, shape, dtype)


def test_files_must_have_the_dtype() -> None:
    with pytest.raises(RelayError, match="float64"):
        fit_array(np.zeros(3), TensorType((3,), "float32"), "--input x", exact=True)


def test_files_that_are_no_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "several.npz", a=np.zeros(1))
    (tmp_path / "text.npy").write_text("hello")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object))
    for name in ("several.npz", "text.npy", "empty.npy", "object.npy", "missing.npy", "."):
        with pytest.raises(RelayError):
            load_array(str(tmp_path / name))
