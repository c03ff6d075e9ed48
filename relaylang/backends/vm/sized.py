"""Regions of unknown extents: kernels that read the sizes of their inputs, and the extents of results as C.

Elements of inputs that give extents of results are sizes, too (`elements`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relaylang.backends.cpu.emit import Emitter
from relaylang.backends.cpu.flatten import Calls
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.pipeline import lower_module
from relaylang.backends.cpu.program import Program
from relaylang.backends.cpu.turns import MOST as MOST_TURNS
from relaylang.backends.cpu.turns import LoopOp
from relaylang.backends.vm.elements import LEAST, Elements, static_form, the_larger, type_of_sizes
from relaylang.backends.vm.loops import OpenLoop, with_open_loops
from relaylang.backends.vm.regions import tensors_of
from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.source import Span
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    children,
    post_order,
    rebuild,
)
from relaylang.ir.typed import retype, typed, typed_field, typed_tuple, typed_var
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.sizes import MOST, Sizes, bounds, has_sizes, largest, without_common
from relaylang.ops.record import Op, OpPattern
from relaylang.ops.traits import Trait
from relaylang.typing.incremental import CallTyper

#: Two numbers for each size: primes, so that no others come from them by accident. Data, which come first, are larger than
#: kernels and indices, and stay large where a network halves them five times.
_NUMBERS = (
    (1499, 1361, 1223, 1103, 991, 887, 797, 719, 647, 577, 521, 467, 421, 379, 337, 307, 277, 251, 223, 199, 181, 163, 149, 131),
    (
        2999,
        2707,
        2437,
        2203,
        1987,
        1787,
        1609,
        1439,
        1301,
        1171,
        1049,
        947,
        859,
        769,
        691,
        617,
        563,
        503,
        449,
        409,
        367,
        331,
        293,
        263,
    ),
)
#: So often are extents that must be equal found, and types inferred again.
_ROUNDS = 4


@dataclass
class Sized:
    """The kernels of a region. `sizes` are the sizes as C, `extents` those of the results.

    `required` are the checks that operators make of extents, whether there are elements or not. `empty` is for results
    without elements.
    """

    program: Program
    sizes: tuple[str, ...]
    checks: tuple[str, ...]
    extents: tuple[str, ...]
    text: str
    required: tuple[str, ...]
    empty: Empty | None = None


@dataclass
class Empty:
    """When the results of a region have no elements, so that no kernel needs to run; as C."""

    sizes: tuple[str, ...]
    checks: tuple[str, ...]
    extents: tuple[str, ...]


def sized(module: IRModule, isa: Isa, calls: Calls) -> Sized | None:
    """The kernels of a region for any extents.

    None where there are too many sizes, or where code depends on their numbers.
    Raises `RelayError` where the backend has no such code for an operator.
    """
    return _sized(with_open_loops(module), isa, calls, False)


def broadcasting(module: IRModule, isa: Isa, calls: Calls) -> Sized | None:
    """The kernels of a region for any extents, of which those that broadcast need not be equal: any of them may be 1.

    None where no extents that may differ are broadcast, and as `sized`.
    """
    module = with_open_loops(module)
    try:
        inputs, _ = _inferred(module, _NUMBERS[0], 1, True)
        return _sized(module, isa, calls, True) if inputs.sizes.have_met else None
    except RelayError:
        return None


def _sized(module: IRModule, isa: Isa, calls: Calls, yielding: bool) -> Sized | None:
    candidates = [_for_numbers(module, isa, calls, numbers, yielding) for numbers in _NUMBERS]
    if candidates[0] is None or candidates[1] is None or candidates[0].text != candidates[1].text:
        return None
    if not candidates[0].program.may_fail:
        candidates[0].empty = _empty(module, yielding, candidates[0].required)
    return candidates[0]


def _empty(module: IRModule, yielding: bool, required: Sequence[str]) -> Empty | None:
    """When no call that reads unknown extents has elements to compute. None where this cannot be, or is not known."""
    try:
        one, two = (_empty_for(module, numbers, yielding, required) for numbers in _NUMBERS)
    except RelayError:
        return None
    return one if one == two else None


def _empty_for(module: IRModule, numbers: Sequence[int], yielding: bool, required: Sequence[str]) -> Empty | None:
    inputs, typed_mod = _inferred(module, numbers, 0, yielding)
    body = typed_mod["main"].body
    calls = [node for node in post_order(body) if isinstance(node, Call)]
    without: dict[str, None] = {}
    for call in calls:
        results = tensors_of(call.checked_type) or ()
        if not any(has_sizes(t.shape) for x in (call, *call.args) for t in tensors_of(x.checked_type) or ()):  # type: ignore[arg-type]
            continue
        if isinstance(call.op, OpenLoop) or not results or not all(has_sizes(t.shape) for t in results):  # type: ignore[arg-type]
            return None
        if isinstance(call.op, Op) and Trait.REFUSES_VALUES in call.op.traits:
            return None
        without.update((" || ".join(f"{d} == 0" for d in t.shape), None) for t in results)
    assert isinstance(body, Tuple)
    extents = [d for f in body.fields for d in f.checked_type.shape]  # type: ignore[union-attr]
    if not all(has_sizes(f.checked_type.shape) for f in body.fields):  # type: ignore[union-attr]
        return None
    # Assumed answers guard the quotients in the checks after them.
    checks = [*inputs.checks(), *inputs.sizes.assumed, *required, *(f"{d} >= 0" for d in dict.fromkeys(extents))]
    checks += [*(f"{a} == {b}" for a, b in inputs.sizes.equal.values()), *without]
    return Empty(tuple(inputs.texts), tuple(checks), tuple(map(str, extents)))


class _Inputs:
    """The sizes of a region's inputs: extents, and elements that are asked for. `texts` are these as C.

    `stands` are what the sizes stand for: others, or numbers, which they must equal.
    """

    def __init__(self, function: Function, numbers: Sequence[int], least: int, yielding: bool) -> None:
        self.function = function
        self.numbers = numbers
        places = [n for n, d in enumerate(d for p in function.params for d in p.checked_type.shape) if not isinstance(d, int)]  # type: ignore[union-attr]
        self.texts = [f"d[{n}]" for n in places]
        self.sizes = Sizes(numbers[: len(places)], least, yielding)
        self.stands: list[int] = [*self.sizes.sizes]
        self._places: dict[tuple[int, int], int] = {}
        ops = [node.op for node in post_order(function.body) if isinstance(node, Call) and isinstance(node.op, Op)]
        self._least = min([least, *(0 if isinstance(op, OpenLoop) else LEAST.get(op.name, 1) for op in ops)])

    def element(self, param: int, place: int) -> int:
        """An element of an input as a size."""
        number = self._places.setdefault((param, place), len(self.stands))
        if number == len(self.stands):
            if number >= len(self.numbers):
                raise RelayError(error("R0634", f"a kernel reads more than {len(self.numbers)} sizes"))
            ty = self.function.params[param].checked_type
            assert isinstance(ty, TensorType)
            self.texts.append(f"(int64_t)((const {CTYPES[ty.dtype]}*)x[{param}])[{place}]")
            self.stands.append(self.sizes.another(self.numbers[number], self._least))
        return self.stands[number]

    def checks(self) -> list[str]:
        """What must hold of the sizes."""
        conditions = []
        for n, (size, stand) in enumerate(zip(self.sizes.sizes, self.stands)):
            if stand != size:
                conditions.append(f"size{n} == {stand}")
            conditions.append(f"size{n} >= {bounds(size)[0]}")
        return [*conditions, *(f"size{n} <= {MOST}L" for n in self._places.values())]


def _inferred(module: IRModule, numbers: Sequence[int], least: int, yielding: bool) -> tuple[_Inputs, IRModule]:
    """The region with sizes of at least `least` for its unknown extents. Extents that must be equal are one.

    In broadcasts all must be equal, or where extents are `yielding`, those that are not 1.
    """
    inputs = _Inputs(module["main"], numbers, least, yielding)
    for _ in range(_ROUNDS):
        typed_mod = _typed(inputs)
        merged = _merged(inputs.sizes, inputs.stands)
        if merged == inputs.stands:
            break
        inputs.stands = merged
    return inputs, typed_mod


def _for_numbers(module: IRModule, isa: Isa, calls: Calls, numbers: Sequence[int], yielding: bool) -> Sized | None:
    if sum(not isinstance(d, int) for p in module["main"].params for d in p.checked_type.shape) > len(numbers):  # type: ignore[union-attr]
        return None
    inputs, typed_mod = _inferred(module, numbers, 1, yielding)
    sizes = inputs.sizes
    checks = inputs.checks()
    program = lower_module(typed_mod, "main", [], isa, None, calls)
    body = typed_mod["main"].body
    assert isinstance(body, Tuple)
    extents = [d for f in body.fields for d in f.checked_type.shape]  # type: ignore[union-attr]
    checks += [f"{d} >= 0" for d in extents if (bounds(d)[0] or 0) < 0]
    checks += [f"{a} == {b}" for a, b in sizes.equal.values()] + list(sizes.assumed)
    text = "\n".join([*checks, *map(str, extents), str(program.arena_bytes), str(program.fixed_bytes), _text(program, isa)])
    return Sized(program, tuple(inputs.texts), tuple(checks), tuple(map(str, extents)), text, tuple(sizes.required))


def _typed(inputs: _Inputs) -> IRModule:
    """The region with sizes for its unknown extents, its types inferred anew, and shapes as attributes.

    Raises `RelayError` where extents are not known.
    """
    left = iter(list(inputs.stands))
    values: dict[int, Expr] = {}
    params: list[Var] = []
    for param in inputs.function.params:
        ty = param.checked_type
        assert isinstance(ty, TensorType)
        # Numbers of other classes have an arithmetic of their own.
        shape = [int(d) if isinstance(d, int) else next(left) for d in ty.shape]
        params.append(typed_var(param.name_hint, TensorType(shape, ty.dtype), param.span))
        values[id(param)] = params[-1]
    numbers = {id(param): n for n, param in enumerate(params)}
    elements = Elements(lambda param, place: inputs.element(numbers[id(param)], place) if id(param) in numbers else None)
    inputs.sizes.begin()
    inputs.sizes.inferring = True
    try:
        body = _retyped(inputs.function.body, values, elements, _Typer(inputs.sizes))
    finally:
        inputs.sizes.inferring = False
    return IRModule.from_expr(Function(params, body))


class _Typer(CallTyper):
    """Gives calls types of sizes.

    Where a type relation refuses a call, other answers to its comparisons are tried, from the last on. So an extent must
    be 1, or must not be larger than another. An answer that helps is taken from then on, and the kernel checks it.
    Extents yield only in calls whose lowerings look at each operand's extents (`step_of`).
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes

    def give(self, call: Call) -> Call:
        answers = self.sizes.answers
        refusal = self._refusal(call)
        while refusal is not None:
            for text, answer in reversed(list(self.sizes.asked.items())):
                if text in answers:
                    continue
                answers[text] = not answer
                other = self._refusal(call)
                if other is None or other.diagnostics[0].title != refusal.diagnostics[0].title:
                    refusal = other
                    break
                del answers[text]
            else:
                raise refusal
        return call

    def _refusal(self, call: Call) -> RelayError | None:
        """Why a call has no type with the answers so far; what it asked is then not assumed."""
        self.sizes.asked.clear()
        taken = [(conditions, len(conditions)) for conditions in (self.sizes.equal, self.sizes.assumed)]
        assert isinstance(call.op, Op)
        self.sizes.may_yield = call.op.pattern == OpPattern.BROADCAST or Trait.PARTS_BROADCAST in call.op.traits
        try:
            super().give(call)
        except RelayError as refusal:
            for conditions, count in taken:
                while len(conditions) > count:
                    conditions.popitem()
            return refusal
        finally:
            self.sizes.may_yield = False
        return None


