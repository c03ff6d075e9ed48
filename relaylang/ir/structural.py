"""Structural equality: whether two programs are equal up to the names of their bound variables.

Both sides are written as streams of tokens, in one order: each node's kind and own data, then its children. A bound
variable becomes the number of its binding, a repeated node the number of its first visit. So sharing counts: a
shared call and two equal calls differ. Constants, projections and the empty tuple are the same whether shared or not.
Programs are equal where their streams are, and the first tokens that differ are the first difference. The hash is the
stream's.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any as AnyValue

import numpy as np

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
    RawAttrs,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    TypeData,
    Var,
)
from relaylang.ir.extents import names_in, terms_of
from relaylang.ir.module import IRModule
from relaylang.ir.types import (
    ComputedDim,
    Dim,
    Extent,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    SymbolicDim,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    extent_dtype,
    type_text,
)

_Path = tuple[AnyValue, str] | None
_Token = tuple[AnyValue, ...]


class _Digest(str):
    """A scalar's data in hashes, with the value itself for messages."""

    data: AnyValue


def _push(stack: list[tuple[AnyValue, _Path]], nodes: Sequence[AnyValue], path: _Path, field: str) -> None:
    """Put the nodes of a field on the stack, the first on top."""
    stack.extend([(nodes[i], (path, f".{field}[{i}]")) for i in range(len(nodes) - 1, -1, -1)])


