"""Calls: operators by their relations, functions and constructors by their types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from relaylang.diagnostics import Diagnostic, Fix, error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Call, Constructor, Expr, Function, GlobalVar, Let, Tuple, TupleGetItem, Var
from relaylang.ir.module import IRModule
from relaylang.ir.typemaps import parts
from relaylang.ir.types import (
    ANY,
    Dim,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from relaylang.ops.domains import MOST_DIMENSIONS, problem_of
from relaylang.ops.extensions import EXTENSIONS
from relaylang.ops.record import Op, RelationError, make_attrs
from relaylang.ops.takes import TENSOR, refused_elements, refused_shape
from relaylang.typing.repairs import literal_of_type, surplus_arguments
from relaylang.typing.report import argument_span, attribute_span, difference, name_of, plain, show
from relaylang.typing.solver import POISON, DimUnknown, OpenTensor, Solver, Unknown, find, find_dim
from relaylang.typing.written import call_span

#: What an extent must be below: TVM and the backends count in 64 bits.
LIMIT = 2**63
_ADDED = "the operator is none of the language's own: a script or a package added it"
#: Element types that something can be computed with, those of accelerators, and vectors of them.
_DTYPE = re.compile(r"(bool|handle|custom\[.*\]\d+|u?int(1|2|4|8|16|32|64)|float(16|32|64)|bfloat16)(x\d+)?")
#: A relation's message that begins with an attribute's name points at that attribute.
_ATTRIBUTE = re.compile(r"(\w+)(?:=|: )")
#: A relation's message begins with one of these where it says what the argument is or does.
_VERBS = frozenset("must has is are cannot needs takes gives holds does may can wants".split())


class Waiting:
    """A call or a projection whose type depends on what is not known yet."""

    __slots__ = ("done", "node", "result")

    def __init__(self, node: Expr, result: Unknown) -> None:
        self.node = node
        self.result = result
        self.done = False


class Context:
    """What a type relation may ask of the checker, for one call at a time."""

    __slots__ = ("node", "solver", "types")

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.node: Call | None = None
        self.types: Sequence[Type] = ()

    def unify(self, arg: int, expected: Type) -> Type:
        have = find(self.types[arg])
        if isinstance(expected, TensorType) and type(expected) is TensorType:
            expected = self.solver.intern(expected)
            if have is expected:
                return expected
        if not self.solver.unify(have, expected):
            have = self.solver.resolve(have)
            what = difference(expected, have)
            raise RelationError(f"must be `{show(expected)}`, not `{show(have)}`{': ' if what else ''}{what}", arg)
        return self.solver.resolve(have)

    def unify_dims(self, left: Dim, right: Dim, what: str, arg: int | None = None) -> Dim:
        if not self.solver.unify_dims(left, right):
            raise RelationError(f"{what}: {left} and {right} differ", arg)
        return right if left is ANY else find_dim(left)

    def dtype_hint(self, arg: int) -> str | None:
        maker = self.node.args[arg] if self.node is not None else None
        attrs = maker.attrs if isinstance(maker, Call) and isinstance(maker.op, Op) else None
        dtype = getattr(attrs, "out_dtype", None) or getattr(attrs, "dtype", None)
        return dtype if isinstance(dtype, str) else None

    def type_definition(self, name: str) -> GlobalTypeVar | None:
        return next((v for v in getattr(self.solver, "definitions", ()) if v.name_hint == name), None)

    def fail(self, message: str, arg: int | None = None, notes: Sequence[str] = ()) -> None:
        raise RelationError(message, arg, notes)


class Calls(Solver):
    """The part of an inference that types calls."""

    def __init__(self, module: IRModule | None) -> None:
        super().__init__()
        self.types: dict[int, Type] = {}
        self.diagnostics: list[Diagnostic] = []
        self.definitions = dict(module.type_definitions) if module is not None else {}
        self.functions: dict[str, Function] = (
            {v.name_hint: f for v, f in module.functions.items()} if module is not None else {}
        )
        self.context = Context(self)
        self.memo: dict[tuple[int, ...], Type] = {}
        self.constructors: dict[int, FuncType] = {}
        self.opened: dict[int, tuple[Type, Type]] = {}
        self.holes_by_type: dict[int, Unknown] = {}
        self.closed_types: dict[int, Type] = {}
        self.keep: list[object] = []
        self.sound: set[int] = set()  # tensor types that were looked at
        self.stuck: dict[int, tuple[Call, RelationError]] = {}  # calls on values of a type parameter
        self.untaken: list[Call] = []  # calls of operators whose arguments are not looked at yet

    # --- saying what is wrong ---

    def say(
        self,
        code: str,
        title: str,
        span: Span | None,
        label: str = "",
        also: Iterable[tuple[Span | None, str]] = (),
        notes: Iterable[str] = (),
        fix: Fix | None = None,
    ) -> None:
        places = [(plain(place), text) for place, text in also if place is not None]
        self.diagnostics.append(error(code, title, plain(span), label, also=places, notes=notes, fix=fix))

    def mismatch(
        self,
        what: str,
        wanted: Type,
        found: Type,
        span: Span | None,
        also: Iterable[tuple[Span | None, str]] = (),
    ) -> None:
        """Two types had to be the same and are not."""
        if self.infinite:
            self.say("R0310", f"{what} would have a type that contains itself", span, also=also)
            return
        wanted, found = self.resolve(wanted), self.resolve(found)
        inner = self.conflict
        text = difference(wanted, found) or (difference(*inner) if inner is not None else "")
        self.say(
            "R0302", f"{what} must be `{show(wanted)}`, not `{show(found)}`", span,
            also=[*also, *self.definition_labels(wanted, found)], notes=(text,) if text else (),
        )  # fmt: skip

    def cannot_be(self, node: Expr, what: str, wanted: Type, found: Type) -> None:
        self.mismatch(what, wanted, found, call_span(node) if isinstance(node, Call) else node.span)

    def definition_labels(self, left: Type, right: Type) -> list[tuple[Span | None, str]]:
        """The definitions of two types that are told apart by name."""
        out: list[tuple[Span | None, str]] = []
        pair = (self.resolve(left), self.resolve(right))
        if self.conflict is not None and not all(isinstance(t, TypeCall) for t in pair):
            pair = self.conflict
        left, right = pair
        if isinstance(left, TypeCall) and isinstance(right, TypeCall) and left.func is not right.func:
            for ty in dict.fromkeys(t.func for t in pair if isinstance(t, TypeCall)):
                data = self.definitions.get(ty) if isinstance(ty, GlobalTypeVar) else None
                if data is not None:
                    out.append((data.span, f"`{data.header.name_hint}` is defined here"))
        return out

    def origin(self, expr: Expr) -> tuple[Span | None, str]:
        """Where the type of an expression comes from."""
        if isinstance(expr, Var):
            where = expr.type_annotation.span if expr.type_annotation is not None else None
            return where or expr.span, f"{name_of(expr)} is `{show(self.resolve(self.types[id(expr)]))}`"
        return expr.span, f"this is `{show(self.resolve(self.types[id(expr)]))}`"

    def origin_in(self, call: Call, argument: Expr, index: int) -> tuple[Span | None, str]:
        """Where the type of a call's argument comes from; in the call itself where it is made there."""
        span, text = self.origin(argument)
        if span is None or isinstance(argument, Var):
            return span, text
        return argument_span(call, index), text

    # --- calls ---

    def call(self, node: Call) -> Type:
        op = node.op
        types = self.types
        if type(op) is Op:
            args = [find(types[id(a)]) for a in node.args]
            if op.attrs is None:
                key = (id(op), *[id(a) for a in args])
                made = self.memo.get(key)
                if made is not None:
                    return made
                made = self.relate(node, op, args)
                if type(made) is TensorType and all(type(a) is TensorType for a in args):
                    self.memo[key] = made
                    self.keep.append(args)
                return made
            return self.relate(node, op, args)
        callee = find(self.constructor_type(op, node.span) if isinstance(op, Constructor) else types[id(op)])
        return self.apply(node, callee)

    def relate(self, node: Call, op: Op, args: list[Type]) -> Type:
        """The type of an operator's call; an unknown that waits where the arguments are not known."""
        if len(args) != len(op.args) and not op.variadic:
            names = ", ".join(op.args) or "none"
            self.say(
                "R0303", f"{name_of(op)} takes {len(op.args)} argument{'s' * (len(op.args) != 1)}, not {len(args)}",
                call_span(node), notes=(f"its arguments are: {names}",), fix=surplus_arguments(node, op),
            )  # fmt: skip
            return POISON
        if op.attrs is not None and node.attrs is None and any(f.required for f in op.schema.values()):
            try:
                make_attrs(op.attrs, {})
            except ValueError as problem:
                self.say("R0301", f"{name_of(op)}: the attribute {problem.name} {problem}", call_span(node))  # type: ignore[attr-defined]
                return POISON
        made = self.try_relation(node, op, args)
        if made is not None:
            return made
        result = Unknown(node, True)
        self.wait(Waiting(node, result), args)
        return result

    def wait(self, waiting: Waiting, types: Iterable[Type]) -> None:
        """Have something looked at again when one of the unknowns in some types is known, or its own result is."""
        node = waiting.node
        targets = [u for ty in types for u in self.unknowns_in(ty)[:1]]
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.back is not None:
            targets.append(waiting.result)
        for unknown in targets:
            unknown = find(unknown)  # type: ignore[assignment]
            if type(unknown) is Unknown:
                if unknown.waiters is None:
                    unknown.waiters = []
                unknown.waiters.append(waiting)

    def retry(self, waiting: Waiting) -> Type | None:
        """Run a relation that waited; None where it has to wait on."""
        node = waiting.node
        assert isinstance(node, Call) and isinstance(node.op, Op)
        args = [find(self.types[id(a)]) for a in node.args]
        made = self.try_relation(node, node.op, args)
        if made is None and node.op.back is not None:
            result = self.resolve(waiting.result)
            if self.is_known(result):
                self.context.types, self.context.node = args, node
                try:
                    node.op.back(result, args, node.attrs, self.context)
                except RelationError as problem:
                    waiting.done = True
                    self.relation_failed(node, problem)
                    return None
                args = [find(a) for a in args]
                made = self.try_relation(node, node.op, args)
        if made is None:
            self.wait(waiting, args)
        else:
            waiting.done = True
        return made

    def try_relation(self, node: Call, op: Op, args: list[Type]) -> Type | None:
        """The type that an operator's relation gives, or None where it needs more."""
        needs = op.needs
        for i in range(len(args)) if needs is None else needs:
            ty = args[i]
            if type(ty) is TensorType:
                continue
            ty = args[i] = self.resolve(ty)
            if not self.is_known(ty):
                if ty is POISON or self.is_poisoned(ty):
                    return POISON
                if isinstance(ty, OpenTensor):
                    args[i] = self.close_dims(ty)
                    continue
                return None
        self.context.types, self.context.node = args, node
        attrs = node.attrs
        if attrs is None and op.attrs is not None:
            attrs = make_attrs(op.attrs, {})
        try:
            if attrs is not None:
                wrong = problem_of(op, attrs, args)
                if wrong is not None:
                    raise RelationError(*wrong)
            made = op.rel(args, attrs, self.context)
        except RelationError as problem:
            if any(type(a) is TypeVar for a in args):
                # Whether it holds depends on what the type parameter stands for; an annotation may say the result.
                self.stuck[id(node)] = (node, problem)
                return None
            self.relation_failed(node, problem)
            return POISON
        except ArithmeticError:
            self.relation_failed(node, RelationError("an attribute is 0, or too large, where it must not be"))
            return POISON
        except Exception as problem:
            if op.name not in EXTENSIONS:
                raise
            said = f"its type relation raised {type(problem).__name__}: {problem}"
            self.relation_failed(node, RelationError(said, notes=[_ADDED]))
            return POISON
        if made is not None and not self.takes(node, op, args):
            return POISON
        if type(made) is TensorType:
            made = self.intern(made)
            return made if self.is_sound(node, op, made) else POISON
        if type(made) is TupleType:
            for part in made.fields:
                if type(part) is TensorType and not self.is_sound(node, op, self.intern(part)):
                    return POISON
        if made is None and any(self.is_poisoned(a) for a in args):
            return POISON
        if made is not None and op.name in EXTENSIONS and not isinstance(made, Type):
            said = f"its type relation returned a value of type {type(made).__name__}, not a type"
            self.relation_failed(node, RelationError(said, notes=[_ADDED]))
            return POISON
        return made

    def is_sound(self, node: Call, op: Op, made: TensorType) -> bool:
        """Whether a tensor of an operator's result can exist; says why not."""
        if id(made) not in self.sound:
            wrong = unsound(made)
            if wrong is not None:
                self.say("R0301", f"{name_of(op)}: the result would be `{show(made)}`: {wrong}", call_span(node))
                return False
            self.sound.add(id(made))
        return True

    def takes(self, node: Call, op: Op, args: Sequence[Type]) -> bool:
        """Whether an operator takes arguments of these types; says why not. What is unknown is looked at in the end."""
        if not op.takes and op.name in EXTENSIONS:
            return True
        known = [ty if type(ty) is TensorType else self.resolve(ty) for ty in args]
        try:
            need_taken(op, known)
        except RelationError as problem:
            self.relation_failed(node, problem)
            return False
        if any(type(ty) is Unknown for ty in known):
            self.untaken.append(node)
        return True

    def check_untaken(self) -> None:
        """Look at the arguments that were unknown when their operator's relation held."""
        late, self.untaken = self.untaken, []
        for node in late:
            assert isinstance(node.op, Op)
            self.takes(node, node.op, [self.resolve(self.types[id(a)]) for a in node.args])
        self.untaken = []

    def close_dims(self, ty: TensorType) -> TensorType:
        """A tensor type whose open extents are `?`: nothing said what they are."""
        shape = tuple(ANY if type(d) is DimUnknown else d for d in map(find_dim, ty.shape))
        return self.intern(TensorType(shape, ty.dtype))

    def relation_failed(self, node: Call, problem: RelationError) -> None:
        op = node.op
        assert isinstance(op, Op)
        arg = problem.arg
        named = _ATTRIBUTE.match(problem.message)
        written = attribute_span(node, named[1]) if named is not None and named[1] in op.schema else None
        if written is not None and arg is not None and arg < len(node.args):
            self.say(
                "R0301", f"{name_of(op)}: {problem.message}", written,
                also=[self.origin_in(node, node.args[arg], arg)], notes=problem.notes,
            )  # fmt: skip
            return
        if arg is None or arg >= len(node.args):
            self.say("R0301", f"{name_of(op)}: {problem.message}", written or call_span(node), notes=problem.notes)
            return
        word = f" ({op.args[arg]})" if arg < len(op.args) else ""
        what = f"argument {arg + 1}{word}{'' if problem.message.split(' ', 1)[0] in _VERBS else ':'} {problem.message}"
        sources: dict[Expr, None] = dict.fromkeys(node.args)
        tuple_arg = node.args[arg]
        if isinstance(tuple_arg, Tuple):
            numbers = [int(n) for n in re.findall(r"field (\d+)", problem.message)]
            sources.update(dict.fromkeys(tuple_arg.fields[n] for n in numbers if n < len(tuple_arg.fields)))
        sources.update({a.tuple_value: None for a in node.args if isinstance(a, TupleGetItem)})
        also = [
            (span, text)
            for span, text in map(self.origin, sources)
            if span is not None and not (node.span is not None and _inside(span, node.span))
        ]
        self.say(
            "R0301", f"{name_of(op)}: {what}",
            argument_span(node, arg), also=also, notes=problem.notes, fix=literal_of_type(node, self.context.types),
        )  # fmt: skip

    def report_stuck(self) -> None:
        """Say which calls on values of a type parameter gave nothing that is known."""
        for node, problem in self.stuck.values():
            result = find(self.types[id(node)])
            if type(result) is Unknown:
                self.relation_failed(node, problem)
                result.link = POISON

    def constructor_type(self, constructor: Constructor, span: Span | None) -> Type:
        made = self.constructors.get(id(constructor))
        if made is None:
            data = self.definitions.get(constructor.belong_to)
            if data is None:
                name = constructor.belong_to.name_hint
                self.say("R0312", f"{name_of(constructor)} belongs to the type `{name}`, which is not defined", span)
                return POISON
            made = FuncType(constructor.inputs, TypeCall(data.header, data.type_vars), data.type_vars)
            self.constructors[id(constructor)] = made
        return made

    def apply(self, node: Call, callee: Type) -> Type:
        """The type of a call of something that is not an operator."""
        args = [self.types[id(a)] for a in node.args]
        if type(callee) is Unknown:
            result = Unknown(node, True)
            if not self.unify(callee, FuncType(args, result)):
                self.cannot_be(node, name_of(node.op), callee, FuncType(args, result))
                return POISON
            return result
        if callee is POISON:
            return POISON
        if not isinstance(callee, FuncType):
            self.say(
                "R0305", f"{name_of(node.op)} is called, but it is not a function: it is `{show(callee)}`",
                call_span(node), also=[self.origin(node.op)],
            )  # fmt: skip
            return POISON
        if len(args) != len(callee.arg_types):
            count = len(callee.arg_types)
            self.say(
                "R0303", f"{name_of(node.op)} takes {count} argument{'s' * (count != 1)}, not {len(args)}", call_span(node),
                also=[(self.callee_span(node.op), "it is defined here")],
                notes=(f"its type is `{show(self.resolve(callee))}`",),
            )  # fmt: skip
            return POISON
        declared = callee.arg_types
        if callee.type_params:
            mapping = self.fresh_for(callee.type_params, node)
            if len(node.type_args) > len(callee.type_params):
                self.say(
                    "R0303",
                    f"{name_of(node.op)} has {len(callee.type_params)} type parameters, not {len(node.type_args)}",
                    call_span(node), also=[(self.callee_span(node.op), "it is defined here")],
                )  # fmt: skip
            if node.type_args:
                for param, given in zip(callee.type_params, node.type_args):
                    if id(param) in mapping:
                        self.unify(mapping[id(param)], self.opened_argument(given))
            opened = self.substitute(FuncType(callee.arg_types, callee.ret_type), mapping)
            assert isinstance(opened, FuncType)
            callee = opened
        wrong = False
        for i, (wanted, have) in enumerate(zip(callee.arg_types, args)):
            if find(wanted) is not find(have) and not self.unify(wanted, have):
                also = [self.parameter(node.op, i)]
                if not isinstance(node.args[i], Call):
                    also.append(self.origin(node.args[i]))
                also += [self.origin(node.args[j]) for j in range(i) if _share(declared[i], declared[j])]
                self.mismatch(
                    f"argument {i + 1} of {name_of(node.op)}", wanted, have, argument_span(node, i), also=also
                )
                wrong = True
        if wrong:
            return POISON
        return self.resolve(callee.ret_type)

    def opened_argument(self, given: Type) -> Type:
        return self.map_type(given, lambda ty: Unknown() if type(ty) is IncompleteType else ty)

    def callee_span(self, callee: Expr) -> Span | None:
        if isinstance(callee, GlobalVar):
            function = self.functions.get(callee.name_hint)
            return function.span if function is not None else None
        if isinstance(callee, Let):
            return None
        return callee.span

    def parameter(self, callee: Expr, index: int) -> tuple[Span | None, str]:
        """Where a callee says what its argument must be."""
        function = self.functions.get(callee.name_hint) if isinstance(callee, GlobalVar) else callee
        if isinstance(function, Function) and index < len(function.params):
            param = function.params[index]
            where = param.type_annotation.span if param.type_annotation is not None else None
            return where or param.span, f"the parameter {name_of(param)} is declared here"
        return (callee.span, "it is defined here") if isinstance(callee, Constructor) else (None, "")


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


