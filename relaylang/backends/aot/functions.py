"""The C of a group of instances: a function whose loops and branches are those of C."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relaylang.backends.aot.instances import Cell, Group, Instance, Step
from relaylang.backends.aot.kernels import Kernels
from relaylang.backends.aot.layout import Home, Layout, nbytes
from relaylang.backends.aot.shapes import leaves
from relaylang.backends.cpu.program import Slot
from relaylang.backends.vm.scalars import Row, refusal
from relaylang.kernels.dtypes import CTYPES, literal

#: Turns of a loop between two looks whether the run ends; what runs kernels looks besides.
_LOOK = 1024
#: Blocks inside each other; compilers have a limit of their own. Beyond it there are jumps.
_DEPTH = 48


@dataclass(frozen=True)
class CFunction:
    """A function: its name, its text, the bytes of its frame, and the helpers of kernels' C that it uses."""

    name: str
    text: str
    frame: int
    helpers: frozenset[str]


class Functions:
    """The functions of a program, callees first. `prefix` begins the names of its errors."""

    def __init__(self, kernels: Kernels, prefix: str) -> None:
        self.kernels = kernels
        self.prefix = prefix
        self.made: dict[Instance, CFunction] = {}

    def write(self, groups: Sequence[Group], entry: Instance) -> list[CFunction]:
        """The functions of all groups; a group has one for each member that others call."""
        called = {entry}
        for group in groups:
            for member in group.members:
                called.update(s.what for s in member.steps if isinstance(s.what, Instance) and s.what.group is not group)
        for group in groups:
            for member in group.members:
                if member in called:
                    self.made[member] = _Writer(self, group, member).function(len(self.made))
        return list(self.made.values())

    def room(self, step: Step) -> int:
        """What a step needs of its function's frame."""
        if step.kind == "kernel":
            assert isinstance(step.what, int)
            return self.kernels.program(step.what).arena_bytes
        if isinstance(step.what, Instance) and step.what in self.made:
            return self.made[step.what].frame
        return 0


@dataclass
class _Block:
    """An `if` that is open: where its second part begins, and, in that part, where both meet."""

    other: str
    join: str | None = None


