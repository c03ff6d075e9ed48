"""List the working and missing parts of relaylang on this machine, with commands that install the missing ones."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import numpy as np

from relaylang.backends import compile_module
from relaylang.backends.cpu.toolchain import ask, find_compiler
from relaylang.backends.registry import BACKENDS
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.plugins.entrypoints import GROUPS, installed_names, load_installed, package_of
from relaylang.runtime.processes import program
from relaylang.syntax import parse
from relaylang.typing import check

EPILOG = """\
examples:
  relay doctor
  relay doctor --json                       for another program
  relay doctor --quick                      without compiling anything

exit status: 0 the core works, 1 it does not (an extra that is not installed is no fault)
"""

_PROGRAM = "def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] { nn.relu(add(%x, %x)) }"
#: The purpose of each extra; its requirements are in the package's metadata.
_EXTRAS = {
    "ethosu": "compiling for Arm Ethos-U NPUs",
    "keras": "importing .keras and .h5 files",
    "onnx": "importing .onnx files",
    "png": "PNG pictures of programs (relay viz -o net.png)",
    "safetensors": "parameters from .safetensors files",
    "tflite": "importing .tflite files",
    "zig": "a C compiler for this and other machines",
    "torch": "importing PyTorch programs in memory; .pt2 and .pt files do not need it",
    "lsp": "relay lsp, for editors",
    "golden": "relay test and golden.check, for golden files",
    "test": "relaylang's own tests",
    "docs": "building the documentation",
    "notebook": "%%relay cells in Jupyter and IPython",
    "fuzz": "the reader's fuzz target",
}
_SKIPPED = frozenset({"all", "dev", "peers"})
_TOOLS = {
    "dot": ("graphviz", "pictures of tvm.contrib.relay_viz"),
}


@dataclass
class Finding:
    """One thing that was looked at. `state`: ok, missing, or broken; `repair` is the command that helps."""

    kind: str
    name: str
    state: str
    says: str
    repair: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="write the findings as JSON")
    parser.add_argument("--quick", action="store_true", help="do not try the compilers, only look for them")


def run(args: argparse.Namespace) -> int:
    findings = list(_all(args.quick))
    core_works = all(f.state == "ok" for f in findings if f.kind == "core")
    if args.json:
        print(json.dumps([asdict(f) for f in findings], indent=1))
        return 0 if core_works else 1
    kind = ""
    for f in findings:
        if f.kind != kind:
            kind = f.kind
            print(("" if f is findings[0] else "\n") + {"core": "core", "extra": "extras"}.get(kind, f"{kind}s"))
        mark = {"ok": "ok ", "missing": "-  ", "broken": "!! "}[f.state]
        print(f"  {mark} {f.name:<14} {f.says}")
        if f.repair:
            print(f"      {'':<14} {f.repair}")
    broken = [f.name for f in findings if f.state == "broken"]
    missing = [f.name for f in findings if f.state == "missing"]
    print()
    print(f"broken: {', '.join(broken)}" if broken else "nothing is broken")
    if missing:
        print(f"not there: {', '.join(missing)}")
    return 0 if core_works else 1


def _all(quick: bool) -> Iterator[Finding]:
    yield Finding("core", "python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}, {sys.executable}")
    yield from _packages()
    yield _interpreter()
    yield from _extras()
    compiler = _compiler()
    yield compiler
    yield from _backends(compiler, quick)
    yield from _added()
    for name, (package, purpose) in _TOOLS.items():
        path = program(name)
        if path:
            yield Finding("tool", name, "ok", path)
        else:
            yield Finding("tool", name, "missing", purpose, f"apt install {package}  (or dnf, brew)")


def _packages() -> Iterator[Finding]:
    try:
        own = metadata.version("relaylang")
        needed = [r for r in metadata.requires("relaylang") or () if "extra ==" not in r]
    except metadata.PackageNotFoundError:
        yield Finding("core", "relaylang", "broken", "its installation has no metadata", "pip install relaylang")
        return
    yield Finding("core", "relaylang", "ok", own)
    for requirement in needed:
        yield _package("core", requirement)


def _name(requirement: str) -> str:
    match = re.match(r"[\w.\-]+", requirement)
    return match.group() if match else requirement


def _package(kind: str, requirement: str, repair: str = "") -> Finding:
    name = _name(requirement)
    wanted = requirement.partition(";")[0].strip()
    install = repair or f"pip install '{wanted}'"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(kind, name, "missing" if repair else "broken", f"not installed ({wanted} is needed)", install)
    if not _suits(version, wanted[len(name) :]):
        return Finding(kind, name, "broken", f"{version} does not suit: {wanted}", install)
    return Finding(kind, name, "ok", version)


def _applies(requirement: str) -> bool:
    """Whether a requirement's marker, comparisons joined by `and`, holds for this Python on this machine."""
    here = {
        "python_version": ".".join(map(str, sys.version_info[:2])),
        "sys_platform": sys.platform,
        "platform_machine": platform.machine(),
    }
    for name, sign, value in re.findall(r"(\w+)\s*(==|>=|<)\s*['\"]([^'\"]*)['\"]", requirement.partition(";")[2]):
        if name in here:
            have, want = here[name], value
            order = (_numbers(have) > _numbers(want)) - (_numbers(have) < _numbers(want))
            if not {"==": have == want, ">=": order >= 0, "<": order < 0}[sign]:
                return False
    return True


