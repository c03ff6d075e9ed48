"""The backends by name, and target strings: `"ethos-u -accelerator=ethos-u55-256, c -num-threads=1"`.

A target is a name and options `-key=value` (`-key` alone is True); several targets are separated by commas. Quotes keep
spaces and commas in a value, as in a shell: `c -cflags="-O1 -DNAME='a b'"`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relaylang.backends.target import Target
from relaylang.diagnostics import Diagnostic, RelayError, did_you_mean, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.partition.targets import target_names
from relaylang.plugins.entrypoints import BACKEND_GROUP, installed_names, load_installed, package_of, wrong_plugin


@dataclass(frozen=True)
class Backend:
    """A backend of the registry: its name, its options with their types, and `compile_for`, or the module that holds
    it.

    `package` is the installed package that it is from, "" for our own. `ignored` are options that target strings have for
    other compilers, each with the reason why it has no effect. `renamed` are names of other compilers for options.
    """

    module: str = ""
    doc: str = ""
    options: Mapping[str, type] = field(default_factory=dict)
    compile_for: Callable[..., Any] | None = None
    package: str = ""
    ignored: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)


_DEVICE = "it chooses schedules in TVM; here -mcpu and -mattr say what the processor has"
_MATHS = "results keep the interpreter's values; -cflags passes flags to the compiler"
_FORM = "a program has one form here: a library with its weights"
#: Options of TVM's targets `llvm` and `c` that have no effect, with reasons.
TVM_OPTIONS: dict[str, str] = {
    "device": _DEVICE, "model": _DEVICE, "keys": _DEVICE, "tag": _DEVICE,
    "num-cores": "-num-threads=N limits the threads of a run", "libs": "no libraries of kernels are called",
    "vector-width": _DEVICE, "opt-level": "-cflags=-O3 sets the compiler's level",
    **dict.fromkeys(("fast-math", "fast-math-nnan", "fast-math-ninf", "fast-math-nsz", "fast-math-arcp", "fast-math-contract",
                     "fast-math-reassoc"), _MATHS),
    **dict.fromkeys(("link-params", "system-lib", "executor", "runtime", "interface-api", "unpacked-api", "jit", "cl-opt",
                     "workspace-byte-alignment", "constants-byte-alignment", "from-device", "target-device-type", "host"), _FORM),
}  # fmt: skip
#: Options of TVM's target `ethos-u` that have no effect.
_CASCADER = dict.fromkeys(
    (
        "enable-cascader",
        "enable-striping",
        "disable-copying-constants",
        "dev-force-block-config",
        "dev-max-open-plans",
        "dev-max-closed-plans",
        "dev-select-proposal-idx",
        "dev-disable-pareto-plans",
        "dev-disable-pareto-proposals",
        "dev-disable-block-culling",
        "dev-cascader-logging",
    ),
    "Vela divides the work: see -optimise and -memory-mode",
)

#: Every backend by its name. The modules are imported when they are used.
BACKENDS: dict[str, Backend] = {
    "c": Backend(
        "relaylang.backends.cpu",
        "C source, compiled to a shared library for this machine's CPU",
        {
            "cc": str,
            "cflags": str,
            "num-threads": int,
            "march": str,
            "keep-c": str,
            "profile": bool,
            "keep-values": bool,
            "schedule": str,
            "tuning": str,
            "winograd": int,
            "mtriple": str,
            "mcpu": str,
            "mattr": str,
            "mfloat-abi": str,
            "mabi": str,
            "cross-compiler": str,
            "cross-compiler-options": str,
        },
        ignored=TVM_OPTIONS,
        renamed={"target": "mtriple"},
    ),
    "ethos-u": Backend(
        "relaylang.backends.ethosu",
        "Arm Ethos-U command stream, through TOSA and Vela",
        {"accelerator": str, "memory-mode": str, "system-config": str, "optimise": str, "arena-cache-size": int, "npu-only": bool},
        ignored=_CASCADER,
        renamed={"accelerator-config": "accelerator"},
    ),
    "cmsis-nn": Backend(
        "relaylang.backends.cmsis_nn",
        "calls of CMSIS-NN for Arm Cortex-M, in C source",
        {"path": str, "approximate": bool},
        ignored=dict.fromkeys(("mcpu", "mattr", "debug-last-error"), "the flags of the C compiler choose CMSIS-NN's code"),
    ),
    "vta": Backend(
        "relaylang.backends.vta",
        "instructions of VTA, TVM's open accelerator, which a simulator runs",
        {
            "config": str,
            **dict.fromkeys(("batch", "block", "block-in", "block-out"), int),
            **dict.fromkeys(("log-uop-buff", "log-inp-buff", "log-wgt-buff", "log-acc-buff"), int),
            **dict.fromkeys(("dram-bandwidth", "dram-latency"), int),
        },
        ignored=dict.fromkeys(("device", "keys", "model", "host", "tag"), "the configuration says what the accelerator is"),
    ),
}
#: Other names that people write for a backend.
ALIASES: dict[str, str] = {"cpu": "c", "llvm": "c", "ethosu": "ethos-u", "ethos_u": "ethos-u"}

#: A quoted part of a target string, and a word. A backslash before a space, a quote or a backslash stands for that
#: character.
_QUOTED = r"""(?:\\[\s"'\\]|"(?:\\["\\]|\\(?!["\\])|[^"\\])*"|'[^']*')"""
_WORD = re.compile(rf"""(?:{_QUOTED}|[^\s"'])+""")
#: TVM writes lists of names without quotes: -keys=arm_cpu,cpu.
_NAMES = r"""(?<=\s)--?(?:keys|libs)=[\w.-]+(?:,[\w.-]+)*"""
_TARGET = re.compile(rf"""[^,\s](?:{_NAMES}|{_QUOTED}|[^,"']|,(?!\s*[A-Za-z]))*""")
_PART = re.compile(r"""\\([\s"'\\])|"((?:\\["\\]|\\(?!["\\])|[^"\\])*)"|'([^']*)'""")


def _unquoted(text: str) -> str:
    """A word without its quotes."""

    def plain(part: re.Match[str]) -> str:
        if part[1] is not None:
            return part[1]
        return re.sub(r"""\\(["\\])""", r"\1", part[2]) if part[2] is not None else part[3]

    return _PART.sub(plain, text)


def find_backend(name: str) -> Backend | None:
    """The backend of a name, None if there is none. A backend of an installed package is imported now.

    A package's entry point is a `Backend`, or a module or object with `compile_for`. It may also have `doc` and
    `options`. Raises `RelayError` (R0512) if it cannot be loaded or is no backend.
    """
    known = BACKENDS.get(name)
    if known is not None:
        return known
    plugin = load_installed(BACKEND_GROUP, name)
    if plugin is None:
        return None
    compile_for = getattr(plugin, "compile_for", None)
    if not callable(compile_for) and not getattr(plugin, "module", ""):
        raise wrong_plugin(BACKEND_GROUP, name, "has no function compile_for")
    options = getattr(plugin, "options", None) or {}
    kinds = (int, float, str, bool)
    if not isinstance(options, Mapping) or not all(isinstance(k, str) and v in kinds for k, v in options.items()):
        raise wrong_plugin(BACKEND_GROUP, name, "has options that are no names with int, float, str or bool")
    said = getattr(plugin, "doc", None) or (getattr(plugin, "__doc__", None) if not isinstance(plugin, Backend) else None)
    doc = str(said or "").strip().partition("\n")[0]
    module = plugin.module if isinstance(plugin, Backend) else ""
    BACKENDS[name] = Backend(module, doc, dict(options), compile_for, package_of(BACKEND_GROUP, name))
    return BACKENDS[name]


def backend_names() -> list[str]:
    """The names of all backends, those of installed packages included, which are not imported for it."""
    return [*BACKENDS, *[name for name in installed_names(BACKEND_GROUP) if name not in BACKENDS]]


def _option(target: str, key: str, value: Any, span: Span | None) -> Any:
    backend = find_backend(target)
    assert backend is not None
    known = backend.options
    kind = known.get(key)
    if kind is None and key in backend.ignored:
        return value
    if kind is None:
        near = did_you_mean(key, known)
        notes = [f"did you mean -{near}?"] if near else []
        notes.append(f"its options: {', '.join('-' + k for k in known)}" if known else "it has none")
        raise RelayError(error("R0602", f"target {target} has no option -{key}", span, notes=notes))
    try:
        if value is True and kind is not bool:
            raise ValueError
        return kind(value)
    except (TypeError, ValueError):
        wanted = {int: "a whole number", str: "a text"}.get(kind, kind.__name__)
        raise RelayError(error("R0602", f"option -{key} of target {target} wants {wanted}", span)) from None


def _key(target: str, name: str) -> str:
    """An option's name as a target has it: with dashes, and its own name for one of another compiler."""
    name = name.replace("_", "-")
    backend = find_backend(target)
    return backend.renamed.get(name, name) if backend is not None else name


def ignored_options(targets: Sequence[Target]) -> list[Diagnostic]:
    """A note for each option of some targets that has no effect."""
    out = []
    for target in targets:
        backend = find_backend(target.name)
        for key in target.options:
            if backend is not None and key in backend.ignored:
                title = f"the option -{key} of target {target.name} has no effect: {backend.ignored[key]}"
                out.append(error("R0602", title, severity="note"))
    return out


def with_options(target: Target, more: Mapping[str, Any]) -> Target:
    """The target with further options, checked; `num_threads` and `num-threads` are the same. Raises `RelayError`."""
    options = dict(target.options)
    for key, value in more.items():
        name = _key(target.name, key)
        if value is not None:
            options[name] = _option(target.name, name, value, None)
    return Target(target.name, options)


def _line(name: str) -> str:
    known = BACKENDS.get(name)
    return f"{name}: {known.doc}" if known is not None else f"{name}: from the package {package_of(BACKEND_GROUP, name)}"


def _backend_name(name: str, span: Span | None) -> str:
    """The backend's own name for a name of it. Raises `RelayError` (R0601)."""
    name = ALIASES.get(name, name)
    if find_backend(name) is None:
        near = did_you_mean(name, [*backend_names(), *ALIASES])
        notes = [f"did you mean {ALIASES.get(near, near)}?"] if near else []
        if name in target_names():
            notes = [f"{name} has a pattern table, and no compiler: relay partition --target {name}"]
        notes += [_line(known) for known in backend_names()]
        raise RelayError(error("R0601", f"unknown target {name}", span, notes=notes))
    return name


def split_targets(text: str) -> list[str]:
    """The targets of a target string as texts, in order; their names need not be known. JSON is one target."""
    return [text] if text.lstrip().startswith("{") else [part.group().strip() for part in _TARGET.finditer(text)]


def _from_json(text: str) -> Target:
    """A target from TVM's JSON for one. Raises `RelayError` (R0601, R0602)."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise RelayError(error("R0602", "the target begins as JSON, and is none", notes=['write {"kind": "c"}'])) from None
    kind = fields.pop("kind", None)
    if not isinstance(kind, str):
        raise RelayError(error("R0601", 'the target has no kind: write {"kind": "c"}'))
    options = {}
    name = _backend_name(kind, None)
    for key, value in fields.items():
        plain = ",".join(map(str, value)) if isinstance(value, list) else value
        options[key] = json.dumps(plain) if isinstance(plain, dict) else plain
    return with_options(Target(name), options)


def parse_target(text: str) -> list[Target]:
    """The targets of a target string, in order. Raises `RelayError` for unknown names and options.

    A comma separates targets where a name follows it, so that an option's value may hold commas (`-mattr=+a,+b`).
    A target of TVM may be JSON, too: `{"kind": "llvm", "mcpu": "skylake"}`.
    """
    if text.lstrip().startswith("{"):
        return [_from_json(text)]
    source = SourceFile("<target>", text)
    targets: list[Target] = []
    open_quote = re.search(r"[\"']", re.sub(_QUOTED, lambda q: " " * len(q[0]), text))
    if open_quote:
        where = Span(source, open_quote.start(), len(text))
        raise RelayError(error("R0602", f"the quote {open_quote[0]} is not closed", where))
    for part in _TARGET.finditer(text):
        words = list(_WORD.finditer(part.group()))
        at = part.start()
        spans = [Span(source, at + w.start(), at + w.end()) for w in words]
        name = _backend_name(words[0].group(), spans[0])
        options: dict[str, Any] = {}
        for word, span in zip(words[1:], spans[1:]):
            flag = re.fullmatch(r"--?([A-Za-z][\w-]*)(?:=(.*))?", word.group(), re.S)
            if flag is None:
                raise RelayError(error("R0602", f"`{word.group()}` is not an option", span, notes=["write options as -key=value"]))
            key = _key(name, flag[1])
            options[key] = _option(name, key, True if flag[2] is None else _unquoted(flag[2]), span)
        targets.append(Target(name, options))
    if not targets:
        raise RelayError(error("R0601", "the target is empty", notes=[f"targets: {', '.join(backend_names())}"]))
    return targets
