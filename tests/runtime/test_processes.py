"""Nothing of a folder that holds a stranger's files is run or imported by the programs that relaylang starts."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from relaylang.backends.cpu import toolchain
from relaylang.backends.cpu.cc import Compiler, Unit
from relaylang.runtime import processes
from relaylang.runtime.processes import Processes, environment, program, relay, run, start
from tests.cli.command import Ran
from tests.cli.command import relay as relay_here
from tests.shared import ROOT, syntax_tree
from tests.test_project import modules

#: Modules and functions that start processes, and those that look for programs in the working directory.
_MODULES = {"subprocess", "multiprocessing", "webbrowser", "pty", "pexpect", "antigravity"}
_STARTERS = ("exec", "spawn", "posix_spawn", "popen", "system", "startfile", "fork")
_CALLS = {"create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell", "ProcessPoolExecutor", "which"}


def starts(tree: ast.AST) -> list[str]:
    """What in a module starts processes."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.partition(".")[0] in _MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module] if node.module.partition(".")[0] in _MODULES else []
            found += [a.name for a in node.names if a.name in _CALLS or (node.module == "os" and a.name.startswith(_STARTERS))]
        elif isinstance(node, ast.Attribute):
            of_os = isinstance(node.value, ast.Name) and node.value.id in ("os", "posix") and node.attr.startswith(_STARTERS)
            found += [node.attr] if of_os or node.attr in _CALLS else []
        elif isinstance(node, ast.Constant) and node.value in _MODULES:  # for import_module
            found.append(str(node.value))
    return found


def test_one_module_starts_processes() -> None:
    words = [*_MODULES, *_CALLS - {"which"}, "shutil", "posix", "os import"]
    suspect = re.compile(rf"\b(?:{'|'.join(words)})\b|\bos\.(?:{'|'.join(_STARTERS)})")
    suspects = [(name, file) for name, file in modules() if suspect.search(file.read_text(encoding="utf-8"))]
    assert [name for name, file in suspects if starts(syntax_tree(file))] == ["runtime.processes"]
    wrong = "import subprocess as s\nfrom os import execv\nos.posix_spawnp('x')\nasyncio.create_subprocess_exec('x')"
    assert len(starts(ast.parse(wrong))) == 4 and starts(ast.parse("shutil.which(1)"))


def test_the_one_module_has_one_call() -> None:
    tree = syntax_tree(ROOT / "relaylang/runtime/processes.py")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "Popen" in ast.dump(node.func)]
    assert len(calls) == 1
    assert {k.arg for k in calls[0].keywords} >= {"cwd", "env"}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with modules and programs that leave a trace."""
    code = f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__ + chr(10))\nraise SystemExit('hostile')\n"
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("numpy", "lark", "typing", "json", "sitecustomize", "usercustomize", "re", "signal", "runpy"):
        (folder / f"{name}.py").write_text(code)
    for name in ("relaylang", "ziglang", "interpreter"):
        (folder / name).mkdir()
        for file in ("__init__.py", "__main__.py"):
            (folder / name / file).write_text(code)
    script = f"#!/bin/sh\necho $0 >> {tmp_path / 'ran'}\nexit 1\n"
    for path in ("ziglang/zig", "cc", "gcc", "as", "ld", "cc1", "collect2", "dot", "zig", "xdg-open", "python", "python3", "chromium"):
        (folder / path).write_text(script)
        (folder / path).chmod(0o755)
    (folder / "net.relay").write_text("def @main(%x: Tensor[(2), float32]) { add(%x, 1f) }\n")
    return folder


@pytest.fixture
def inside(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder as the working directory, with search paths that lead into it."""
    monkeypatch.chdir(hostile)
    (hostile / "bin").symlink_to(hostile)
    for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "COMPILER_PATH"):
        monkeypatch.setenv(name, os.pathsep.join(["", ".", "bin", os.environ.get(name) or "/usr/lib", "bin", ".", ""]))
    monkeypatch.delenv("CC", raising=False)
    return hostile


def unharmed(folder: Path) -> bool:
    return not (folder.parent / "ran").exists()


def test_the_environment_leads_nowhere_near(inside: Path) -> None:
    found = environment()
    for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "COMPILER_PATH"):
        assert found[name] and all(map(os.path.isabs, found[name].split(os.pathsep)))
    assert os.path.dirname(program("sh") or "") != str(inside)
    assert program("chromium") is None or os.path.dirname(program("chromium") or "") != str(inside)
    assert program("./cc") == str(inside / "cc")  # somebody names it


