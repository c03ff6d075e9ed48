"""Backends of installed packages: what they are given, and what becomes of what they raise."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaylang.backends.registry import Backend
from relaylang.backends.target import CompileRest, Target
from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.ir import IRModule
from relaylang.passes.manager import raised_in
from relaylang.runtime.artifact import Artifact, Capability
from relaylang.typing import check


def compile_added(
    backend: Backend,
    name: str,
    mod: IRModule,
    target: Target,
    fallback: Sequence[Target],
    params: Mapping[str, Any],
    entry: str,
    compile_rest: CompileRest | None,
) -> Artifact:
    """The artifact that a package's backend makes of a module. The module is checked first.

    Raises `RelayError` (R0604) for errors of the backend, and for a result that has no artifact's methods.
    """
    check(mod)
    compile_for = backend.compile_for or importlib.import_module(backend.module).compile_for
    rest = {"compile_rest": compile_rest} if "compile_rest" in inspect.signature(compile_for).parameters else {}
    artifact = _called(name, "compile_for", compile_for, mod, target, list(fallback), dict(params), entry, **rest)
    for wanted in ("run", "save", "input_names"):
        if not hasattr(artifact, wanted):
            what = "nothing (None)" if artifact is None else f"a value of type {type(artifact).__name__}"
            notes = ["an artifact has run(**inputs), save(path) and input_names"]
            raise RelayError(error("R0604", f"the backend {name} made {what}, which has no {wanted}", notes=notes))
    return Added(name, artifact)


def _called(name: str, where: str, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    try:
        return function(*args, **named)
    except (RelayError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as problem:
        said = raised_in(f"{name} in {where}", problem, "the backend")
        raise RelayError(Diagnostic("R0604", said.title, said.labels, said.notes)) from problem


class Added(Artifact):
    """A package's artifact. Errors of its methods are reported with the backend's name."""

    def __init__(self, name: str, artifact: Any) -> None:
        self._name = name
        self._artifact = artifact

    def run(self, **inputs: Any) -> Any:
        """The value for inputs by name."""
        return _called(self._name, "run", self._artifact.run, **inputs)

    def save(self, path: Any) -> Any:
        """Write the artifact to a file."""
        return _called(self._name, "save", self._artifact.save, path)

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(["run", *getattr(self._artifact, "capabilities", ())])

    @property
    def tensors(self) -> list[tuple[str, None, tuple[int, ...]]]:
        return [(name, None, ()) for name in self._artifact.input_names]

    def report(self) -> str:
        """What the package's artifact reports; "" where it has no report."""
        return str(_called(self._name, "report", getattr(self._artifact, "report", str)))

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._artifact, attribute)


__all__ = ["compile_added"]
