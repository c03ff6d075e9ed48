"""The functions of the C: one for each function of the program and the shapes of its arguments.

A walk over a function's code finds the shape of each value (`shapes`). Tuples and functions leave no trace in the C, for
all their uses are known. A function that is called with values of other shapes is another instance. Instances that call
each other in tail position are a group, which becomes one loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from relaylang.backends.aot.shapes import Fields, Known, Leaf, Shape, Token, leaves, parts
from relaylang.backends.cpu.program import Program
from relaylang.backends.vm.code import Item
from relaylang.backends.vm.pool import Pool
from relaylang.backends.vm.scalars import Row, rows
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Expr
from relaylang.runtime.vm.instructions import DTYPES

#: Values that get larger more often than this, or to more tensors and tuples, grow in every turn.
_MOST_GROWTH = 256
_MOST_TOKENS = 4096
#: More functions than this come from calls whose values never repeat.
_MOST_INSTANCES = 1 << 16

HINT = "the VM runs it: relay compile --runtime vm"
_DATA = "a value of a type definition needs memory without a bound"
_REFERENCE = "a reference needs memory without a bound"
#: Instructions without C, and why.
_REFUSED = {
    **dict.fromkeys(("AllocADT", "GetTag", "IfTag", "Fatal"), _DATA),
    **dict.fromkeys(("NewRef", "ReadRef", "WriteRef"), _REFERENCE),
}


def refused(what: str, node: Expr | None, *notes: str) -> RelayError:
    """The error for a program that needs a runtime."""
    return RelayError(error("R0636", what, node.span if node is not None else None, notes=[*notes, HINT]))


@dataclass(eq=False)
class Cell:
    """A tensor or a number of a function: a parameter, a constant (`data`), or made by a step."""

    leaf: Leaf
    data: np.ndarray | None = None
    is_param: bool = False

    @property
    def is_made(self) -> bool:
        return self.data is None and not self.is_param


@dataclass(frozen=True)
class Value:
    """A value of the code: its shape, and where its tensors are."""

    shape: Shape
    cells: tuple[Cell, ...]

    def part(self, number: int) -> Value:
        at = 0
        for n, shape in enumerate(parts(self.shape)):
            count = len(leaves(shape))
            if n == number:
                return Value(shape, self.cells[at : at + count])
            at += count
        raise IndexError(number)


def together(first: Token, values: Sequence[Value]) -> Value:
    """A tuple of values, or a function that captures them."""
    return Value((first, *(t for v in values for t in v.shape)), tuple(c for v in values for c in v.cells))


@dataclass
class Step:
    """A step of a function: what it reads and writes, and what it is.

    | kind | `what` | |
    |---|---|---|
    | copy | | a tensor or number |
    | scalar | the row of the instruction | arithmetic on numbers |
    | kernel | the kernel's number | |
    | call | the instance | a call, whose results are written |
    | branch, jump, label | the label | a branch jumps where the number is false |
    | return | | the cells of the result |
    | tail | the instance | a call that takes this function's place |
    """

    kind: str
    reads: Sequence[Cell] = ()
    writes: Sequence[Cell] = ()
    what: int | Row | Instance | None = None


@dataclass(eq=False)
class Group:
    """Instances that call each other in tail position, and the shape of their result."""

    members: list[Instance]
    result: Shape

    @property
    def loops(self) -> bool:
        """Whether one of them is called again by itself or by another."""
        tails = (s.what for m in self.members for s in m.steps if s.kind == "tail")
        return any(isinstance(callee, Instance) and callee.group is self for callee in tails)


@dataclass(eq=False)
class Instance:
    """A function with arguments and captured values of certain shapes."""

    name: str
    function: int
    given: tuple[Shape, ...]
    captured: tuple[Shape, ...]
    params: list[Cell] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    results: dict[Shape, Expr | None] = field(default_factory=dict)
    group: Group | None = None
    index: int = -1


#: What a walk asks for: an instance, whether the call is a tail call, and its place.
Need = tuple[Instance, bool, "Expr | None"]


@dataclass
class _Frame:
    instance: Instance
    walk: Generator[Need, None, None]
    tail: bool
    node: Expr | None
    low: int


class Instances:
    """The instances that a program's entry needs, in groups; callees come first."""

    def __init__(self, pool: Pool, lower: Callable[[int], Program]) -> None:
        self.pool = pool
        self.lower = lower
        self.groups: list[Group] = []
        self._known: dict[tuple[int, tuple[Shape, ...], tuple[Shape, ...]], Instance] = {}
        self._growth: dict[int, tuple[int, int]] = {}  # a function to the size of its largest values, and how often they grew
        self._rows = {row.name: row for row in rows()}

    def instance(self, function: int, given: Iterable[Shape], captured: Iterable[Shape], node: Expr | None) -> Instance:
        """The instance for arguments of these shapes. Raises `RelayError` (R0636) where there is no end of them."""
        key = (function, tuple(given), tuple(captured))
        instance = self._known.get(key)
        if instance is None:
            size = sum(map(len, (*key[1], *key[2])))
            largest, grown = self._growth.get(function, (0, 0))
            grows = size > largest
            if grows:
                self._growth[function] = (size, grown + 1)
            if (grows and grown and (grown >= _MOST_GROWTH or size > _MOST_TOKENS)) or len(self._known) >= _MOST_INSTANCES:
                raise refused("a call with values that grow in each turn needs memory without a bound", node)
            instance = self._known[key] = Instance(self.pool.codes[function].name, *key)
        return instance

    def analyse(self, entry: Instance) -> None:
        """Walk an instance and all that it calls. Raises `RelayError` (R0636)."""
        frames: list[_Frame] = []
        waiting: list[Instance] = []

        def enter(instance: Instance, tail: bool, node: Expr | None) -> None:
            instance.index = len(waiting)
            waiting.append(instance)
            frames.append(_Frame(instance, _Walk(self, instance).run(), tail, node, instance.index))

        enter(entry, False, None)
        while frames:
            frame = frames[-1]
            need = next(frame.walk, None)
            if need is not None:
                instance, tail, node = need
                if instance.index < 0:
                    enter(instance, tail, node)
                elif instance.group is None:
                    if not tail:
                        raise _recursion(instance, node)
                    frame.low = min(frame.low, instance.index)
                continue
            frames.pop()
            index = frame.instance.index
            if frame.low == index:
                members = waiting[index:]
                del waiting[index:]
                self._close(members)
            elif frame.tail:
                frames[-1].low = min(frames[-1].low, frame.low)
            else:
                raise _recursion(frame.instance, frame.node)

    def _close(self, members: list[Instance]) -> None:
        results: dict[Shape, Expr | None] = {}
        for member in members:
            results |= member.results
            tails = [s.what for s in member.steps if s.kind == "tail" and isinstance(s.what, Instance)]
            results |= {instance.group.result: None for instance in tails if instance.group is not None}
        node = self.pool.codes[members[0].function].node
        if not results:
            raise refused(f"{members[0].name} never returns", node)
        if len(results) > 1:
            raise _undecided(next((n for n in results.values() if n is not None), node))
        group = Group(members, next(iter(results)))
        for member in members:
            member.group = group
        self.groups.append(group)


