"""The C of a program: helpers, the functions of kernels (`kernel_code`), and the two that run them in order.

It is one file to read (`Emitter.file`), and several to compile side by side (`Emitter.units`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from relaylang.backends.cpu.cc import Unit
from relaylang.backends.cpu.fragments import fragments, needed
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.kernel import Stage
from relaylang.backends.cpu.kernel_code import KernelCode, sizes_of
from relaylang.backends.cpu.program import Branch, Copy, Instruction, Looped, Outside, PackIn, Program, Run, Slot, Turns, View
from relaylang.backends.cpu.units import Piece, reached, shared_out
from relaylang.kernels.dtypes import CTYPES, SIZES, literal
from relaylang.kernels.sizes import Size, sizes_in
from relaylang.runtime.failures import RANGE, STATUS

#: The most instructions of one C function; compilers slow down on longer ones.
CHUNK = 300
#: A loop's turn of so few instructions looks once in so many turns whether the run ends.
_SHORT, _SELDOM = 16, 16

#: What a file calls of the pool of threads (`csrc/threads.h`).
_POOL = """void r_begin(int count);
void r_end(void);
int r_parallel(r_site* site, r_kernel kernel, void* const* b, long units, long grain, int threads);"""

#: What it calls of the watch over a run (the same file).
_WATCH = """void r_watch(void);
int r_stopped(void);
int r_alone(r_site* site, r_kernel kernel, void* const* b, long lo, long units, long grain);"""


def _string(text: str) -> str:
    """A text of ASCII as a C string, in lines that compilers and people can take."""
    parts = [text[n : n + 100] for n in range(0, len(text), 100)] or [""]
    return "\n  ".join('"' + part.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"' for part in parts)


_ARGUMENTS = "(const void* const* in, void* const* out, const void* const* params, char* fixed, char* arena, int threads)"
_UNUSED = "  (void)in; (void)out; (void)params; (void)fixed; (void)arena; (void)threads;"
#: The tables of addresses that a run function is given.
_PLACES = {"input": "in", "param": "params", "output": "out"}


class Emitter:
    """Collects functions, each text once, and writes the file. Without `threads` the C knows of one thread only.

    `about` is the text that the library shows of itself (`relay_about`). `timed` has the number of each instruction
    whose time a run keeps.
    """

    #: Whether runs look for their end (`r_stopped`).
    watched = True

    def __init__(self, isa: Isa, threads: bool, about: str = "", timed: Mapping[int, int] | None = None) -> None:
        self.isa = isa
        self.threads = threads
        self.about = about
        self.timed = timed or {}
        self.code = KernelCode()
        #: The numbers of external codes, and the place in the arena where a run says which of them failed.
        self.externals: dict[int, int] = {}
        self.status: int | None = None
        self.ends = ""
        #: Where the sizes of the program lie, whose instructions are written.
        self.sizes = ""
        #: What the functions in the making use: pieces, helpers, and sizes.
        self.called: set[str] = set()
        #: The pieces that the functions which the library shows call, and whether they run once alone.
        self.shown: dict[str, bool] = {}
        self.helpers: set[str] = set()
        #: What the functions of loops use of `csrc/`.
        self.stated: set[str] = set()
        #: The number of loops so far.
        self.loops = 0
        self._read: set[str] = set()
        #: Whether the sequence in the making runs when the program is loaded alone.
        self._once = False
        #: The number of places so far where a run may end.
        self._stops = 0

    def _at(self, place: Slot | View) -> str:
        """The address of a slot or of a view's first element in the run function."""
        if isinstance(place, View):
            text = self._at(place.slot)
            if not place.start:
                return text
            text = text if place.slot.kind == "made" else f"(char*){text}"
            return f"{text} + {self._number(place.start * SIZES[place.slot.dtype])}"
        if place.kind == "made":
            return f"{'fixed' if place.fixed else 'arena'} + {self._number(place.offset)}"
        return f"{_PLACES[place.kind]}[{place.number}]"

    def _number(self, value: int) -> str:
        """A number, which may be a size, in the function in the making."""
        self._read.update(sizes_in(value))
        return str(value)

    def instruction(self, item: Instruction, pad: str) -> list[str]:
        """One instruction of a run function (branches are opened by the caller)."""
        if isinstance(item, Copy):
            source = item.source
            if source.slot is item.outputs[0]:
                return []
            size = self._number(source.size * SIZES[source.slot.dtype])
            return [f"{pad}memcpy({self._at(item.outputs[0])}, {self._at(source)}, {size});"]
        if isinstance(item, PackIn):
            places: list[Slot | View] = [*item.inputs, *item.outputs]
            name = self.code.pack(item, bool(self.sizes))
            self.called.add(name)
            return [f"{pad}{{ {self._array(places, self.code.extents[id(item.pack)])} {name}(b); }}"]
        if isinstance(item, Outside):
            return self._outside(item, pad)
        if isinstance(item, Turns):
            return self._turns(item, pad)
        assert isinstance(item, Run)
        return self._kernel_run(item, pad)

    def _kernel_run(self, item: Run, pad: str) -> list[str]:
        """The stages of a kernel, and the end of the run where they fail."""
        inputs = [view if n in item.kernel.reads else None for n, view in enumerate(item.inputs)]
        work = [item.work] if item.work is not None else []
        failure = [self._record("arena", self.status)] if item.kernel.sites else []
        calls, stages = [], self.code.kernel(item, bool(self.sizes))
        array = self._array([*inputs, *item.packs, *item.results, *work], self.code.extents[id(item.kernel)], failure)
        for name, stage in stages:
            same = self._same_place(item, stage)
            if same == "1":
                continue
            self.called.add(name)
            units = self._number(stage.units)
            if self._once or stage.units in (0, 1) or not (self.threads or self.watched):
                call = f"{name}(b, 0, {units});"
            else:
                call = f"r_parallel(&site, {name}, b, {units}, {stage.grain}, threads)"
                call = call if self.threads else f"r_alone(&site, {name}, b, 0, {units}, {stage.grain})"
                self._stops += self.watched
                call = f"{{ static r_site site; {f'if ({call}) return;' if self.watched else f'{call};'} }}"
            calls.append(f"if (!({same})) {call}" if same else call)
        calls += [f"if (*{place}) {{ r_failed({place}, {RANGE}, {item.first_site}); return; }}" for place in failure]
        self.helpers.update(["r_failed"] if failure else [])
        return [f"{pad}{{ {array} {' '.join(calls)} }}"]

    def _record(self, arena: str, status: int | None) -> str:
        """Where a run says how it failed."""
        assert status is not None
        return f"(int64_t*)({arena} + {self._number(status)})"

    def _same_place(self, item: Run, stage: Stage) -> str:
        """Whether a stage copies what lies in its place already: a condition in C, or "" for no."""
        if stage.copied is None or stage.copied not in item.kernel.in_place:
            return ""
        source, result = item.inputs[stage.copied], item.results[0]
        if self._at(source) == self._at(result):
            return "1"
        if (source.slot.kind, result.slot.kind) != ("input", "output"):
            return ""
        return f"b[{stage.copied}] == b[{len(item.inputs) + len(item.packs)}]"

    def _array(self, places: Sequence[Slot | View | None], extents: Sequence[int], more: Sequence[str] = ()) -> str:
        """The table `b` of a kernel: addresses (None: not read), `more`, and the program's sizes or the kernel's extents."""
        texts = [*("0" if p is None else self._at(p) for p in places), *more]
        texts += ["extents"] if extents else [self.sizes] if self.sizes else []
        array = ", ".join(f"(void*)({text})" for text in texts) or "(void*)0"
        numbers = f"static const int64_t extents[] = {{{', '.join(map(str, extents))}}}; " if extents else ""
        return f"{numbers}void* const b[] = {{{array}}};"

    def _outside(self, item: Outside, pad: str) -> list[str]:
        """A call of external code. Where it fails, the run ends, and the arena has its number."""
        number = self.externals[id(item.op)]
        if item.op.code.kind in ("c", "object"):
            symbol = item.op.region.symbol
            types = [*(f"const {CTYPES[v.slot.dtype]}*" for v in item.inputs), *(f"{CTYPES[v.slot.dtype]}*" for v in item.results)]
            places: list[Slot | View] = [*item.inputs, *item.results]
            if item.work is not None:
                types.append("void*")
                places.append(item.work)
            values = ", ".join(f"({t})({self._at(v)})" for t, v in zip(types, places))
            call = f"extern int32_t {symbol}({', '.join(types) or 'void'}); const int32_t r = {symbol}({values});"
        else:
            array = ", ".join(f"(void*)({self._at(v)})" for v in [*item.inputs, *item.results]) or "(void*)0"
            table = "extern int32_t (*relay_calls[])(void* const*);"
            call = f"{table} void* const b[] = {{{array}}}; const int32_t r = relay_calls[{number}](b);"
        failed = f"int32_t* s = (int32_t*){self._record('arena', self.status)}; s[0] = {number + 1}; s[1] = r; return;"
        return [f"{pad}{{ {call} if (r != 0) {{ {failed} }} }}"]

    def _turns(self, item: Turns, pad: str) -> list[str]:
        """A loop. A state in place lies where the result belongs. The last turn writes the others there, earlier turns in two
        places in turn."""
        name = f"turn_{self.loops}"
        self.loops += 1
        outer = self.called, self.helpers, self._read, self.status, self.sizes
        self.status = item.region.status
        if self.sizes:
            self.sizes = f"in[{len(item.inputs) + 1}]"
        stops = self._stops
        text = self.sequence(name, item.region.run, self._once)
        # Where a short turn goes through, few of the turns look.
        few = self._stops == stops and len(item.region.run) <= _SHORT
        stop = "" if not self.watched or self._once else f" if ({f'n % {_SELDOM} == 0 && ' if few else ''}r_stopped()) return;"
        self._stops += bool(stop)
        pieces = [f"{name}_{n}" for n in range(-(-len(item.region.run) // CHUNK))]
        self.called, self.helpers, self._read, self.status, self.sizes = outer
        self.code.add(name, text.replace("static void", "R_LOCAL void", 1), f"void {name}{_ARGUMENTS}", pieces, [])
        self.called.add(name)
        op, turns = item.op, self._number(item.op.turns)
        work = f"arena + {self._number(item.work.offset)}"
        if item.region.may_fail:
            inner, own = self._record(work, item.region.status), self._record("arena", self.status)
            stop = f" if (*{inner}) {{ memcpy({own}, {inner}, {STATUS}); return; }}{stop}"
        at, taken, results, kept = item.region.arena_bytes, ["&turn"], [], []
        for number, (view, result) in enumerate(zip(item.inputs[: op.states], item.results)):
            size = self._number(result.size * SIZES[result.slot.dtype])
            kept.append(f"{pad}if ({turns} == 0) memcpy({self._at(result)}, {self._at(view)}, {size});")
            if number in item.in_place:
                results.append(f"(char*)({self._at(result)})")
                taken.append(f"n ? (const char*)({self._at(result)}) : (const char*)({self._at(view)})")
                continue
            first, second = (f"{work} + {self._number(at + n * view.slot.bytes)}" for n in range(2))
            at += 2 * view.slot.bytes
            taken.append(f"n ? (const char*)(n % 2 ? {first} : {second}) : (const char*)({self._at(view)})")
            results.append(f"n == {turns} - 1 ? (char*)({self._at(result)}) : n % 2 ? {second} : {first}")
        taken += [self._at(view) for view in item.inputs[op.states :]]
        for result, row in zip(item.results[op.states :], op.rows):
            step = self._number(prod(row.shape) * SIZES[row.dtype])  # type: ignore[arg-type]
            results.append(f"(char*)({self._at(result)}) + n * (long){step}")
        if self.sizes:
            taken.append(self.sizes)
        return [
            *(kept if isinstance(op.turns, Size) else ()),
            f"{pad}for (long n = 0; n < {turns}; n++) {{",
            f"{pad}  const {CTYPES[op.first.dtype]} turn = {literal(op.first.data.item(), op.first.dtype)} + n;",
            f"{pad}  const void* const taken[] = {{{', '.join(taken)}}};",
            f"{pad}  void* const given[] = {{{', '.join(results)}}};",
            f"{pad}  {name}(taken, given, params, fixed, {work}, threads);{stop}",
            f"{pad}}}",
        ]

    def begin(self, program: Program) -> None:
        """Take a program's external code into the table. The sequences that follow are the program's."""
        for op in program.externals:
            self.externals.setdefault(id(op), len(self.externals))
        self.status = program.status

    def sequence(self, name: str, items: Sequence[Instruction], once: bool = False) -> str:
        """A function that carries out instructions, cut into pieces where there are very many.

        With `once`, it runs when the program is loaded alone.
        """
        pieces = []
        self._once = once
        for start in range(0, len(items), CHUNK):
            lines: list[str] = []
            self.called, self.helpers, self._read = set(), set(), set()
            stack: list[Instruction | str] = list(reversed(items[start : start + CHUNK]))
            pad = "  "
            while stack:
                item = stack.pop()
                if isinstance(item, str):
                    if item == "else":
                        lines.append(pad[:-2] + "} else {")
                    else:
                        pad = pad[:-2]
                        lines.append(pad + "}")
                elif isinstance(item, Branch):
                    lines.append(f"{pad}if (*(const uint8_t*)({self._at(item.cond)})) {{")
                    pad += "  "
                    stack += ["end", *reversed(item.no), "else", *reversed(item.yes)]
                else:
                    lines += self._timed(item, self.instruction(item, pad), pad)
            piece = f"{name}_{start // CHUNK}"
            pieces.append(piece)
            self.shown[piece] = once
            head = [f"R_LOCAL void {piece}{_ARGUMENTS} {{", _UNUSED, *sizes_of(self._read, self.sizes)]
            helpers = ["r_site"] if self.threads or self.watched else []
            text = "\n".join([*head, *lines, "}"])
            self.code.add(piece, text, f"void {piece}{_ARGUMENTS}", self.called, [*helpers, *self.helpers])
        status = None if once else self.status
        place = f"*(int64_t*)(arena + {status})"
        ends = f" if ({place}) return;" if status is not None else ""
        between = " if (r_stopped()) return;" if self.watched and not once else ""
        stops = [*[between] * (len(pieces) - 1), ""]
        self._stops += len(pieces) - 1
        calls = [f"  {p}(in, out, params, fixed, arena, threads);{ends}{stop}" for p, stop in zip(pieces, stops)]
        if status is not None:
            calls = [*sizes_of(sizes_in(status), self.sizes), f"  {place} = 0;", *calls]
        return "\n".join([f"static void {name}{_ARGUMENTS} {{", _UNUSED, *calls, "}"])

    def _timed(self, item: Instruction, lines: list[str], pad: str) -> list[str]:
        """The lines of an instruction, between two looks at the clock if its time is wanted."""
        number = self.timed.get(id(item))
        if number is None:
            return lines
        self.helpers.add("r_stamp")
        begin, end = (f"{pad}relay_times[{2 * number + n}] = r_stamp();" for n in range(2))
        return [begin, *lines, end]

    def _looped(self, item: Looped) -> str:
        """The function that runs a program whose loops stay loops, and the functions that it calls."""
        parts = []
        status = self.status
        for number, region in item.regions.items():
            self.begin(region)
            parts.append(self.sequence(f"run_{number}", region.run))
        self.stated |= item.helpers
        where = f"  int64_t* const status = (int64_t*)(arena + {status});\n  status[0] = 0;"
        failed = f"  const int32_t failed = {item.call};\n  if (failed && !status[0]) status[0] = (uint32_t)-failed;"
        return "\n\n".join([*parts, item.text, f"static void run_all{_ARGUMENTS} {{\n{_UNUSED}\n{where}\n{failed}\n}}"])

    def _calls(self, shown: str) -> list[str]:
        """The table of external code, if there is any."""
        text = f"// Functions outside: the loader sets them.\n{shown} int32_t (*relay_calls[{len(self.externals)}])(void* const*);\n"
        return [text] if self.externals else []

    def _profile(self) -> str:
        """What a library that keeps its times has besides: the times, and the measurement of the processor's peaks."""
        if self.threads:
            call = "static r_site site; atomic_store(&site.cost, 1000000000L);\n  r_watch();\n  r_begin(threads);\n"
            call += "  r_parallel(&site, f, b, threads, 1, threads);"
        else:
            call = "f(b, 0, 1);"
        return (
            f"R_EXPORT int64_t relay_times[{2 * len(self.timed)}];\nR_EXPORT const long relay_steps = {len(self.timed)};\n\n"
            "// Do the work of a kind (0: floats, 1: small integers, 2: reads of `size` bytes) so many times on each thread.\n"
            "// Returns the multiply-adds or bytes of each.\n"
            "R_EXPORT int64_t relay_peak(int kind, void* memory, long size, long times, int threads) {\n"
            "  r_peak_work work = {memory, size, times};\n"
            "  void* const b[] = {&work};\n"
            "  void (*f)(void* const*, long, long) = kind == 0 ? r_peak_floats : kind == 1 ? r_peak_integers : r_peak_reads;\n"
            f"  {call}\n"
            "  return (int64_t)times * (kind == 2 ? size : 12 * (kind == 0 ? R_LANES : R_PEAK_INTEGERS));\n}\n"
        )

    def _ends(self, program: Program) -> str:
        """The two functions that the library shows, and what they call first."""
        if self.ends:
            return self.ends
        self.code.share([program])
        self.begin(program)
        first = program.run[0] if program.run else None
        run = self._looped(first) if isinstance(first, Looped) else self.sequence("run_all", program.run)
        self.begin(program)
        prepare = self.sequence("prepare_all", program.prepare, once=True)
        begin, end = ("  r_begin(threads);\n", "  r_end();\n") if self.threads else ("", "")
        begin += "  r_watch();\n" if self.watched else ""
        if self.timed:
            begin += f"  memset(relay_times, 0, {16 * len(self.timed)});\n"
        self.ends = "\n\n".join(
            [
                prepare,
                run,
                "#if defined(_WIN32)\n#define R_EXPORT __declspec(dllexport)\n#else\n"
                '#define R_EXPORT __attribute__((visibility("default")))\n#endif\n'
                "// What the functions below take, as JSON.\n"
                f"R_EXPORT const char relay_about[] = {_string(self.about)};\n\n"
                "// Fill `fixed` with what depends on the parameters alone.\n"
                "R_EXPORT void relay_prepare(const void* const* params, char* fixed, char* arena) {\n"
                "  prepare_all(NULL, NULL, params, fixed, arena, 1);\n}\n",
                "// Run the program on up to `threads` threads. Runs that are under way at once need an arena each.\n"
                "R_EXPORT void relay_run(const void* const* in, void* const* out, const void* const* params, char* fixed,\n"
                "                        char* arena, int threads) {\n"
                f"{begin}  run_all(in, out, params, fixed, arena, threads);\n}}\n",
                f"// End the threads. Afterwards the library may be unloaded.\nR_EXPORT void relay_close(void) {{\n{end}}}\n",
                *self._calls("R_EXPORT"),
                *([self._profile()] if self.timed else []),
            ]
        )
        return self.ends

    def _text(self, head: Sequence[str], body: Sequence[str], helpers: Iterable[str]) -> str:
        every = fragments()
        parts = [*[every[n].text for n in needed(helpers)], *body]
        watched = ["#define R_WATCHED"] if self.watched else []
        return "\n".join([*head, *watched, f"#define R_LANES {self.isa.lanes}"]) + "\n" + "\n\n".join(parts)

    @property
    def _common(self) -> set[str]:
        """What all files share of `csrc/`: the pool of threads, and the watch over a run."""
        return {*(["r_watch"] if self.watched else []), *(["r_threads"] if self.threads else [])}

    @property
    def _shared_declarations(self) -> list[str]:
        """What declares it in other files."""
        return [*([_WATCH] if self.watched else []), *([_POOL] if self.threads else [])]

    @property
    def _shown_helpers(self) -> list[str]:
        """What the functions that the library shows use of `csrc/`."""
        return sorted(self.stated | ({"r_stamp", "r_peaks"} if self.timed else set()))

    def file(self, program: Program, title: str) -> str:
        """The whole C text."""
        ends = self._ends(program)
        sizes = f"arena: {program.arena_bytes} bytes; prepared: {program.fixed_bytes} bytes"
        return self.whole([f"// {title}", f"// instruction set: {self.isa.name}; {sizes}"], ends)

    def whole(self, head: Sequence[str], ends: str, extra: Iterable[str] = ()) -> str:
        """One text of all functions, and others after them, which use `extra` helpers."""
        helpers = {*extra, *self._shown_helpers, *(h for p in self.code.pieces.values() for h in p.helpers)}
        helpers |= self._common
        pieces = ["\n".join([*(f"// {note}" for note in self.code.notes.get(p.name, ())), p.text]) for p in self.code.pieces.values()]
        return self._text([*head, "#define R_LOCAL static"], [*pieces, ends], helpers)

    def units(self, program: Program) -> list[Unit]:
        """The same as files that can be compiled side by side, the last with the functions that the library shows.

        The pool of threads and the watch are a file, which every program shares. So it is compiled once, and cached.
        """
        ends = self._ends(program)
        out = []
        repeated = reached(self.code.pieces, [name for name, once in self.shown.items() if not once])
        for once in (False, True):
            pieces = [p for p in self.code.pieces.values() if (p.name not in repeated) == once]
            out += [Unit(self._unit(group), once) for group in shared_out(pieces)]
        body = [*self._shared_declarations, *[self.code.pieces[n].declaration for n in sorted(self.shown)], ends]
        helpers = self._shown_helpers
        if self._common:
            out.append(Unit(self._text(["#define R_LOCAL"], [], self._common)))
            helpers = ["r_site", *helpers]
        out.append(Unit(self._text(["#define R_LOCAL"], body, helpers)))
        return out

    def _unit(self, group: Sequence[Piece]) -> str:
        called = dict.fromkeys(n for p in group for n in sorted(p.uses))
        body = [*self._shared_declarations, *[self.code.pieces[n].declaration for n in called]]
        helpers = {"r_site"} if self._common else set()
        helpers.update(h for p in group for h in p.helpers)
        return self._text(["#define R_LOCAL"], [*body, *[p.text for p in group]], helpers)
