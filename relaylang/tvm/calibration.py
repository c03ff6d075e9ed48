"""The inputs and outputs of a module's partitions when it runs: the numbers to choose a quantization by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relaylang.interpreter import Evaluator, Watch
from relaylang.ir import Function, GlobalVar, IRModule
from relaylang.tvm.arrays import with_numpy
from relaylang.typing import check

if TYPE_CHECKING:
    from relaylang.interpreter.code import Code


class _Calls(Watch):
    """Keeps the arguments of each call of some functions."""

    def __init__(self, functions: Mapping[int, str]) -> None:
        self.functions = functions
        self.found: dict[str, list[list[Any]]] = {}

    def entered(self, code: Code, slots: list[Any]) -> None:
        name = self.functions.get(id(code.function))
        if name is not None:
            self.found.setdefault(name, []).append(list(slots[: code.arity]))


def get_calibration_data(mod: IRModule, data: Mapping[str, Any]) -> dict[GlobalVar, dict[str, Any]]:
    """The inputs and outputs of each partition of a module (a function with `Compiler`), by its variable.

    `data` gives @main's parameters by name. An entry is `{"inputs": [...], "outputs": [...], "calls": [...]}`. "inputs" and
    "outputs" are the arrays of the first call, in the order of parameters and result fields.
    "calls" has such a pair for every call, as in a loop. A partition without calls has no entry. Raises `RelayError` as
    evaluating the program does.
    """
    check(mod)
    parts = {gv: f for gv, f in mod.functions.items() if isinstance(f, Function) and "Compiler" in f.attrs}
    calls = _Calls({id(f): gv.name_hint for gv, f in parts.items()})
    Evaluator(mod, None, None, calls).call("main", (), dict(data))
    plain = Evaluator(mod)
    out: dict[GlobalVar, dict[str, Any]] = {}
    for gv in parts:
        every = []
        for inputs in calls.found.get(gv.name_hint, ()):
            outputs = with_numpy(plain.call(gv.name_hint, tuple(inputs), {}))
            ends = list(outputs) if isinstance(outputs, tuple) else [outputs]
            every.append({"inputs": list(map(with_numpy, inputs)), "outputs": ends})
        if every:
            out[gv] = {**every[0], "calls": every}
    return out


def get_calibration_ranges(data: Mapping[GlobalVar, Mapping[str, Any]]) -> dict[GlobalVar, dict[str, Sequence[tuple[float, float]]]]:
    """The least and the greatest value of each input and output over all calls in `get_calibration_data`'s result."""
    out: dict[GlobalVar, dict[str, Sequence[tuple[float, float]]]] = {}
    for gv, ranges in data.items():
        out[gv] = {
            side: [
                (min(float(v.min()) for v in values), max(float(v.max()) for v in values))
                for values in zip(*(call[side] for call in ranges["calls"]))
            ]
            for side in ("inputs", "outputs")
        }
    return out


__all__ = ["get_calibration_data", "get_calibration_ranges"]
