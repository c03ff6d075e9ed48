"""Programs for microcontrollers without an operating system, as TVM's users know them.

    program = compile_bare_metal(mod, "ethos-u -accelerator=ethos-u55-256, c", params={"w": w})
    save(program, "net.tar")          # of `library_format`: TVM's Model Library Format

Accelerators take their parts. `relaylang.backends.aot` writes the rest as C, which calls these parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from relaylang.backends.aot import generate
from relaylang.backends.bare_metal.face import MicroFace
from relaylang.backends.bare_metal.npu import region_source
from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.backends.ethosu import driver
from relaylang.backends.registry import parse_target
from relaylang.backends.target import Target
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Expr, IRModule
from relaylang.runtime.external import Generator, Region
from relaylang.syntax import astext
from relaylang.typing import check

__all__ = ["compile_bare_metal"]

#: The accelerators that a program may use, in the order of their targets.
_ACCELERATORS = ("ethos-u",)


def compile_bare_metal(mod: IRModule | Expr, target: str | Sequence[Target] = "c", params: Mapping[str, np.ndarray] | None = None,
                       entry: str = "main", name: str = "default") -> MicroProgram:  # fmt: skip
    """A function of a module as C with TVM's interface `c`. Accelerators stand in front of the target c.

    `name` is the module's: the C begins its names with `tvmgen_<name>`. Raises `RelayError`.
    """
    targets = parse_target(target) if isinstance(target, str) else list(target)
    *accelerators, host = targets
    wrong = [t.name for t in targets[:-1] if t.name not in _ACCELERATORS]
    if wrong or len({t.name for t in accelerators}) < len(accelerators):
        raise _wrong(f"targets in front of c are {', '.join(_ACCELERATORS)}, each once", targets)
    if host.name != "c":
        raise _wrong("the last target must be c", targets)
    if int(host.get("num-threads") or 1) > 1:
        raise RelayError(error("R0602", f"option -num-threads={host.get('num-threads')}: a bare-metal program has one thread"))
    if not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    check(mod)
    text, values, given = astext(mod), dict(params or {}), params
    prefix = f"tvmgen_{name}".lower()
    generators: dict[str, Generator] = {}
    regions: dict[str, Any] = {}
    notes = ""
    for accelerator in accelerators:
        offloaded = driver.compile_regions(mod, accelerator.options, values, entry, f"{prefix}_")
        mod, regions, notes, given = offloaded.partitioned.module, offloaded.codes, offloaded.report, None
        generators["ethos-u"] = Generator(partial(_npu, regions, f"{prefix}_ethos_u"))
    devices = ["ethos_u"] if regions else []
    face = partial(MicroFace, static=True, external=False, devices=devices)
    made = generate(mod, host, given, entry, prefix, face, generators=generators)
    operators = [(f"run_{number}", program.arena_bytes) for number, program in made.kernels.programs.items()]
    operators += [(op.region.symbol, op.code.workspace) for op, _ in made.outside]
    return MicroProgram(made.parts, name, text, values, [str(t) for t in targets], operators, regions,
                        [[f.name for f in fields] for fields in (made.face.inputs, made.face.outputs)], notes)  # fmt: skip


def _npu(regions: Mapping[str, Any], handle: str, region: Region) -> Any:
    return region_source(region, regions[region.symbol], handle)


def _wrong(what: str, targets: Sequence[Target]) -> RelayError:
    notes = ['for example: --target "ethos-u -accelerator=ethos-u55-256, c"']
    return RelayError(error("R0602", f"{', '.join(t.name for t in targets)}: {what}", notes=notes))