def unsound(ty: TensorType) -> str | None:
    """What is wrong with a tensor type's extents or its element type, if anything."""
    if len(ty.shape) > MOST_DIMENSIONS:
        return f"it has {len(ty.shape)} dimensions, and {MOST_DIMENSIONS} are possible"
    for axis, dim in enumerate(ty.shape):
        if isinstance(dim, int) and not 0 <= dim < LIMIT:
            return f"dimension {axis} is {dim}, which {'is negative' if dim < 0 else 'does not fit 64 bits'}"
    if not ty.dtype:
        return "it has no element type"
    if _DTYPE.fullmatch(ty.dtype) is None:
        return f"`{ty.dtype}` is not an element type"
    return None


def _share(left: Type, right: Type) -> bool:
    """Whether two declared types speak of one type parameter."""
    return not _parameters(left).isdisjoint(_parameters(right))


def _parameters(ty: Type) -> set[int]:
    found: set[int] = set()
    stack = [ty]
    while stack:
        node = stack.pop()
        if type(node) is TypeVar:
            found.add(id(node))
        stack.extend(parts(node))
    return found


def _inside(inner: Span, outer: Span) -> bool:
    return inner.source is outer.source and outer.first <= inner.first and inner.last <= outer.last


__all__ = ["Calls", "Context", "Waiting"]
