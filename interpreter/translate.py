"""From A-normal form to blocks of instructions: the first of the two passes over a function.

A block is a list of instructions and an end: return, jump, branch, match or call. A call whose value is the function's
own is a tail call and takes the caller's place. The second pass (`assemble.py`) makes steps of the instructions, once
the slots have their places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relaylang.diagnostics import RelayError, error
from relaylang.interpreter.code import BRANCH, CALL, JUMP, MATCH, RETURN, TAIL_CALL, Block, Code
from relaylang.interpreter.dynamic import guarded
from relaylang.interpreter.errors import Trap
from relaylang.interpreter.frame import Frame
from relaylang.interpreter.kernels import KERNELS
from relaylang.interpreter.kernels.added import added_kernel
from relaylang.interpreter.kernels.fast import fast_step
from relaylang.interpreter.lifetimes import Lifetimes, Scope
from relaylang.interpreter.names import Names
from relaylang.interpreter.onlookers import Binding, Onlookers
from relaylang.interpreter.signatures import checked
from relaylang.interpreter.steps import (
    Step,
    closure_step,
    constructor_step,
    fetcher,
    field_step,
    matcher,
    move_step,
    new_ref_step,
    op_step,
    read_step,
    timer_step,
    tuple_step,
    write_step,
)
from relaylang.interpreter.values import Value
from relaylang.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
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
from relaylang.ops.record import Op, make_attrs
from relaylang.ops.traits import Trait
from relaylang.passes.normal_forms.extents_as_operands import extents_as_operands
from relaylang.passes.normal_forms.to_a_normal_form import convert

#: Values of at most this many elements stay in their slots: dropping them costs more than keeping them.
_SMALL = 16


@dataclass
class Instruction:
    """One step to be made: its maker gets the places of `into` and `args`.

    `binding` is for an observer. `variable` is what a watch sees bound here. `timer` is the slot with the time at which
    a call or branch began, whose value has come into `into`. A closure `captures` what its code lists in the end.
    """

    make: Callable[[int, tuple[int, ...]], Step]
    into: int
    args: tuple[int, ...]
    node: Expr
    binding: Binding | None = None
    captures: Code | None = None
    variable: Var | None = None
    timer: int | None = None


@dataclass
class _Chain:
    """The rest of a chain of lets, its block, and the slot of its value (None: it returns)."""

    scope: Scope
    expr: Expr
    block: Block
    into: int | None
    join: Block | None
    #: the instruction in front of it, for a watch
    first: Instruction | None = None


class Translation:
    """The blocks of one function, and `inner`, the functions inside it that are still to be translated."""

    def __init__(self, code: Code, outer: Translation | None, names: Names, onlookers: Onlookers) -> None:
        self.code = code
        self.frame: Frame = Frame(code, outer.frame if outer is not None else None, names.free_value)
        self.lifetimes = Lifetimes()
        self.blocks: list[Block] = []
        self.instructions: dict[int, list[Instruction]] = {}  # by the block's id
        self.ends: dict[int, Callable[[], None]] = {}  # what finishes a block, by its id, once slots have places
        self.inner: list[Translation] = []
        self._is_outermost = outer is None
        self._names = names
        self._onlookers = onlookers

    def run(self) -> None:
        """Translate the function."""
        function = self.code.function
        body = _in_anf(function) if self._is_outermost else function.body
        entry = self._block()
        first = Scope()
        for p in function.params:
            if not _is_small(p.checked_type or p.type_annotation):
                self.lifetimes.own(self.frame.slots[p], first)
        work = [_Chain(first, body, entry, None, None)]
        while work:
            chain = work.pop()
            if chain.first is not None:
                self._emit(chain.scope, chain.block, chain.first)
            self._chain(chain, work)

    def resolve_captures(self) -> None:
        """Have closures read what the functions inside capture, once these are translated."""
        for listed in self.instructions.values():
            for instruction in listed:
                if instruction.captures is not None:
                    instruction.args = tuple([self.frame.lookup(v) for v in instruction.captures.captured])
                    self.lifetimes.hold(instruction.args)

    # --- slots, blocks, instructions ---

    def _slot(self, scope: Scope, ty: Type | None) -> int:
        """A slot for a value of a type, which is dropped in a scope if it is large."""
        slot = self.frame.new()
        if not self._onlookers.keep_all and not _is_small(ty):
            self.lifetimes.own(slot, scope)
        return slot

    def _operand(self, atom: Expr) -> int:
        if isinstance(atom, Var):
            slot = self.frame.lookup(atom)
            self.lifetimes.use(slot)
            return slot
        return self.frame.constant(atom, lambda: self._names.value(atom))

    def _operands(self, atoms: tuple[Expr, ...]) -> tuple[int, ...]:
        return tuple([self._operand(a) for a in atoms])

    def _block(self) -> Block:
        block = Block(self.code)
        self.blocks.append(block)
        self.instructions[id(block)] = []
        return block

    def _emit(self, scope: Scope, block: Block, instruction: Instruction) -> None:
        listed = self.instructions[id(block)]
        listed.append(instruction)
        self.lifetimes.made(instruction.into)
        self.lifetimes.tick(scope, (block, len(listed)))

    def _end(self, scope: Scope, block: Block, kind: int, node: Expr, join: Block | None) -> int:
        """End a block. Returns the time."""
        block.end = kind
        block.node = node
        is_call = kind in (CALL, TAIL_CALL)
        return self.lifetimes.tick(scope, (join, 0) if join is not None else None, is_call)

    # --- chains of lets ---

    def _chain(self, chain: _Chain, work: list[_Chain]) -> None:
        """Translate lets up to a call, a branch or the chain's value. The rest behind a call or branch is left as work."""
        scope, expr, block = chain.scope, chain.expr, chain.block
        slots = self.frame.slots
        while isinstance(expr, Let):
            variable, value, rest = expr.variable, expr.value, expr.body
            if isinstance(value, Var):
                slots[variable] = self.frame.lookup(value)
            elif isinstance(value, (GlobalVar, Op, Constructor, Constant, MetaRef)):
                slots[variable] = self._operand(value)
            elif isinstance(value, (If, Match)) or (isinstance(value, Call) and not isinstance(value.op, (Op, Constructor))):
                if _is_result(variable, rest):
                    into, join = chain.into, chain.join
                else:
                    into, join = self._slot(scope, variable.checked_type or value.checked_type), self._block()
                    slots[variable] = into
                    self.lifetimes.use(into)
                    first = self._joined(scope, block, variable, value, into)
                    work.append(_Chain(scope, rest, join, chain.into, chain.join, first))
                if isinstance(value, Call):
                    self._call(scope, block, value, into, join)
                else:
                    self._branches(scope, block, value, into, join, work)
                return
            else:
                into = slots[variable] = self._slot(scope, variable.checked_type or value.checked_type)
                instruction = self._instruction(variable, value, into)
                instruction.variable = variable
                self._emit(scope, block, instruction)
            expr = rest
        source = self._operand(expr)
        if chain.into is None:
            self._end(scope, block, RETURN, expr, None)
            self.ends[id(block)] = lambda: setattr(block, "slot", self.frame.final(source))
        else:
            move = Instruction(lambda into, args: move_step(into, args[0]), chain.into, (source,), expr)
            self._emit(scope, block, move)
            self._end(scope, block, JUMP, expr, None)
            block.next = chain.join

    def _joined(self, scope: Scope, block: Block, variable: Var, value: Expr, into: int) -> Instruction | None:
        """For a watch: take the time before a call or branch, and report its value where it has come."""
        if self._onlookers.watch is None:
            return None
        timer = self.frame.new()
        self._emit(scope, block, Instruction(lambda i, a: timer_step(i), timer, (), value))
        return Instruction(lambda i, a: timer_step(i), into, (), value, variable=variable, timer=timer)

    def _call(self, scope: Scope, block: Block, value: Call, into: int | None, join: Block | None) -> None:
        frame = self.frame
        args = self._operands(value.args)
        callee = value.op
        slot = 0
        if isinstance(callee, GlobalVar):
            block.callee = self._names.code(callee)
            if len(args) != block.callee.arity:
                wanted = block.callee.arity
                raise RelayError(error("R0401", f"@{callee.name_hint} takes {wanted} arguments, not {len(args)}", value.span))
        else:
            slot = self._operand(callee)
        when = self._end(scope, block, TAIL_CALL if into is None else CALL, value, join)

        def finish() -> None:
            block.slot = frame.final(slot)
            if into is None:
                block.fetch = fetcher(frame.finals(args), [])
            else:
                dead = sorted({s for s in (*args, slot) if self.lifetimes.dies(s, scope, when)})
                block.fetch = fetcher(frame.finals(args), [frame.final(s) for s in dead])
                block.into = frame.final(into)
            if block.callee is not None:
                block.fetch = checked(block.fetch, value, block.callee.function.params, block.callee.name)
            block.next = join

        self.ends[id(block)] = finish

    def _branches(
        self, scope: Scope, block: Block, value: If | Match, into: int | None, join: Block | None, work: list[_Chain]
    ) -> None:
        frame = self.frame
        arms: list[_Chain] = []
        if isinstance(value, If):
            slot = self._operand(value.cond)
            for body in (value.true_branch, value.false_branch):
                arms.append(_Chain(Scope(), body, self._block(), into, join))
            block.next, block.other = arms[0].block, arms[1].block
            self._end(scope, block, BRANCH, value, join)
        else:
            slot = self._operand(value.data)
            for clause in value.clauses:
                arm = _Chain(Scope(), clause.rhs, self._block(), into, join)
                for var in pattern_vars(clause.lhs):
                    frame.slots[var] = self._slot(arm.scope, var.checked_type)
                    self.lifetimes.use(frame.slots[var], ahead=1)
                arms.append(arm)
            self._end(scope, block, MATCH, value, join)

        def finish() -> None:
            block.slot = frame.final(slot)
            if isinstance(value, Match):
                block.arms = [
                    (matcher(c.lhs, lambda v: frame.final(frame.slots[v])), arm.block) for c, arm in zip(value.clauses, arms)
                ]

        self.ends[id(block)] = finish
        work.extend(reversed(arms))

    def _instruction(self, variable: Var, value: Expr, into: int) -> Instruction:
        match value:
            case Call(op=Op() as op):
                kernel = _kernel(op, value)
                attrs = value.attrs if value.attrs is not None or op.attrs is None else make_attrs(op.attrs, {})
                binding = Binding(variable, value)
                args = self._operands(value.args)
                make = fast_step(value) or (lambda i, a: op_step(kernel, attrs, i, a))
                return Instruction(make, into, args, value, binding)
            case Call(op=Constructor() as constructor):
                return Instruction(lambda i, a: constructor_step(constructor, i, a), into, self._operands(value.args), value)
            case Tuple(fields):
                return Instruction(tuple_step, into, self._operands(fields), value)
            case TupleGetItem(source, index):
                return Instruction(lambda i, a: field_step(i, a[0], index), into, (self._operand(source),), value)
            case RefCreate(source):
                return Instruction(lambda i, a: new_ref_step(i, a[0]), into, (self._operand(source),), value)
            case RefRead(source):
                return Instruction(lambda i, a: read_step(i, a[0]), into, (self._operand(source),), value)
            case RefWrite(cell, source):
                args = (self._operand(cell), self._operand(source))
                return Instruction(lambda i, a: write_step(i, a[0], a[1]), into, args, value)
            case Function():
                code = Code(f"%{variable.name_hint}", value)
                self.inner.append(Translation(code, self, self._names, self._onlookers))
                return Instruction(lambda i, a: closure_step(code, i, a), into, (), value, captures=code)
        raise AssertionError(f"{type(value).__name__} in A-normal form")