class _Stream:
    """Writes one side. With `free`, free variables are numbered in the order of their first use.

    Otherwise each free variable is its own token. With `found`, the checker's types fill in for missing annotations. With
    `close`, floats of attributes are those of 32 bits.
    """

    def __init__(self, free: bool, found: bool = False, close: bool = False) -> None:
        self.free = free
        self.found = found
        self.close = close
        self.numbers: dict[int, int] = {}
        self.projections: dict[tuple[int, int], int] = {}
        self.leaves: dict[_Token, int] = {}
        self.count = 0
        self.types: dict[int, int] = {}
        self.kept: list[AnyValue] = []
        self.digests: dict[int, str] = {}
        self.extents: dict[int, str] = {}

    def number(self, node: AnyValue) -> int:
        number = self.numbers[id(node)] = self.count
        self.count += 1
        self.kept.append(node)
        return number

    # -- values

    def data(self, array: np.ndarray) -> str:
        """An array's bits."""
        known = self.digests.get(id(array))
        if known is None:
            known = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
            self.digests[id(array)] = known
            self.kept.append(array)
        return known

    def value(self, value: AnyValue) -> AnyValue:
        """An attribute's value to compare and to hash: 1, True and 1.0 differ, lists and tuples do not."""
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (bool, np.bool_)):
            return ("bool", bool(value))
        if isinstance(value, np.float32):
            return ("float", repr(float(str(value))))
        if isinstance(value, Extent):
            return (value.dtype, int(value))
        if isinstance(value, (int, np.int32, np.int64)):
            number = value.__index__()
            # a number beyond 32 bits has no other type than int64, named or not
            return ("int64", number) if isinstance(value, np.int64) and -(1 << 31) <= number < 1 << 31 else number
        if isinstance(value, np.generic):
            return (value.dtype.name, value.tobytes())
        if isinstance(value, float):
            return self.value(np.float32(value)) if self.close else ("float", repr(value))
        if isinstance(value, (list, tuple)):
            return tuple([self.value(v) for v in value])
        if isinstance(value, Mapping):
            return ("map", tuple(sorted((self.key(k), self.value(v)) for k, v in value.items())))
        if isinstance(value, np.ndarray):
            return ("array", value.dtype.name, value.shape, self.data(value))
        if isinstance(value, Constant):
            return ("array", value.dtype, value.data.shape, self.data(value.data))
        if isinstance(value, GlobalVar):
            return ("global", value.name_hint)
        if isinstance(value, MetaRef):
            return ("meta", value.type_key, value.index)
        if isinstance(value, Type):
            return tuple([token for token, _ in self.type(value, None)])
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return tuple([(f.name, self.value(getattr(value, f.name))) for f in dataclasses.fields(value)])
        if isinstance(value, RawAttrs):
            return ("node", value.type_key, self.value(value.values))
        if hasattr(value, "type_key"):
            return ("node", value.type_key, self.value(value.content()))
        return ("other", repr(value))

    def key(self, key: AnyValue) -> str:
        """A key of a map: a bound variable's number, a free one's name, or the key's text."""
        return f"%{self.numbers.get(id(key), key.name_hint)}" if isinstance(key, Var) else str(key)

    def attrs(self, attrs: AnyValue, path: _Path) -> Iterator[tuple[_Token, _Path]]:
        """A call's attributes or a function's, by name."""
        if attrs is None:
            values: dict[str, AnyValue] = {}
        elif isinstance(attrs, RawAttrs):
            values = attrs.values
        elif isinstance(attrs, Mapping):
            values = dict(sorted(attrs.items()))
        else:
            values = {f.name: getattr(attrs, f.name) for f in dataclasses.fields(attrs)}
        key = None if attrs is None or isinstance(attrs, Mapping) else attrs.type_key
        yield ("attributes", key, tuple(values)), path
        for name, value in values.items():
            yield ("attribute", self.value(value)), (path, f".attrs.{name}")

    # -- types

    def type(self, ty: Type | None, path: _Path) -> Iterator[tuple[_Token, _Path]]:
        """A type's tokens. An unknown type equals a missing one."""
        stack = [ty]
        while stack:
            t = stack.pop()
            if t is None or isinstance(t, IncompleteType):
                yield ("type unknown",), path
            elif isinstance(t, TensorType):
                dims = tuple([d if type(d) is int else self.extent(d) for d in t.shape])
                yield ("tensor type", t.dtype, dims), path
            elif isinstance(t, TypeVar):
                yield self.type_var(t), path
            elif isinstance(t, GlobalTypeVar):
                yield ("type name", t.name_hint), path
            elif isinstance(t, TupleType):
                yield ("tuple type", len(t.fields)), path
                stack.extend(reversed(t.fields))
            elif isinstance(t, RefType):
                yield ("ref type",), path
                stack.append(t.value)
            elif isinstance(t, TypeCall):
                yield ("type call", len(t.args)), path
                stack.extend((*reversed(t.args), t.func))
            else:
                assert isinstance(t, FuncType)
                yield ("function type", len(t.arg_types), len(t.type_params)), path
                self.bind_types(t.type_params)
                stack.extend((t.ret_type, *reversed(t.arg_types)))

    def extent(self, dim: Dim) -> AnyValue:
        if isinstance(dim, TypeVar):
            return (*self.type_var(dim), extent_dtype(dim))
        return (dim.dtype, int(dim)) if isinstance(dim, Extent) else dim

    def type_var(self, var: TypeVar) -> _Token:
        if isinstance(var, ComputedDim):
            said = self.extents.get(id(var))
            if said is None:
                parts = self.computation(var)
                said = hashlib.blake2b(repr((var.type_key, parts)).encode(), digest_size=16).hexdigest()
                self.extents[id(var)] = said
                self.kept.append(var)
            return ("computed extent", said)
        number = self.types.get(id(var))
        if number is None:
            if not self.free:
                return ("type variable", var.name_hint, id(var))
            number = self.types[id(var)] = len(self.types)
            self.kept.append(var)
        return ("type variable", number)

    def computation(self, dim: ComputedDim) -> list[AnyValue]:
        """What a computed extent is of its names. Names that functions bind have no order of their own."""
        terms = {} if all(isinstance(n, SymbolicDim) for n in names_in(dim)) else terms_of(dim)
        if not terms or (dim,) in terms:
            return [self.extent(o) for o in dim.operands]
        return sorted((sorted(repr(self.extent(f)) for f in factors), c) for factors, c in terms.items())

    def bind_types(self, variables: Sequence[TypeVar]) -> None:
        for var in variables:
            self.types.setdefault(id(var), len(self.types))
            self.kept.append(var)

    # -- expressions

    def bind(self, var: Var, path: _Path) -> Iterator[tuple[_Token, _Path]]:
        """A variable where it is bound: its number is its name."""
        yield ("binds", self.number(var)), path
        ty = var.type_annotation
        if self.found and (ty is None or isinstance(ty, IncompleteType)):
            ty = var.checked_type
        for dim in ty.shape if isinstance(ty, TensorType) else ():
            if isinstance(dim, SymbolicDim) and not isinstance(dim, ComputedDim):
                self.bind_types((dim,))
        yield from self.type(ty, (path, ".type_annotation"))
        if var.virtual_device is not None:
            yield ("attribute", self.value(var.virtual_device)), (path, ".virtual_device")

    def pattern(self, pattern: Pattern, path: _Path) -> Iterator[tuple[_Token, _Path]]:
        stack = [pattern]
        while stack:
            p = stack.pop()
            match p:
                case PatternVar(var):
                    yield from self.bind(var, path)
                case PatternConstructor(constructor, patterns):
                    yield ("constructor pattern", constructor.name_hint, len(patterns)), path
                    stack.extend(reversed(patterns))
                case PatternTuple(patterns):
                    yield ("tuple pattern", len(patterns)), path
                    stack.extend(reversed(patterns))
                case _:
                    yield ("wildcard",), path

    def leaf(self, node: Expr) -> _Token | None:
        """The token of a node that has no children and is the same wherever it stands, or None."""
        match node:
            case Constant():
                digest = self.data(node.data)
                if node.data.ndim == 0:
                    digest = _Digest(digest)
                    digest.data = node.data
                return ("constant", node.dtype, node.data.shape, digest)
            case GlobalVar(name):
                return ("global", name)
            case Constructor(name, _, belong_to):
                return ("constructor", name, belong_to.name_hint)
            case MetaRef(key, index):
                return ("meta", key, index)
            case Tuple(()):
                return ("empty tuple",)
        operator = getattr(node, "name", None)
        return None if operator is None else ("operator", operator)

    def projection(self, node: TupleGetItem, path: _Path) -> Iterator[tuple[_Token, _Path]]:
        """A projection whose innermost tuple has been written: known ones by their number, new ones by their parts."""
        chain = [node]
        while type(chain[-1].tuple_value) is TupleGetItem and id(chain[-1].tuple_value) not in self.numbers:
            chain.append(chain[-1].tuple_value)
        base = chain[-1].tuple_value
        number = self.numbers[id(base)]
        for part in reversed(chain):
            key = (number, part.index)
            known = self.projections.get(key)
            if known is None:
                yield ("field", part.index, number), path
                known = self.projections[key] = self.number(part)
            self.numbers[id(part)] = number = known
            self.kept.append(part)
        yield ("seen", number), path

    def expr(self, root: Expr, start: _Path = None) -> Iterator[tuple[_Token, _Path]]:
        """An expression's tokens, each with its path."""
        stack: list[tuple[AnyValue, _Path]] = [(root, start)]
        numbers = self.numbers
        while stack:
            node, path = stack.pop()
            if isinstance(node, Clause):
                yield from self.pattern(node.lhs, (path, ".lhs"))
                stack.append((node.rhs, (path, ".rhs")))
                continue
            if id(node) in numbers:
                yield ("seen", numbers[id(node)]), path
                continue
            if isinstance(node, TupleGetItem):
                base: Expr = node
                while isinstance(base, TupleGetItem) and id(base) not in numbers:
                    base = base.tuple_value
                if id(base) not in numbers:
                    yield ("projection",), path
                    stack += [(node, path), (base, (path, ".tuple_value"))]
                else:
                    yield from self.projection(node, path)
                continue
            token = self.leaf(node)
            if token is not None:
                number = self.leaves.get(token)
                if number is None:
                    yield token, path
                    number = self.leaves[token] = self.number(node)
                else:
                    yield ("seen", number), path
                numbers[id(node)] = number
                self.kept.append(node)
                continue
            if isinstance(node, Var):
                if self.free:
                    yield ("free variable",), path
                    yield from self.bind(node, path)
                else:
                    yield ("free variable", node.name_hint, id(node)), path
                    self.number(node)
                continue
            self.number(node)
            yield from self.inner(node, path, stack)

    def inner(self, node: Expr, path: _Path, stack: list[tuple[AnyValue, _Path]]) -> Iterator[tuple[_Token, _Path]]:
        """The tokens of a node that has children, which are put on the stack."""
        match node:
            case Call():
                operator = getattr(node.op, "name", None) is not None
                yield ("call", len(node.args)), path
                yield from self.attrs(node.attrs, path)
                if not operator:
                    yield ("type arguments", len(node.type_args)), path
                    for i, ty in enumerate(node.type_args):
                        yield from self.type(ty, (path, f".type_args[{i}]"))
                _push(stack, node.args, path, "args")
                stack.append((node.op, (path, ".op")))
            case Tuple(fields):
                yield ("tuple", len(fields)), path
                _push(stack, fields, path, "fields")
            case Let(variable, value, body):
                yield ("let",), path
                yield from self.bind(variable, (path, ".variable"))
                stack += [(body, (path, ".body")), (value, (path, ".value"))]
            case If(cond, then, other):
                yield ("if",), path
                stack += [(other, (path, ".false_branch")), (then, (path, ".true_branch")), (cond, (path, ".cond"))]
            case Function():
                kind = "function" if node.body is not None else "external function"
                yield (kind, len(node.params), len(node.type_params)), path
                self.bind_types(node.type_params)
                for i, param in enumerate(node.params):
                    yield from self.bind(param, (path, f".params[{i}]"))
                result = node.ret_type
                if self.found and (result is None or isinstance(result, IncompleteType)):
                    result = node.checked_type.ret_type if isinstance(node.checked_type, FuncType) else result
                yield from self.type(result, (path, ".ret_type"))
                yield from self.attrs(node.attrs, path)
                if node.body is not None:
                    stack.append((node.body, (path, ".body")))
            case Match(data, clauses, complete):
                yield ("match", len(clauses), complete), path
                _push(stack, clauses, path, "clauses")
                stack.append((data, (path, ".data")))
            case RefCreate(value):
                yield ("ref",), path
                stack.append((value, (path, ".value")))
            case RefRead(ref):
                yield ("ref_read",), path
                stack.append((ref, (path, ".ref")))
            case RefWrite(ref, value):
                yield ("ref_write",), path
                stack += [(value, (path, ".value")), (ref, (path, ".ref"))]
            case _:
                raise TypeError(f"{type(node).__name__} is no expression")

    # -- modules

    def type_data(self, data: TypeData, path: _Path) -> Iterator[tuple[_Token, _Path]]:
        yield ("type definition", len(data.type_vars)), path  # an external one is one without constructors, as in TVM
        self.bind_types(data.type_vars)
        for constructor in data.constructors:
            inside = (path, f".{constructor.name_hint}")
            yield ("constructor", constructor.name_hint, len(constructor.inputs)), inside
            for i, ty in enumerate(constructor.inputs):
                yield from self.type(ty, (inside, f".inputs[{i}]"))

    def module(self, mod: IRModule) -> Iterator[tuple[_Token, _Path]]:
        types = {var.name_hint: data for var, data in mod.type_definitions.items()}
        functions = {var.name_hint: function for var, function in mod.functions.items()}
        yield ("types", *sorted(types)), None
        yield ("functions", *sorted(functions)), None
        yield from self.attrs(mod.attrs, None)
        for name in sorted(types):
            yield from self.type_data(types[name], (None, f"type {name}"))
        for name in sorted(functions):
            yield from self.expr(functions[name], (None, f"@{name}"))

    def write(self, node: AnyValue) -> Iterator[tuple[_Token, _Path]]:
        match node:
            case IRModule():
                return self.module(node)
            case Type():
                return self.type(node, None)
            case TypeData():
                return self.type_data(node, None)
            case Pattern():
                return self.pattern(node, None)
            case Expr():
                return self.expr(node)
        return iter([((self.value(node),), None)])