class _Writer:
    def __init__(self, functions: Functions, group: Group, entry: Instance) -> None:
        self.functions = functions
        self.entry = entry
        self.loops = group.loops
        self.members = [entry, *(m for m in group.members if m is not entry)] if self.loops else [entry]
        self.result = leaves(group.result)
        self.layout = Layout(self.members, functions.room)
        self.names: dict[Cell, str] = {}
        self.lines: list[str] = []
        self.helpers: set[str] = set()
        self.blocks: list[_Block] = []
        self.targets: set[str] = set()
        #: Numbers that several steps write, and parameters of a loop, are declared at the top.
        self.top: list[str] = []

    # --- names ---

    def _pointer(self, slot: Slot) -> str:
        return f"work + {slot.offset}"

    def _home(self, home: Home) -> str:
        root = home.root
        return self._pointer(root.slot) if root.slot is not None else self.elsewhere[root]

    def _name(self, cell: Cell) -> str:
        """A number, or the address of a tensor, as C."""
        if cell.data is not None:
            if cell.leaf.is_scalar:
                return literal(cell.data.item() if cell.leaf.dtype != "bfloat16" else float(cell.data), cell.leaf.dtype)
            return self.functions.kernels.constant(cell.data)
        if cell not in self.names:
            home = self.layout.homes.get(cell)
            self.names[cell] = f"v{len(self.names)}" if home is None else self._home(home)
        return self.names[cell]

    # --- the function ---

    def function(self, number: int) -> CFunction:
        name = f"f{number}_{re.sub(r'[^A-Za-z0-9]+', '_', self.entry.name).strip('_')}"
        for member in self.members:
            for n, cell in enumerate(member.params):
                self.names[cell] = f"p{n}" if member is self.entry else f"p{len(self.names)}_{n}"
        self.elsewhere = {home: f"r{n}" for n, home in self.layout.results.items()}
        self.elsewhere |= {home: f"next_{self.names[param]}" for param, home in self.layout.next.items()}
        prefix = self.functions.kernels.head
        params = [*prefix, *(f"{self._type(cell)} {self.names[cell]}" for cell in self.entry.params)]
        params += [f"{CTYPES[leaf.dtype]}* r{n}" if leaf.is_scalar else f"void* r{n}" for n, leaf in enumerate(self.result)]
        self.numbers = {member: number for number, member in enumerate(self.members)}
        if self.loops and self.functions.kernels.watched:
            self.top.append("unsigned looks = 0;")
        for member, place in self.numbers.items():
            if self.loops:
                self.lines.append(f"begin{place}:;" if len(self.members) > 1 else "for (;;) {")
            self._member(member, place)
            if self.loops and len(self.members) == 1:
                self.lines.append("}")
        for member in self.members:
            for cell in member.params:
                if member is not self.entry:
                    self.top.append(f"{self._type(cell)} {self.names[cell]} = 0;")
        for cell, (first, _) in self.layout.turns.items():
            self.top.append(f"char* next_{self.names[cell]} = {self._pointer(first)};")
        head = [
            f"// {self.entry.name}",
            f"static int32_t {name}({', '.join(params)}) {{",
            *(f"  (void){text.split()[-1]};" for text in prefix),
        ]
        body = [*self.top, *self.lines]
        return CFunction(name, "\n".join([*head, *_indented(body), "}"]), self.layout.bytes, frozenset(self.helpers))

    def _type(self, cell: Cell) -> str:
        return CTYPES[cell.leaf.dtype] if cell.leaf.is_scalar else "const void*"

    def _member(self, member: Instance, number: int) -> None:
        steps = member.steps
        written: set[Cell] = set()
        joins = [c for s in steps if s.kind == "copy" for c in s.writes if c.leaf.is_scalar]
        for cell in dict.fromkeys(joins):
            self.top.append(f"{self._type(cell)} {self._name(cell)} = 0;")
            written.add(cell)
        for place, step in enumerate(steps):
            if step.kind in ("branch", "jump", "label"):
                behind = next((f"L{number}_{s.what}" for s in steps[place + 1 : place + 2] if s.kind == "label"), None)
                self._control(step, f"L{number}_{step.what}", behind)
            else:
                self.lines += self._step(step)

    # --- branches ---

    def _control(self, step: Step, label: str, behind: str | None) -> None:
        """A branch, a jump or a label. `behind` is the label that follows a jump."""
        if step.kind == "branch":
            self._branch(step, label)
        elif step.kind == "jump":
            self._jump(label, behind)
        else:
            self._label(label)

    def _branch(self, step: Step, label: str) -> None:
        if len(self.blocks) < _DEPTH:
            self.blocks.append(_Block(label))
            self.lines.append(f"if ({self._name(step.reads[0])}) {{")
        else:
            self.targets.add(label)
            self.lines.append(f"if (!{self._name(step.reads[0])}) goto {label};")

    def _jump(self, label: str, behind: str | None) -> None:
        blocks = self.blocks
        # At the end of a part, nothing stands between here and where the parts meet.
        depth = len(blocks)
        while depth and blocks[depth - 1].join == label:
            depth -= 1
        if behind == label:
            return
        if depth and blocks[depth - 1].join is None and blocks[depth - 1].other == behind:
            self.lines.extend("}" * (len(blocks) - depth))
            del blocks[depth:]
            self.lines.append("} else {")
            blocks[-1].join = label
        else:
            self.targets.add(label)
            self.lines.append(f"goto {label};")

    def _label(self, label: str) -> None:
        lines, blocks = self.lines, self.blocks
        depth = len(blocks)
        while depth and blocks[depth - 1].join is not None and blocks[depth - 1].join != label:
            depth -= 1
        if depth and blocks[depth - 1].join is None and blocks[depth - 1].other == label:
            # The first part has ended otherwise. Or parts inside it meet this one behind it.
            joins = {block.join for block in blocks[depth:]}
            lines.extend("}" * (len(blocks) - depth))
            del blocks[depth:]
            if joins:
                (blocks[-1].join,) = joins
                lines.append("} else {")
            else:
                blocks.pop()
                lines.append("}")
        while blocks and blocks[-1].join == label:
            blocks.pop()
            lines.append("}")
        if label in self.targets:
            lines.append(f"{label}:;")

    # --- steps ---

    def _step(self, step: Step) -> list[str]:
        match step.kind:
            case "copy":
                return self._copy(step.writes[0], step.reads[0])
            case "scalar":
                return self._scalar(step)
            case "kernel":
                return self._kernel(step)
            case "call":
                return self._call(step)
            case "return":
                return [*self._results(step.reads), "return 0;"]
        assert step.kind == "tail" and isinstance(step.what, Instance)
        if step.what in self.numbers:
            return self._again(step.what, step.reads)
        return [f"return {self._called(step, [f'r{n}' for n in range(len(self.result))])};"]

    def _copy(self, target: Cell, source: Cell) -> list[str]:
        to, what = self._name(target), self._name(source)
        if target.leaf.is_scalar:
            return [f"{to} = {what};"]
        return [f"memcpy({to}, {what}, {nbytes(target)});"] if to != what else []

    def _results(self, cells: Sequence[Cell]) -> Iterator[str]:
        for number, cell in enumerate(cells):
            name = self._name(cell)
            if cell.leaf.is_scalar:
                yield f"*r{number} = {name};"
            elif name != f"r{number}":
                yield f"memcpy(r{number}, {name}, {nbytes(cell)});"

    def _scalar(self, step: Step) -> list[str]:
        row = step.what
        assert isinstance(row, Row)
        self.helpers |= row.helpers
        names = [f"const {CTYPES[dtype]} {'abc'[n]} = {self._name(c)};" for n, (dtype, c) in enumerate(zip(row.operands, step.reads))]
        test, fault = refusal(row)
        stop = f" if ({test}) return {self.functions.prefix}_ERROR_{fault.upper()};" if test else ""
        output = self._name(step.writes[0])
        return [f"{CTYPES[row.result]} {output};", f"{{ {' '.join(names)}{stop} {output} = {row.text}; }}  // {row.name}"]

    def _address(self, cell: Cell, head: list[str]) -> str:
        """The address of a tensor or a number; a constant number gets a variable in `head`."""
        name = self._name(cell)
        if not cell.leaf.is_scalar:
            return name
        if cell.data is None:
            return f"&{name}"
        head.append(f"const {CTYPES[cell.leaf.dtype]} c{len(head)} = {name};")
        return f"&c{len(head) - 1}"

    def _declared(self, cells: Sequence[Cell]) -> list[str]:
        return [f"{self._type(c)} {self._name(c)};" for c in cells if c.leaf.is_scalar]

    def _kernel(self, step: Step) -> list[str]:
        assert isinstance(step.what, int)
        head: list[str] = []
        inputs = [self._address(c, head) for c in step.reads]
        outputs = [self._address(c, head) for c in step.writes]
        room = self.layout.rooms.get(id(step))
        arena = self._pointer(room) if room is not None else "work"
        if self.functions.kernels.may_fail(step.what):
            self.helpers.add("r_said")
        lines = self.functions.kernels.call(step.what, inputs, outputs, arena, f"{self.functions.prefix}_ERROR_EXTERNAL")
        return [*self._declared(step.writes), "{", *head, *lines, "}"]

    def _called(self, step: Step, results: Sequence[str]) -> str:
        assert isinstance(step.what, Instance)
        room = self.layout.rooms.get(id(step))
        values = [
            *self.functions.kernels.passed,
            self._pointer(room) if room is not None else "work",
            *map(self._name, step.reads),
            *results,
        ]
        return f"{self.functions.made[step.what].name}({', '.join(values)})"

    def _call(self, step: Step) -> list[str]:
        results = [self._address(c, []) for c in step.writes]
        failed = f"{{ const int32_t failed = {self._called(step, results)}; if (failed) return failed; }}"
        return [*self._declared(step.writes), failed]

    def _again(self, callee: Instance, cells: Sequence[Cell]) -> list[str]:
        """The next turn of a loop: all values are read before a parameter changes."""
        copies: list[str] = []
        numbers: list[str] = []
        assigned: list[str] = []
        turns: list[str] = []
        for param, cell in zip(callee.params, cells):
            if cell is param:
                continue
            name, value = self.names[param], self._name(cell)
            if cell.leaf.is_scalar:
                numbers.append(f"const {self._type(param)} t{len(numbers)} = {value};")
                assigned.append(f"{name} = t{len(assigned)};")
                continue
            if value != f"next_{name}":
                copies.append(f"memcpy(next_{name}, {value}, {nbytes(param)});")
            first, second = map(self._pointer, self.layout.turns[param])
            turns.append(f"{name} = next_{name}; next_{name} = {name} == {first} ? {second} : {first};")
        body = [*copies, *numbers, *assigned, *turns]
        if self.functions.kernels.watched:
            body.append(f"if (!(++looks % {_LOOK}) && r_stopped()) return {self.functions.prefix}_ERROR_EXTERNAL;")
        return ["{", *body, "}", f"goto begin{self.numbers[callee]};" if len(self.members) > 1 else "continue;"]


def _indented(lines: Sequence[str]) -> Iterator[str]:
    depth = 1
    for line in lines:
        depth -= line.startswith("}")
        yield "  " * depth + line
        depth += line.endswith("{")


__all__ = ["CFunction", "Functions"]
