"""Programs for microcontrollers without an operating system, as TVM's users know them.

    program = compile_bare_metal(mod, "ethos-u -accelerator=ethos-u55-256, c", params={"w": w})
    save(program, "net.tar")          # of `library_format`: TVM's Model Library Format

Accelerators take their parts. `relaylang.backends.aot` writes the rest as C, which calls these parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from relaylang.backends.aot import generate
from relaylang.backends.bare_metal import cmsis_nn, npu
from relaylang.backends.bare_metal.cmsis_layers import partitioned
from relaylang.backends.bare_metal.face import MicroFace
from relaylang.backends.bare_metal.host import host_library
from relaylang.backends.bare_metal.limits import check_workspace
from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.backends.ethosu import driver
from relaylang.backends.ethosu.artifact import RegionCode
from relaylang.backends.registry import parse_target
from relaylang.backends.target import Target
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Expr, IRModule
from relaylang.runtime.external import Generator
from relaylang.syntax import astext
from relaylang.typing import check

__all__ = ["ACCELERATORS", "compile_bare_metal"]

#: Options of the target c about the processor. Where no compiler is named, the user's own gets them.
_MACHINE = ("mcpu", "march", "mfloat-abi", "mabi")
#: The accelerators that a program may use, each once, in this order.
ACCELERATORS = ("ethos-u", "cmsis-nn")


def compile_bare_metal(
    mod: IRModule | Expr,
    target: str | Sequence[Target] = "c",
    params: Mapping[str, np.ndarray] | None = None,
    entry: str = "main",
    name: str = "default",
    workspace_limit: int | None = None,
) -> MicroProgram:
    """A function of a module as C with TVM's interface `c`. Accelerators stand in front of the target c.

    `name` is the module's: the C begins its names with `tvmgen_<name>`. `workspace_limit` are the bytes that a run may need.
    Raises `RelayError` (R0618 for a program over the limit).
    """
    targets = parse_target(target) if isinstance(target, str) else list(target)
    names = [t.name for t in targets]
    host = _portable(targets[-1])
    _check_targets(host, names)
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise RelayError(error("R0602", f"the module's name {name} is no name in C", notes=["letters, digits and _ make one"]))
    if not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    check(mod)
    text, values = astext(mod), dict(params or {})
    waiting = values
    prefix = f"tvmgen_{name}".lower()
    generators: dict[str, Generator] = {}
    regions: dict[str, RegionCode] = {}
    notes, path = [], ""
    for accelerator in targets[:-1]:
        if accelerator.name == "ethos-u":
            try:
                offloaded = driver.compile_regions(mod, accelerator.options, waiting, entry, f"{prefix}_")
            except RelayError as wrong:
                if not _left(wrong, accelerator, names):
                    raise
                notes += ["ethos-u: no region", *(f"  {note.title}" for note in wrong.diagnostics[1:])]
                continue
            mod, regions = offloaded.partitioned.module, offloaded.codes
            notes.append(offloaded.report.rstrip("\n"))
            generators[accelerator.name] = Generator(partial(npu.region_source, regions, prefix))
        else:
            parts = partitioned(mod, waiting, entry, f"{prefix}_", bool(accelerator.get("approximate", False)))
            mod, path = parts.module, accelerator.get("path", "")
            notes.append(parts.report())
            generators[accelerator.name] = Generator(partial(cmsis_nn.region_source, prefix))
        waiting = {}
    face = partial(MicroFace, static=True, external=False, npu=bool(regions), fast=npu.fast_bytes(regions))
    generated = generate(mod, host, waiting, entry, prefix, face, partial(host_library, host, path), generators=generators)
    if workspace_limit is not None:
        check_workspace(generated.face.workspace, workspace_limit, generated.kernels.programs.values())
    operators = [(f"run_{number}", program.arena_bytes) for number, program in generated.kernels.programs.items()]
    operators += [(op.region.symbol, op.code.workspace) for op, _ in generated.outside]
    fields = [[f.name for f in fields] for fields in (generated.face.inputs, generated.face.outputs)]
    return MicroProgram(generated.parts, name, text, values, [str(t) for t in targets], operators, regions, fields, "\n".join(notes))


def _check_targets(host: Target, names: Sequence[str]) -> None:
    """Raise `RelayError` for targets that a bare-metal program cannot have."""
    if host.name != "c":
        raise _wrong("the last target must be c", names)
    if names[:-1] != [known for known in ACCELERATORS if known in names]:
        raise _wrong(f"targets in front of c are {' and '.join(ACCELERATORS)}, each once, in this order", names)
    if int(host.get("num-threads") or 1) > 1:
        raise RelayError(error("R0602", f"option -num-threads={host.get('num-threads')}: a bare-metal program has one thread"))


def _left(wrong: RelayError, npu: Target, names: Sequence[str]) -> bool:
    """Whether an error says that the NPU takes nothing, and the next accelerator may have everything."""
    return wrong.diagnostics[0].code == "R0614" and "cmsis-nn" in names and not npu.get("npu-only")


def _portable(host: Target) -> Target:
    """The target without its processor where it names no compiler: the C is right for any."""
    if host.get("cc") or host.get("cross-compiler"):
        return host
    return Target(host.name, {key: value for key, value in host.options.items() if key not in _MACHINE})


def _wrong(what: str, names: Sequence[str]) -> RelayError:
    notes = ['for example: --target "ethos-u -accelerator=ethos-u55-256, c"']
    return RelayError(error("R0602", f"{', '.join(names)}: {what}", notes=notes))
