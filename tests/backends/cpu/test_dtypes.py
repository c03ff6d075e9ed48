"""Every lowering in other element types than its cases': what the interpreter computes, wherever the checker accepts it."""

from __future__ import annotations

import re
import shutil
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.backends.cpu import emit
from relaylang.backends.cpu.lower import gap
from relaylang.diagnostics import RelayError
from relaylang.interpreter import KERNELS, evaluate
from relaylang.interpreter.kernels.common import KernelError
from relaylang.ops import get, make_attrs
from relaylang.runtime.features import this_machine
from relaylang.runtime.packed import ForeignArtifact
from relaylang.typing import check
from tests.backends.cpu.cases import Case
from tests.backends.cpu.test_ops import program, same
from tests.interpreter.every_case import EVERY
from tests.shared import few

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "uint64", "bool")
#: Cases of one operator that are tried in a type.
EACH = 2
#: Compiled operators that round less often than the interpreter's, which rounds each step of a normalisation.
ROUNDED = {"bfloat16": {"nn.batch_norm"}}


def changed(case: Case, dtype: str) -> Case | None:
    """The case with every value of the first argument's type in another type. None if that changes nothing."""
    name, attrs, args, constant = case
    parts = [p for a in args for p in (a if isinstance(a, tuple) else (a,))]
    if not parts or parts[0].dtype == dtype:
        return None
    source = parts[0].dtype

    def turn(part: np.ndarray) -> np.ndarray:
        return part.astype(dtype) if part.dtype == source else part

    return name, attrs, [tuple(map(turn, a)) if isinstance(a, tuple) else turn(a) for a in args], constant


def computed(case: Case) -> Any:
    """What the interpreter makes of it; None where the checker or the interpreter refuses it."""
    name, attrs, args, _ = case
    record = get(name)
    try:
        check(program([(0, case)])[0])
        return KERNELS[name](make_attrs(record.attrs, attrs) if record.attrs is not None else None, *args)
    except (RelayError, KernelError):
        return None


@pytest.mark.sample(3)
@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_lowering_in_a_type(dtype: str) -> None:
    tried: Counter[str] = Counter()
    cases: list[Case] = []
    wanted = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for case in EVERY:
            if gap(case[0]) or tried[case[0]] == EACH or case[0] in ROUNDED.get(dtype, ()):
                continue
            new = changed(case, dtype)
            value = computed(new) if new is not None else None
            if new is not None and value is not None:
                tried[case[0]] += 1
                cases.append(new)
                wanted.append(value)
    mod, values = program(list(enumerate(cases)))
    ours = compile_module(mod, "c -num-threads=1 -cflags=-O1").run(**values)
    for case, one, other in zip(cases, ours, wanted, strict=True):
        try:
            same(case[0], one, other)
        except AssertionError as wrong:
            raise AssertionError(f"{case[0]} {case[1]}") from wrong


