"""Calls of operators: their relations, run at once or when the types that they need are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from relaylang.ir.expr import Call, Expr
from relaylang.ir.types import ANY, Dim, GlobalTypeVar, TensorType, TupleType, Type, TypeVar
from relaylang.ops.domains import problem_of
from relaylang.ops.extensions import EXTENSIONS
from relaylang.ops.record import Op, RelationError, make_attrs
from relaylang.ops.takes import TENSOR, refused_elements, refused_shape
from relaylang.typing.call_text import call_span
from relaylang.typing.repairs import surplus_arguments
from relaylang.typing.report import Report
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, OpenTensor, Unknown, find, find_dim
from relaylang.typing.texts import difference, name_of, show
from relaylang.typing.valid_types import unsound
from relaylang.typing.worklist import Waiting

_ADDED = "the operator is not the language's own: a script or a package added it"


class Context:
    """The interface of the checker for type relations, for one call at a time.

    Whoever runs a relation sets `types`, the types of the arguments, and `node`, the call, where there is one.
    """

    __slots__ = ("_definitions", "_solver", "node", "types")

    def __init__(self, solver: Solver, definitions: Iterable[GlobalTypeVar] = ()) -> None:
        self._solver = solver
        self._definitions = definitions
        self.node: Call | None = None
        self.types: Sequence[Type] = ()

    def unify(self, arg: int, expected: Type, repairs: Callable[[], Sequence[str]] | None = None) -> Type:
        """Make an argument's type the expected one. Returns what both are; raises `RelationError`."""
        solver = self._solver
        have = find(self.types[arg])
        if isinstance(expected, TensorType) and type(expected) is TensorType:
            expected = solver.intern(expected)
            if have is expected:
                return expected
        if not solver.unify(have, expected):
            have = solver.resolve(have)
            what = difference(expected, have)
            said = f"must be `{show(expected)}`, not `{show(have)}`{': ' if what else ''}{what}"
            raise RelationError(said, arg, repairs() if repairs is not None else ())
        return solver.resolve(have)

    def unify_dims(self, left: Dim, right: Dim, what: str, arg: int | None = None) -> Dim:
        """Make two extents the same. Returns the more exact one; raises `RelationError`."""
        if not self._solver.unify_dims(left, right):
            raise RelationError(f"{what}: {left} and {right} differ", arg)
        return right if left is ANY else find_dim(left)

    def dtype_hint(self, arg: int) -> str | None:
        """The element type that an argument's own attributes name."""
        maker = self.node.args[arg] if self.node is not None else None
        attrs = maker.attrs if isinstance(maker, Call) and isinstance(maker.op, Op) else None
        dtype = getattr(attrs, "out_dtype", None) or getattr(attrs, "dtype", None)
        return dtype if isinstance(dtype, str) else None

    def type_definition(self, name: str) -> GlobalTypeVar | None:
        """The type definition of a name."""
        return next((v for v in self._definitions if v.name_hint == name), None)

    def fail(self, message: str, arg: int | None = None, notes: Sequence[str] = ()) -> None:
        """Raise `RelationError`."""
        raise RelationError(message, arg, notes)


_WINDOW = "the window is greater than its input: take a smaller one, or greater `padding`"


