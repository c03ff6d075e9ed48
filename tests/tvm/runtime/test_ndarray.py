"""Tensors and devices under TVM's names."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.tvm import nd, runtime


def code(call: Any) -> str:
    with pytest.raises(RelayError) as caught:
        call()
    return caught.value.diagnostics[0].code


@pytest.mark.parametrize(
    ("given", "shape", "dtype"),
    [
        (np.zeros((2, 3), "f4"), (2, 3), "float32"),
        ([[1, 2]], (1, 2), "int64"),
        (1.5, (), "float64"),
        (np.float16(1), (), "float16"),
        (np.zeros(2, ml_dtypes.bfloat16), (2,), "bfloat16"),
        (np.array([True]), (1,), "bool"),
        (np.zeros((0, 3)), (0, 3), "float64"),
    ],
)
def test_arrays_have_their_source_s_type(given: Any, shape: tuple[int, ...], dtype: str) -> None:
    found = nd.array(given)
    assert found.shape == shape and found.dtype == dtype and found.device == nd.cpu() and found.numpy().dtype.name == dtype
    np.testing.assert_array_equal(found.numpy(), np.asarray(given))


def test_numpy_copies_and_asarray_shares() -> None:
    x = nd.array([1.0, 2.0])
    x.numpy()[0] = 5
    assert x.asnumpy().tolist() == [1, 2]
    np.asarray(x)[0] = 5
    assert x.numpy().tolist() == [5, 2] and x[0] == 5
    x[1:] = nd.array([7.0])
    assert x.numpy().tolist() == [5, 7] and len(x) == 2


def test_a_source_may_lie_in_any_order() -> None:
    source = np.arange(6).reshape(2, 3).T
    assert nd.array(source).numpy().flags.c_contiguous
    np.testing.assert_array_equal(nd.array(source).numpy(), source)


def test_copying_converts_and_wants_the_shape() -> None:
    x = nd.empty((2,), "float32")
    assert x.copyfrom(np.float64([1.5, 2])) is x and x.numpy().tolist() == [1.5, 2]
    y = nd.empty((2,))
    assert x.copyto(y) is y and y.numpy().tolist() == [1.5, 2]
    z = x.copyto(nd.cpu())
    assert z.numpy().tolist() == [1.5, 2] and not z.same_as(x) and x.same_as(x)
    assert code(lambda: x.copyfrom(np.zeros(3))) == "R0640"
    assert code(lambda: x.copyto(nd.empty((2,), "int32"))) == "R0640"
    assert code(lambda: x.copyfrom("text")) == "R0640"
    assert code(lambda: nd.empty((2,), "float33")) == "R0640"


def test_dlpack_shares_memory_both_ways() -> None:
    x = nd.array(np.zeros(3, "f4"))
    np.from_dlpack(x).base  # noqa: B018
    y = nd.from_dlpack(x)
    z = nd.from_dlpack(x.to_dlpack())
    np.asarray(x)[1] = 3
    assert y.numpy().tolist() == z.numpy().tolist() == [0, 3, 0]
    torch = pytest.importorskip("torch")
    t = torch.zeros(2)
    shared = nd.from_dlpack(t)
    t[0] = 4
    assert shared.numpy().tolist() == [4, 0] and nd.array(t).numpy().tolist() == [4, 0]
    assert torch.from_dlpack(x).tolist() == [0, 3, 0]


def test_tensors_are_copied_and_pickled() -> None:
    x = nd.array([1, 2])
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.numpy().tolist() == [1, 2] and not other.same_as(x)
    assert "shape=(2,)" in repr(x) and str(x) == "[1 2]"


def test_devices_by_name_and_number() -> None:
    assert nd.device("cpu", 0) == nd.cpu() == nd.device("llvm") == nd.device(1) == runtime.device("cpu:0")
    assert str(nd.device("cuda", 1)) == "cuda(1)" and nd.gpu(1) == nd.cuda(1) != nd.cuda(0)
    assert nd.cpu().exist and not nd.cuda().exist and not nd.cpu(1).exist and len({nd.cpu(), nd.cpu(0), nd.cuda()}) == 2
    assert nd.cpu().device_type == 1 and nd.cpu().warp_size is None
    for wrong in ("cqu", "cpu:x", ""):
        assert code(lambda wrong=wrong: nd.device(wrong)) == "R0608"


@pytest.mark.parametrize("dev", [nd.cuda(), nd.vulkan(), nd.metal(1), nd.cpu(3)])
def test_other_devices_are_refused_where_they_are_used(dev: nd.Device) -> None:
    assert code(lambda: nd.array([1], dev)) == code(lambda: nd.empty((1,), "float32", dev)) == code(dev.sync) == "R0608"
    assert code(lambda: nd.array([1]).copyto(dev)) == "R0608"


def test_parameters_as_bytes_and_files(tmp_path: Any) -> None:
    values = {"w": np.arange(6, dtype="f4").reshape(2, 3), "näme": nd.array(np.int8([1])), "b": np.zeros((), ml_dtypes.bfloat16)}
    data = runtime.save_param_dict(values)
    found = runtime.load_param_dict(data)
    assert list(found) == list(values) and runtime.load_param_dict(bytearray(data)).keys() == found.keys()
    for name, value in values.items():
        np.testing.assert_array_equal(found[name].numpy(), np.asarray(value))
        assert found[name].dtype == np.asarray(value).dtype.name
    runtime.save_param_dict_to_file(values, tmp_path / "x.params")
    assert (tmp_path / "x.params").read_bytes() == data
    assert list(runtime.load_param_dict_from_file(tmp_path / "x.params")) == list(values)
    assert code(lambda: runtime.load_param_dict(data[:-1])) == "R0012"
    assert code(lambda: runtime.load_param_dict_from_file(tmp_path / "none")) == "R0001"
