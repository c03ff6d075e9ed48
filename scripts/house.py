"""Prints figures of the source: lines, files, small helpers, complex functions, imports, skips and circles.

python scripts/house.py                  # the table of figures
python scripts/house.py helpers complex  # and the functions that these two rows count
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.shared import ROOT
from tests.test_project import ALL, FACE, circles, nodes_of, uses

FOLDERS = ("relaylang", "interpreter", "repl")
LINES, COMPLEXITY, IMPORTS = 4, 20, 25


def place(file: Path, node: ast.stmt, name: str) -> str:
    return f"{file.relative_to(ROOT)}:{node.lineno} {name}"


def helpers() -> Iterator[str]:
    """The undecorated functions of modules that have at most four lines and whose name stands once in the source."""
    uses: Counter[str] = Counter()
    for module in ALL:
        uses.update(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in nodes_of(module)
            if isinstance(node, (ast.Name, ast.Attribute))
        )
    for module, file in ALL.items():
        top = nodes_of(module)[0]
        assert isinstance(top, ast.Module)
        for node in top.body:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list and uses[node.name] == 1:
                if (node.end_lineno or 0) - node.lineno < LINES:
                    yield place(file, node, node.name)


def ruff() -> str:
    """ruff: that of this Python, or the first on the path."""
    beside = Path(sys.executable).with_name("ruff")
    command = str(beside) if beside.is_file() else shutil.which("ruff")
    if command is None:
        sys.exit("house: no ruff here: pip install 'relaylang[dev]'")
    return command


def complex_functions() -> list[str]:
    """The functions that ruff's C901 finds more complex than 20 branches."""
    options = ["--isolated", "--select=C901", f"--config=lint.mccabe.max-complexity={COMPLEXITY}", "--output-format=concise"]
    done = subprocess.run([ruff(), "check", "--no-cache", *options, *FOLDERS], cwd=ROOT, capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(f"house: {done.stderr.strip()}")
    return [f"{file}:{line} {name}" for file, line, name in re.findall(r"(?m)^(.+?):(\d+):\d+: C901 `(\w+)`", done.stdout)]


def branches(function: ast.AST) -> int:
    """The cyclomatic complexity of a function, with its inner functions, comprehensions and boolean operators."""
    count = 1
    for node in ast.walk(function):
        if isinstance(node, (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)):
            count += 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
    return count


def branching() -> list[str]:
    """The functions with more than 20 ways, boolean operators counted."""
    functions = ((m, node) for m in ALL for node in nodes_of(m) if isinstance(node, ast.FunctionDef))
    return [f"{place(ALL[m], node, node.name)} {n}" for m, node in functions if (n := branches(node)) > COMPLEXITY]


def wide() -> list[str]:
    """The modules with more than 25 statements of import."""
    count = {m: sum(isinstance(node, (ast.Import, ast.ImportFrom)) for node in nodes_of(m)) for m in ALL}
    return [f"{ALL[m].relative_to(ROOT)} {n}" for m, n in count.items() if n > IMPORTS]


def rings() -> list[str]:
    """The modules that reach each other by imports, those under TYPE_CHECKING included."""
    graph = {m: uses(m, types=True) for m in ALL if m not in FACE}
    return [f"{len(circle)}: {' '.join(sorted(circle))}" for circle in circles(graph)]


def main(rows: list[str]) -> None:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    texts = [file.read_text(encoding="utf-8") for file in files]
    listed = {"helpers": list(helpers()), "complex": complex_functions(), "branching": branching(), "wide": wide(), "circles": rings()}
    sizes = " ".join(circle.partition(":")[0] for circle in listed["circles"])
    figures = {
        f"lines of Python in {', '.join(FOLDERS)}": sum(text.count("\n") for text in texts),
        "files": len(files),
        f"helpers: used once, at most {LINES} lines": len(listed["helpers"]),
        f"complex: functions above {COMPLEXITY} by ruff's C901": len(listed["complex"]),
        f"branching: above {COMPLEXITY} with boolean operators": len(listed["branching"]),
        f"wide: modules with more than {IMPORTS} imports": len(listed["wide"]),
        "# fmt: skip": sum(text.count("# fmt: " + "skip") for text in texts),
        "circles: modules of each, TYPE_CHECKING counted": sizes or "none",
    }
    for name, figure in figures.items():
        print(f"{name:50} {figure}")
    for row in rows:
        print(f"\n{row}", *listed[row], sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1:])