def _suits(version: str, wanted: str) -> bool:
    """Whether a version meets `>=1.2` or `==1.2.3`. Other parts of a requirement are ignored."""
    have = _numbers(version)
    for sign, text in re.findall(r"(>=|==)\s*([\d.]+)", wanted):
        want = _numbers(text)
        if (sign == ">=" and have < want) or (sign == "==" and have[: len(want)] != want):
            return False
    return True


def _numbers(version: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", re.split(r"[a-z+]", version)[0])]


def _program() -> IRModule:
    mod = parse(_PROGRAM).module
    assert mod is not None
    check(mod)
    return mod


def _interpreter() -> Finding:
    began = time.perf_counter()
    try:
        relu = _program()
        from_text = str(relu["main"].checked_type)
    except Exception as e:
        return Finding("core", "language", "broken", f"reading and checking a program fails: {type(e).__name__}: {e}")
    took = 1000 * (time.perf_counter() - began)
    return Finding("core", "language", "ok", f"reads and checks a program ({took:.0f} ms): {from_text.replace(chr(10), ' ')}")


def _extras() -> Iterator[Finding]:
    try:
        requirements = metadata.requires("relaylang") or []
        extras = metadata.metadata("relaylang").get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        return
    for extra in sorted(set(extras) - _SKIPPED):
        condition, repair = rf"extra == ['\"]{re.escape(extra)}['\"]", f"pip install 'relaylang[{extra}]'"
        packages = [
            _package("extra", r, repair)
            for r in requirements
            if re.search(condition, r) and _applies(r) and not r.startswith("relaylang")
        ]
        lacking = [f for f in packages if f.state != "ok"]
        purpose = _EXTRAS.get(extra, "")
        says = ", ".join(f"{f.name} is missing" if f.state == "missing" else f"{f.name} {f.says}" for f in lacking or packages)
        if not lacking:
            yield Finding("extra", extra, "ok", says)
            continue
        # old packages matter only where somebody installed the whole extra: Python may bring one of them itself
        wrong = [f for f in lacking if f.state == "broken"]
        state = "missing"
        if wrong == lacking:
            state, says = "broken", ", ".join(f"{f.name} {f.says}" for f in wrong)
        yield Finding("extra", extra, state, f"{purpose}: {says}" if purpose else says, repair)


def _compiler() -> Finding:
    try:
        command = find_compiler(None)
    except RelayError as wrong:
        notes = wrong.diagnostics[0].notes
        return Finding("compiler", os.environ.get("CC") or "cc", "missing", wrong.diagnostics[0].title, notes[0] if notes else "")
    done = ask(command, "--version")
    if done is None:
        return Finding("compiler", os.environ.get("CC") or "cc", "broken", "it does not answer")
    version = done.text().splitlines()[0] if done.out else "it prints no version"
    return Finding("compiler", " ".join(command), "ok", f"{program(command[0])}: {version}")


def _backends(compiler: Finding, quick: bool) -> Iterator[Finding]:
    for name, backend in BACKENDS.items():
        if name == "c":
            yield _cpu(compiler, quick)
            continue
        extra = name.replace("-", "")
        lacking = [f for f in _extras() if f.name == extra and f.state != "ok"]
        if lacking:
            yield Finding("backend", name, "missing", f"{backend.doc}: its packages are not there", lacking[0].repair)
        else:
            yield Finding("backend", name, "ok", backend.doc)


def _added() -> Iterator[Finding]:
    """The plugins of installed packages, each imported as a test."""
    for group, what in GROUPS.items():
        for name in installed_names(group):
            package = package_of(group, name)
            try:
                load_installed(group, name)
                yield Finding("plug-in", name, "ok", f"a{'n' if what[0] in 'aeio' else ''} {what} of {package}")
            except RelayError as wrong:
                repair = f"pip uninstall {package}"
                yield Finding("plug-in", name, "broken", wrong.diagnostics[0].title, repair)


def _cpu(compiler: Finding, quick: bool) -> Finding:
    if compiler.state != "ok":
        return Finding("backend", "c", "missing", "compiling needs a C compiler", compiler.repair)
    if quick:
        return Finding("backend", "c", "ok", BACKENDS["c"].doc)
    began = time.perf_counter()
    x = np.array([1, -2, 3, -4], np.float32)
    try:
        y: Any = compile_module(_program(), "c").run(x=x)
    except RelayError as wrong:
        return Finding("backend", "c", "broken", f"compiling a program fails: {wrong.diagnostics[0].title}")
    except Exception as e:
        return Finding("backend", "c", "broken", f"compiling a program fails: {type(e).__name__}: {e}")
    if not np.array_equal(np.asarray(y), np.maximum(x + x, 0)):
        return Finding("backend", "c", "broken", f"a compiled program gives {y} for {x}, which is wrong")
    return Finding("backend", "c", "ok", f"compiled and ran a program in {time.perf_counter() - began:.1f} s")