def test_a_relay_of_its_own(inside: Path) -> None:
    for folder in (str(inside), None):
        ended = run(relay("check", str(inside / "net.relay")), folder=folder)
        assert ended.status == 0 and ended.text().endswith("net.relay: ok (1 function, 1 call)\n"), ended
    where = run([sys.executable, "-c", "import os; print(os.getcwd())"])
    assert where.text() == "/\n"
    assert unharmed(inside)


def test_lenses(inside: Path) -> None:
    commands = pytest.importorskip("relaylang.lsp.commands", reason="relay lsp needs pygls: pip install 'relaylang[lsp]'")
    good, said = asyncio.run(commands.execute("relay.run", "main", (inside / "net.relay").read_text(), str(inside / "net.relay")))
    assert good and "float32" in said
    assert unharmed(inside)


def test_files_with_run_lines(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("filecheck")
    text = "// RUN: relay check net.relay\n// RUN: relay print %s | filecheck %s\n// CHECK: add\nadd(1, 2)\n"
    (inside / "t.relay").write_text(text.replace("// RUN: relay check net.relay\n", ""))
    ran: Ran = relay_here(capsys, "test", "t.relay")
    assert ran.status == 0 or "RUN" in ran.err, ran
    assert unharmed(inside)


def test_compilers(inside: Path) -> None:
    """gcc itself looks for its assembler and linker in PATH."""
    compiler = Compiler({})
    assert compiler.isa is not None and toolchain.find_compiler(None)
    text = f'__attribute__((visibility("default"))) int f_{os.getpid()}(void) {{ return 1; }}\n'
    assert compiler.compile([Unit(text)], text)
    assert unharmed(inside)


def test_zig_is_the_installed_one(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", str(inside), *sys.path])  # as of `python -m relaylang`
    for command in toolchain._zig():
        assert os.path.isabs(program(command[0]) or "") and not (program(command[0]) or "").startswith(str(inside))
        assert toolchain.is_zig(command)
    assert unharmed(inside)


def test_python_m_relaylang_imports_nothing_else_from_here(hostile: Path) -> None:
    """The package itself must be installed; what it imports must not come from the working directory."""
    for name in ("relaylang", "interpreter"):
        for file in (hostile / name).iterdir():
            file.unlink()
        (hostile / name).rmdir()
    (hostile / "runpy.py").unlink()  # Python itself imports it
    ran = subprocess.run([sys.executable, "-m", "relaylang", "check", "net.relay"], cwd=hostile, capture_output=True)
    assert ran.returncode == 0 and b"Traceback" not in ran.stderr
    assert unharmed(hostile)


def test_paths_in_a_compilers_words_are_those_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("include", "O2"):
        (tmp_path / name).mkdir()
    (tmp_path / "a.h").write_text("")
    words = [
        "-O2",
        "O2",
        "-Iinclude",
        "-I",
        "include",
        "-include",
        "a.h",
        "./include",
        "-Iabsent",
        "-DX=include",
        "a.h",
        "--sysroot=include",
    ]
    here = str(tmp_path)
    assert toolchain.anchored(words) == [
        "-O2",
        "O2",
        f"-I{here}/include",
        "-I",
        f"{here}/include",
        "-include",
        f"{here}/a.h",
        f"{here}/include",
        "-Iabsent",
        "-DX=include",
        f"{here}/a.h",
        f"--sysroot={here}/include",
    ]


def ends(call: Callable[[], object], kind: type[BaseException]) -> None:
    with pytest.raises(kind):
        call()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are those of Unix")
def test_a_process_that_takes_too_long_ends_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/child; wait"
    ends(lambda: run(["sh", "-c", script], timeout=1), TimeoutError)
    number = int((tmp_path / "child").read_text())
    state = Path(f"/proc/{number}/stat")
    for _ in range(1000):
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX":
            break
        os.sched_yield()
    else:
        os.kill(number, 0)
        pytest.fail("the child lives")
    ends(lambda: start(["no-such-program-anywhere"]), FileNotFoundError)
    given_up = Processes()
    given_up.end()
    ends(lambda: given_up.run(["true"]), InterruptedError)


def test_the_browser_gets_a_safe_environment(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Found:
        def open(self, address: str) -> bool:
            seen.append(os.environ["PATH"])
            return True

    monkeypatch.setattr(processes.webbrowser, "get", Found)
    before = dict(os.environ)
    show = processes.browser()
    assert show is not None and show("file:///x")
    assert all(map(os.path.isabs, seen[0].split(os.pathsep))) and dict(os.environ) == before