def _parts(path: _Path) -> list[str]:
    parts = []
    while path is not None:
        path, part = path
        parts.append(part)
    return parts[::-1]


def _path_text(path: _Path) -> str:
    parts = _parts(path)
    if len(parts) > 24:
        parts = [*parts[:8], f" … {len(parts) - 20} steps … ", *parts[-12:]]
    return "".join(parts).lstrip(".")


def _say_value(value: AnyValue) -> str:
    """An attribute's value in words."""
    match value:
        case ("bool", flag):
            return str(flag)
        case ("float", digits):
            return str(digits)
        case (str() as kind, bytes() as bits):
            return f"the {kind} 0x{bits[::-1].hex()}"
    return repr(value)


def _dim_of(token: AnyValue) -> Dim:
    """The extent that a token tells, for messages."""
    if not isinstance(token, tuple):
        return token
    kind, number, *_ = token
    if kind == "computed extent":
        return TypeVar("a computed extent", "ShapeVar")
    return TypeVar(f"n{number}", "ShapeVar") if kind == "type variable" else Extent(number, kind)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _say(token: _Token | None) -> str:
    """A token in words."""
    match token:
        case None:
            return "nothing"
        case ("constant", dtype, (), _Digest(data=data)):
            return f"the constant {data.item()} of {dtype}"
        case ("constant", dtype, shape, digest):
            return f"a constant of shape {shape}, {dtype}, data {digest[:8]}"
        case ("tensor type", dtype, dims):
            return f"the type {type_text(TensorType([_dim_of(d) for d in dims], dtype))}"
        case ("seen", number):
            return f"node {number} again"
        case ("attribute", value):
            return _say_value(value)
        case ("types" | "functions" as kind, *names):
            return f"the {kind} {', '.join(names)}" if names else f"a module without {kind}"
        case ("attributes", _, names):
            return f"attributes {', '.join(names) or '(none)'}"
        case ("function" | "external function" as kind, int() as params, int() as types):
            typed = f" and {_plural(types, 'type parameter')}" if types else ""
            return f"{'an' if kind[0] == 'e' else 'a'} {kind} of {_plural(params, 'parameter')}{typed}"
        case ("call", int() as count):
            return f"a call with {_plural(count, 'argument')}"
        case ("tuple", int() as count):
            return f"a tuple of {_plural(count, 'field')}"
        case ("match", int() as count, complete):
            return f"a {'match' if complete else 'match?'} with {_plural(count, 'arm')}"
        case ("tuple type" | "tuple pattern" as kind, int() as count):
            return f"a {kind} of {_plural(count, 'field')}"
        case ("function type", int() as params, int() as types):
            return f"a function type of {_plural(params, 'parameter')}"
        case ("type arguments" | "type call", int() as count):
            return _plural(count, "type argument")
        case ("constructor" | "constructor pattern" as kind, str() as name, int() as count):
            return f"the {kind} {name} of {_plural(count, 'field')}"
        case ("type definition", int() as count, _):
            return f"a type definition with {_plural(count, 'type parameter')}"
        case ("let" | "if" | "ref" | "projection" as kind,):
            return f"{'an' if kind == 'if' else 'a'} {kind}"
        case (str() as kind, *rest):
            return " ".join([kind, *(str(r) for r in rest)])
    return repr(token)


