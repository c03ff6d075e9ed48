"""TFLite's recurrent layers: outputs of several calls, with the states between them, are as the runtime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.frontends.tflite import import_tflite
from relaylang.frontends.tflite.fixed_point import sigmoid_table, tanh_table
from tests.frontends.tflite.files import Op, T, const, file
from tests.frontends.tflite.runtime import compare

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")
rng = np.random.default_rng(5)
BATCH, STEPS, DEPTH, CELLS, UNITS = 2, 4, 5, 6, 3


def real(*shape: int) -> np.ndarray:
    """Real numbers around 0."""
    return (0.5 * rng.normal(size=shape)).astype("float32")


def weight(*shape: int, quantised: bool = False) -> T:
    """Weights, real or int8."""
    if not quantised:
        return const(real(*shape))
    return const(rng.integers(-127, 128, shape).astype("int8"), scale=[0.01], zero=[0])


def gates(q: bool, cifg: bool, peephole: bool, project: bool, norm: bool) -> list[T | None]:
    """The operands 1 to 17 of an LSTM, and the coefficients of its normalisation."""
    out = UNITS if project else CELLS
    some = [not cifg, True, True, True]
    found: list[T | None] = [weight(CELLS, DEPTH, quantised=q) if s else None for s in some]
    found += [weight(CELLS, out, quantised=q) if s else None for s in some]
    found += [weight(CELLS, quantised=q) if peephole and s else None for s in (not cifg, True, True)]
    found += [const(real(CELLS)) if s else None for s in some]
    found += [weight(UNITS, CELLS, quantised=q), const(real(UNITS))] if project else [None, None]
    return found + ([const(real(CELLS)) if s else None for s in some] if norm else [None] * 4)


def model(name: str, kind: str, operands: list[T | None], outputs: list[tuple[int, ...]], **options: Any) -> bytes:
    """A file of one layer, whose first operand is `a0`. None leaves an operand out."""
    tensors = {f"a{i}": t for i, t in enumerate(operands) if t is not None}
    results = {f"y{i}": T(s) for i, s in enumerate(outputs)}
    given = [n for n, t in tensors.items() if t.data is None and not t.variable]
    names = [f"a{i}" if t is not None else "" for i, t in enumerate(operands)]
    return file({**tensors, **results}, [Op(name, names, list(results), kind, options)], given, list(results))


def calls(*shape: int, count: int = 1) -> list[list[np.ndarray]]:
    """Operands of three calls."""
    return [[real(*shape) for _ in range(count)] for _ in range(3)]


LSTMS = {
    "plain": {},
    "time_major": {"time_major": True},
    "cifg": {"cifg": True},
    "peephole": {"peephole": True},
    "projection": {"project": True, "proj_clip": 0.4, "cell_clip": 0.3},
    "norm": {"norm": True, "peephole": True},
    "all": {"norm": True, "peephole": True, "cifg": True, "project": True, "cell_clip": 0.9},
    "relu": {"activation": 1},
    "hybrid": {"q": True, "project": True},
    "hybrid_asymmetric": {"q": True, "asymmetric": True},
    "hybrid_peephole": {"q": True, "peephole": True, "norm": True},
}


@pytest.mark.parametrize("name", LSTMS)
def test_a_sequence_lstm(name: str) -> None:
    o: dict[str, Any] = dict(LSTMS[name])
    first = (STEPS, BATCH) if o.pop("time_major", False) else (BATCH, STEPS)
    given = {k: o.pop(k, False) for k in ("q", "cifg", "peephole", "project", "norm")}
    found = gates(**given)
    out = UNITS if given["project"] else CELLS
    states = [T((BATCH, out), variable=True), T((BATCH, CELLS), variable=True)]
    data = model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "UnidirectionalSequenceLSTMOptions",
        [T((*first, DEPTH)), *found[:17], *states, *found[17:]],
        [(*first, out)],
        FusedActivationFunction=o.get("activation", 4),
        CellClip=o.get("cell_clip", 0.0),
        ProjClip=o.get("proj_clip", 0.0),
        TimeMajor=first[0] == STEPS,
        AsymmetricQuantizeInputs=o.get("asymmetric", False),
    )
    compare(data, *calls(*first, DEPTH), close=2e-5 if given["q"] else 1e-5)


def test_a_long_sequence_is_a_loop() -> None:
    found = gates(False, False, False, False, False)
    states = [T((1, CELLS), variable=True), T((1, CELLS), variable=True)]
    data = model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "UnidirectionalSequenceLSTMOptions",
        [T((1, 40, DEPTH)), *found[:17], *states, *found[17:]],
        [(1, 40, CELLS)],
        FusedActivationFunction=4,
    )
    mod = compare(data, *calls(1, 40, DEPTH))
    assert "recurrence" in mod.astext(show_meta_data=False)


@pytest.mark.parametrize("project", [False, True])
def test_one_step_of_an_lstm(project: bool) -> None:
    found = gates(False, False, False, project, False)
    out = UNITS if project else CELLS
    states = [T((BATCH, out), variable=True), T((BATCH, CELLS), variable=True)]
    operands = [T((BATCH, DEPTH)), *found[:17], *states]
    data = model("LSTM", "LSTMOptions", operands, [(BATCH, out)], FusedActivationFunction=4)
    compare(data, *calls(BATCH, DEPTH))


def test_the_basic_lstm() -> None:
    operands = [
        T((BATCH, DEPTH)),
        T((BATCH, CELLS)),
        const(real(4 * CELLS, DEPTH + CELLS)),
        const(real(4 * CELLS)),
        T((BATCH, CELLS)),
    ]
    outputs = [(BATCH, CELLS), (BATCH, CELLS), (BATCH, DEPTH + CELLS), (BATCH, 4 * CELLS)]
    data = model("LSTM", "LSTMOptions", operands, outputs[:4], FusedActivationFunction=4, KernelType=1)
    compare(data, [real(BATCH, DEPTH), real(BATCH, CELLS), real(BATCH, CELLS)])


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("aux", ["none", "weights", "linked"])
def test_both_directions_of_an_lstm(merge: bool, aux: str) -> None:
    """The runtime joins results wrongly where the batch comes first."""
    first = (STEPS, BATCH) if merge else (BATCH, STEPS)
    found = [gates(False, False, True, False, False)[:17] for _ in range(2)]
    states = [T((BATCH, CELLS), variable=True) for _ in range(4)]
    more: list[T | None] = [None] * 9
    if aux != "none":
        more[0] = T((*first, DEPTH))
    if aux == "weights":
        more[1:] = [const(real(CELLS, DEPTH)) for _ in range(8)]
    shapes = [(*first, 2 * CELLS)] if merge else [(*first, CELLS)] * 2
    data = model(
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        "BidirectionalSequenceLSTMOptions",
        [T((*first, DEPTH)), *found[0], *found[1], *states, *more],
        shapes,
        FusedActivationFunction=4,
        MergeOutputs=merge,
        TimeMajor=merge,
    )
    compare(data, *calls(*first, DEPTH, count=1 if aux == "none" else 2))


@pytest.mark.parametrize("quantised, asymmetric", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("name", ["RNN", "UNIDIRECTIONAL_SEQUENCE_RNN"])
def test_a_plain_layer(name: str, quantised: bool, asymmetric: bool) -> None:
    q = {"quantised": quantised}
    operands = [
        weight(CELLS, DEPTH, **q),
        weight(CELLS, CELLS, **q),
        const(real(CELLS)),
        T((BATCH, CELLS), variable=True),
    ]
    first = (BATCH,) if name == "RNN" else (STEPS, BATCH)
    options: dict[str, Any] = {"FusedActivationFunction": 4, "AsymmetricQuantizeInputs": asymmetric}
    if name != "RNN":
        options["TimeMajor"] = True
    kind = "RNNOptions" if name == "RNN" else "SequenceRNNOptions"
    data = model(name, kind, [T((*first, DEPTH)), *operands], [(*first, CELLS)], **options)
    compare(data, *calls(*first, DEPTH))


@pytest.mark.parametrize("aux", ["none", "weights", "linked"])
def test_both_directions_of_a_plain_layer(aux: str) -> None:
    """The runtime leaves out the second operand where the batch comes first."""
    first = (STEPS, BATCH)

    def way() -> list[T | None]:
        return [
            const(real(CELLS, DEPTH)),
            const(real(CELLS, CELLS)),
            const(real(CELLS)),
            T((BATCH, CELLS), variable=True),
        ]

    more: list[T | None] = [None] * 3
    if aux != "none":
        more[0] = T((*first, DEPTH))
    if aux == "weights":
        more[1:] = [const(real(CELLS, DEPTH)) for _ in range(2)]
    data = model(
        "BIDIRECTIONAL_SEQUENCE_RNN",
        "BidirectionalSequenceRNNOptions",
        [T((*first, DEPTH)), *way(), *way(), *more],
        [(*first, CELLS)] * 2,
        FusedActivationFunction=1,
        TimeMajor=True,
    )
    compare(data, *calls(*first, DEPTH, count=1 if aux == "none" else 2))


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("quantised, asymmetric", [(False, False), (True, False), (True, True)])
def test_svdf(rank: int, quantised: bool, asymmetric: bool) -> None:
    filters, memory = 4 * rank, 5
    operands = [
        T((BATCH, DEPTH)),
        weight(filters, DEPTH, quantised=quantised),
        weight(filters, memory, quantised=quantised),
        const(real(4)),
        T((BATCH, memory * filters), variable=True),
    ]
    options = {"Rank": rank, "FusedActivationFunction": 1, "AsymmetricQuantizeInputs": asymmetric}
    data = model("SVDF", "SVDFOptions", operands, [(BATCH, 4)], **options)
    compare(data, *calls(BATCH, DEPTH))


# ---- stored integers: every number is as the runtime's


def stored(dtype: str, most: int, *shape: int, scale: float) -> T:
    """Constant integers of one scale."""
    return const(rng.integers(-most, most + 1, shape).astype(dtype), scale=[scale], zero=[0])


def integer_gates(cifg: bool, peephole: bool, project: bool, norm: bool, wide: float) -> list[T | None]:
    """As `gates`, for an LSTM of int8."""
    out = UNITS if project else CELLS
    some = [not cifg, True, True, True]
    weights = [stored("int8", 127, CELLS, DEPTH, scale=wide * s) if g else None for g, s in zip(some, (0.01, 0.005, 0.02, 0.015))]
    weights += [stored("int8", 127, CELLS, out, scale=wide * s) if g else None for g, s in zip(some, (0.02, 0.007, 0.01, 0.004))]
    peepholes = [stored("int16", 32767, CELLS, scale=2e-5) if peephole and g else None for g in (not cifg, True, True)]
    biases = [stored("int32", 20000, CELLS, scale=1e-4) if g else None for g in some]
    projection: list[T | None] = [None, None]
    if project:
        projection = [stored("int8", 127, UNITS, CELLS, scale=0.01), stored("int32", 2000, UNITS, scale=1e-4)]
    norms = [stored("int16", 32767, CELLS, scale=s) if norm and g else None for g, s in zip(some, (3e-5, 2e-5, 5e-5, 4e-5))]
    return [*weights, *peepholes, *biases, *projection, *norms]


def integer_lstm(
    name: str = "UNIDIRECTIONAL_SEQUENCE_LSTM",
    *,
    steps: int = STEPS,
    time_major: bool = False,
    cell: float = 2.0**-11,
    cell_clip: float = 0,
    proj_clip: float = 0,
    wide: float = 1,
    intermediates: int = 5,
    **parts: bool,
) -> tuple[bytes, list[list[np.ndarray]]]:
    """A file of one layer, and operands of three calls."""
    have = {k: parts.get(k, False) for k in ("cifg", "peephole", "project", "norm")}
    weights = integer_gates(**have, wide=wide)
    first: tuple[int, ...] = (steps, BATCH) if time_major else (BATCH, steps)
    first = first if name != "LSTM" else (BATCH,)
    out = UNITS if have["project"] else CELLS
    result = {"scale": [0.0087], "zero": [5]}
    states = [T((BATCH, out), "int8", **result, variable=True), T((BATCH, CELLS), "int16", scale=[cell], zero=[0], variable=True)]
    operands = [T((*first, DEPTH), "int8", scale=[0.02], zero=[-3]), *weights[:17], *states, *weights[17:]]
    tensors = {f"a{i}": t for i, t in enumerate(operands) if t is not None}
    tensors["y"] = T((*first, out), "int8", **result)
    inner = [T((), "int16", scale=[s], zero=[0]) for s in (3e-4, 2e-4, 5e-4, 4e-4)] + [T((), "int8", scale=[0.0079], zero=[-7])]
    tensors |= {f"i{i}": t for i, t in enumerate(inner)}
    names = [f"a{i}" if t is not None else "" for i, t in enumerate(operands)]
    options: dict[str, Any] = {"FusedActivationFunction": 4, "CellClip": cell_clip, "ProjClip": proj_clip}
    kind = "LSTMOptions"
    if name != "LSTM":
        kind, options = "UnidirectionalSequenceLSTMOptions", {**options, "TimeMajor": time_major}
    layer = Op(name, names, ["y"], kind, options, intermediates=[f"i{i}" for i in range(intermediates)])
    inputs = [[rng.integers(-128, 128, (*first, DEPTH)).astype("int8")] for _ in range(3)]
    return file(tensors, [layer], ["a0"], ["y"]), inputs


INTEGER_LSTMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "time_major": {"time_major": True},
    "cifg": {"cifg": True},
    "peephole": {"peephole": True},
    "projection": {"project": True, "proj_clip": 0.4},
    "norm": {"norm": True},
    "all": {"norm": True, "peephole": True, "cifg": True, "project": True, "cell_clip": 0.9},
    "all_time_major": {"norm": True, "peephole": True, "project": True, "time_major": True},
    "large_cells": {"cell": 2.0**-9, "wide": 20},
    "small_cells": {"cell": 2.0**-15, "cell_clip": 0.7},
    "saturated": {"wide": 200},
    "loop": {"steps": 40, "cell": 2.0**-10, "wide": 5},
    "one_step": {"name": "LSTM"},
    "one_step_of_all": {"name": "LSTM", "norm": True, "peephole": True, "project": True},
}


@pytest.mark.parametrize("name", INTEGER_LSTMS)
def test_an_lstm_of_integers(name: str) -> None:
    data, inputs = integer_lstm(**INTEGER_LSTMS[name])
    compare(data, *inputs)


@pytest.mark.parametrize("bits", [0, 3, 6])
def test_tables_hold_sigmoid_and_tanh(bits: int) -> None:
    """The fixed-point forms are within 2**-11. tanh is odd."""
    x = np.arange(-(1 << 15), 1 << 15)
    curve = tanh_table(bits).astype(int)
    exact = np.tanh(x / 2.0 ** (15 - bits)) * 2**15
    assert np.abs(curve - np.minimum(exact, 32767)).max() <= 16
    assert (curve[1:] == -curve[1:][::-1]).all()
    sigmoid = sigmoid_table().astype(int)
    assert np.abs(sigmoid - np.minimum(2**15 / (1 + np.exp(-x / 2.0**12)), 32767)).max() <= 16


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("wide", [1.0, 40.0])
def test_svdf_of_integers(rank: int, bias: bool, wide: float) -> None:
    filters, memory = 4 * rank, 5
    tensors = {
        "x": T((BATCH, DEPTH), "int8", scale=[0.02], zero=[-3]),
        "features": stored("int8", 127, filters, DEPTH, scale=0.008 * wide),
        "time": stored("int16", 32767, filters, memory, scale=3e-5),
        "bias": stored("int32", 3000, 4, scale=1e-6),
        "memory": T((BATCH, memory * filters), "int16", scale=[0.0007], zero=[0], variable=True),
        "y": T((BATCH, 4), "int8", scale=[0.04], zero=[-11]),
    }
    names = ["x", "features", "time", "bias" if bias else "", "memory"]
    layer = Op("SVDF", names, ["y"], "SVDFOptions", {"Rank": rank, "FusedActivationFunction": 1})
    inputs = [[rng.integers(-128, 128, (BATCH, DEPTH)).astype("int8")] for _ in range(7)]
    compare(file(tensors, [layer], ["x"], ["y"]), *inputs)


@pytest.mark.parametrize(
    "parts, said",
    [
        ({"intermediates": 0}, "it has 0 intermediate tensors"),
        ({"intermediates": 4}, "an LSTM with cells of int16 has 5"),
        ({"cell": 0.0003}, "not a power of two"),
        ({"cell": 2.0**-8}, "from 2\\*\\*-15 to 2\\*\\*-9"),
        ({"cell": -1.0}, "the operand 19 has the scale -1"),
    ],
)
def test_an_lstm_of_integers_with_wrong_scales(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(relay.RelayError, match=said):
        import_tflite(integer_lstm(**parts)[0], file="net.tflite")
