"""The evaluation of a TorchScript program: plain values are computed at once, calls on tensors become Relay calls.

Python never runs the sources: this walks over their syntax trees. Loops of known length are written out.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.frontends.common import Builder, Layer, Report, Table, Unsupported, damaged
from relaylang.frontends.torch.torchscript.archive import Archive, Class
from relaylang.frontends.torch.torchscript.branches import Journal, join
from relaylang.frontends.torch.torchscript.loops import loop
from relaylang.frontends.torch.torchscript.operators import Operators
from relaylang.frontends.torch.torchscript.packed import packed, unpacked
from relaylang.frontends.torch.torchscript.plain_values import compute
from relaylang.frontends.torch.torchscript.values import MISSING, Packed, Raised, Record, Stored, Undefined, count_parts, is_of
from relaylang.ir import Expr

#: Functions call each other at most this deep.
_DEEPEST = 48
#: A block that ends without `return`.
_NOTHING = object()
_PACKED = "__torch__.torch.classes.quantized."


@dataclass
class Frame:
    """A function that is being evaluated: its names, and the path of the module that it belongs to."""

    names: dict[str, Any]
    path: str


@dataclass(frozen=True)
class Named:
    """A function or class of the program, or one of PyTorch's, by its full name."""

    name: str


class Machine(Operators):
    """Evaluates one program."""

    def __init__(self, archive: Archive, builder: Builder, report: Report, rules: Table, file: str) -> None:
        super().__init__(builder, report, rules, archive.version)
        self.archive = archive
        self.sources = archive.sources
        self.file = file
        self._restored: set[int] = set()
        self._depth = 0

    # ---- functions

    def method(self, record: Record, name: str, args: Sequence[Any], named: dict[str, Any] | None = None) -> Any:
        """The result of a method of a record."""
        definition = self.sources.find(record.kind)
        function = definition.methods.get(name) if isinstance(definition, Class) else None
        if record.kind.startswith(_PACKED) and name == "unpack":
            return unpacked(packed(record))
        if function is None:
            if record.kind.startswith("__torch__.torch.autograd.grad_mode"):
                return None
            raise damaged(self.file, f"{record.kind} has no method {name}")
        return self.call(function, [record, *args], named or {}, record.path)

    def call(self, function: ast.FunctionDef, args: Sequence[Any], named: dict[str, Any], path: str) -> Any:
        """The result of a function of the program."""
        params = [*function.args.args, *function.args.kwonlyargs]
        if len(args) > len(params):
            raise damaged(self.file, f"{function.name} takes {len(params)} arguments, not {len(args)}")
        names = dict(zip([p.arg for p in params], args))
        names.update(named)
        frame = Frame(names, path)
        first = len(function.args.args) - len(function.args.defaults)
        for param, default in zip(function.args.args[first:], function.args.defaults):
            if param.arg not in names:
                names[param.arg] = self.expression(default, frame)
        missing = [p.arg for p in params if p.arg not in names]
        if missing:
            raise damaged(self.file, f"{function.name} is called without the argument {missing[0]}")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise damaged(self.file, f"its functions call each other more than {_DEEPEST} deep")
        result = self._block(function.body, frame)
        self._depth -= 1
        return None if result is _NOTHING else result

    def constant(self, node: ast.expr) -> Any:
        """The value of an expression without names, such as a default."""
        return self.expression(node, Frame({}, ""))

    # ---- statements

    def _block(self, body: Sequence[ast.stmt], frame: Frame) -> Any:
        for statement in body:
            result = self._statement(statement, frame)
            if result is not _NOTHING:
                return result
        return _NOTHING

    def step(self) -> None:
        """Count the work. Raises `RelayError` for a program without end."""
        self.b.budget.take_nodes(1, "evaluating its code")

    def _statement(self, node: ast.stmt, frame: Frame) -> Any:
        self.step()
        match node:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self.expression(value, frame, _outputs(target)), frame)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self.expression(value, frame, _outputs(target)), frame)
            case ast.Expr(value=value):
                self.expression(value, frame)
            case ast.Return(value=None):
                return None
            case ast.Return(value=ast.expr() as value):
                return self.expression(value, frame)
            case ast.Pass() | ast.AnnAssign():
                pass
            case ast.If(test=test, body=body, orelse=orelse):
                return self._if(self.truth(self.expression(test, frame)), body, orelse, frame)
            case ast.For(target=ast.Name(id=name), iter=source, body=body):
                self._for(name, source, body, frame)
            case ast.While(test=test, body=body):
                self._while(test, body, frame)
            case ast.With(body=body):
                return self._block(body, frame)
            case _:
                raise damaged(self.file, f"its code has a statement that TorchScript does not have: {type(node).__name__}")
        return _NOTHING

    def _turn(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Evaluate the body of a loop once."""
        self.step()
        if self._block(body, frame) is not _NOTHING:
            raise Unsupported("it returns from a loop")

    def _while(self, test: ast.expr, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Turns are written out as long as the condition is known."""

        def condition() -> Any:
            return self.truth(self.expression(test, frame))

        while True:
            going = condition()
            if isinstance(going, Expr):
                return loop(self, frame, body, condition, lambda: self._turn(body, frame))
            if not going:
                return None
            self._turn(body, frame)

    def _for(self, name: str, source: ast.expr, body: Sequence[ast.stmt], frame: Frame) -> None:
        values = self._turns(source, frame)
        if isinstance(values, Expr):
            frame.names[name] = 0

            def turn() -> None:
                at = frame.names[name]
                self._turn(body, frame)
                frame.names[name] = compute(self.b, "add", [at, 1])

            return loop(self, frame, body, lambda: compute(self.b, "lt", [frame.names[name], values]), turn, name)
        for value in values:
            frame.names[name] = value
            self._turn(body, frame)
        return None

    def _turns(self, source: ast.expr, frame: Frame) -> Any:
        """What a loop goes over: known values, or the number of turns as an expression."""
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range":
            bounds = [self.expression(a, frame) for a in source.args]
            if len(bounds) == 1 and isinstance(bounds[0], Expr):
                return bounds[0]
            if not all(isinstance(n, int) for n in bounds):
                raise Unsupported("the length of its loop depends on data or on an unknown extent")
            return range(*bounds)
        values = self.expression(source, frame)
        if not isinstance(values, (list, tuple)):
            raise Unsupported("its loop is over a value of unknown length")
        return list(values)

    def _if(self, cond: Any, body: list[ast.stmt], orelse: list[ast.stmt], frame: Frame) -> Any:
        if not isinstance(cond, Expr):
            return self._block(body if cond else orelse, frame)
        before, outer, depth = frame.names, self.journal, self._depth
        names, effects, refused = [], [], []
        for block in (body, orelse):
            frame.names, self.journal = dict(before), Journal()
            try:
                if self._block(block, frame) is not _NOTHING:
                    raise Unsupported("it returns under a condition that depends on data")
            except Raised as why:
                self._depth = depth
                refused.append((block, why))
            names.append(frame.names)
            effects.append(self.journal.undo())
        frame.names, self.journal = before, outer
        if len(refused) == 2:
            raise refused[0][1]
        if refused:  # a program that raises has no result: the other branch is taken for granted
            return self._block(orelse if refused[0][0] is body else body, frame)
        if outer is not None:
            for effect in effects:
                for record, name, _ in effect.fields.values():
                    outer.note_field(record, name)
                for tensor, _ in effect.tensors.values():
                    outer.note_tensor(tensor)
        frame.names = join(self.b, cond, (names[0], names[1]), (effects[0], effects[1]))
        return _NOTHING

    def _assign(self, target: ast.expr, value: Any, frame: Frame) -> None:
        if isinstance(target, ast.Name):
            frame.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = self._parts(value, len(target.elts))
            for part, own in zip(target.elts, parts):
                self._assign(part, own, frame)
        elif isinstance(target, ast.Attribute):
            record = self.expression(target.value, frame)
            if not isinstance(record, Record):
                raise damaged(self.file, f"its code gives a field {target.attr} to something that has none")
            self.put(record, target.attr, value)
        else:
            raise damaged(self.file, "its code assigns to something that is no name")

    def put(self, record: Record, name: str, value: Any) -> None:
        """Give a field a value."""
        if self.journal is not None:
            self.journal.note_field(record, name)
        if isinstance(value, Stored) and not value.name:
            value.name = f"{record.path}.{name}".lstrip(".")
        if isinstance(value, Packed) and not value.name:
            value.name = record.path if name == "_packed_params" else f"{record.path}.{name}".lstrip(".")
        record.fields[name] = value

    def _parts(self, value: Any, count: int) -> list[Any]:
        if value is MISSING:
            return [MISSING] * count
        if isinstance(value, Record):
            value = list(value.fields.values())
        if not isinstance(value, (list, tuple)):
            raise damaged(self.file, "its code takes a value apart that has no parts")
        parts = list(value)
        return parts + [Undefined("it uses a result that is not computed")] * (count - len(parts))

    # ---- expressions

    def expression(self, node: ast.expr, frame: Frame, outputs: Sequence[str] = ()) -> Any:
        """The value of an expression. `outputs` are the names that its value gets."""
        match node:
            case ast.Name(id=name):
                return frame.names[name] if name in frame.names else float(name) if name in ("inf", "nan") else Named(name)
            case ast.Constant(value=value):
                return value
            case ast.Attribute(value=inner, attr=name):
                return self._attribute(node, inner, name, frame)
            case ast.Call():
                return self._call(node, frame, outputs)
            case ast.Subscript(value=inner, slice=at):
                return self._item(self.expression(inner, frame), self.expression(at, frame))
            case ast.List(elts=parts):
                values = [self._part(p, frame) for p in parts]
                return values if self.journal is None else self.journal.keep(values)
            case ast.Tuple(elts=parts):
                return tuple([self._part(p, frame) for p in parts])
            case ast.Dict(keys=keys, values=values):
                pairs = zip([k for k in keys if k is not None], values, strict=True)
                return {self.expression(k, frame): self.expression(v, frame) for k, v in pairs}
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return compute(self.b, "neg", [self.expression(operand, frame)])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return compute(self.b, "__not__", [self.truth(self.expression(operand, frame))])
            case ast.IfExp():
                return self._choice(node, frame)
        raise damaged(self.file, f"its code has an expression that TorchScript does not have: {type(node).__name__}")

    def _choice(self, node: ast.IfExp, frame: Frame) -> Any:
        cond = self.truth(self.expression(node.test, frame))
        if isinstance(cond, Expr):
            raise Unsupported("it chooses a value by data")
        return self.expression(node.body if cond else node.orelse, frame)

    def _part(self, node: ast.expr, frame: Frame) -> Any:
        """An element of a new list or tuple. Lists in lists can double with each statement, so all that is in them counts."""
        value = self.expression(node, frame)
        count_parts(self.b.budget, value)
        return value

    def _item(self, value: Any, at: Any) -> Any:
        if value is MISSING:
            return MISSING
        if isinstance(value, Record):
            value = list(value.fields.values())
        if isinstance(at, Expr) or not isinstance(value, (list, tuple, dict, str)):
            raise Unsupported("it takes an element at a place that depends on data")
        return value[at]

    def _attribute(self, node: ast.Attribute, inner: ast.expr, name: str, frame: Frame) -> Any:
        value = self.expression(inner, frame)
        if isinstance(value, Named):
            if value.name == "CONSTANTS":
                number = name.removeprefix("c")
                if not number.isdecimal() or int(number) >= len(self.archive.constants):
                    raise damaged(self.file, f"its code names the constant {name}, and it has {len(self.archive.constants)} constants")
                return self.archive.constants[int(number)]
            full = f"{value.name}.{name}"
            owner = self.sources.find(value.name) if value.name.startswith("__torch__.") else None
            if isinstance(owner, Class) and owner.base == "Enum" and name in owner.values:
                return self.expression(owner.values[name], frame)
            return Named(full)
        if value is MISSING:
            return MISSING
        if not isinstance(value, Record):
            raise Unsupported(f"it takes the field {name} of a value without fields")
        return self.attribute(value, name)

    def attribute(self, record: Record, name: str) -> Any:
        """A field of a record, restored by the record's own method where it has one."""
        definition = self.sources.find(record.kind)
        if isinstance(definition, Class) and "__setstate__" in definition.methods and id(record) not in self._restored:
            self._restored.add(id(record))
            if record.state is not None:
                self.method(record, "__setstate__", [record.state])
        if name in record.fields:
            value = record.fields[name]
            if isinstance(value, Record) and value.kind.startswith(_PACKED):
                value = packed(value)
                self.put(record, name, value)
            return value
        if isinstance(definition, Class) and name in definition.values:
            return self.expression(definition.values[name], Frame({}, record.path))
        raise damaged(self.file, f"{record.kind} has no field {name}")

    def _call(self, node: ast.Call, frame: Frame, outputs: Sequence[str]) -> Any:
        self.step()
        if isinstance(node.func, ast.Attribute):
            owner = self.expression(node.func.value, frame)
            target: Any = Named(f"{owner.name}.{node.func.attr}") if isinstance(owner, Named) else owner
        else:
            owner, target = None, self.expression(node.func, frame)
        if isinstance(target, Named) and target.name in ("annotate", "unchecked_cast", "uninitialized"):
            if target.name == "uninitialized":
                return Undefined("it uses a value that the program never sets")
            value = self.expression(node.args[1], frame)
            kind = node.args[0].id if isinstance(node.args[0], ast.Name) else ""
            return self.number(kind, value) if kind in ("int", "float", "bool") else value
        if isinstance(target, Named) and target.name == "isinstance":
            return is_of(self.expression(node.args[0], frame), node.args[1])
        args = [self.expression(a, frame) for a in node.args]
        named = {k.arg: self.expression(k.value, frame) for k in node.keywords if k.arg is not None}
        if isinstance(target, Named):
            return self._named(target.name, args, named, node, frame, outputs)
        if isinstance(owner, Record) and isinstance(node.func, ast.Attribute):
            return self.method(owner, node.func.attr, args, named)
        if isinstance(owner, Packed):
            return unpacked(owner)
        if owner is MISSING:
            return MISSING
        raise damaged(self.file, "its code calls something that is no function")

    def _named(self, name: str, args: list[Any], named: dict[str, Any], node: ast.Call, frame: Frame, outputs: Sequence[str]) -> Any:
        if name == "getattr":
            return self.attribute(args[0], args[1])
        if name.startswith("__torch__."):
            return self._own(name, args, named, frame.path)
        names = [a.id for a in node.args if isinstance(a, ast.Name)]
        self.layer = Layer(name, frame.path, names, tuple(outputs) or ("_",))
        return self.operator(name, args, named)

    def _own(self, name: str, args: list[Any], named: dict[str, Any], path: str) -> Any:
        """A call of the program's own function, or a new record of its class."""
        if name.endswith(".__new__"):
            return Record(name.removesuffix(".__new__"))
        definition = self.sources.find(name)
        if isinstance(definition, ast.FunctionDef):
            return self.call(definition, args, named, path)
        if isinstance(definition, Class):
            return Record(name, {**dict(zip(definition.types, args)), **named})
        raise damaged(self.file, f"the archive has no source of {name}")


def _outputs(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [p.id for p in parts if isinstance(p, ast.Name)]


__all__ = ["Frame", "Machine", "Named"]
