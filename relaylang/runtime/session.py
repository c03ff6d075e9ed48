"""Sessions: runs of a program that keeps some of its inputs from run to run.

    session = artifact.session({"keys": 1, "values": 2})
    for token in tokens:
        scores = session.run(token=token)

Each state is an input that takes, at the next run, the value of one result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ir import TensorType, TupleType, Type, Var
from relaylang.runtime.artifact import TensorSpec, bind_arguments
from relaylang.runtime.tensors import empty


class Session(ABC):
    """Runs of one program whose `state` names inputs, each with the number of the result that is its next value.

    A state begins with its value in `initial`, or with zeros. One thread at a time may use a session; sessions of one
    program are independent. `bound` names the parameters that have values since the compilation.
    Raises `RelayError` (R0640) where a name, a number or a type does not fit.
    """

    def __init__(
        self,
        params: Sequence[Var],
        result: Type | None,
        state: Mapping[str, int],
        initial: Mapping[str, Any],
        bound: Sequence[str] = (),
    ) -> None:
        self._names = [param.name_hint for param in params]
        self._several = isinstance(result, TupleType)
        fields = result.fields if isinstance(result, TupleType) else [result]
        types = {param.name_hint: param.type_annotation for param in params}
        for name, number in state.items():
            _check_pair(name, number, types, fields, bound)
        for number in state.values():
            names = [name for name, other in state.items() if other == number]
            if len(names) > 1:
                raise RelayError(error("R0640", f"the result {number} is the next value of {names[0]} and of {names[1]}"))
        self._numbers = dict(state)
        self._free = [name for name in self._names if name not in state]
        self._rest = [n for n in range(len(fields)) if n not in state.values()]
        self._types: dict[str, TensorType] = {name: types[name] for name in state}  # type: ignore[misc]
        self.reset(**initial)

    def reset(self, /, **initial: Any) -> None:
        """Begin again: each state takes its value here, or zeros. Raises `RelayError` (R0640) for values that do not fit."""
        for name in initial:
            if name not in self._numbers:
                raise RelayError(error("R0640", f"the session has no state {name}", notes=_near(name, self._numbers)))
        values = {}
        for name, ty in self._types.items():
            known = all(isinstance(extent, int) for extent in ty.shape)
            if name not in initial:
                if not known:
                    notes = [f"the type of {name} is {ty!r}: give a first value, session(..., {name}=...)"]
                    raise RelayError(error("R0640", f"the state {name} has no zeros, because an extent is not known", notes=notes))
                values[name] = empty(ty.shape, np.dtype(ty.dtype))  # type: ignore[arg-type]
                values[name][...] = 0
            elif known:
                values[name] = TensorSpec(ty.shape, ty.dtype).check(name, initial[name])
            else:
                values[name] = np.asarray(initial[name])
        self._begin(values)

    def run(self, *args: Any, **named: Any) -> Any:
        """Run the program with the inputs that are no state, by position or name.

        It returns the results that are no state: one alone, or else a tuple. Raises `RelayError` as the program does. After
        an error, states that lie in place may have the rows that the run wrote; the others are as before.
        """
        values = bind_arguments(self._free, args, named)
        results = self._step(dict(zip(self._free, values)))
        return results[0] if len(results) == 1 else tuple(results)

    __call__ = run

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Copies of the states, by name: `reset(**session.state())` returns to them."""

    @abstractmethod
    def _begin(self, values: Mapping[str, np.ndarray]) -> None:
        """Take first values, which belong to the caller."""

    @abstractmethod
    def _step(self, values: dict[str, Any]) -> list[Any]:
        """Run once with the values of the other inputs. Returns the other results."""


class ValueSession(Session):
    """A session of a program that takes and gives values: each run copies the states."""

    def __init__(self, program: Any, result: Type | None, state: Mapping[str, int], initial: Mapping[str, Any]) -> None:
        self._program = program
        super().__init__(program.signature(), result, state, initial)

    def _begin(self, values: Mapping[str, np.ndarray]) -> None:
        self._values = {name: value.copy() for name, value in values.items()}

    def state(self) -> dict[str, np.ndarray]:
        return {name: np.array(value) for name, value in self._values.items()}

    def _step(self, values: dict[str, Any]) -> list[Any]:
        given = {**values, **self._values}
        result = self._program.run(*[given[name] for name in self._names])
        results = result if self._several else [result]
        self._values = {name: results[number] for name, number in self._numbers.items()}
        return [results[number] for number in self._rest]


def _check_pair(name: str, number: Any, types: Mapping[str, Type | None], fields: Sequence[Type | None], bound: Sequence[str]) -> None:
    """Raise `RelayError` (R0640) where an input cannot be the state whose next value is the result of a number."""
    if name not in types:
        notes = [f"{name} has its value since the compilation: leave it out of `params`"] if name in bound else _near(name, types)
        raise RelayError(error("R0640", f"the program has no input {name}", notes=notes))
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 0 <= number < len(fields):
        what = f"the results are 0 to {len(fields) - 1}" if len(fields) > 1 else "the only result is 0"
        raise RelayError(error("R0640", f"the state {name} has no result {number!r}", notes=[what]))
    ty, field = types[name], fields[int(number)]
    if not isinstance(ty, TensorType):
        raise RelayError(error("R0640", f"the state {name} must be a tensor, but is {ty!r}"))
    if not (isinstance(field, TensorType) and _fits(ty, field)):
        raise RelayError(error("R0640", f"the state {name} is {ty!r}, but the result {number} is {field!r}"))


def _fits(ty: TensorType, other: TensorType) -> bool:
    """Whether a tensor may be of both types: extents agree where both are known."""
    pairs = list(zip(ty.shape, other.shape))
    same = ty.dtype == other.dtype and len(ty.shape) == len(other.shape)
    return same and all(a == b for a, b in pairs if isinstance(a, int) and isinstance(b, int))


def _near(name: str, names: Mapping[str, Any]) -> list[str]:
    near = did_you_mean(name, list(names))
    return [f"did you mean {near}?"] if near else [f"there are: {', '.join(names) or 'none'}"]