def _retyped(expr: Expr, values: dict[int, Expr], elements: Elements, typer: CallTyper) -> Expr:
    """An expression with other values for its variables. `values` has what nodes become, by id."""
    for node in post_order(expr):
        if id(node) not in values:
            values[id(node)] = _anew(node, values, elements, typer)
    return values[id(expr)]


def _loop(op: OpenLoop, args: Sequence[Expr], elements: Elements, typer: CallTyper, span: Span | None) -> Expr:
    """The values behind a loop of sizes."""
    form, turn = op.form, op.body.params[0]
    params = [typed_var(x.name_hint, a.checked_type) for x, a in zip(op.body.params[1:], args)]
    count = len(form.states)
    for param, arg in zip(params[count:], args[count:]):
        elements.bind(param, arg)
    values: dict[int, Expr] = {id(old): new for old, new in zip(op.body.params, (turn, *params))}
    body = _retyped(op.body.body, values, elements, typer)
    assert isinstance(body, Tuple) and isinstance(op.body.body, Tuple)
    found = elements.of(body.fields[-1])
    if found is None or [x.checked_type for x in body.fields[:count]] != [x.checked_type for x in args[:count]]:
        raise RelayError(error("R0634", "the limit or the states of a loop are not known before the program runs", span))
    turns = largest(found.item() - op.first.data.item(), 0)
    if turns > MOST_TURNS:
        raise RelayError(error("R0634", f"a loop has more than {MOST_TURNS} turns", span))
    made = LoopOp(Function([turn, *params], typed_tuple(body.fields[:-1])), op.first, count, turns, op.number)
    loop = typed(Call(made, args, None, (), span), made.result)
    outer: dict[int, Expr] = {id(old): new for old, new in zip(op.body.params, (turn, *args))}
    last = _retyped(op.body.body.fields[-1], outer, elements, typer)
    changed: dict[int, Expr] = {n: typed_field(loop, place) for place, n in enumerate((*form.states, *form.rows))}
    changed[form.turn] = typer.give(the_larger(last, op.first, span))
    left = iter(args[count:])
    return typed_tuple([changed[n] if n in changed else next(left) for n in range(len(form.again.args))], span)