def structural_diff(left: AnyValue, right: AnyValue, map_free_vars: bool = False, close: bool = False) -> str | None:
    """The first difference between two modules, expressions, types, patterns or attribute values, with its path.

    None where they are equal up to the names of their bound variables. Free variables and free type variables are equal
    to themselves only. With `map_free_vars`, they are equal to any variable in the same places. Spans do not count. Checked
    types count in one case only: one side annotates a variable or a result, and the other does not. Then the checked type
    fills in for the missing annotation, because TVM's checker adds it. A missing annotation is the same as an open one.
    A parameter's type binds the named extents in it. With `close`, floats of attributes are compared in 32 bits.
    """
    difference = _first(left, right, map_free_vars, close)
    if difference is None:
        return None
    a, b, path = difference
    where = _path_text(path)
    return f"{f'at {where}: ' if where else ''}{_say(a)} on the left, {_say(b)} on the right"


def structural_path(left: AnyValue, right: AnyValue, map_free_vars: bool = False) -> list[str] | None:
    """The path of the difference of `structural_diff`: `["@main", ".body", ".args[0]"]`."""
    difference = _first(left, right, map_free_vars)
    return None if difference is None else _parts(difference[2])


def _first(
    left: AnyValue, right: AnyValue, map_free_vars: bool, close: bool = False
) -> tuple[_Token | None, _Token | None, _Path] | None:
    """The first tokens that make a difference, and their path."""
    if left is right:
        return None
    first = _difference(_Stream(map_free_vars, False, close), _Stream(map_free_vars, False, close), left, right)
    if first is None or ("type unknown",) not in first[:2]:
        return first
    second = _difference(_Stream(map_free_vars, True, close), _Stream(map_free_vars, True, close), left, right)
    # behind the annotations there is the difference that counts
    return second if second is None or ("type unknown",) not in second[:2] else first


