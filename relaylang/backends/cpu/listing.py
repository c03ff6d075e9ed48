"""`relay compile --emit loops`: a program's kernels in the loop language, each with the lines that it came from.

Kernels, micro-kernels and packings have the names that they have in the C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylang.backends.cpu.emit import Emitter
from relaylang.backends.cpu.kernel import Kernel
from relaylang.backends.cpu.kernel_code import printable
from relaylang.backends.cpu.origin import origins
from relaylang.backends.cpu.program import Branch, Copy, Instruction, Looped, Outside, PackIn, Program, Run, Slot, Turns, View, every
from relaylang.backends.cpu.schedule_space import PROGRAM, row, written
from relaylang.kernels import ir, text, visit
from relaylang.kernels.device import Language, Module, Unrendered
from relaylang.kernels.dtypes import SIZES


class _Page:
    def __init__(self, program: Program, emitter: Emitter) -> None:
        self.emitter = emitter
        self.names = {"input": [name for name, _, _ in program.inputs], "param": [name for name, _ in program.params]}
        self.lines: list[str] = []
        self.done: set[str] = set()
        #: The functions, kernels and packings, in the order of their first use.
        self.parts: list[list[str]] = []

    def slot(self, place: Slot | View) -> str:
        """The place of a tensor, in bytes: an input's or a parameter's name, an output, or an offset in memory."""
        start = place.start * SIZES[place.slot.dtype] if isinstance(place, View) else 0
        slot = place.slot if isinstance(place, View) else place
        if slot.kind == "made":
            return f"{'fixed' if slot.fixed else 'arena'}+{slot.offset + start}"
        name = self.names[slot.kind][slot.number] if slot.kind in self.names else f"output {slot.number}"
        name = f"%{name}" if slot.kind in self.names and name.isidentifier() else name
        return f"{name}+{start}" if start else name

    def inside(self, region: Program, pad: str) -> None:
        """The instructions of a program inside this one, which has inputs of its own. Programs lie in a few others at most."""
        outer = self.names["input"]
        self.names["input"] = [name for name, _, _ in region.inputs]
        self.instructions(region.run, pad)
        self.names["input"] = outer

    def instructions(self, items: Sequence[Instruction], pad: str = "  ") -> None:
        stack: list[Instruction | str] = list(reversed(items))
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                if item:
                    self.lines.append(pad[:-2] + item)
                else:
                    pad = pad[:-2]
            elif isinstance(item, Branch):
                self.lines.append(f"{pad}if {self.slot(item.cond)}")
                pad += "  "
                stack += ["", *reversed(item.no), "else", *reversed(item.yes)]
            elif isinstance(item, Turns):
                flow = f"({', '.join(map(self.slot, item.inputs))}) -> {', '.join(map(self.slot, item.results))}"
                self.lines.append(f"{pad}{item.op.turns} turns{flow}")
                self.inside(item.region, pad + "  ")
            elif isinstance(item, Looped):
                self.lines.append(
                    f"{pad}functions({', '.join(map(self.slot, item.inputs))}) -> {', '.join(map(self.slot, item.outputs))}"
                )
                for number, region in item.regions.items():
                    self.lines.append(f"run_{number}")
                    self.inside(region, "  ")
            else:
                self.lines.append(pad + self.instruction(item))

    def instruction(self, item: Run | PackIn | Copy | Outside) -> str:
        read: Sequence[Slot | View] = [*item.read, *item.packs] if isinstance(item, Run) else item.reads()
        written: Sequence[Slot | View] = item.results if isinstance(item, Run) else item.outputs
        flow = f"({', '.join(map(self.slot, read))}) -> {', '.join(map(self.slot, written))}"
        if isinstance(item, Copy):
            return f"copy{flow}"
        if isinstance(item, Outside):
            return f"external {item.op.region.symbol} of {item.op.region.compiler}{flow}"
        if isinstance(item, PackIn):
            name = self.emitter.code.pack(item, sized=False)
            if self.new(name):
                buffers = [*(("in", b) for b in item.pack.sources), ("out", item.pack.target)]
                self.parts.append(text.kernel(text.Part(name, buffers, item.pack.body, pack=True)))
            return f"{name}{flow}"
        names = [name for name, _ in self.emitter.code.kernel(item, sized=False)]
        self.kernel(item.kernel, names)
        return f"{' '.join(names)}{flow}"

    def new(self, name: str) -> bool:
        known = name not in self.done
        self.done.add(name)
        return known

    def kernel(self, kernel: Kernel, names: Sequence[str]) -> None:
        shared = self.emitter.code.shared[id(kernel)]
        for function in kernel.functions:
            if self.new(shared[function.name]):
                own = ir.Function(shared[function.name], function.params, _renamed(function.body, shared), function.doc)
                self.parts.append(text.function(own))
        for name, stage in zip(names, kernel.stages):
            if not self.new(name):
                continue
            notes = list(self.emitter.code.notes[name])
            if kernel.space.choice:
                choice = ", ".join(f"{knob} = {value}" for knob, value in kernel.space.choice.items())
                notes.append(f"schedule {kernel.key}: {choice}")
            used = visit.names(stage.body)
            buffers = [
                (kind, buf)
                for kind, bufs in (
                    ("in", kernel.params),
                    ("packed", [p.target for p in kernel.packs]),
                    ("out", kernel.outs),
                    ("work", [*kernel.work, kernel.fault]),
                    ("table", [b for b, _ in kernel.constants]),
                )
                for buf in bufs
                if buf.name in used
            ]
            self.parts.append(text.kernel(text.Part(name, buffers, _renamed(stage.body, shared), notes)))


def _renamed(body: ir.Body, names: Mapping[str, str]) -> ir.Body:
    """Statements whose calls have the names that functions have in the C."""
    return [
        ir.Call(names.get(stmt.name, stmt.name), stmt.args)
        if isinstance(stmt, ir.Call)
        else visit.rebuilt(stmt, lambda value: value, lambda inner: _renamed(inner, names))
        for stmt in body
    ]


def for_device(program: Program, language: Language, title: str) -> str:
    """The kernels of a program in a device's language, each with the lines that it came from.

    A comment names the kernels that have what no device does.
    """
    module = Module(language)
    done: set[int] = set()
    left: list[str] = []
    for item in every([*program.prepare, *program.run]):
        if isinstance(item, Run) and id(item.kernel) not in done:
            done.add(id(item.kernel))
            notes = [printable(line) for line in (item.text, *origins(item.function))]
            try:
                module.add(item.kernel, notes)
            except Unrendered as reason:
                left.append(f"// left out: {notes[0]}, for {reason}")
    return "\n".join([f"// {title}", *left, module.text()])


def spaces(program: Program) -> str:
    """The knobs of the program and of each kernel, and their values, as a file that `-schedule` reads."""
    rows = [row(PROGRAM, program.space)]
    done: set[str] = set()
    for item in every([*program.prepare, *program.run]):
        if isinstance(item, Run) and item.kernel.key not in done and item.kernel.space.knobs:
            done.add(item.kernel.key)
            rows.append(row(item.kernel.key, item.kernel.space, item.text, origins(item.function)))
    return written(rows)


def listing(program: Program, emitter: Emitter, title: str) -> str:
    """The program as text. The emitter has made its C."""
    page = _Page(program, emitter)
    for name, items in (("prepare", program.prepare), ("run", program.run)):
        if items:
            page.lines.append(name)
            page.instructions(items)
    head = [
        f"# {title}",
        f"# instruction set: {emitter.isa.name}; arena: {program.arena_bytes} bytes; prepared: {program.fixed_bytes} bytes",
        "",
    ]
    return "\n".join([*head, *page.lines, *[line for part in page.parts for line in ("", *part)]]) + "\n"
