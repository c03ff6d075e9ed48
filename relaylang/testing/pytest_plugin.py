"""The pytest plugin: `golden.check(module)` compares a program with the text in a golden file.

    def test_fusion(golden):
        golden.check(relay.transform.FuseOps()(mod))

The file is `tests/golden/<test module>.<test>.relay` (the ini option `golden_dir` names another folder), or
`golden.check(mod, "name")`. `pytest --golden-update` writes the files that are missing or differ, and removes none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from relaylang.ir import Expr, IRModule

_WRITTEN = "relaylang.golden.written"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("relaylang", "relaylang: golden files")
    group.addoption("--golden-update", action="store_true", help="write the golden files that are missing or differ; removes none")
    parser.addini("golden_dir", "the folder of the golden files, from the root folder", default="tests/golden")


class Golden:
    """A test's golden files."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path, update: bool) -> None:
        self.folder = folder
        self._node = request.node
        self._update = update
        self._count = 0

    def path(self, name: str | None = None) -> Path:
        """The file of a name; without one, of the test's next `check`."""
        if name is None:
            self._count += 1
            own = f"{self._node.path.stem}.{self._node.name}" + (f".{self._count}" if self._count > 1 else "")
            name = re.sub(r"[^\w.+\-]+", "_", own).strip("_")
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ValueError(f"a golden file's name is one below {self.folder}, not {name!r}")
        return self.folder / (name if name.endswith(".relay") else f"{name}.relay")

    def check(
        self,
        program: IRModule | Expr,
        name: str | None = None,
        *,
        names: bool = False,
        metadata: bool = False,
        types: bool = True,
    ) -> None:
        """The program is the one in the golden file.

        `names`: its variables have the same names; otherwise renaming them changes nothing. `metadata`: constants that
        have no literal have the same values; otherwise only their types count. `types`: the types of all expressions
        are written down and compared.
        """
        __tracebackhide__ = True
        from relaylang.diagnostics import RelayError
        from relaylang.runtime.files import atomic_write
        from relaylang.testing.golden import Form, difference

        form = Form(types, metadata)
        path = self.path(name)
        actual = form.text(program)
        try:
            golden = path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            golden = None
            problem = f"there is no golden file {path}"
        except (OSError, UnicodeDecodeError) as e:
            golden = None
            problem = f"the golden file {path} cannot be read: {e}"
        if golden is not None:
            if golden == actual:
                return
            try:
                # A program whose types nobody has found is compared without them.
                typed = Form(types and "/* ty=" in actual, metadata)
                shown = difference(typed.again(golden, str(path)), actual, names=names)
            except RelayError as wrong:
                problem = f"the golden file is not right:\n{wrong}"
            else:
                if not shown:
                    return
                problem = f"the program is not the one in {path}\n(- golden file, + this program)\n\n{shown}"
        if self._update:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                atomic_write(path, actual)
            except OSError as e:
                pytest.fail(f"the golden file {path} cannot be written: {e}")
            self._node.user_properties.append((_WRITTEN, str(path)))
            return
        pytest.fail(f"{problem}\n\npytest --golden-update writes the file")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares programs with the texts of golden files."""
    config = request.config
    return Golden(request, config.rootpath / str(config.getini("golden_dir")), config.getoption("--golden-update"))


class _Summary:
    """Gathers the names of written files, also from the processes of pytest-xdist."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.written += _written(report.user_properties)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.written:
            terminalreporter.write_sep("-", "golden files")
            for path in self.written:
                terminalreporter.write_line(f"written: {path}")


def _written(properties: list[tuple[str, object]]) -> Iterator[str]:
    return (str(value) for key, value in properties if key == _WRITTEN)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--golden-update") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Summary(), "relaylang-golden-summary")
