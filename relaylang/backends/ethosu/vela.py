"""Arm's Ethos-U compiler: a TOSA file becomes a command stream, packed weights and an estimate of cycles and memory."""

from __future__ import annotations

import configparser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relaylang.backends.ethosu import vela_process
from relaylang.backends.ethosu.tools import load
from relaylang.backends.target import Target
from relaylang.diagnostics import Fix, RelayError, did_you_mean, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.diagnostics.suggest import edits

#: Accelerator -> (architecture, MACs per cycle and core, cores).
ACCELERATORS: dict[str, tuple[str, int, int]] = {
    **{f"ethos-u55-{n}": ("EthosU55", n, 1) for n in (32, 64, 128, 256)},
    "ethos-u65-256": ("EthosU65", 256, 1),
    "ethos-u65-512": ("EthosU65", 256, 2),
    **{f"ethos-u85-{n}": ("EthosU85", n, 1) for n in (128, 256, 512, 1024, 2048)},
}
DEFAULT_ACCELERATOR = "ethos-u55-256"
_SYSTEMS = {
    "EthosU55": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "EthosU65": ("Ethos_U65_Client_Server", "Dedicated_Sram_384KB"),
    "EthosU85": ("Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"),
}
#: Bytes of the driver's header, in front of the stream.
HEADER = 32
#: Memories inside the accelerator, which no report counts.
_INTERNAL = frozenset({"shram", "lutram"})


@dataclass(frozen=True)
class Settings:
    """What to compile for: an accelerator in a system, how its memories are used, and what to optimise.

    `without` names a feature of the compiler that it shall not use.
    """

    accelerator: str
    system_config: str
    memory_mode: str
    optimise: str
    arena_cache_size: int | None
    config: str = field(repr=False)
    without: str = ""

    @property
    def architecture(self) -> str:
        return ACCELERATORS[self.accelerator][0]

    @property
    def is_u85(self) -> bool:
        return self.architecture == "EthosU85"


@dataclass(frozen=True)
class Tensor:
    """An input or output of a compiled region: where the driver puts it. Sizes in bytes."""

    shape: tuple[int, ...]
    element_size: int
    region: int
    address: int
    size: int


@dataclass(frozen=True)
class Memory:
    """Peak use in bytes, and the traffic by kind of data: (bytes read, bytes written)."""

    name: str
    peak: int
    cycles: int
    traffic: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Layer:
    """One scheduled operation: estimated cycles and multiply-accumulates."""

    name: str
    operator: str
    cycles: int
    macs: int


@dataclass(frozen=True)
class Place:
    """A command that starts an operation: its byte in the driver's file, and its layer."""

    at: int
    layer: str
    cycles: int


@dataclass(frozen=True)
class Compiled:
    """A compiled region. `command_stream` begins with the driver's header COP1; sizes are bytes, times cycles."""

    command_stream: bytes = field(repr=False)
    weights: bytes = field(repr=False)
    weights_region: int
    scratch_size: int
    scratch_region: int
    scratch_fast_size: int
    scratch_fast_region: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    total_cycles: int
    npu_cycles: int
    macs: int
    operations: int
    original_weights: int
    encoded_weights: int
    memories: tuple[Memory, ...]
    layers: tuple[Layer, ...]
    places: tuple[Place, ...]


def settings(options: Mapping[str, Any]) -> Settings:
    """The settings of a target's options, checked against the compiler's own system description.

    Raises `RelayError` for unknown accelerators, systems and memory modes, and where the compiler is not installed.
    """
    accelerator = str(options.get("accelerator", DEFAULT_ACCELERATOR)).lower()
    if accelerator not in ACCELERATORS:
        raise _unknown(options, "accelerator", f"unknown accelerator {accelerator}", accelerator, list(ACCELERATORS))
    regor = load("ethosu.regor", "compiling for the Ethos-U")
    path = Path(str(regor.__file__)).parent / "config_files" / "Arm" / "vela.ini"
    config = path.read_text(encoding="utf-8")
    parser = configparser.ConfigParser()
    parser.read_string(config)
    system, memory = _SYSTEMS[ACCELERATORS[accelerator][0]]
    system = _section(parser, "System_Config", "system-config", options, system)
    memory = _section(parser, "Memory_Mode", "memory-mode", options, memory)
    kind = accelerator.split("-")[1].upper()
    if f"_{kind}_" not in system:
        known = [name for name in _names(parser, "System_Config") if f"_{kind}_" in name]
        raise _unknown(options, "system-config", f"{system} is no configuration of a system with {accelerator}", "", known)
    optimise = str(options.get("optimise", "Performance")).capitalize()
    if optimise not in ("Performance", "Size"):
        raise _unknown(options, "optimise", f"unknown optimise={optimise}", optimise, ["Performance", "Size"])
    size = options.get("arena-cache-size")
    if size is None:
        size = _inherited(parser, memory, "arena_cache_size")
    if size is not None and int(size) < 0:
        raise RelayError(error("R0602", f"arena-cache-size {size} is negative"))
    return Settings(accelerator, system, memory, optimise, None if size is None else int(size), config)


