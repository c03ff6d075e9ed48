"""A plugin of pytest for tests that were written for TVM: `pytest -p relaylang.tvm.testing.plugin`.

It makes `import tvm` mean relaylang. It gives tests the fixtures `target` and `dev`, and joins `tvm.testing.parameters`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

import pytest

importlib.import_module("relaylang.tvm.install")

marks = importlib.import_module("relaylang.tvm.testing.marks")


def pytest_configure(config: Any) -> None:
    """Make the marks known."""
    for name in marks.FEATURES:
        config.addinivalue_line("markers", f"{name}: a test that uses {name}")


@pytest.fixture
def dev(target: Any) -> Any:
    """The device of a test's target."""
    return importlib.import_module("relaylang.tvm.runtime").device(str(target))


def pytest_generate_tests(metafunc: Any) -> None:
    """Parametrize a test over parameters that go together, and over targets."""
    _join(metafunc)
    _targets(metafunc)


def _join(metafunc: Any) -> None:
    groups: dict[int, list[tuple[str, Any]]] = {}
    for name, definitions in metafunc.definition._fixtureinfo.name2fixturedefs.items():
        function = definitions[-1].func
        if hasattr(function, "parametrize_group"):
            groups.setdefault(function.parametrize_group, []).append((name, function))
    for group in groups.values():
        ids = group[0][1].parametrize_ids
        names = [name for name, _ in group]
        values = [function.parametrize_values for _, function in group]
        if len(names) == 1:
            metafunc.parametrize(names[0], values[0], indirect=True, ids=ids)
        else:
            metafunc.parametrize(",".join(names), list(zip(*values)), indirect=True, ids=ids)


def _targets(metafunc: Any) -> None:
    """Give the targets to a test that names none, and skip those that are not here."""
    if "target" not in metafunc.fixturenames:
        return
    definition = metafunc.definition
    named = [mark for mark in definition.iter_markers("parametrize") if "target" in _names(mark)]
    excluded = getattr(metafunc.function, "tvm_excluded_targets", ())
    if not named:
        wanted = [_with_marks(metafunc, (t,), t) for t in marks.TARGETS if t not in excluded]
        metafunc.parametrize("target", wanted, scope="session")
        return
    for mark in named:
        at = _names(mark).index("target")
        values = mark.args[1]
        for number, value in enumerate(values):
            row_values = value.values if hasattr(value, "values") and hasattr(value, "marks") else value
            row = tuple(row_values) if len(_names(mark)) > 1 or row_values is not value else (row_values,)
            values[number] = _with_marks(metafunc, row, row[at], getattr(value, "marks", ()))


def _names(mark: Any) -> list[str]:
    names = mark.args[0]
    return [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)


def _with_marks(metafunc: Any, row: tuple[Any, ...], target: Any, values: Any = ()) -> Any:
    """A row of parameters: skipped where its target is not here, expected to fail where that is known."""
    kind = str(target).split()[0]
    row_values = list(values)
    if kind not in marks.TARGETS:
        row_values.append(pytest.mark.skip(reason=f"relaylang does not run {kind}"))
    if kind in getattr(metafunc.function, "tvm_known_failing_targets", ()):
        row_values.append(pytest.mark.xfail(reason=f"known to fail for {kind}"))
    return pytest.param(*row, marks=row_values)


def main() -> None:
    """Run the tests of the file that calls this, and leave Python with pytest's status."""
    caller = inspect.stack()[1].filename
    sys.exit(pytest.main([caller, "-p", __name__, *sys.argv[1:]]))
