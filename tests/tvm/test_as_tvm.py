"""Tests that import `tvm`, each file in a process of its own: relaylang's stand-in changes classes for the whole process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import tvm_page
from tests.shared import ROOT, few

FILES = sorted((ROOT / "tests/tvm/as_tvm").glob("check_*.py"))


@pytest.mark.parametrize("tests", few(["not sweep", "sweep"], "not sweep"))
def test_as_tvm(tests: str) -> None:
    """All files in one process: most of the time of a process is its start."""
    assert FILES
    options = ["-q", "-p", "no:xdist", "-p", "relaylang.tvm.testing.plugin", "-m", tests]
    command = [sys.executable, "-m", "pytest", *options, *map(str, FILES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_the_page_is_up_to_date() -> None:
    assert tvm_page.PAGE.read_text(encoding="utf-8") == tvm_page.page(), "make generated"


SCRIPT = """import sys
import tvm
from tvm import relay
x = relay.var("x", shape=(2,))
print(relay.Function([x], relay.nn.relu(x)))
print(sys.argv, __name__, tvm.__version__)
{end}
"""


def run(path: Path, end: str, *arguments: str, module: str = "relaylang") -> subprocess.CompletedProcess[str]:
    path.write_text(SCRIPT.format(end=end))
    verb = ["tvm"] if module == "relaylang" else []
    return subprocess.run([sys.executable, "-m", module, *verb, str(path), *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("module", few(["relaylang", "relaylang.tvm"], "relaylang"))
def test_a_script_runs_with_its_arguments(tmp_path: Path, module: str) -> None:
    script = tmp_path / "script.py"
    done = run(script, "sys.exit(3)", "--layers", "18", module=module)
    assert done.returncode == 3 and done.stderr == ""
    assert done.stdout.splitlines() == [
        "fn (%x: Tensor[(2), float32]) {",
        "  nn.relu(%x)",
        "}",
        f"['{script}', '--layers', '18'] __main__ 0.16.0",
    ]


@pytest.mark.sweep
def test_an_error_of_a_script_has_its_own_traceback(tmp_path: Path) -> None:
    done = run(tmp_path / "script.py", "relay.parse('def @main() { nn.rellu(1) }')")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last):\n  File ") and "runpy" not in done.stderr
    assert "script.py" in done.stderr.splitlines()[1] and "did you mean `nn.relu`" in done.stderr


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "relaylang", "tvm", "none.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "there is no script none.py" in done.stderr and "Traceback" not in done.stderr


def test_a_module_of_tvm_runs() -> None:
    options = ["compile", "--workspace-pools-targets", "x", "-o", "x"]
    command = [sys.executable, "-m", "relaylang", "tvm", "-m", "tvm.driver.tvmc", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0 and "tvmc: --workspace-pools-targets is not here" in done.stderr


@pytest.mark.sweep
def test_a_loaded_tvm_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "tvm.py").write_text("")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import tvm\nimport relaylang.tvm.install"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert "import relaylang.tvm.install before tvm" in done.stderr
