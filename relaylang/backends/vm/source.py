"""The C of a program: the machine's loop, the kernels, and a table of the kernels. The loop is the same for all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from relaylang.backends.cpu.cc import Unit
from relaylang.backends.cpu.emit import Emitter
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.program import Program
from relaylang.backends.vm.kernels import RegionCode, Shapes
from relaylang.backends.vm.scalars import cases, labels, rows
from relaylang.runtime.vm.instructions import BASE, DTYPE_NUMBERS
from relaylang.runtime.vm.program import VERSION

_ARGUMENTS = "(const void* const* in, void* const* out, const void* const* params, char* fixed, char* arena, int threads)"
_SHOWN = """\
#if defined(_WIN32)
#define R_SHOWN __declspec(dllexport)
#else
#define R_SHOWN __attribute__((visibility("default")))
#endif
"""
_REGIONS = f"""\
typedef struct {{
  void (*prepare){_ARGUMENTS};
  void (*run){_ARGUMENTS};
  int (*shapes)(const int64_t* d, const void* const* x, int64_t* o);
  const char* interface;
}} r_region;
"""


@cache
def about() -> str:
    """What a library says of its machine: version and instructions, as JSON. A program's file must say the same."""
    return json.dumps({"version": VERSION, "instructions": [*[i.name for i in BASE], *[row.name for row in rows()]]})


def _batch(number: int, inputs: int, steps: Sequence[int], status: int | None) -> str:
    """A function that runs a region's code for each slice. Its count is the region's only size. `status` is where a slice
    says in the arena how it failed."""
    places = [*(f"in[{n}]" for n in range(inputs)), *(f"out[{n}]" for n in range(len(steps) - inputs))]
    slices = [f"(char*){place} + n * {step}L" for place, step in zip(places, steps)]
    return (
        f"void run_{number}{_ARGUMENTS} {{\n"
        f"  const int64_t count = *(const int64_t*)in[{inputs}];\n"
        "  for (int64_t n = 0; n < count; n++) {\n"
        f"    const void* const from[] = {{{', '.join(slices[:inputs]) or '0'}}};\n"
        f"    void* const to[] = {{{', '.join(slices[inputs:])}}};\n"
        f"    slice_{number}(from, to, params, fixed, arena, threads);\n"
        f"    if (r_stopped(){f' || *(const int64_t*)(arena + {status})' if status is not None else ''}) return;\n"
        "  }\n}"
    )


def _shapes(number: int, shapes: Shapes) -> str:
    """A function that computes a region's memory, sizes and results' extents (`o`) from its inputs' extents (`d`) and elements
    (`x`). It returns 0, or the number of the check that fails, counted from 1; -1 where the results have no elements."""
    empty, count = shapes.empty, len(shapes.sizes)
    arguments = "(const int64_t* d, const void* const* x, int64_t* o)"
    lines = []
    if empty is not None:
        lines += [f"static int empty_{number}{arguments} {{", *_definitions(empty.sizes)]
        lines += [f"  if (!({check})) return 0;" for check in empty.checks]
        lines += [*(f"  o[{n}] = {text};" for n, text in enumerate(empty.extents, 1 + count)), "  return 1;", "}", ""]
    lines += [f"static int shapes_{number}{arguments} {{", *_definitions(shapes.sizes)]
    otherwise = f"empty_{number}(d, x, o) ? -1 : " if empty is not None else ""
    lines += [f"  if (!({check})) return {otherwise}{n};" for n, check in enumerate(shapes.checks, 1)]
    values = [shapes.arena, *(f"size{n}" for n in range(count)), *shapes.extents]
    return "\n".join([*lines, *(f"  o[{n}] = {text};" for n, text in enumerate(values)), "  return 0;", "}"])


def _definitions(sizes: Sequence[str]) -> list[str]:
    return [f"  const int64_t size{n} = {text};" for n, text in enumerate(sizes)]


class ProgramEmitter(Emitter):
    """Writes the kernels of several regions, and the machine that calls them. `interfaces` say what each kernel is called with."""

    def __init__(self, isa: Isa, threads: bool, regions: Sequence[RegionCode], interfaces: Sequence[str]) -> None:
        super().__init__(isa, threads)
        self.regions = regions
        self.interfaces = interfaces

    def _ends(self, program: Program) -> str:
        if self.ends:
            return self.ends
        parts, table = [], []
        self.code.share(region.program for region in self.regions)
        for n, (region, interface) in enumerate(zip(self.regions, self.interfaces)):
            self.begin(region.program)
            run = f"run_{n}" if region.slices is None else f"slice_{n}"
            self.sizes = f"in[{len(region.program.inputs)}]" if region.shapes is not None and region.slices is None else ""
            parts.append(self.sequence(run, region.program.run))
            self.sizes = ""  # weights are prepared before there are any
            parts.append(self.sequence(f"prepare_{n}", region.program.prepare, once=True))
            if region.slices is not None:
                parts.append(_batch(n, len(region.program.inputs), region.slices, region.program.status))
            if region.shapes is not None:
                parts.append(_shapes(n, region.shapes))
            shapes = f"shapes_{n}" if region.shapes is not None else "0"
            table.append(f"  {{prepare_{n}, run_{n}, {shapes}, {json.dumps(interface)}}},")
        begin, end = ("r_begin(threads); r_watch();", "r_end();") if self.threads else ("r_watch();", "")
        parts += [
            _SHOWN + _REGIONS,
            f"R_SHOWN const r_region relay_regions[] = {{\n{chr(10).join(table) or '  {0, 0, 0, 0},'}\n}};\n"
            f"R_SHOWN const int32_t relay_region_count = {len(self.regions)};",
            *self._calls("R_SHOWN"),
            f"// Before kernels are called.\nvoid relay_vm_threads(int threads) {{ {begin} }}",
            f"// End the threads. Afterwards the library may be unloaded.\nR_SHOWN void relay_close(void) {{ {end} }}\n",
        ]
        self.ends = "\n\n".join(parts)
        return self.ends

    def loop(self) -> Unit:
        """The unit of the machine's loop."""
        head = ["#define R_LOCAL static", f"#define R_INT32 {DTYPE_NUMBERS['int32']}", f"#define R_LABELS {labels()}"]
        folder = files(f"{__package__}.csrc")
        values, exchange, loop = (folder.joinpath(f"{name}.h").read_text(encoding="utf-8") for name in ("values", "exchange", "loop"))
        said = json.dumps(about())
        body = [
            _SHOWN + _REGIONS + "extern const r_region relay_regions[];\n"
            "void relay_vm_threads(int threads);\nint r_stopped(void);\n"
            f"R_SHOWN const char relay_vm_about[] = {said};",
            values,
            exchange,
            loop.replace("R_ROWS\n", cases() + "\n"),
        ]
        return Unit(self._text(head, body, {helper for row in rows() for helper in row.helpers}))

    def everything(self, title: str) -> str:
        """All of it as one text to read, and to keep where the compiler fails."""
        return self.whole([f"// {title}"], self._ends(None))  # type: ignore[arg-type]