class Operators:
    """Types calls of operators. `types` has the types of the arguments."""

    def __init__(self, solver: Solver, report: Report, types: Mapping[Expr, Type], definitions: Iterable[GlobalTypeVar] = ()) -> None:
        self._solver = solver
        self._report = report
        self._types = types
        self._context = Context(solver, definitions)
        self._memo: dict[tuple[int, ...], Type] = {}  # by the ids of operator and types, for calls without attributes
        self._keep: list[object] = []  # types whose ids stand in the memo
        self._sound: set[int] = set()  # tensor types of results that were looked at
        self._stuck: dict[int, tuple[Call, RelationError]] = {}  # calls on values of a type parameter
        self._untaken: list[Call] = []  # calls of operators whose arguments are not looked at yet

    def call(self, node: Call, op: Op) -> Type:
        """The type of an operator's call; an unknown where the relation waits, `POISON` where an error is reported."""
        types = self._types
        args = [ty if type(ty := types[a]) is TensorType else find(ty) for a in node.args]
        if op.attrs is not None:
            return self._relate(node, op, args)
        key = (id(op), *map(id, args))
        result = self._memo.get(key)
        if result is not None:
            return result
        result = self._relate(node, op, args)
        if type(result) is TensorType and all(type(a) is TensorType for a in args):
            self._memo[key] = result
            self._keep.append(args)
        return result

    def settle(self) -> None:
        """Once every node has been seen: look at arguments that were unknown, and report calls that stay stuck."""
        late, self._untaken = self._untaken, []
        for node in late:
            assert isinstance(node.op, Op)
            self._takes(node, node.op, self._argument_types(node))
        self._untaken = []
        for node, problem in self._stuck.values():
            result = find(self._types[node])
            if type(result) is Unknown:
                self._report.relation_failed(node, problem, self._argument_types(node))
                self._solver.bind(result, POISON)

    def _argument_types(self, node: Call) -> list[Type]:
        return [self._solver.resolve(self._types[a]) for a in node.args]

    def _relate(self, node: Call, op: Op, args: list[Type]) -> Type:
        """The type of an operator's call; an unknown that waits where the arguments are not known."""
        if len(args) != len(op.args) and not op.variadic:
            names = ", ".join(op.args) or "none"
            missing = [f"missing: {', '.join(op.args[len(args) :])}"] if len(args) < len(op.args) else []
            self._report.say(
                "R0303",
                f"{name_of(op)} takes {len(op.args)} argument{'s' * (len(op.args) != 1)}, not {len(args)}",
                call_span(node),
                notes=(f"its arguments are: {names}", *missing),
                fix=surplus_arguments(node, op),
            )
            return POISON
        if op.attrs is not None and node.attrs is None and any(f.required for f in op.schema.values()):
            try:
                make_attrs(op.attrs, {})
            except ValueError as problem:
                said = f"{name_of(op)}: the attribute {problem.name} {problem}"  # type: ignore[attr-defined]
                self._report.say("R0301", said, call_span(node))
                return POISON
        inferred = self._try_relation(node, op, args)
        if inferred is not None:
            return inferred
        result = Unknown(node, True)
        self._wait(Waiting(node, result, self._retry), op, args)
        return result

    def _wait(self, waiting: Waiting, op: Op, args: Iterable[Type]) -> None:
        """Have a call looked at again when an unknown of its arguments is bound, or its own result is."""
        self._solver.wait(waiting, args)
        if op.back is not None:
            self._solver.wait_for(waiting, waiting.result)

    def _retry(self, waiting: Waiting) -> Type | None:
        """Run a relation that waited; None where it waits on."""
        node = waiting.node
        assert isinstance(node, Call) and isinstance(node.op, Op)
        op = node.op
        args = [find(self._types[a]) for a in node.args]
        inferred = self._try_relation(node, op, args)
        if inferred is None and op.back is not None:
            result = self._solver.resolve(waiting.result)
            if self._solver.is_known(result):
                self._context.types, self._context.node = args, node
                try:
                    op.back(result, args, node.attrs, self._context)
                except RelationError as problem:
                    waiting.done = True
                    self._report.relation_failed(node, problem, args)
                    return None
                args = [find(a) for a in args]
                inferred = self._try_relation(node, op, args)
        if inferred is None:
            self._wait(waiting, op, args)
        else:
            waiting.done = True
        return inferred

    def _try_relation(self, node: Call, op: Op, args: list[Type]) -> Type | None:
        """The type that an operator's relation gives, or None where it needs more."""
        solver = self._solver
        needs, waits = op.needs, False
        for i in range(len(args)) if needs is None else needs:
            ty = args[i]
            if type(ty) is TensorType:
                continue
            ty = args[i] = solver.resolve(ty)
            if not solver.is_known(ty):
                if ty is POISON or solver.is_poisoned(ty):
                    return POISON
                if isinstance(ty, OpenTensor):
                    args[i] = solver.close_dims(ty)
                    continue
                waits = True
        if waits:
            return None
        result = self._related(node, op, args)
        if result is None or result is POISON:
            return result
        if type(result) is TensorType:
            result = solver.intern(result)
            return result if id(result) in self._sound or self._is_sound(node, op, result) else POISON
        return self._other_result(node, op, args, result)

    def _other_result(self, node: Call, op: Op, args: list[Type], result: Type) -> Type:
        """A result that is no tensor; an error for a value that is no type."""
        if type(result) is TupleType:
            tensors = (part for part in result.fields if type(part) is TensorType)
            return result if all(self._is_sound(node, op, self._solver.intern(part)) for part in tensors) else POISON
        if op.name in EXTENSIONS and not isinstance(result, Type):
            reason = f"its type relation returned a value of type {type(result).__name__}, not a type"
            return self._refused(node, args, RelationError(reason, notes=[_ADDED]))
        return result

    def _related(self, node: Call, op: Op, args: list[Type]) -> Type | None:
        """What the relation of an operator returns. Reports what it refuses."""
        self._context.types, self._context.node = args, node
        attrs = node.attrs
        if attrs is None and op.attrs is not None:
            attrs = make_attrs(op.attrs, {})
        try:
            wrong = problem_of(op, attrs, args) if attrs is not None else None
            if wrong is not None:
                raise RelationError(*wrong)
            result = op.rel(args, attrs, self._context)
        except RelationError as problem:
            if any(type(a) is TypeVar for a in args):
                # Whether it holds depends on what the type parameter stands for; an annotation may say the result.
                self._stuck[id(node)] = (node, problem)
                return None
            return self._refused(node, args, problem)
        except ArithmeticError:
            return self._refused(node, args, RelationError("an attribute is 0, or too large, where it must not be"))
        except Exception as problem:
            if op.name not in EXTENSIONS:
                raise
            reason = f"its type relation raised {type(problem).__name__}: {problem}"
            return self._refused(node, args, RelationError(reason, notes=[_ADDED]))
        if result is None:
            return POISON if any(self._solver.is_poisoned(a) for a in args) else None
        return result if self._takes(node, op, args) else POISON

    def _refused(self, node: Call, args: Sequence[Type], problem: RelationError) -> Type:
        self._report.relation_failed(node, problem, args)
        return POISON

    def _is_sound(self, node: Call, op: Op, result: TensorType) -> bool:
        """Whether a tensor of an operator's result can exist. Reports why not."""
        if id(result) not in self._sound:
            wrong = unsound(result)
            if wrong is not None:
                said = f"{name_of(op)}: the result would be `{show(result)}`: {wrong}"
                notes = [_WINDOW] if "padding" in op.schema and "negative" in wrong else []
                self._report.say("R0301", said, call_span(node), notes=notes)
                return False
            self._sound.add(id(result))
        return True

    def _takes(self, node: Call, op: Op, args: Sequence[Type]) -> bool:
        """Whether an operator takes arguments of these types. Reports why not; `settle` looks at unknown ones again."""
        if not op.takes and op.name in EXTENSIONS:
            return True
        known = [ty if type(ty) is TensorType else self._solver.resolve(ty) for ty in args]
        try:
            need_taken(op, known)
        except RelationError as problem:
            self._report.relation_failed(node, problem, known)
            return False
        if any(type(ty) is Unknown for ty in known):
            self._untaken.append(node)
        return True


def need_taken(op: Op, args: Sequence[Type]) -> None:
    """An operator takes arguments of these types, as far as they are known. Raises `RelationError`."""
    first = args[0] if args else None
    bound: dict[str, int] = {}
    for i, ty in enumerate(args):
        word = op.takes[i] if i < len(op.takes) else TENSOR
        if word.elements == "any" or ty is POISON or isinstance(ty, (Unknown, TypeVar)):
            continue
        if not isinstance(ty, TensorType):
            raise RelationError(f"must be a tensor, not `{show(ty)}`", i)
        if word is TENSOR:
            continue
        lead = first if isinstance(first, TensorType) else ty
        wrong = refused_elements(word, ty.dtype, lead.dtype) or refused_shape(word, ty.shape, lead.shape, bound)
        if wrong is not None:
            raise RelationError(wrong, i)


__all__ = ["Context", "Operators", "need_taken"]
