"""The helpers of `tvm.testing`. Those for pytest (`parametrize_targets`, `requires_...`) need pytest installed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

#: Whether tests run on a build server: the variable CI.
IS_IN_CI = os.environ.get("CI", "") == "true"


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Raise `AssertionError` unless two arrays have one shape, and |actual - desired| <= atol + rtol * |desired|."""
    actual, desired = np.asanyarray(actual), np.asanyarray(desired)
    assert actual.shape == desired.shape, f"the shapes {actual.shape} and {desired.shape} differ"
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


def check_numerical_grads(
    function: Callable[..., Any],
    input_values: Mapping[str, np.ndarray] | Sequence[np.ndarray],
    grad_values: Mapping[str, np.ndarray] | Sequence[np.ndarray],
    function_value: float | None = None,
    delta: float = 1e-3,
    atol: float = 1e-2,
    rtol: float = 0.1,
) -> None:
    """Raise `AssertionError` unless gradients agree with differences of a function's values.

    `function` takes the inputs in order, or by name where they are a mapping, and returns a number. Differences are
    forward with the step `delta`; where one does not agree, central, with finer and finer steps. `atol` is that of one
    element; the distance of all elements may be `atol` times the root of their number. `function_value` has no effect.
    """
    named = isinstance(input_values, Mapping)
    names = list(input_values) if named else list(range(len(input_values)))
    inputs = {n: np.array(input_values[n]) for n in names}  # type: ignore[index]

    def value() -> float:
        return float(function(**inputs) if named else function(*inputs.values()))  # type: ignore[arg-type]

    for n in names:
        gradient = np.asarray(grad_values[n])  # type: ignore[index]
        assert gradient.shape == inputs[n].shape, f"the gradient of {n} has the shape {gradient.shape}, not {inputs[n].shape}"
        differences = np.zeros(gradient.shape)
        for place in np.ndindex(*gradient.shape):
            for step in (delta, delta / 2, delta / 4):
                differences[place] = _slope(inputs[n], place, step, value)
                if abs(differences[place] - gradient[place]) < atol + rtol * abs(differences[place]):
                    break
        distance = np.sqrt(np.sum((differences - gradient) ** 2))
        allowed = atol * np.sqrt(gradient.size) + rtol * np.sqrt(np.sum(differences**2))
        assert distance <= allowed, f"the gradient of {n} is {distance} from the differences, more than {allowed}"


def _slope(array: np.ndarray, place: tuple[int, ...], step: float, value: Callable[[], float]) -> float:
    """The central difference of `value` at one element of an array, which is as before afterwards."""
    kept = array[place]
    array[place] = kept + step
    above = value()
    array[place] = kept - step
    below = value()
    array[place] = kept
    return (above - below) / (2 * step)


#: The names that `marks` has, which imports pytest.
_PYTEST = (
    "Feature enabled_targets device_enabled exclude_targets fixture known_failing_targets parameter parameters "
    "parametrize_targets skip_if_32bit skip_if_wheel_test skip_parameterizations slow uses_gpu xfail_parameterizations"
).split()


def __getattr__(name: str) -> Any:
    if name in _PYTEST or name.startswith("requires_"):
        return getattr(importlib.import_module("relaylang.tvm.testing.marks"), name)
    if name == "main":
        return importlib.import_module("relaylang.tvm.testing.plugin").main
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["IS_IN_CI", "assert_allclose", "check_numerical_grads", *_PYTEST]
