"""Names in attributes become operands: what a parameter's shape says in a run.

`zeros(shape=[b, 8])` becomes `dyn.zeros` of a vector, which is computed from the shape of a parameter that has `b`, or else
`2 * b + 1`. So the interpreter and the VM need no rule of their own for such calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.ir import Call, Dim, Expr, Function, TensorType, TupleType, Var, post_order, rewrite
from relaylang.ir.extents import names_in, part_of, with_names
from relaylang.ir.typed import retype, typed_field
from relaylang.ir.types import ANY, ComputedDim, TypeVar, dim_text
from relaylang.ops.record import Op
from relaylang.rules.static_to_dynamic import RULES, dynamic_call, extents_vector, open_extents


def extents_as_operands(function: Function) -> Function:
    """A typed function whose calls have no names in attributes.

    Raises `RelayError` (R0404) for a name that no parameter's shape tells.
    """
    calls = {id(node): dims for node in post_order(function) if isinstance(node, Call) and (dims := open_extents(node)) is not None}
    if not calls:
        return function
    places = _Places(function)
    vectors: dict[int, Expr] = {}

    def changed(old: Expr, new: Expr) -> Expr:
        dims = calls.get(id(old))
        if dims is None:
            return retype(new, old)
        assert isinstance(old, Call) and isinstance(new, Call)
        try:
            shape = extents_vector([places.of(d) for d in dims], places.axes, vectors, old.span)
        except KeyError:
            raise RelayError(_not_known(old)) from None
        return dynamic_call(old, new.args, shape)

    rewritten = rewrite(function, changed)
    assert isinstance(rewritten, Function)
    return rewritten


def _not_known(call: Call) -> Diagnostic:
    assert isinstance(call.op, Op)
    attr = RULES[call.op.name][1]
    extents = getattr(call.attrs, attr)
    names = {n.name_hint: n for d in extents for n in names_in(d)}
    notes = [f"no parameter's shape tells `{name}`" for name in names][:3]
    title = f"{call.op.name}: the numbers of {attr}=[{', '.join(map(dim_text, extents))}] are not known"
    return error("R0404", title, call.span, notes=notes)


class _Places:
    """Where names stand. `axes` has the tensor and the axis of each, by the name's id."""

    def __init__(self, function: Function) -> None:
        self.axes: dict[int, tuple[Expr, int]] = {}
        #: What a name is computed of, by its id, and extents without such names, by those of the extents.
        self._parts: dict[int, Dim] = {}
        self._known: dict[int, tuple[Dim, Dim]] = {}
        computed = []
        for value, axis, dim in _declared(function):
            if isinstance(dim, ComputedDim):
                computed.append((value, axis, dim))
            else:
                self.axes.setdefault(id(dim), (value, axis))
        self._take_apart(computed)

    def _take_apart(self, computed: Sequence[tuple[Expr, int, ComputedDim]]) -> None:
        """Find the names that stand in computed extents alone. Each extent tells one, where the others are known."""
        missing = [[n for n in names_in(dim) if id(n) not in self.axes] for _, _, dim in computed]
        users: dict[int, list[int]] = {}
        for place, names in enumerate(missing):
            for name in names:
                users.setdefault(id(name), []).append(place)
        counts = [len(names) for names in missing]
        ready = [place for place, count in enumerate(counts) if count == 1]
        while ready:
            place = ready.pop()
            value, axis, dim = computed[place]
            extent = TypeVar(dim_text(dim), "ShapeVar")
            self.axes[id(extent)] = value, axis
            for name in [n for n in missing[place] if id(n) not in self._parts]:
                part = part_of(dim, name, extent)
                if part is not ANY:
                    self._parts[id(name)] = self.of(part)
                    for user in users[id(name)]:
                        counts[user] -= 1
                        if counts[user] == 1:
                            ready.append(user)
        for (value, axis, dim), names in zip(computed, missing):
            if any(id(n) not in self._parts for n in names):
                extent = TypeVar(dim_text(dim), "ShapeVar")
                self.axes[id(extent)] = value, axis
                self._known.setdefault(id(dim), (dim, extent))

    def of(self, dim: Dim) -> Dim:
        """An extent as a computation of names that have places. Others stay."""
        if id(dim) not in self._known:
            self._known[id(dim)] = dim, with_names(dim, lambda name: self._parts.get(id(name), name))
        return self._known[id(dim)][1]


def _declared(function: Function) -> Iterator[tuple[Expr, int, TypeVar]]:
    """The extents with names in the shapes of parameters: the tensor, the axis, and the extent.

    A function's parameters have the names that it declares. Those of the outermost one have a program's names, too.
    """
    for inner in post_order(function):
        if not isinstance(inner, Function):
            continue
        stack: list[Expr] = list(reversed(inner.params))
        while stack:
            value = stack.pop()
            ty = value.checked_type or (value.type_annotation if isinstance(value, Var) else None)
            if isinstance(ty, TupleType):
                stack += [typed_field(value, n) for n in reversed(range(len(ty.fields)))]
            elif isinstance(ty, TensorType):
                for axis, dim in enumerate(ty.shape):
                    if isinstance(dim, TypeVar) and (inner is function or all(n in inner.type_params for n in names_in(dim))):
                        yield value, axis, dim