def _names(parser: configparser.ConfigParser, kind: str) -> list[str]:
    return [s.partition(".")[2] for s in parser.sections() if s.startswith(kind + ".")]


def _section(parser: configparser.ConfigParser, kind: str, option: str, options: Mapping[str, Any], default: str) -> str:
    name, known = options.get(option, default), _names(parser, kind)
    if name in known:
        return str(name)
    raise _unknown(options, option, f"unknown {option}={name}", str(name), known)


def _unknown(options: Mapping[str, Any], option: str, title: str, value: str, known: Sequence[str]) -> RelayError:
    """The error (R0602) for an unknown value of an option: its place in the target, and the nearest known one."""
    text = str(Target("ethos-u", options))
    head, option_text, _ = text.partition(f"-{option}=")
    start = len(head) + len(option_text)
    span = Span(SourceFile("<target>", text), start, start + len(str(options[option]))) if option_text else None
    names = {name: edits(value.lower(), name.lower(), 2) for name in known}
    near = did_you_mean(value, known) or min((n for n in names if names[n] <= 2), key=lambda n: names[n], default=None)
    near = near or next((name for name in known if value and name.endswith(f"-{value}")), None)
    notes = [f"did you mean {near}?"] if near else []
    fix = Fix(span, near, f"did you mean {near}?") if near and span is not None else None
    return RelayError(error("R0602", title, span, notes=[*(notes if fix is None else ()), f"known: {', '.join(known)}"], fix=fix))


def _inherited(parser: configparser.ConfigParser, mode: str, key: str) -> str | None:
    section = f"Memory_Mode.{mode}"
    for _ in range(8):
        if parser.has_option(section, key):
            return parser.get(section, key)
        if not parser.has_option(section, "inherit"):
            return None
        section = parser.get(section, "inherit")
    return None


class CompileError(Exception):
    """The compiler refused a graph, with a message of its own, or crashed."""


def compile_model(model: bytes, how: Settings, kind: str = "TOSA") -> Compiled:
    """Compile a file in memory: `kind` is TOSA or TFLITE. Raises `CompileError` with Vela's words where it refuses.

    Vela's native part runs in a process of its own, whose crash is a refusal, too.
    """
    regor = load("ethosu.regor", "compiling for the Ethos-U")
    architecture, macs, cores = ACCELERATORS[how.accelerator]
    config = (
        f"[architecture]\nmacs={macs}\ncores={cores}\n"
        f"[vela]\nsystem_config_name={how.system_config}\nmemory_mode_name={how.memory_mode}\n{how.config}"
    )
    limit = "" if how.arena_cache_size is None else f"arena_size_limit={how.arena_cache_size}\n"
    without = f"disable_feature={how.without}\n" if how.without else ""
    options = (
        "\n[compiler]\nenable_db=true\noutput_format=Raw\ncop_format=COP1\n"
        f"\n[scheduler]\noptimize={how.optimise}\n{limit}{without}cpu_tensor_alignment=16\n"
    )
    try:
        reply = vela_process.compiled(Path(str(regor.__file__)).parents[1], architecture, model, kind, config, options)
    except vela_process.Failure as problem:
        raise CompileError(str(problem)) from None
    return _compiled(reply)


def _compiled(reply: dict[str, Any]) -> Compiled:
    memories, tables = reply.pop("memories"), reply.pop("tables")
    lists: dict[str, Any] = {
        "inputs": tuple([Tensor(tuple(shape), *rest) for shape, *rest in reply.pop("inputs")]),
        "outputs": tuple([Tensor(tuple(shape), *rest) for shape, *rest in reply.pop("outputs")]),
        "memories": tuple([Memory(*memory) for memory in memories if memory[0].lower() not in _INTERNAL]),
        "layers": tuple(_layers(tables)),
        "places": tuple(_places(tables)),
    }
    return Compiled(**reply, **lists)


def _rows(tables: Mapping[str, Any], table: str) -> list[dict[str, str]]:
    """A table of the compiler's database."""
    header, rows = tables[table]
    return [dict(zip(header, row)) for row in rows]


def _layers(tables: Mapping[str, Any]) -> list[Layer]:
    return [Layer(row["name"], row["operator"], int(row["op_cycles"]), int(row["mac_count"])) for row in _rows(tables, "perf")]


def _places(tables: Mapping[str, Any]) -> list[Place]:
    layers = {row["id"]: row for row in _rows(tables, "perf")}
    return [
        Place(HEADER + int(row["offset"]), layers[row["scheduled_id"]]["name"], int(layers[row["scheduled_id"]]["op_cycles"]))
        for row in _rows(tables, "queue")
        if row["scheduled_id"] in layers
    ]