BFLOAT = [
    "nn.relu(%x)",
    'cast(%x, dtype="float32")',
    'cast(cast(%x, dtype="float64"), dtype="bfloat16")',
    'cast(cast(round(%x), dtype="int32"), dtype="bfloat16")',
    "tanh(add(%x, multiply(%x, %x)))",
    "sum(%x, axis=[1])",
    "nn.softmax(transpose(%x, axes=[1, 0]))",
    "nn.dense(%x, %x, units=20)",
    'nn.dense(%x, %x, units=20, out_dtype="float32")',
    "concatenate((%x, nn.relu(%x)), axis=1)",
    "greater(%x, nn.relu(%x))",
    'topk(%x, k=3, axis=1, dtype="int32")',
    'nn.pad(%x, cast(1.7f, dtype="bfloat16"), pad_width=[[1, 1], [0, 2]])',
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("body", BFLOAT)
def test_bfloat16_is_stored_and_computed_in_float32(body: str) -> None:
    found = relay.parse(f"def @main(%x: Tensor[(20, 33), bfloat16]) {{ {body} }}")
    x = np.random.default_rng(3).uniform(-9, 9, (20, 33)).astype("bfloat16")
    if "int32" not in body:
        x[0, :3] = np.nan, np.inf, -0.0
    theirs = evaluate(found, x)
    ours = compile_module(found, "c -num-threads=1 -cflags=-O1").run(x)
    for a, b in zip(ours if isinstance(ours, tuple) else [ours], theirs if isinstance(theirs, tuple) else [theirs]):
        assert a.dtype == b.dtype
        wide = [np.asarray(v).astype(np.float64) for v in (a, b)]
        # A sum in another order may round to the neighbour.
        np.testing.assert_allclose(*wide, rtol=2**-7 if a.dtype.itemsize == 2 else 1e-5)


def test_bfloat16_rounds_halves_to_even() -> None:
    found = relay.parse('def @main(%x: Tensor[(65536,), float32]) { cast(%x, dtype="bfloat16") }')
    bits = (np.arange(65536, dtype=np.uint32) << 16) + np.random.default_rng(1).choice([0, 1, 0x7FFF, 0x8000, 0x8001], 65536)
    x = bits.astype(np.uint32).view(np.float32)
    got = compile_module(found, "c -num-threads=1 -cflags=-O1").run(x)
    with np.errstate(invalid="ignore"):
        want = x.astype("bfloat16")
    here = ~np.isnan(x)
    np.testing.assert_array_equal(got.view(np.uint16)[here], want.view(np.uint16)[here])
    assert np.isnan(got.astype(np.float32)[~here]).all()


#: Loops of whole blocks, of a part of one, and of less than a vector. Some round in between.
HALVES = {
    "whole": ((1024,), "nn.relu(%x)"),
    "odd": ((1003,), "add(%x, multiply(%x, %x))"),
    "few": ((5,), "nn.relu(%x)"),
    "rows": ((7, 100), "nn.relu(add(%x, multiply(%x, %x)))"),
    "turned": ((40, 50), "nn.relu(transpose(%x, axes=[1, 0]))"),
    "bordered": ((30, 40), 'nn.relu(nn.pad(%x, cast(1.5f, dtype="float16"), pad_width=[[1, 2], [3, 4]]))'),
    "joined": ((30, 20), "nn.relu(concatenate((%x, negative(%x)), axis=1))"),
    "compared": ((333,), "where(greater(%x, negative(%x)), %x, multiply(%x, %x))"),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("march", few(["native", "x86-64-v3", "x86-64"], "native"))
@pytest.mark.parametrize("form", HALVES)
def test_float16_is_rounded_by_each_operator(form: str, march: str) -> None:
    if march != "native" and not this_machine().startswith("x86_64"):
        pytest.skip("this machine is no x86-64")
    shape, body = HALVES[form]
    found = relay.parse(f"def @main(%x: Tensor[({', '.join(map(str, shape))},), float16]) {{ {body} }}".replace(",,", ","))
    x = np.random.default_rng(5).normal(0, 30, shape).astype("float16")
    x.ravel()[:5] = np.inf, -np.inf, np.nan, 6e-8, 65504
    made = compile_module(found, f"c -mcpu={march} -num-threads=2")
    if isinstance(made, ForeignArtifact):
        pytest.skip(f"this machine is no {march}")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(made.run(x), evaluate(found, x))


@pytest.mark.parametrize("cc", ["gcc", "clang"])
@pytest.mark.parametrize("march", few(["native", "x86-64-v3", "x86-64"], "native"))
def test_every_float16(march: str, cc: str) -> None:
    if shutil.which(cc) is None or (march != "native" and not this_machine().startswith("x86_64")):
        pytest.skip(f"no {cc} for {march}")
    found = relay.parse("""def @main(%x: Tensor[(65536,), float16], %y: Tensor[(300000,), float32]) {
      %0 = cast(reshape(%x, newshape=[256, 256]), dtype="float32");
      (cast(%x, dtype="float32"), cast(%y, dtype="float16"), transpose(%0, axes=[1, 0])) }""")
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    y = np.random.default_rng(1).integers(0, 2**32, 300000, dtype=np.uint32).view(np.float32).copy()
    # In the middle of two halves, just beside it, and beyond the ends.
    middle = np.nextafter(x[:31744], np.float16(np.inf)).astype("f4") / 2 + x[:31744].astype("f4") / 2
    y[:31744], y[40000:71744], y[80000:111744] = middle, -np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))
    made = compile_module(found, f"c -mcpu={march} -cc={cc} -num-threads=1")
    if isinstance(made, ForeignArtifact):
        pytest.skip(f"this machine is no {march}")
    wide, narrow, turned = made.run(x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(wide, x.astype("f4"))
        np.testing.assert_array_equal(np.signbit(wide), np.signbit(x))
        np.testing.assert_array_equal(narrow, y.astype("f2"))
        np.testing.assert_array_equal(np.signbit(narrow[~np.isnan(y)]), np.signbit(y[~np.isnan(y)]))
        np.testing.assert_array_equal(turned, x.astype("f4").reshape(256, 256).T)


def test_float16_is_converted_as_vectors() -> None:
    found = relay.parse("def @main(%x: Tensor[(1000,), float16]) { nn.relu(%x) }")
    text = emit(found, "loops", isa="avx2")
    assert "call r_read_halves(i0h0, &arg0[i0b], i0n)" in text and "call r_write_halves(&out0[i0b : float16*], i0h1, i0n)" in text
    if this_machine().startswith("x86_64"):
        asm = emit(found, "asm", options={"march": "x86-64-v3"})
        assert re.search(r"vcvtph2ps\s.*%ymm", asm) and re.search(r"vcvtps2ph\s.*%ymm", asm)
