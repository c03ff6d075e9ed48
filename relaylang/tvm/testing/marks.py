"""What `tvm.testing` gives to pytest: parameters, fixtures, and marks for machines that a test requires.

There is one target, "llvm", which is the C backend, on one device, the CPU. Tests for others are skipped.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import pytest

#: The targets of tests that name none.
TARGETS = ("llvm",)


def enabled_targets() -> list[tuple[str, Any]]:
    """The targets that tests run on, each with its device."""
    runtime = importlib.import_module("relaylang.tvm.runtime")
    return [(target, runtime.cpu(0)) for target in TARGETS]


def device_enabled(target: str) -> bool:
    """Whether tests run on a target."""
    return target.split()[0] in TARGETS


class Feature:
    """A decorator for tests that need a machine or a library. It marks them, and skips them where there is none.

    `reason` says why there is none, or is "" where there is one.
    """

    def __init__(self, name: str, reason: str = "") -> None:
        self.name = name
        self.reason = reason

    def marks(self, support_required: str = "compile-and-run") -> list[Any]:
        """The marks of pytest that the decorator sets. "optional" support skips nothing."""
        marks: list[Any] = [getattr(pytest.mark, self.name)]
        if self.reason and support_required != "optional":
            marks.append(pytest.mark.skip(reason=self.reason))
        return marks

    def __call__(self, func: Any = None, *, support_required: str = "compile-and-run") -> Any:
        def wrap(test: Any) -> Any:
            for mark in self.marks(support_required):
                test = mark(test)
            return test

        return wrap if func is None else wrap(func)


_LLVM = Feature("llvm")
_MACHINE = platform.machine().lower()
_X86 = "" if _MACHINE in ("x86_64", "amd64") else f"this machine is {_MACHINE}"
_NO_CODE = "relaylang writes C; the instructions are the C compiler's choice"

#: The features that tests may require: name -> why this machine has none, "" where it has.
FEATURES: dict[str, str] = {
    "llvm": "",
    "x86": _X86,
    **dict.fromkeys(("x86_avx512", "x86_vnni", "x86_amx", "arm_dot", "aarch64_sve"), _NO_CODE),
    **dict.fromkeys(
        (
            "adreno_opencl",
            "cublas",
            "cuda",
            "cudagraph",
            "cudnn",
            "gpu",
            "hipblas",
            "matrixcore",
            "metal",
            "multi_gpu",
            "nvptx",
            "opencl",
            "openclml",
            "rocm",
            "tensorcore",
            "tensorrt",
            "vulkan",
        ),
        "relaylang compiles for no GPU",
    ),
    **dict.fromkeys(
        ("cmsisnn", "corstone300", "cutlass", "ethosn", "ethosu", "hexagon", "libtorch", "micro", "rpc", "vitis_ai"),
        "TVM's runtime for this is not here",
    ),
}


def __getattr__(name: str) -> Any:
    if name.startswith("requires_") and name.removeprefix("requires_") in FEATURES:
        feature = name.removeprefix("requires_")
        return Feature(feature, FEATURES[feature])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


uses_gpu = Feature("gpu", FEATURES["gpu"])(support_required="optional")
slow = pytest.mark.skipif(os.environ.get("SKIP_SLOW_TESTS", "").lower() in ("1", "true", "yes"), reason="SKIP_SLOW_TESTS is set")
skip_if_wheel_test = pytest.mark.skipif(os.environ.get("WHEEL_TEST", "").lower() in ("1", "true", "yes"), reason="WHEEL_TEST is set")


def requires_nvcc_version(major_version: int, minor_version: int = 0, release_version: int = 0) -> Feature:
    """Skips a test: there is no CUDA."""
    return Feature("cuda", FEATURES["cuda"])


def requires_cuda_compute_version(major_version: int, minor_version: int = 0) -> Feature:
    """Skips a test: there is no CUDA."""
    return Feature("cuda", FEATURES["cuda"])


def requires_package(*packages: str) -> Callable[[Any], Any]:
    """Skips a test where one of the packages of Python is not installed."""

    def wrap(test: Any) -> Any:
        for package in packages:
            there = importlib.util.find_spec(package.partition(".")[0]) is not None
            test = pytest.mark.skipif(not there, reason=f"the package {package} is not installed")(test)
        return test

    return wrap


def skip_if_32bit(reason: str) -> Callable[..., Any]:
    """Skips a test on a machine whose addresses have 32 bits."""
    mark = pytest.mark.skipif(sys.maxsize < 1 << 32, reason=reason)
    return lambda *tests: mark(*tests) if tests else mark


def parametrize_targets(*args: Any) -> Any:
    """Runs a test for each of some targets, as its argument `target`; `dev` is the device. Alone, for all targets."""
    if len(args) == 1 and callable(args[0]):
        return args[0]
    return pytest.mark.parametrize("target", list(args), scope="session")


def exclude_targets(*args: str) -> Callable[[Any], Any]:
    """Runs a test for all targets but these kinds."""

    def wrap(test: Any) -> Any:
        test.tvm_excluded_targets = args
        return test

    return wrap


def known_failing_targets(*args: str) -> Callable[[Any], Any]:
    """Expects a test to fail for these kinds of targets."""

    def wrap(test: Any) -> Any:
        test.tvm_known_failing_targets = args
        return test

    return wrap


def parameter(*values: Any, ids: Sequence[str] | None = None, by_dict: Mapping[str, Any] | None = None) -> Any:
    """A fixture with these values: a test that takes it runs once for each. `by_dict` gives names and values."""
    if by_dict is not None:
        ids, values = tuple(by_dict), tuple(by_dict.values())

    @pytest.fixture(params=values, ids=ids)
    def fixture_function(*instance: Any, request: Any) -> Any:
        return request.param

    return fixture_function


_GROUPS = count()


def parameters(*value_sets: Sequence[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """Fixtures whose values go together: a test runs once for each set. The plugin joins them."""
    group = next(_GROUPS)
    fixtures = []
    for values in zip(*value_sets):

        def fixture_function(*instance: Any, request: Any) -> Any:
            return request.param

        fixture_function.parametrize_group, fixture_function.parametrize_values, fixture_function.parametrize_ids = group, values, ids  # type: ignore[attr-defined]
        fixtures.append(pytest.fixture(fixture_function))
    return fixtures


def fixture(func: Any = None, *, cache_return_value: bool = False) -> Any:
    """A fixture of pytest. With `cache_return_value` it is computed once for each combination of its arguments."""

    def wrap(function: Any) -> Any:
        return pytest.fixture(_cached(function) if cache_return_value else function)

    return wrap if func is None else wrap(func)


def _cached(function: Any) -> Any:
    cached: dict[Any, Any] = {}

    @functools.wraps(function)
    def once(*args: Any, **named: Any) -> Any:
        key = repr((args[1:] if args and hasattr(type(args[0]), function.__name__) else args, sorted(named.items())))
        if key not in cached:
            cached[key] = function(*args, **named)
        return cached[key]

    return once


def _marked(marker: Callable[[str], Any], names: Sequence[str], reason: str) -> Callable[[Any], Any]:
    """A decorator that stops a test with these parameters, as the names in its brackets say them."""

    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def wrapped(request: Any, *args: Any, **named: Any) -> Any:
            if request.node.name.partition("[")[2].removesuffix("]") in names:
                marker(reason)
            return test(request, *args, **named)

        return wrapped

    return decorate


def xfail_parameterizations(*xfail_params: str, reason: str) -> Callable[[Any], Any]:
    """Expects a test to fail with these parameters."""
    return _marked(pytest.xfail, xfail_params, reason)


def skip_parameterizations(*skip_params: str, reason: str) -> Callable[[Any], Any]:
    """Skips a test with these parameters."""
    return _marked(pytest.skip, skip_params, reason)