def _anew(node: Expr, values: Mapping[int, Expr], elements: Elements, typer: CallTyper) -> Expr:
    """A node of other operands with its type."""
    match node:
        case Call(op=OpenLoop() as op):
            return _loop(op, [values[id(a)] for a in node.args], elements, typer, node.span)
        case Call(op=Op() as op):
            call = Call(op, [values[id(a)] for a in node.args], node.attrs, node.type_args, node.span)
            static = static_form(call, elements)
            if static is None:
                raise RelayError(error("R0634", f"{op.name}: extents of its result are not known before the program runs", node.span))
            if static.checked_type is None:
                typed(static, type_of_sizes(static, node.checked_type, elements))
            return static if static.checked_type is not None else typer.give(static)
        case Tuple(fields):
            return typed_tuple([values[id(f)] for f in fields], node.span)
        case TupleGetItem(value, index):
            return typed_field(values[id(value)], index, node.span)
        case If(cond, true, false):
            return retype(If(values[id(cond)], values[id(true)], values[id(false)], node.span), values[id(true)])
        case Constant():
            return typed(node, TensorType(node.data.shape, node.dtype))
    return rebuild(node, tuple([values[id(c)] for c in children(node)]))


def _merged(sizes: Sizes, stands: Sequence[int]) -> list[int]:
    """What each size stands for once extents that must be equal are one size or number."""
    known: dict[int, int] = {}

    def of(value: int) -> int:
        while value in known:
            value = known[value]
        return value

    for one, two in sizes.equal.values():
        one, two = (of(value) for value in without_common(one, two))
        if one == two:
            continue
        if one in sizes.sizes:
            known[one] = two
        elif two in sizes.sizes:
            known[two] = one
    return [of(s) for s in stands]


def _text(program: Program, isa: Isa) -> str:
    """All that the kernels are, as text."""
    emitter = Emitter(isa, threads=False)
    emitter.sizes = "sizes"
    emitter.begin(program)
    ends = [emitter.sequence("run", program.run), emitter.sequence("prepare", program.prepare)]
    return "\n".join([*(piece.text for piece in emitter.code.pieces.values()), *ends])
