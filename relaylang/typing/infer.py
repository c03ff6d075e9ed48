"""Type inference: one walk over a program with an explicit stack, and what it leaves open settled from a worklist.

Children come before their parents, so an operator's arguments are usually known when its relation runs. Where they are
not, the call waits for the unknowns among them. Whatever is wrong is said once: its type agrees with everything after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylang.diagnostics import error
from relaylang.ir.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    MetaRef,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    TypeData,
    Var,
)
from relaylang.ir.module import IRModule
from relaylang.ir.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    scalar_type,
)
from relaylang.ops.record import Op, RelationError
from relaylang.source import Span
from relaylang.typing.calls import Calls, Waiting
from relaylang.typing.exhaustive import Undecided, missing_value
from relaylang.typing.report import difference, name_of, place, plain, show
from relaylang.typing.solver import POISON, Unknown, find, parts, with_parts

_BOOL = scalar_type("bool")
_UNIT = TupleType(())

# What is still to be done with a node: (what, node, number of a clause or a function's name).
_VISIT, _CALL, _TUPLE, _FIELD, _BIND, _LET, _IF, _FUNCTION, _ARM, _MATCH, _NEW, _READ, _WRITE, _GLOBAL = range(14)
_Step = tuple[int, Expr, "int | GlobalVar"]


class Stale(Exception):
    """A type found earlier does not hold any more: everything is to be checked anew."""


class Inference(Calls):
    """One inference over a module or an expression. `fresh` looks at nodes that have a type already, too."""

    def __init__(
        self, module: IRModule | None, fragment: bool, fresh: bool, assume: Mapping[Var, Type] | None = None
    ) -> None:
        super().__init__(module)
        self.fragment = fragment
        self.fresh = fresh
        self.assume = dict(assume or {})
        self.skipped = False
        self.order: list[Expr] = []  # nodes that get a type, children first
        self.signatures: dict[int, FuncType] = {}  # of functions, before their bodies are seen
        self.declared: set[int] = set()  # variables that stand for a function inside its own body
        self.started: set[int] = set()  # functions of the module whose bodies are being looked at, or were
        self.named: set[int] = set()  # functions whose type others can see while their bodies are looked at

    # --- entry points ---

    def run_module(self, module: IRModule) -> None:
        for data in module.type_definitions.values():
            self.check_definition(data)
        for var, function in module.functions.items():
            if not isinstance(function, Function) or id(function) in self.started:
                continue
            known = function.checked_type
            if not self.fresh and known is not None and self.is_known(self.resolve(known)):
                if var.checked_type is not None and var.checked_type != known:
                    raise Stale
                self.types[id(var)] = self.types[id(function)] = known
                self.order.append(var)
                self.skipped = True
                continue
            self.walk([(_GLOBAL, function, var)])
        self.settle()

    def run_expr(self, expr: Expr) -> None:
        self.walk([(_VISIT, expr, 0)])
        self.settle()

    # --- annotations ---

    def open(self, annotation: Type, owner: Expr) -> Type:
        """An annotation with its holes made unknowns, checked to be well formed."""
        if type(annotation) is TensorType:
            return self.intern(annotation)
        done = self.opened.get(id(annotation))
        if done is not None:
            return done[1]

        def leaf(ty: Type) -> Type:
            if type(ty) is IncompleteType:
                if id(ty) not in self.holes_by_type:
                    self.holes_by_type[id(ty)] = Unknown(owner)
                return self.holes_by_type[id(ty)]
            return self.intern(ty) if type(ty) is TensorType else ty

        made = self.map_type(annotation, leaf) if self.well_formed(annotation, owner.span) else POISON
        self.opened[id(annotation)] = (annotation, made)
        return made

    def well_formed(self, ty: Type, place: Span | None) -> bool:
        """Kinds: a type definition is used with its arguments, and it is defined."""
        stack = [ty]
        seen: set[int] = set()
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            span = getattr(node, "span", None) or place
            if isinstance(node, GlobalTypeVar):
                self.say(
                    "R0311", f"`{node.name_hint}` is a type definition; a type is `{node.name_hint}[...]`",
                    span, f"write `{node.name_hint}[]`" if not self.arity(node) else "its type arguments are missing",
                )  # fmt: skip
                return False
            if isinstance(node, TypeCall):
                if not isinstance(node.func, GlobalTypeVar):
                    self.say("R0311", f"`{show(node.func)}` takes no type arguments", span)
                    return False
                wanted = self.arity(node.func)
                if wanted is None:
                    self.say("R0312", f"the type `{node.func.name_hint}` is not defined", span)
                    return False
                if wanted != len(node.args):
                    self.say(
                        "R0311",
                        f"`{node.func.name_hint}` has {wanted} type parameters, not {len(node.args)}",
                        span,
                        also=[(self.definitions[node.func].span, "it is defined here")],
                    )
                    return False
            stack.extend(reversed(parts(node)))
        return True

    def arity(self, header: GlobalTypeVar) -> int | None:
        data = self.definitions.get(header)
        return None if data is None else len(data.type_vars)

    def check_definition(self, data: TypeData) -> None:
        for constructor in data.constructors:
            for ty in constructor.inputs:
                self.well_formed(ty, constructor.span or data.span)

    # --- the walk ---

    def is_done(self, expr: Expr) -> bool:
        """Whether a node has a type from an earlier inference."""
        known = expr.checked_type
        if known is None or self.fresh:
            return False
        known = self.intern(known) if type(known) is TensorType else self.resolve(known)
        if not self.is_known(known):
            return False
        self.types[id(expr)] = known
        self.skipped = True
        return True

    def walk(self, stack: list[_Step]) -> None:
        types = self.types
        while stack:
            what, node, extra = stack.pop()
            if what == _CALL:
                types[id(node)] = self.call(node)  # type: ignore[arg-type]
                self.order.append(node)
                if self.ready:
                    self.work()
            elif what != _VISIT:
                self.finish(what, node, extra, stack)
            elif id(node) in types or self.is_done(node):
                pass
            elif type(node) is Call:
                stack.append((_CALL, node, 0))
                op = node.op
                if type(op) is not Op and type(op) is not Constructor and id(op) not in types:
                    stack.append((_VISIT, op, 0))
                for arg in reversed(node.args):
                    if id(arg) not in types:
                        stack.append((_VISIT, arg, 0))
            else:
                self.visit(node, stack)

    def visit(self, node: Expr, stack: list[_Step]) -> None:
        types = self.types
        match node:
            case Var():
                self.bind_var(node, None)
            case Constant():
                types[id(node)] = self.intern(TensorType(node.data.shape, node.dtype))
                self.order.append(node)
            case Tuple(fields):
                stack.append((_TUPLE, node, 0))
                stack.extend([(_VISIT, field, 0) for field in reversed(fields)])
            case TupleGetItem(value):
                stack.append((_FIELD, node, 0))
                stack.append((_VISIT, value, 0))
            case Let(variable, value, body):
                stack.append((_LET, node, 0))
                stack.append((_VISIT, body, 0))
                stack.append((_BIND, node, 0))
                stack.append((_VISIT, value, 0))
                if isinstance(value, Function) and not self.is_done(value) and id(value) not in types:
                    signature = self.signature(value)
                    self.declared.add(id(variable))
                    self.named.add(id(value))
                    types[id(variable)] = signature
                    self.order.append(variable)
            case If(cond, yes, no):
                stack.append((_IF, node, 0))
                stack.append((_VISIT, no, 0))
                stack.append((_VISIT, yes, 0))
                stack.append((_VISIT, cond, 0))
            case Function():
                self.enter(node, node, stack)
            case GlobalVar():
                self.visit_global(node, stack)
            case Match(data, clauses):
                stack.append((_MATCH, node, 0))
                for i in range(len(clauses) - 1, -1, -1):
                    stack.append((_VISIT, clauses[i].rhs, 0))
                    stack.append((_ARM, node, i))
                stack.append((_VISIT, data, 0))
            case RefCreate(value):
                stack.append((_NEW, node, 0))
                stack.append((_VISIT, value, 0))
            case RefRead(ref):
                stack.append((_READ, node, 0))
                stack.append((_VISIT, ref, 0))
            case RefWrite(ref, value):
                stack.append((_WRITE, node, 0))
                stack.append((_VISIT, value, 0))
                stack.append((_VISIT, ref, 0))
            case Constructor():
                types[id(node)] = self.constructor_type(node, node.span)
                self.order.append(node)
            case MetaRef():
                types[id(node)] = self.open(node.type_annotation, node) if node.type_annotation else Unknown(node)
                self.order.append(node)
            case Op():
                self.say("R0305", f"the operator {name_of(node)} must be called; it is not a value", node.span)
                types[id(node)] = POISON
            case _:
                raise AssertionError(f"{type(node).__name__} is not an expression")

    def finish(self, what: int, node: Expr, extra: int | GlobalVar, stack: list[_Step]) -> None:
        types = self.types
        if what == _GLOBAL:
            assert isinstance(node, Function) and isinstance(extra, GlobalVar)
            self.started.add(id(node))
            self.named.add(id(node))
            types[id(extra)] = self.signature(node)
            self.order.append(extra)
            self.enter(node, extra, stack)
            return
        match node:
            case Tuple(fields):
                made: Type = TupleType([types[id(field)] for field in fields])
            case TupleGetItem():
                made = self.project(node)
            case Let(variable, value, body):
                if what == _BIND:
                    self.bind_let(node, variable, value)
                    return
                made = types[id(body)]
            case If(cond, yes, no):
                if not self.unify(types[id(cond)], _BOOL):
                    self.say(
                        "R0307",
                        f"the condition of an `if` must be `bool`, not `{show(self.resolve(types[id(cond)]))}`",
                        place(cond, node.span),
                    )
                made = self.join_arms(node, [yes, no], "the branches of an `if`")
            case Function():
                self.leave(node)
                return
            case Match(_, clauses):
                if what == _ARM:
                    assert isinstance(extra, int)
                    self.bind_pattern(node, clauses[extra])
                    return
                made = self.join_arms(node, [c.rhs for c in clauses], "the arms of a `match`")
                self.check_exhaustive(node)
            case RefCreate(value):
                made = RefType(types[id(value)])
            case RefRead(ref):
                made = self.referred(node, ref)
            case RefWrite(ref, value):
                inner = self.referred(node, ref)
                if not self.unify(inner, types[id(value)]):
                    self.mismatch("what is written into a reference", inner, types[id(value)], place(value, node.span))
                made = _UNIT
            case _:
                raise AssertionError(what)
        types[id(node)] = made
        self.order.append(node)
        if self.ready:
            self.work()

    # --- variables and functions ---

    def bind_var(self, var: Var, given: Type | None) -> Type:
        """Give a variable its type: its annotation, made to agree with `given`, or that alone."""
        if self.assume and var in self.assume:
            ty = self.open(self.assume[var], var)
        elif var.type_annotation is not None:
            ty = self.open(var.type_annotation, var)
        else:
            ty = Unknown(var) if given is None else given
        before = var.checked_type
        if before is not None and not self.fresh and self.is_known(self.resolve(before)):
            ty = self.resolve(ty)
            if ty != before if self.is_known(ty) else not self.unify(ty, before):
                raise Stale
        self.types[id(var)] = ty
        self.order.append(var)
        return ty

    def signature(self, function: Function) -> FuncType:
        """A function's type from its annotations; what they leave out is unknown."""
        made = self.signatures.get(id(function))
        if made is None:
            params = []
            for p in function.params:
                params.append(self.types.get(id(p)) or self.bind_var(p, None))
            result = (
                self.open(function.ret_type, function) if function.ret_type is not None else Unknown(function, True)
            )
            made = self.signatures[id(function)] = FuncType(params, result, function.type_params)
        return made

    def enter(self, function: Function, name: Expr, stack: list[_Step]) -> None:
        self.signature(function)
        stack.append((_FUNCTION, function, 0))
        if function.body is not None:
            stack.append((_VISIT, function.body, 0))

    def leave(self, function: Function) -> None:
        signature = self.signatures[id(function)]
        if function.body is not None:
            body = self.types[id(function.body)]
            result = find(signature.ret_type)
            if type(result) is Unknown and id(function) not in self.named:
                # Nobody has seen this unknown yet: it need not be bound, nor looked for inside the body's type.
                signature = FuncType(signature.arg_types, body, signature.type_params)
                result = body
            if type(result) is Unknown and not self.unify(result, body):
                self.cannot_be(function, "a function's result", result, body)
            elif type(result) is not Unknown and not self.unify(result, body):
                self.mismatch(
                    "what a function returns", result, body, place(_last(function.body), function.span, last=True),
                    also=[(function.ret_type.span if function.ret_type else None, "it is declared here")],
                )  # fmt: skip
        elif function.ret_type is None:
            self.say("R0304", "an external function must have a result type", function.span)
        self.types[id(function)] = signature
        self.order.append(function)
        if self.ready:
            self.work()

    def visit_global(self, var: GlobalVar, stack: list[_Step]) -> None:
        """The type of a module's function: from its annotations, or from its body, which is looked at first."""
        function = self.functions.get(var.name_hint)
        if function is None:
            self.say("R0312", f"the module has no function `@{var.name_hint}`", var.span)
            self.types[id(var)] = POISON
        elif id(function) in self.types or id(function) in self.started:
            self.types[id(var)] = self.signature(function) if id(function) in self.started else self.types[id(function)]
        elif self.is_done(function):
            self.types[id(var)] = self.types[id(function)]
        else:
            stack.append((_GLOBAL, function, var))
            return
        self.order.append(var)

    def bind_let(self, let: Let, variable: Var, value: Expr) -> None:
        ty = self.types[id(value)]
        if id(variable) in self.declared:
            if variable.type_annotation is not None:
                wanted = self.open(variable.type_annotation, variable)
                if not self.unify(wanted, ty):
                    self.mismatch(f"the value of {name_of(variable)}", wanted, ty, place(value, let.span))
            return
        if id(variable) in self.types and not (variable.checked_type is not None and not self.fresh):
            self.say(
                "R0314", f"the variable {name_of(variable)} is used in its own value, which is not a function",
                variable.span or let.span,
            )  # fmt: skip
            return
        bound = self.bind_var(variable, ty)
        if not self.unify(bound, ty):
            self.mismatch(
                f"the value of {name_of(variable)}", bound, ty, place(value, let.span),
                also=[(variable.span, "declared here")],
            )  # fmt: skip

    # --- branches and patterns ---

    def join_arms(self, node: Expr, arms: Sequence[Expr], what: str) -> Type:
        """The one type of several branches."""
        result: Type = self.types[id(arms[0])] if arms else Unknown(node)
        for arm in arms[1:]:
            joined = self.join(result, self.types[id(arm)])
            if joined is None:
                first, other = self.resolve(result), self.resolve(self.types[id(arm)])
                self.say(
                    "R0302", f"{what} have different types: `{show(first)}` and `{show(other)}`",
                    place(_last(arm), node.span), f"this is `{show(other)}`",
                    also=[(place(_last(arms[0]), node.span), f"this is `{show(first)}`")], notes=_note(first, other),
                )  # fmt: skip
                return POISON
            result = joined
        return result

    def referred(self, node: Expr, ref: Expr) -> Type:
        """What a reference refers to."""
        ty = find(self.types[id(ref)])
        if isinstance(ty, RefType):
            return ty.value
        inner = Unknown(node, True)
        if not self.unify(ty, RefType(inner)):
            self.say("R0313", f"this is no reference, but `{show(self.resolve(ty))}`", place(ref, node.span))
            return POISON
        return inner

    def bind_pattern(self, match: Match, clause: Clause) -> None:
        stack: list[tuple[Pattern, Type]] = [(clause.lhs, self.types[id(match.data)])]
        while stack:
            pattern, ty = stack.pop()
            ty = find(ty)
            span = pattern.span or clause.span or match.span
            if isinstance(pattern, PatternVar):
                bound = self.bind_var(pattern.var, ty)
                if not self.unify(bound, ty):
                    self.mismatch(f"what {name_of(pattern.var)} is bound to", bound, ty, pattern.var.span or span)
            elif isinstance(pattern, PatternConstructor):
                stack.extend(reversed(self.match_constructor(match, pattern, ty, span)))
            elif isinstance(pattern, PatternTuple):
                count = len(pattern.patterns)
                made: Type = ty
                if type(ty) is Unknown:
                    made = TupleType([Unknown(match) for _ in range(count)])
                    self.unify(ty, made)
                if isinstance(made, TupleType) and len(made.fields) == count:
                    stack.extend(reversed(list(zip(pattern.patterns, made.fields))))
                    continue
                if made is not POISON:
                    shown = show(self.resolve(made))
                    self.say("R0309", f"a pattern of {count} fields cannot take apart `{shown}`", span)
                stack.extend((p, POISON) for p in reversed(pattern.patterns))

    def match_constructor(
        self, match: Match, pattern: PatternConstructor, ty: Type, span: Span | None
    ) -> list[tuple[Pattern, Type]]:
        """What a constructor's fields are, where it takes apart a value of a type."""
        constructor = pattern.constructor
        poisoned: list[tuple[Pattern, Type]] = [(p, POISON) for p in pattern.patterns]
        data = self.definitions.get(constructor.belong_to)
        if data is None:
            self.constructor_type(constructor, span)
            return poisoned
        if len(pattern.patterns) != len(constructor.inputs):
            self.say(
                "R0303",
                f"{name_of(constructor)} has {len(constructor.inputs)} fields, but the pattern {len(pattern.patterns)}",
                span, also=[(constructor.span, "it is defined here")],
            )  # fmt: skip
            return poisoned
        if isinstance(ty, TypeCall) and ty.func is constructor.belong_to and len(ty.args) == len(data.type_vars):
            mapping: dict[int, Type] = {id(v): a for v, a in zip(data.type_vars, ty.args)}
        else:
            mapping = self.fresh_for(data.type_vars, match)
            made = TypeCall(constructor.belong_to, [mapping[id(v)] for v in data.type_vars])
            if not self.unify(ty, made):
                shown, own = show(self.resolve(ty)), show(self.resolve(made))
                self.say(
                    "R0309", f"{name_of(constructor)} makes a `{own}`, but what is matched is `{shown}`", span,
                    also=self.definition_labels(ty, made), notes=_note(ty, made),
                )  # fmt: skip
                return poisoned
        if not mapping:
            return list(zip(pattern.patterns, constructor.inputs))
        return [(p, self.substitute(t, mapping)) for p, t in zip(pattern.patterns, constructor.inputs)]

    def check_exhaustive(self, match: Match) -> None:
        if not match.complete:
            return
        try:
            missing = missing_value(match.clauses, self.definitions)
        except Undecided:
            self.diagnostics.append(
                error(
                    "R0308",
                    "it could not be told whether this match covers every value",
                    match.span,
                    severity="warning",
                )
            )
            return
        if missing is not None:
            self.say(
                "R0308", f"the match does not cover `{missing}`", match.span,
                notes=("add a clause for it, or write `match?` where the value cannot occur",),
            )  # fmt: skip

    # --- fields of tuples ---

    def project(self, node: TupleGetItem) -> Type:
        ty = find(self.types[id(node.tuple_value)])
        if isinstance(ty, TupleType):
            if 0 <= node.index < len(ty.fields):
                return ty.fields[node.index]
            count = len(ty.fields)
            self.say(
                "R0306", f"there is no field {node.index} in a tuple of {count} field{'s' * (count != 1)}", node.span,
                notes=(f"its type is `{show(self.resolve(ty))}`",),
            )  # fmt: skip
            return POISON
        if ty is POISON:
            return POISON
        if type(ty) is Unknown:
            waiting = Waiting(node, Unknown(node, True))
            self.wait(waiting, [ty])
            return waiting.result
        self.say("R0306", f"a field can only be taken of a tuple, not of `{show(self.resolve(ty))}`", node.span)
        return POISON

    # --- the worklist ---

    def work(self) -> None:
        """Look again at what waited for types that are known now."""
        while self.ready:
            waiting = self.ready.pop()
            assert isinstance(waiting, Waiting)
            if waiting.done:
                continue
            node = waiting.node
            if isinstance(node, TupleGetItem):
                waiting.done = True
                made: Type | None = self.project(node)
            else:
                made = self.retry(waiting)
            if made is not None and not self.unify(waiting.result, made):
                self.cannot_be(node, f"the result of {name_of(node)}", self.resolve(waiting.result), made)

    def settle(self) -> None:
        self.work()

    # --- results ---

    def store(self) -> None:
        """Write the types that were found into the nodes."""
        for node in self.order:
            ty = find(self.types[id(node)])
            if type(ty) is not TensorType:
                ty = self.closed(ty)
            before = node.checked_type
            if before is None or before is not ty:
                node.checked_type = ty

    def check_stale(self) -> None:
        """A function of the module that got another type than its name has elsewhere."""
        for node in self.order:
            if type(node) is GlobalVar and node.checked_type is not None:
                if node.checked_type != self.resolve(self.types[id(node)]):
                    raise Stale

    def closed(self, ty: Type) -> Type:
        """A type as nodes carry it: what is still unknown is an `IncompleteType`. Each part is looked at once."""
        done = self.closed_types
        ty = find(ty)
        stack = [ty]
        while stack:
            node = stack[-1]
            if id(node) in done:
                stack.pop()
                continue
            children = [find(part) for part in parts(node)]
            missing = [part for part in children if type(part) is not TensorType and id(part) not in done]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            self.keep.append(node)
            if children:
                new = [part if type(part) is TensorType else done[id(part)] for part in children]
                same = all(a is b for a, b in zip(parts(node), new))
                done[id(node)] = node if same else with_parts(node, new)
            elif isinstance(node, TensorType):
                done[id(node)] = self.close_dims(node)
            else:
                done[id(node)] = IncompleteType() if isinstance(node, IncompleteType) else node
        return done[id(ty)]

    def report_unknown(self) -> None:
        """Say which types were not found: errors in a module, notes in a fragment."""
        roots: dict[int, Unknown] = {}
        seen: set[int] = set()
        for node in self.order:
            ty = find(self.types[id(node)])
            if type(ty) is TensorType or id(ty) in seen:
                continue
            stack = [ty]
            while stack:
                ty = find(stack.pop())
                if type(ty) is Unknown:
                    roots[id(ty)] = ty
                elif type(ty) is not TensorType and id(ty) not in seen:
                    seen.add(id(ty))
                    stack.extend(parts(ty))
        causes = [u for u in roots.values() if not u.derived] or list(roots.values())
        said: set[int] = set()
        for unknown in causes:
            origin = unknown.origin
            if origin is None or id(origin) in said:
                continue
            said.add(id(origin))
            if isinstance(origin, Var):
                title = f"the type of {name_of(origin)} is not known"
                hint = "annotate it"
            elif isinstance(origin, MetaRef):
                title, hint = f"the type of `{origin.name_hint}` is not known", "its value is missing"
            elif isinstance(origin, Function):
                title, hint = "the type of this function's result is not known", "annotate it"
            else:
                title, hint = f"the type of {name_of(origin)} is not known", "nothing that follows says what it is"
            if self.fragment:
                self.diagnostics.append(
                    error("R0315", title + ", and what depends on it is left open", plain(origin.span), severity="note")
                )
            else:
                self.say("R0304", title, origin.span, hint)


def _note(expected: Type, found: Type) -> tuple[str, ...]:
    text = difference(expected, found)
    return (text,) if text else ()


def _last(expr: Expr) -> Expr:
    """Where the value of an expression is made: behind its lets."""
    while isinstance(expr, Let):
        expr = expr.body
    return expr


__all__ = ["Inference", "RelationError", "Stale"]