def _difference(one: _Stream, two: _Stream, left: AnyValue, right: AnyValue) -> tuple[_Token | None, _Token | None, _Path] | None:
    """The first tokens in which two sides differ, and their path."""
    two.digests = one.digests
    for a, b in zip_longest(one.write(left), two.write(right), fillvalue=(None, None)):
        if a[0] != b[0]:
            return a[0], b[0], a[1] if a[0] is not None else b[1]
    return None


def structural_equal(left: AnyValue, right: AnyValue, map_free_vars: bool = False) -> bool:
    """Whether `structural_diff` finds nothing."""
    return structural_diff(left, right, map_free_vars) is None


def assert_structural_equal(left: AnyValue, right: AnyValue, map_free_vars: bool = False) -> None:
    """Raise `ValueError` that says where two programs first differ."""
    difference = structural_diff(left, right, map_free_vars)
    if difference is not None:
        raise ValueError(f"not structurally equal: {difference}")


def structural_hash(node: AnyValue, map_free_vars: bool = False) -> int:
    """64 bits that are the same for structurally equal programs; types that only the checker knows do not count.

    Without free variables, or with `map_free_vars`, they are the same from run to run.
    """
    digest = hashlib.blake2b(digest_size=8)
    for token, _ in _Stream(map_free_vars).write(node):
        digest.update(repr(token).encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest(), "little")
