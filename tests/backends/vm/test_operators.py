"""Every operator with unknown extents: compiled code beside the interpreter, which computes none but the exceptions."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from relaylang.backends.cpu.lower import lowered
from relaylang.backends.vm import compile_vm
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Function, GlobalVar, IRModule
from relaylang.kernels.dtypes import CTYPES
from relaylang.rules.slices import RULES
from relaylang.typing import check
from tests.backends.vm.agree import outcome
from tests.consistency.calls import Made, bases
from tests.consistency.compiled import difference
from tests.consistency.outcome import Refused, function
from tests.consistency.sliced import function as sliced_function
from tests.consistency.sliced import several, tensors, ways
from tests.shared import few

#: A call as a function, its arguments, and those that are cut along their first axis.
_Case = tuple[Made, Function, list[np.ndarray], list[bool]]
#: Compiled code takes places and extents that data give as they are.
UNCHECKED = frozenset(
    {
        "adv_index",
        "collapse_sum_to",
        "gather_nd",
        "invert_permutation",
        "nn.internal.sparse_dense_padded",
        "nn.sparse_add",
        "nn.sparse_conv2d",
        "nn.sparse_dense",
        "nn.sparse_transpose",
        "scatter_elements",
        "sparse_reshape",
        "strided_set",
        "vision.roi_align",
    }
)


#: Operators that the interpreter computes for some inputs without elements: results have some, or inputs are refused.
EXCEPTIONS = frozenset(
    {
        *("adv_index", "all", "annotation.compiler_begin", "any", "image.crop_and_resize", "logical_and", "logical_or"),
        *(
            "logical_xor",
            "nn.batch_norm",
            "max",
            "mean",
            "min",
            "minimum",
            "ndarray_size",
            "nn.conv2d_backward_weight",
            "nn.cross_entropy",
        ),
        *("nn.cross_entropy_with_logits", "nn.dilate", "nn.internal.sparse_dense_padded", "nn.matmul", "nn.nll_loss", "nn.pad"),
        *("nn.sparse_add", "nn.sparse_conv2d", "nn.sparse_dense", "prod", "scatter_elements", "shape_of", "sparse_to_dense"),
        *("take", "unique", "unravel_index", "variance", "vision.all_class_non_max_suppression", "vision.multibox_prior"),
        *("vision.non_max_suppression", "vision.roi_align", "vision.roi_pool", "where"),
    }
)


#: Those whose code depends on a comparison of sizes that some extents answer in another way.
COMPARED = frozenset({"einsum", "nn.conv2d_transpose", "nn.conv3d_transpose", "qnn.dequantize", "sparse_to_dense"})


def _is_excepted(name: str, given: list[np.ndarray]) -> bool:
    """Whether the interpreter may compute an operator for some inputs."""
    return name in COMPARED or (name in EXCEPTIONS and any(0 in x.shape for x in given))


def differences(cases: list[_Case]) -> dict[str, str]:
    """Where a compiled call differs from the interpreter: with the arguments as they are, and with their first entries.

    The interpreter must compute none of them, but for the operators of `EXCEPTIONS` and `COMPARED`, and for errors.
    """
    mod = IRModule({GlobalVar(f"f{n}"): call for n, (_, call, _, _) in enumerate(cases)})
    check(mod)
    made = compile_vm(mod, "c -num-threads=1 -cflags=-O1", entries=[f"f{n}" for n in range(len(cases))])
    wrong: dict[str, str] = {}
    for n, ((name, attrs, _), call, inputs, cut) in enumerate(cases):
        for count in (None, 0, 1, 2):
            given = [x[:count] if c else x for x, c in zip(inputs, cut)]
            wanted, failure = outcome(lambda given=given, call=call: evaluate(call, *given))
            if failure is not None and name in UNCHECKED:
                continue
            made.loaded.hosts.clear()
            got, code = outcome(lambda given=given, n=n: made.call(f"f{n}", tuple(given)))
            if failure is None and made.fallbacks() and not _is_excepted(name, given):
                wrong[f"{name} {attrs} {[x.shape for x in given]} falls back"] = made.fallbacks()[0].why
            said = f"{code} in place of {failure}" if code != failure else None
            if said is None and failure is None:
                said = difference(name, got, wanted, given)
            if said is not None:
                wrong[f"{name} {attrs} {[x.shape for x in given]}"] = said
    return wrong


def _made(shard: int, shards: int) -> Iterator[Made]:
    """Calls of the operators that the backend has code for, with element types of C."""
    for made in bases():
        if zlib.crc32(made[0].encode()) % shards == shard and made[0] in lowered():
            if all(x.dtype.name in CTYPES for a in made[2] for x in tensors(a)):
                yield made


def _slices(shard: int, shards: int) -> Iterator[_Case]:
    for made in _made(shard, shards):
        for along in ways(made[2]) if made[0] in RULES else ():
            call = sliced_function(made, along)
            if call is not None and isinstance(call.body, Call) and RULES[made[0]](call.body, along):
                cut = [s for a, s in zip(made[2], along) for _ in tensors(a)]
                yield made, call, [several(x, s) for x, s in zip((x for a in made[2] for x in tensors(a)), cut)], cut
                break


def _sizes(shard: int, shards: int, share: float) -> Iterator[_Case]:
    for made in _made(shard, shards):
        try:
            call, inputs = function(made, open_extents=share)
        except Refused:
            continue
        shapes = [p.type_annotation.shape for p in call.params]  # type: ignore[union-attr]
        yield made, call, inputs, [bool(shape) and not isinstance(shape[0], int) for shape in shapes]


def _first(cases: Iterator[_Case], count: int) -> list[_Case]:
    """So many cases of each operator."""
    seen = Counter[str]()
    return [case for case in cases if seen.update([case[0][0]]) is None and seen[case[0][0]] <= count]


@pytest.mark.parametrize("shard", few(range(5)))
def test_slices_of_every_operator(shard: int) -> None:
    assert differences(_first(_slices(shard, 5), 2)) == {}


@pytest.mark.sample(4)
@pytest.mark.parametrize("share", [1, 0.6])
@pytest.mark.parametrize("shard", few(range(8)))
def test_sizes_of_every_operator(shard: int, share: float) -> None:
    assert differences(_first(_sizes(shard, 8, share), 4)) == {}
