"""Compiled code gives the interpreter's values where arithmetic is special, and for operands of every rank."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pytest

from relaylang.backends.cpu.lower import gap
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Function, IRModule, Tuple
from relaylang.ops import OPS
from relaylang.runtime.features import this_machine
from tests.consistency.calls import Made, key
from tests.consistency.compiled import FINITE, QUICK, Compare, difference, differences
from tests.consistency.outcome import Refused, function
from tests.consistency.ranks import ranked
from tests.consistency.specials import apart, compare, special

SHARDS = 4
#: Vectors of this machine, of AVX2 with and without conversions of float16, of SSE2.
MACHINES = {
    "native": "",
    "avx2": "-march=x86-64-v3",
    "avx2 without f16c": "-march=x86-64-v3 -cflags=-mno-f16c",
    "sse2": "-march=x86-64",
}
#: Calls in one library.
TOGETHER = 700


def shard_of(number: int) -> list[str]:
    return [name for name in OPS if gap(name) is None and zlib.crc32(name.encode()) % SHARDS == number]


def found_in(calls: Iterator[Made], target: str = QUICK, **how: object) -> dict[str, str]:
    found: dict[str, str] = {}
    while some := list(itertools.islice(calls, TOGETHER)):
        found.update(differences(some, target, **how))  # type: ignore[arg-type]
    return found


def test_units_in_the_last_place() -> None:
    one = np.float32([1, 0, 0, np.nan, np.inf, 1e-45])
    minus = np.float32([np.nextafter(np.float32(1), 2), 0, -0.0, np.nan, 3e38, -1e-45])
    assert apart(one, minus).tolist() == [1, 0, np.inf, 0, np.inf, 2]


#: Operators with a defect at such a number, or a form of their own for it.
SPECIAL = (
    "nn.relu",
    "nn.leaky_relu",
    "power",
    "floor_mod",
    "floor_divide",
    "trunc_divide",
    "reinterpret",
    "nn.max_pool2d",
    "nn.adaptive_max_pool1d",
    "image.dilation2d",
    "cumsum",
    "argsort",
    "nn.l2_normalize",
    "maximum",
    "left_shift",
)


@pytest.mark.sweep
def test_some_operators_of_special_numbers() -> None:
    calls = (made for name in SPECIAL for made in itertools.islice(special(name, 2), 3, None, 18))
    assert differences(calls, compare=compare) == {}


@pytest.mark.sample(4)
@pytest.mark.sweep
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_special_numbers(shard: int, machine: str) -> None:
    """All calls with this machine's vectors; each of the other forms has a 27th of them."""
    if machine != "native" and not this_machine().startswith("x86_64"):
        pytest.skip(f"this machine is no {machine}")
    calls = (made for name in shard_of(shard) for made in special(name))
    if machine != "native":
        calls = itertools.islice(calls, list(MACHINES).index(machine) - 1, None, 27)
    assert found_in(calls, f"c -num-threads=1 {MACHINES[machine]}", compare=compare) == {}


@pytest.mark.sweep
def test_some_operators_of_every_rank() -> None:
    """Of matrix products all forms; of each other operator one."""
    products = [made for name in ("nn.matmul", "nn.dense", "nn.batch_matmul") for made in ranked(name, each=2)]
    assert len(products) > 40
    assert differences([*products[::2], *itertools.islice(ranked("where"), 5, None, 97)]) == {}


@pytest.mark.sample(4)
@pytest.mark.sweep
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_rank(shard: int) -> None:
    assert found_in(made for name in shard_of(shard) for made in ranked(name)) == {}


def in_the_vm(calls: Iterable[Made], shares: Sequence[float] = (0, 0.4, 1), compare: Compare = difference) -> dict[str, str]:
    """By call, the fault of the VM's value. Of the extents a share is unknown, by turns; all calls are one program."""
    good = []
    for made, share in zip(calls, itertools.cycle(shares)):
        try:
            call, inputs = function(made, share)
            good.append((made, call, inputs, evaluate(call, *inputs)))
        except (Refused, RelayError):
            continue
    params = [p for _, call, _, _ in good for p in call.params]
    program = IRModule.from_expr(Function(params, Tuple([call.body for _, call, _, _ in good])))
    found = compile_vm(program, "c -num-threads=1 -cflags=-O0").call("main", [x for _, _, inputs, _ in good for x in inputs])
    assert good
    faults = {}
    for (made, _, inputs, wanted), value in zip(good, found, strict=True):
        fault = compare(made[0], value, wanted, inputs)
        if fault is not None:
            faults[key(made)] = fault
    return faults


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["nn.matmul", "nn.dense", "nn.batch_matmul"])
def test_products_of_every_rank_in_the_vm(name: str) -> None:
    """With all extents known, some, and none."""
    assert in_the_vm(made for made in ranked(name, each=1) for _ in range(3)) == {}


#: Of so many calls, the VM gets one. Its kernels are those of the library above.
EVERY = {"special": 61, "ranked": 97}


@pytest.mark.sweep
@pytest.mark.parametrize("kind", EVERY)
def test_some_of_all_calls_in_the_vm(kind: str) -> None:
    names = [name for name in OPS if gap(name) is None and not (kind == "special" and name.startswith(FINITE))]
    calls = (made for name in names for made in (special(name, 2) if kind == "special" else ranked(name)))
    faults = in_the_vm(itertools.islice(calls, 5, None, EVERY[kind]), compare=compare if kind == "special" else difference)
    assert faults == {}


def test_places_at_infinity() -> None:
    """Folded, held or left, they are the same places everywhere."""
    ends = np.float32([np.inf, -np.inf, np.nan, 1e30, -1e30, 3e9, 1.5, -7.25, 0.3, -1, 1])
    grid = np.stack(np.meshgrid(ends, ends))[None]
    image = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)
    calls = [
        ("image.grid_sample", {"method": m, "padding_mode": p, "align_corners": a, "layout": "NCHW"}, [image, grid])
        for m in ("nearest", "bilinear", "bicubic")
        for p in ("zeros", "border", "reflection")
        for a in (True, False)
    ]
    assert differences(calls) == {}
