"""From A-normal form to code: each function once becomes basic blocks of steps over numbered slots.

A block is a list of steps (see `steps.py`) and an end: return, jump, branch, match or call. A call whose value is the
function's own is a tail call and takes the caller's place. Slots hold the arguments, then the captured values, then
constants and temporaries; a value larger than a few numbers is dropped behind its last use.

Two passes over a function: the first lists instructions, numbers slots and finds last uses; the second makes the steps.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.interpreter.code import BRANCH, CALL, JUMP, MATCH, RETURN, TAIL_CALL, Block, Code
from relaylang.interpreter.dynamic import guarded
from relaylang.interpreter.errors import Trap
from relaylang.interpreter.kernels import KERNELS
from relaylang.interpreter.kernels.added import added_kernel
from relaylang.interpreter.kernels.fast import fast_step
from relaylang.interpreter.memory import MemoryLimit, type_bytes
from relaylang.interpreter.steps import (
    Step,
    closure_step,
    constructor_step,
    drop_step,
    enter_step,
    fetcher,
    field_step,
    joined_step,
    limited,
    looked_at,
    matcher,
    move_step,
    new_ref_step,
    observed,
    op_step,
    read_step,
    timer_step,
    tuple_step,
    watched,
    write_step,
)
from relaylang.interpreter.values import Builtin, Closure, ConstructorValue, Value
from relaylang.interpreter.watch import Site, Watch
from relaylang.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    MetaRef,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    Type,
    Var,
    pattern_vars,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ops.record import Op, make_attrs
from relaylang.ops.traits import Trait
from relaylang.passes.normal_forms.to_a_normal_form import convert

_SMALL = 16


@dataclass(frozen=True)
class Binding:
    """What an observer is told of: the variable, and the operator call that it is bound to."""

    variable: Var
    value: Expr


#: Called behind each operator call with its binding, its value and the seconds that it took.
Observer = Callable[[Binding, Value, float], None]


def as_slot_value(value: Any) -> Value:
    """An array as the evaluator keeps it: one without dimensions as a numpy scalar."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _is_small(ty: Type | None) -> bool:
    if not isinstance(ty, TensorType):
        return False
    size = 1
    for n in ty.shape:
        if not isinstance(n, int):
            return False
        size *= n
    return size <= _SMALL


def _is_known(ty: Type | None) -> bool:
    """Whether a type tells the size of its values: not where an extent is open."""
    return isinstance(ty, TensorType) and all(isinstance(n, int) for n in ty.shape)


class _Scope:
    """A chain of lets. `places` tells, for each instruction, where something behind it would be put."""

    __slots__ = ("numbers", "places")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.places: list[tuple[Block, int] | None] = []


@dataclass
class _Instruction:
    """One step to be: its maker gets final slot numbers for `into` and `args`."""

    make: Callable[[int, tuple[int, ...]], Step]
    into: int
    args: tuple[int, ...]
    node: Expr
    binding: Binding | None = None
    #: for closures: the function whose captures become `args`
    captures: _FunctionCompiler | None = None
    #: what a watch is told to be bound here
    variable: Var | None = None
    #: the slot with the time at which a call or branch began, whose value has come into `into`
    timer: int | None = None


@dataclass
class _Chain:
    """Work to do: the rest of a chain of lets, the block to put it in, and where its value goes (None: it returns)."""

    scope: _Scope
    expr: Expr
    block: Block
    into: int | None
    join: Block | None
    #: what to tell a watch first
    first: _Instruction | None = None


