"""TFLite's recurrent layers: outputs of several calls, with the states between them, are as the runtime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
