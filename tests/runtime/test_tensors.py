"""Inputs and results that compiled programs read and write in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.runtime.cpu import CpuArtifact
from relaylang.syntax import parse
from relaylang.typing import check
from tests.shared import few

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3), float32]) {
  (add(%x, %w), (cast(%x, dtype="int32"), multiply(%x, %w)))
}
"""
X, W = np.arange(6, dtype="f4").reshape(2, 3), np.array([10, 20, 30], "f4")


class Lent:
    """A tensor of another library: nothing but DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.lent = 0

    def __dlpack__(self, **options: Any) -> Any:
        self.lent += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def compiled(text: str, **params: np.ndarray) -> CpuArtifact:
    mod = parse(text).module
    assert mod is not None
    made = compile_module(mod, "c -num-threads=1 -cflags=-O0", params)
    assert isinstance(made, CpuArtifact)
    return made


@pytest.fixture(scope="module")
def artifact() -> CpuArtifact:
    return compiled(TEXT, w=W)


@pytest.fixture(scope="module")
def single() -> CpuArtifact:
    return compiled('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { add(%x, %x) }')


def places() -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    return np.zeros((2, 3), "f4"), (np.zeros((2, 3), "i4"), np.zeros((2, 3), "f4"))


def test_inputs_by_dlpack(single: CpuArtifact) -> None:
    lent = Lent(X)
    np.testing.assert_array_equal(single.run(lent), X + X)
    assert lent.lent == 1
    # Other strides need a copy.
    np.testing.assert_array_equal(single.run(x=Lent(np.arange(6, dtype="f4").reshape(3, 2).T)), 2 * np.float32([[0, 2, 4], [1, 3, 5]]))
    with pytest.raises(RelayError, match=r"the input x is Tensor\[\(2, 3\), float64\]"):
        single.run(Lent(X.astype("f8")))


def test_tensors_of_pytorch(single: CpuArtifact, artifact: CpuArtifact) -> None:
    torch = pytest.importorskip("torch")
    given, out = torch.ones(2, 3), torch.zeros(2, 3)
    place = out.data_ptr()
    assert single.run(given, out=out) is out
    assert out.data_ptr() == place and bool((out == 2).all())
    assert bool((torch.from_dlpack(single.run(given)) == out).all())
    for wrong, why in (
        (given.requires_grad_(), "require gradient"),
        (torch.ones(2, 3, dtype=torch.bfloat16), "dtype"),
        (torch.ones(2, 3, device="meta"), "meta"),
    ):
        with pytest.raises(RelayError, match=f"the input x cannot be read in place: .*{why}"):
            single.run(wrong)


def test_results_are_written_in_place(artifact: CpuArtifact, single: CpuArtifact) -> None:
    out = places()
    found = artifact.run(X, out=out)
    assert found is out
    np.testing.assert_array_equal(out[0], X + W)
    np.testing.assert_array_equal(out[1][0], X.astype("i4"))
    np.testing.assert_array_equal(out[1][1], X * W)
    one = np.zeros((2, 3), "f4")
    assert single.run(X, out=one) is one and single(x=X, out=one) is one
    np.testing.assert_array_equal(one, X + X)
    lent = Lent(np.zeros((2, 3), "f4"))
    assert single.run(X, out=lent) is lent
    np.testing.assert_array_equal(lent.array, X + X)
    whole = np.zeros((4, 3), "f4")
    single.run(X, out=whole[1:3])
    np.testing.assert_array_equal(whole, np.concatenate([np.zeros((1, 3)), X + X, np.zeros((1, 3))]))


def test_results_share_their_memory(single: CpuArtifact) -> None:
    made = single.run(X)
    view = np.from_dlpack(made)
    assert np.shares_memory(view, made)


def test_an_input_may_be_named_out() -> None:
    made = compiled('#[version = "0.0.5"]\ndef @main(%out: Tensor[(3), float32]) { negative(%out) }')
    np.testing.assert_array_equal(made.run(out=W), -W)


FIXED = np.zeros((2, 3), "f4")
FIXED.flags.writeable = False
BUFFER = np.zeros(12, "f4")


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (np.zeros((3, 2), "f4"), r"out has the shape \(3, 2\) and the dtype float32, not \(2, 3\) and float32"),
        (np.zeros((2, 3), "f8"), "and the dtype float64, not"),
        (np.zeros((2, 3), ">f4"), "out"),
        (np.zeros((3, 2), "f4").T, "out is not C-contiguous and aligned"),
        (np.zeros(25, "u1")[1:].view("f4").reshape(2, 3), "out is not C-contiguous and aligned"),
        (FIXED, "out cannot be written"),
        ([[1.0]], "out is no array that can be written in place"),
        (BUFFER[3:9].reshape(2, 3), "out lies over the input x, which the run still needs"),
    ],
)
def test_arrays_that_cannot_take_a_result(single: CpuArtifact, out: Any, said: str) -> None:
    with pytest.raises(RelayError, match=said):
        single.run(BUFFER[:6].reshape(2, 3), out=out)


def test_places_of_tuples(artifact: CpuArtifact) -> None:
    first, (second, third) = places()
    for out, said in (
        (first, "out must be a tuple of 2"),
        ((first, second), "out must be a tuple of 2"),
        ((first, (second, third, third)), "out must be a tuple of 2"),
        ((first, (third, second)), "the tensor 1 of out has .* float32, not .* int32"),
        ((first, (second, first)), "the tensor 2 of out lies over tensor 0"),
        ((artifact.params["w"], (second, third)), "the tensor 0 of out has the shape"),
    ):
        with pytest.raises(RelayError, match=said):
            artifact.run(X, out=out)
    assert not first.any() and not second.any()


def test_an_immutable_tensor_of_another_library() -> None:
    class Frozen(Lent):
        def __array__(self, *unused: Any, **more: Any) -> np.ndarray:
            view = self.array.view()
            view.flags.writeable = False
            return view

    made = compiled('#[version = "0.0.5"]\ndef @main(%x: Tensor[(3), float32]) { negative(%x) }')
    np.testing.assert_array_equal(made.run(Frozen(W.copy())), -W)
    with pytest.raises(RelayError, match="out cannot be written"):
        made.run(W, out=Frozen(np.zeros(3, "f4")))


_HUGE = {
    "zeros": ("", 'zeros(shape=[N], dtype="float32")'),
    "full": ("%v: float32", 'full(%v, shape=[N], dtype="float32")'),
    "one_hot": ("%i: Tensor[(4), int32]", 'one_hot(%i, 1f, 0f, depth=N, axis=-1, dtype="float32")'),
    "random.uniform": ("%k: Tensor[(10), uint64]", 'random.uniform(%k, 0f, 1f, out_shape=[N], out_dtype="float32")'),
    "random.normal": ("%k: Tensor[(10), uint64]", 'random.normal(%k, 0f, 1f, out_shape=[N], out_dtype="float32")'),
    "random.threefry_generate": ("%k: Tensor[(10), uint64]", "random.threefry_generate(%k, out_shape=[N])"),
    "broadcast_to": ("%v: float32", "broadcast_to(%v, shape=[N])"),
    "tile": ("%v: Tensor[(4), float32]", "tile(%v, reps=[N])"),
    "repeat": ("%v: Tensor[(4), float32]", "repeat(%v, repeats=N, axis=0)"),
    "nn.pad": ("%v: Tensor[(4), float32]", "nn.pad(%v, 0f, pad_width=[[0, N]])"),
}
_ENGINES = {
    "interpreter": lambda mod, args: evaluate(mod, *args),
    "c": lambda mod, args: compile_module(mod, "c -cflags=-O0").run(*args),
    "vm": lambda mod, args: compile_vm(mod, "c -cflags=-O0").call("main", args),
    "vm, portable": lambda mod, args: compile_vm(mod, native=False).call("main", args),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("engine", _ENGINES)
@pytest.mark.parametrize("op", few(_HUGE, "full"))
def test_results_beyond_the_memory_are_told_as_such(op: str, engine: str) -> None:
    params, call = _HUGE[op]
    mod = parse(f'#[version = "0.0.5"]\ndef @main({params}) {{ {call.replace("N", str(1 << 43))} }}').module
    check(mod)
    args = tuple([np.ones([int(d) for d in p.checked_type.shape], p.checked_type.dtype) for p in mod["main"].params])
    with pytest.raises(RelayError) as refused:
        _ENGINES[engine](mod, args)
    assert refused.value.diagnostics[0].code == "R0408"