class _FunctionCompiler:
    """The first pass over one function. Slots are numbered from 0 up; captured values are -1, -2, ... until the end."""

    def __init__(self, linker: Linker, code: Code, parent: _FunctionCompiler | None) -> None:
        self.linker = linker
        self.code = code
        self.parent = parent
        self.slots: dict[Var, int] = {p: i for i, p in enumerate(code.function.params)}
        self.captured: list[Var] = code.captured
        self.constants: dict[int, Value] = {}
        self.constant_slots: dict[int, tuple[object, int]] = {}
        self.count = code.arity
        self.blocks: list[Block] = []
        self.instructions: dict[int, list[_Instruction]] = {}
        self.ends: dict[int, Callable[[], None]] = {}
        self.home: dict[int, _Scope] = {}
        self.last_use: dict[int, int] = {}
        self.keep: set[int] = set()
        self.clock = 0
        self.call_times: set[int] = set()
        self.inner: list[_FunctionCompiler] = []

    # Slots.

    def new_slot(self, scope: _Scope | None, ty: Type | None = None) -> int:
        slot = self.count
        self.count += 1
        if scope is None or self.linker.keep_all or _is_small(ty):
            self.keep.add(slot)
        else:
            self.home[slot] = scope
        return slot

    def constant(self, key: object, value: Callable[[], Value]) -> int:
        known = self.constant_slots.get(id(key))
        if known is None:
            known = self.constant_slots[id(key)] = (key, self.new_slot(None))
            self.constants[known[1]] = value()
        return known[1]

    def lookup(self, var: Var) -> int:
        """A variable's slot; from an outer function it is captured by every function on the way in."""
        slot = self.slots.get(var)
        if slot is not None:
            return slot
        path = [self]
        outer = self.parent
        while outer is not None and var not in outer.slots:
            path.append(outer)
            outer = outer.parent
        if outer is None:
            slot = self.constant(var, lambda: self.linker.free_value(var))
            self.slots[var] = slot
            return slot
        for function in path:
            function.captured.append(var)
            function.slots[var] = -len(function.captured)
        return self.slots[var]

    def operand(self, atom: Expr) -> int:
        if isinstance(atom, Var):
            slot = self.lookup(atom)
            self.last_use[slot] = self.clock
            return slot
        return self.constant(atom, lambda: self.linker.atom_value(atom))

    def operands(self, atoms: tuple[Expr, ...]) -> tuple[int, ...]:
        return tuple([self.operand(a) for a in atoms])

    # Blocks and instructions.

    def new_block(self) -> Block:
        block = Block(self.code)
        self.blocks.append(block)
        self.instructions[id(block)] = []
        return block

    def emit(self, scope: _Scope, block: Block, instruction: _Instruction) -> None:
        listed = self.instructions[id(block)]
        listed.append(instruction)
        scope.numbers.append(self.clock)
        scope.places.append((block, len(listed)))
        self.last_use.setdefault(instruction.into, self.clock)
        self.clock += 1

    def end(self, scope: _Scope, block: Block, kind: int, node: Expr, join: Block | None) -> None:
        block.end = kind
        block.node = node
        scope.numbers.append(self.clock)
        scope.places.append((join, 0) if join is not None else None)
        self.clock += 1

    def analyse(self) -> None:
        function = self.code.function
        body = self.linker.anf_body(function) if self.parent is None else function.body
        entry = self.new_block()
        first = _Scope()
        for p in function.params:
            if not _is_small(p.checked_type or p.type_annotation):
                self.home[self.slots[p]] = first
        work = [_Chain(first, body, entry, None, None)]
        while work:
            chain = work.pop()
            if chain.first is not None:
                self.emit(chain.scope, chain.block, chain.first)
            self.chain(chain, work)

    def chain(self, chain: _Chain, work: list[_Chain]) -> None:
        scope, expr, block = chain.scope, chain.expr, chain.block
        while isinstance(expr, Let):
            variable, value, rest = expr.variable, expr.value, expr.body
            if isinstance(value, (Var, GlobalVar, Op, Constructor, Constant, MetaRef)):
                if isinstance(value, Var):
                    self.slots[variable] = self.lookup(value)
                else:
                    self.slots[variable] = self.operand(value)
            elif isinstance(value, (If, Match)) or (
                isinstance(value, Call) and not isinstance(value.op, (Op, Constructor))
            ):
                final = self.is_result(variable, rest)
                ty = variable.checked_type or value.checked_type
                if final:
                    into, join = chain.into, chain.join
                else:
                    into, join = self.new_slot(scope, ty), self.new_block()
                    self.slots[variable] = into
                    self.last_use[into] = self.clock
                    told = self.joined(scope, block, variable, value, into)
                    work.append(_Chain(scope, rest, join, chain.into, chain.join, told))
                if isinstance(value, Call):
                    self.call(scope, block, value, into, join)
                else:
                    self.branches(scope, block, value, into, join, work)
                return
            else:
                into = self.slots[variable] = self.new_slot(scope, variable.checked_type or value.checked_type)
                instruction = self.instruction(variable, value, into)
                instruction.variable = variable
                self.emit(scope, block, instruction)
            expr = rest
        source = self.operand(expr)
        if chain.into is None:
            self.end(scope, block, RETURN, expr, None)
            self.ends[id(block)] = lambda: setattr(block, "slot", self.final(source))
        else:
            move = _Instruction(lambda into, args: move_step(into, args[0]), chain.into, (source,), expr)
            self.emit(scope, block, move)
            self.end(scope, block, JUMP, expr, None)
            block.next = chain.join

    def joined(self, scope: _Scope, block: Block, variable: Var, value: Expr, into: int) -> _Instruction | None:
        """For a watch: take the time before a call or branch, and tell of its value where it has come."""
        if self.linker.watch is None:
            return None
        timer = self.new_slot(None)
        self.emit(scope, block, _Instruction(lambda i, a: timer_step(i), timer, (), value))
        return _Instruction(lambda i, a: timer_step(i), into, (), value, variable=variable, timer=timer)

    def is_result(self, variable: Var, rest: Expr) -> bool:
        """Whether nothing but other names for the variable stands between it and the end of its chain."""
        while isinstance(rest, Let) and rest.value is variable:
            variable, rest = rest.variable, rest.body
        return rest is variable

    def call(self, scope: _Scope, block: Block, value: Call, into: int | None, join: Block | None) -> None:
        args = self.operands(value.args)
        callee = value.op
        slot = 0
        if isinstance(callee, GlobalVar):
            block.callee = self.linker.global_code(callee)
            if len(args) != block.callee.arity:
                wanted = block.callee.arity
                raise RelayError(
                    error("R0401", f"@{callee.name_hint} takes {wanted} arguments, not {len(args)}", value.span)
                )
        else:
            slot = self.operand(callee)
        when = self.clock
        self.call_times.add(when)
        self.end(scope, block, TAIL_CALL if into is None else CALL, value, join)

        def finish() -> None:
            dead = sorted({s for s in (*args, slot) if self.dies(s, scope, when)})
            block.slot = self.final(slot)
            if into is None:
                block.fetch = fetcher(self.finals(args), [])
            else:
                block.fetch = fetcher(self.finals(args), [self.final(s) for s in dead])
                block.into = self.final(into)
            block.next = join

        self.ends[id(block)] = finish

    def dies(self, slot: int, scope: _Scope, when: int) -> bool:
        return self.home.get(slot) is scope and slot not in self.keep and self.last_use.get(slot) == when

    def branches(
        self, scope: _Scope, block: Block, value: If | Match, into: int | None, join: Block | None, work: list[_Chain]
    ) -> None:
        arms: list[_Chain] = []
        if isinstance(value, If):
            slot = self.operand(value.cond)
            for body in (value.true_branch, value.false_branch):
                arms.append(_Chain(_Scope(), body, self.new_block(), into, join))
            block.next, block.other = arms[0].block, arms[1].block
            self.end(scope, block, BRANCH, value, join)
        else:
            slot = self.operand(value.data)
            for clause in value.clauses:
                arm = _Chain(_Scope(), clause.rhs, self.new_block(), into, join)
                for var in pattern_vars(clause.lhs):
                    self.slots[var] = self.new_slot(arm.scope, var.checked_type)
                    self.last_use[self.slots[var]] = self.clock + 1
                arms.append(arm)
            self.end(scope, block, MATCH, value, join)

        def finish() -> None:
            block.slot = self.final(slot)
            if isinstance(value, Match):
                block.arms = [
                    (matcher(c.lhs, lambda v: self.final(self.slots[v])), arm.block)
                    for c, arm in zip(value.clauses, arms)
                ]

        self.ends[id(block)] = finish
        work.extend(reversed(arms))

    def instruction(self, variable: Var, value: Expr, into: int) -> _Instruction:
        match value:
            case Call(op=Op() as op):
                kernel = self.linker.kernel(op, value)
                attrs = value.attrs if value.attrs is not None or op.attrs is None else make_attrs(op.attrs, {})
                binding = Binding(variable, value)
                args = self.operands(value.args)
                make = fast_step(value) or (lambda i, a: op_step(kernel, attrs, i, a))
                return _Instruction(make, into, args, value, binding)
            case Call(op=Constructor() as made):
                return _Instruction(lambda i, a: constructor_step(made, i, a), into, self.operands(value.args), value)
            case Tuple(fields):
                return _Instruction(tuple_step, into, self.operands(fields), value)
            case TupleGetItem(source, index):
                return _Instruction(lambda i, a: field_step(i, a[0], index), into, (self.operand(source),), value)
            case RefCreate(source):
                return _Instruction(lambda i, a: new_ref_step(i, a[0]), into, (self.operand(source),), value)
            case RefRead(source):
                return _Instruction(lambda i, a: read_step(i, a[0]), into, (self.operand(source),), value)
            case RefWrite(cell, source):
                args = (self.operand(cell), self.operand(source))
                return _Instruction(lambda i, a: write_step(i, a[0], a[1]), into, args, value)
            case Function():
                code = Code(f"%{variable.name_hint}", value)
                function = _FunctionCompiler(self.linker, code, self)
                self.inner.append(function)
                closure = _Instruction(lambda i, a: closure_step(code, i, a), into, (), value, captures=function)
                return closure
        raise AssertionError(f"{type(value).__name__} in A-normal form")

    # The second pass.

    def final(self, slot: int) -> int:
        """The place in a frame: arguments, captured values, then the rest."""
        arity = self.code.arity
        if slot < 0:
            return arity - 1 - slot
        return slot if slot < arity else slot + len(self.captured)

    def finals(self, slots: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([self.final(s) for s in slots])

    def resolve_captures(self) -> None:
        """Once the inner functions are known: what they capture is used where their closures are made."""
        for listed in self.instructions.values():
            for instruction in listed:
                if instruction.captures is not None:
                    instruction.args = tuple([self.lookup(v) for v in instruction.captures.captured])
                    # A captured value lives as long as the closure: the slot that also holds it costs nothing.
                    self.keep.update(instruction.args)

    def drops(self) -> dict[tuple[int, int], list[int]]:
        """(block, position) -> slots whose last use is behind them."""
        found: dict[tuple[int, int], list[int]] = {}
        for slot, scope in self.home.items():
            if slot in self.keep or not scope.numbers:
                continue
            when = self.last_use.get(slot, scope.numbers[0])
            at = bisect_right(scope.numbers, when) - 1
            if at >= 0 and when in self.call_times and scope.numbers[at] == when:
                continue  # the call itself lets go of it
            place = scope.places[at] if at >= 0 else None
            if place is not None:
                found.setdefault((id(place[0]), place[1]), []).append(self.final(slot))
        return found

    def variables(self) -> dict[Var, int]:
        """The variables and their places in a frame."""
        return {v: self.final(s) for v, s in self.slots.items()}

    def attended(self, step: Step, one: _Instruction, into: int, args: tuple[int, ...]) -> Step:
        """The step with those that look on."""
        linker = self.linker
        if linker.observer is not None and one.binding is not None:
            step = observed(step, into, one.binding, linker.observer)
        if linker.watch is not None and one.variable is not None:
            site = Site(one.variable, one.node, self.code, into, args, self.variables)
            if one.timer is not None:
                return joined_step(self.final(one.timer), site, linker.watch)
            return watched(step, site, linker.watch)
        return step

    def within_memory(self, block: Block, step: Step, one: _Instruction, into: int, args: tuple[int, ...]) -> Step:
        """The step as the limit to memory allows it, with a step in front that looks at memory now and then where values are
        made that may be held for ever."""
        limit, node = self.linker.limit, one.node
        is_op = isinstance(node, Call) and isinstance(node.op, Op)
        if is_op:
            coming = type_bytes(node.checked_type)
            if limit.concerns(coming):
                return limited(step, node, coming, limit)
            if not coming and not _is_known(node.checked_type):
                return looked_at(step, node, into, limit)
        if limit.given or isinstance(node, Function) or (isinstance(node, Call) and isinstance(node.op, Constructor)):
            block.steps.append(self.linker.tick)
            block.nodes.append((node, args))
        return step

    def finish(self) -> None:
        drops = self.drops()
        linker = self.linker
        for step in linker.entry_steps(self.code):
            self.blocks[0].steps.append(step)
            self.blocks[0].nodes.append(None)
        for block in self.blocks:
            listed = self.instructions[id(block)]
            for i in range(len(listed) + 1):
                dead = drops.get((id(block), i))
                if dead:
                    block.steps.append(drop_step(dead))
                    block.nodes.append(None)
                if i < len(listed):
                    one = listed[i]
                    into, args = self.final(one.into), self.finals(one.args)
                    step = one.make(into, args)
                    if one.timer is None:
                        step = self.within_memory(block, step, one, into, args)
                    block.steps.append(step if linker.plain else self.attended(step, one, into, args))
                    block.nodes.append((one.node, args))
            end = self.ends.get(id(block))
            if end is not None:
                end()
        self.code.entry = self.blocks[0]
        self.code.template = [self.constants.get(s) for s in range(self.code.arity, self.count)]


def _of_type(kernel: Callable[..., Value], dtype: str) -> Callable[..., Value]:
    """A kernel whose int32 result is taken as another integer type, which only the types of its arguments tell."""
    if dtype == "int32":
        return kernel
    return lambda attrs, *args: kernel(attrs, *args).astype(dtype)


class Linker:
    """Makes code from functions when they are first called, and gives names their values."""

    def __init__(
        self,
        module: IRModule,
        values: Mapping[str, Value],
        observer: Observer | None = None,
        watch: Watch | None = None,
        limit: MemoryLimit | None = None,
    ) -> None:
        self.module = module
        self.values = values
        self.observer = observer
        self.watch = watch
        self.limit = limit if limit is not None else MemoryLimit()
        self.tick = self.limit.ticks()
        self.plain = observer is None and watch is None
        self.keep_all = watch is not None and watch.keep_all
        self.codes: dict[GlobalVar, Code] = {}

    def global_code(self, name: GlobalVar) -> Code:
        code = self.codes.get(name)
        if code is None:
            function = self.module.functions.get(name)
            if function is None:
                if name.name_hint not in self.module:
                    raise RelayError(error("R0403", f"there is no function @{name.name_hint}", name.span))
                function = self.module[name.name_hint]
            code = self.codes[name] = Code(f"@{name.name_hint}", function)
        return code

    def entry_steps(self, code: Code) -> list[Step]:
        """What is done first in a function."""
        steps: list[Step] = []
        if self.watch is not None:
            steps.append(enter_step(code, self.watch))
        return steps

    def link(self, code: Code) -> Block:
        """Compile a function and those inside it."""
        with gc_paused():
            return self._compile(code)

    def _compile(self, code: Code) -> Block:
        todo = deque([_FunctionCompiler(self, code, None)])
        functions: list[_FunctionCompiler] = []
        while todo:
            function = todo.popleft()
            function.analyse()
            functions.append(function)
            todo.extend(function.inner)
        for function in reversed(functions):
            function.resolve_captures()
            function.finish()
        return functions[0].blocks[0]

    def anf_body(self, function: Function) -> Expr:
        if function.body is None:
            raise Trap("R0409", "an external function has no body to evaluate", function)
        anf = convert(function, let_results=False, enter_primitive=True)
        assert isinstance(anf, Function)
        return anf.body

    def kernel(self, op: Op, node: Expr) -> Callable[..., Value]:
        own = KERNELS.get(op.name)
        kernel = guarded(own, op, node) if own is not None else added_kernel(op.name, node.checked_type)
        if kernel is None:
            raise RelayError(error("R0406", f"the interpreter has no kernel for {op.name}", node.span))
        if Trait.ARG_REDUCTION in op.traits and isinstance(node.checked_type, TensorType):
            return _of_type(kernel, node.checked_type.dtype)
        return kernel

    def free_value(self, var: Var) -> Value:
        if var.name_hint not in self.values:
            raise RelayError(
                error(
                    "R0403",
                    f"the free variable %{var.name_hint} has no value",
                    var.span,
                    notes=["give it one by its name"],
                )
            )
        return as_slot_value(self.values[var.name_hint])

    def atom_value(self, atom: Expr) -> Value:
        match atom:
            case Constant(data):
                return as_slot_value(data)
            case MetaRef():
                if atom.name_hint not in self.values:
                    raise RelayError(error("R0403", f"the constant {atom.name_hint} has no value", atom.span))
                return as_slot_value(self.values[atom.name_hint])
            case GlobalVar():
                return Closure(self.global_code(atom), [])
            case Constructor():
                return Builtin(atom.name_hint, lambda *args: ConstructorValue(atom, args))
        raise AssertionError(f"{type(atom).__name__} is no atom")