def _recursion(instance: Instance, node: Expr | None) -> RelayError:
    what = f"the recursion of {instance.name} is no loop: it needs memory without a bound"
    return refused(what, node, "a loop's recursive calls are the last that happens: their value is the function's own")


def _undecided(node: Expr | None) -> RelayError:
    return refused(
        "a value whose structure is known only in a run cannot become plain C",
        node,
        "the branches of an if give different functions here",
    )


class _Walk:
    """The walk over the code of one instance."""

    def __init__(self, instances: Instances, instance: Instance) -> None:
        self.instances = instances
        self.instance = instance
        self.code = instances.pool.codes[instance.function]
        self.env: dict[int, Value] = {}
        #: Values that several instructions give, one of which runs.
        self.joins = {
            n for n, times in Counter(n for item in self.code.items for kind, n in item.operands if kind in "ds").items() if times > 1
        }

    def run(self) -> Generator[Need, None, None]:
        inputs = [self._param(shape) for shape in self.instance.given]
        self.env.update(enumerate(inputs))
        self.captured = [self._param(shape) for shape in self.instance.captured]
        for item in self.code.items:
            if item.label >= 0:
                self._step("label", what=item.label)
            elif item.name.startswith("Invoke") and item.name != "InvokePacked":
                yield from self._call(item)
            else:
                self._item(item)

    def _param(self, shape: Shape) -> Value:
        cells = tuple([Cell(leaf, is_param=True) for leaf in leaves(shape)])
        self.instance.params += cells
        return Value(shape, cells)

    def _step(
        self, kind: str, reads: Sequence[Cell] = (), writes: Sequence[Cell] = (), what: int | Row | Instance | None = None
    ) -> None:
        self.instance.steps.append(Step(kind, reads, writes, what))

    def _define(self, number: int, value: Value, node: Expr | None) -> None:
        """Give a number of the code its value; one that several instructions give has cells of its own."""
        if number not in self.joins:
            self.env[number] = value
            return
        if number not in self.env:
            self.env[number] = Value(value.shape, tuple([Cell(leaf) for leaf in leaves(value.shape)]))
        own = self.env[number]
        if own.shape != value.shape:
            raise _undecided(node)
        for target, source in zip(own.cells, value.cells):
            self._step("copy", [source], [target])

    def _made(self, leaf: Leaf) -> Value:
        return Value((leaf,), (Cell(leaf),))

    def _scalar(self, name: str, words: Sequence[int], node: Expr | None) -> None:
        """An instruction on scalars."""
        row = self.instances._rows[name]
        output = self._made(Leaf(row.result, ()))
        self._step("scalar", [c for n in words[1:] for c in self.env[n].cells], output.cells, row)
        self._define(words[0], output, node)

    def _item(self, item: Item) -> None:
        name, words, node = item.name, [n for _, n in item.operands], item.node
        env = self.env
        if name in _REFUSED:
            raise refused(_REFUSED[name], node)
        match name:
            case "Move":
                self._define(words[0], env[words[1]], node)
            case "LoadConst" | "LoadConsti":
                data = np.array(words[2], DTYPES[words[1]]) if name == "LoadConsti" else self.instances.pool.constants[words[1]]
                leaf = Leaf(data.dtype.name, data.shape)
                self._define(words[0], Value((leaf,), (Cell(leaf, data),)), node)
            case "LoadFree":
                self._define(words[0], self.captured[words[1]], node)
            case "LoadSelf":
                self._define(words[0], together(Known(self.instance.function, len(self.captured)), self.captured), node)
            case "AllocTuple":
                self._define(words[0], together(Fields(words[1]), [env[n] for n in words[2:]]), node)
            case "AllocClosure":
                self._define(words[0], together(Known(words[1], words[2]), [env[n] for n in words[3:]]), node)
            case "GetField":
                self._define(words[0], env[words[1]].part(words[2]), node)
            case "ReshapeTensor":
                dtype, dims = self.instances.pool.specs[words[2]]
                self._define(words[0], Value((Leaf(dtype, dims),), env[words[1]].cells), node)
            case "InvokePacked":
                self._kernel(words, node)
            case "If":
                self._step("branch", env[words[0]].cells, what=words[1])
            case "Goto":
                self._step("jump", what=words[0])
            case "Ret":
                value = env[words[0]]
                self.instance.results.setdefault(value.shape, node)
                self._step("return", value.cells)
            case _:
                self._scalar(name, words, node)

    def _kernel(self, words: Sequence[int], node: Expr | None) -> None:
        number, count = words[0], words[1]
        inputs, targets = words[3 : 3 + count], words[3 + count :]
        program = self.instances.lower(number)
        results = [self._made(Leaf(slot.dtype, slot.shape)) for slot in program.outputs]
        self._step("kernel", [c for n in inputs for c in self.env[n].cells], [c for r in results for c in r.cells], number)
        for target, result in zip(targets, results, strict=True):
            self._define(target, result, node)

    def _call(self, item: Item) -> Generator[Need, None, None]:
        tail = item.name.endswith("Tail")
        words = [n for _, n in item.operands][0 if tail else 1 :]
        args = [self.env[n] for n in words[2:]]
        function, captured = words[0], list[Value]()
        if "Closure" in item.name:
            callee = self.env[words[0]]
            known = callee.shape[0]
            if not isinstance(known, Known):
                raise _undecided(item.node)
            function, captured = known.function, [callee.part(n) for n in range(known.parts)]
        instance = self.instances.instance(function, [a.shape for a in args], [c.shape for c in captured], item.node)
        yield instance, tail, item.node
        cells = [c for value in (*args, *captured) for c in value.cells]
        if tail:
            self._step("tail", cells, what=instance)
            return
        assert instance.group is not None
        result = instance.group.result
        output = Value(result, tuple([Cell(leaf) for leaf in leaves(result)]))
        self._step("call", cells, output.cells, instance)
        self._define(item.operands[0][1], output, item.node)


__all__ = ["Cell", "Group", "Instance", "Instances", "Step", "Value", "refused"]