def _is_small(ty: Type | None) -> bool:
    if not isinstance(ty, TensorType):
        return False
    size = 1
    for n in ty.shape:
        if not isinstance(n, int):
            return False
        size *= n
    return size <= _SMALL


def _is_result(variable: Var, rest: Expr) -> bool:
    """Whether nothing but other names for the variable stands between it and the end of its chain."""
    while isinstance(rest, Let) and rest.value is variable:
        variable, rest = rest.variable, rest.body
    return rest is variable


def _in_anf(function: Function) -> Expr:
    """A function's body in A-normal form."""
    if function.body is None:
        raise Trap("R0409", "an external function has no body to evaluate", function)
    anf = convert(extents_as_operands(function), let_results=False, enter_primitive=True)
    assert isinstance(anf, Function)
    return anf.body


def _kernel(op: Op, node: Expr) -> Callable[..., Value]:
    """The kernel of an operator's call. Raises `RelayError` where there is none."""
    own = KERNELS.get(op.name)
    kernel = guarded(own, op, node) if own is not None else added_kernel(op.name, node.checked_type)
    if kernel is None:
        raise RelayError(error("R0406", f"the interpreter has no kernel for {op.name}", node.span))
    if Trait.ARG_REDUCTION in op.traits and isinstance(node.checked_type, TensorType):
        return _of_type(kernel, node.checked_type.dtype)
    return kernel


def _of_type(kernel: Callable[..., Value], dtype: str) -> Callable[..., Value]:
    """A kernel whose int32 result is taken as another integer type, which only the types of its arguments tell."""
    if dtype == "int32":
        return kernel
    return lambda attrs, *args: kernel(attrs, *args).astype(dtype)


__all__ = ["Instruction", "Translation"]
