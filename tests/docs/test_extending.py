"""docs/extending.md and docs/kernels.md: each diff applies to the tree, touches few files, and gives what the page shows below it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import blocks
from tests.shared import ROOT, few

PAGES = [ROOT / "docs" / name for name in ("extending.md", "kernels.md")]
#: Each kind of addition that a page shows as a diff, and the files that it touches.
FILES = {
    "An operator": [
        "interpreter/kernels/tensor.py",
        "relaylang/backends/cpu/lower/tensor.py",
        "relaylang/kernels/ops.py",
        "relaylang/ops/tensor.py",
    ],
    "A pass": ["relaylang/passes/simplify/drop_repetitions.py"],
    "An accelerator": ["relaylang/partition/targets/tiny_npu.py"],
    "A diagnostic code": ["relaylang/diagnostics/pages/syntax.py"],
    "An operation": ["relaylang/kernels/device.py", "relaylang/kernels/legal.py", "relaylang/kernels/ops.py"],
    "A lowering": ["interpreter/kernels/scatter.py", "relaylang/backends/cpu/lower/scatter.py", "relaylang/ops/scatter.py"],
    "A backend": ["pyproject.toml", "relaylang/backends/plain/__init__.py", "relaylang/backends/registry.py"],
}

#: Runs a section as a page of its own, with the tree that PYTHONPATH names.
_RUN = """
import sys
from pathlib import Path
import relaylang
from tests.docs.blocks import run_page
assert Path(relaylang.__file__).is_relative_to(sys.argv[1]), relaylang.__file__
sys.exit("\\n".join(run_page(Path("section.md"))) or 0)
"""


def sections() -> dict[str, str]:
    """The sections of the pages that have a diff, by their headings."""
    parts = [part for page in PAGES for part in re.split(r"^#{2,3} (.+)\n", page.read_text(encoding="utf-8"), flags=re.M)[1:]]
    return {heading: text for heading, text in zip(parts[::2], parts[1::2]) if "```diff\n" in text}


def shown(section: str) -> str:
    """A section without its diff, with the calls and sessions of its `text` blocks to be run."""
    section = re.sub(r"^```diff\n.*?^```\n", "", section, flags=re.M | re.S)
    return section.replace("```text\n$ ", "```console\n$ ").replace("```text\n>>> ", "```python\n>>> ")


def copy_of_the_tree(folder: Path) -> None:
    for name in ("relaylang", "interpreter", "repl", "grammar"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder)


def test_the_pages_have_every_kind_of_addition() -> None:
    assert set(sections()) == set(FILES)


@pytest.mark.sweep
@pytest.mark.parametrize("heading", few(FILES, "A pass"))
def test_the_diff_makes_the_addition(heading: str, tmp_path: Path) -> None:
    section = sections()[heading]
    (diff,) = [block.text for block in blocks(section) if block.language == "diff"]
    assert sorted(re.findall(r"^\+\+\+ b/(\S+)$", diff, re.M)) == FILES[heading]
    tool = shutil.which("git")
    if tool is None:
        pytest.skip("git is not on this machine")
    tree, work = tmp_path / "tree", tmp_path / "work"
    tree.mkdir()
    work.mkdir()
    copy_of_the_tree(tree)
    applied = subprocess.run([tool, "apply", "-"], input=diff, cwd=tree, capture_output=True, text=True)
    assert applied.returncode == 0, applied.stderr
    (work / "section.md").write_text(shown(section), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", _RUN, str(tree)],
        cwd=work,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{ROOT}", "NO_COLOR": "1"},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
