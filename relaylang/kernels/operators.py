"""Users' operators whose kernels are texts (`relaylang.kernels.templates`): their records, and what they compute.

A text alone is a whole operator: its attributes, its type relation and its sentence of documentation follow from its head.
A record may come with a text, too. Its own relation then gives the type, and the buffers of the text have to fit.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from relaylang.diagnostics import RelayError, SourceFile
from relaylang.interpreter.kernels.common import KernelError
from relaylang.ir import ANY, TensorType, TupleType, Type, type_text
from relaylang.kernels import evaluate
from relaylang.kernels.heads import templates
from relaylang.kernels.templates import Misfit, Template, stages
from relaylang.kernels.values import OutOfBounds
from relaylang.kernels.words import wrong
from relaylang.ops.record import Attributes, Op, Relation, RelationContext, RelationError, attrs_class, tensor

#: Names of the class that a text's attributes become.
_OF_PYTHON = ("self", "type_key", "schema", "in_metadata")
_KINDS = ("int", "float", "bool", "str", "Ints", "Floats")
#: The byte of results that nothing has written yet.
_UNSET = 0xAB


class _Alone:
    """The questions of a type relation where there is no checker: known types agree or not."""

    def unify(self, arg: int, expected: Type, repairs: Any = None) -> Type:
        return expected

    def unify_dims(self, left: Any, right: Any, what: str, arg: int | None = None) -> Any:
        if left is not ANY and right is not ANY and left != right:
            self.fail(f"{what}: {left} and {right}", arg)
        return right if left is ANY else left

    def dtype_hint(self, arg: int) -> str | None:
        return None

    def type_definition(self, name: str) -> Any:
        return None

    def fail(self, message: str, arg: int | None = None, notes: Sequence[str] = ()) -> NoReturn:
        raise RelationError(message, arg, notes)


class TextKernel:
    """The kernel of an operator: `kernel(attrs, *arrays)` computes a call in numpy."""

    def __init__(self, template: Template, relation: Relation | None = None) -> None:
        self.template = template
        #: The relation of the record; None where the text has it.
        self.relation = relation

    def names(
        self, given: Sequence[tuple[Sequence[Any], str]], attrs: Any, results: Sequence[tuple[Sequence[Any], str]] | None = None
    ) -> dict[str, Any]:
        """What the names of the text stand for in a call. Raises `Misfit`."""
        return self.template.bound(given, values(attrs), results)

    def __call__(self, attrs: Any, *arrays: Any) -> Any:
        tensors = [np.asarray(a) for a in arrays]
        types = [TensorType(a.shape, a.dtype.name) for a in tensors]
        try:
            results = None if self.relation is None else _fields(self.relation(types, attrs, _Alone()))
            names = self.names([(t.shape, t.dtype) for t in types], attrs, results)
            body = self.template.body(names)
        except (Misfit, RelationError) as problem:
            raise KernelError(problem.message) from None
        buffers: dict[str, np.ndarray] = {}
        for argument, array in zip(self.template.of("in"), tensors):
            if argument.broadcast:
                array = np.broadcast_to(array, names[f"{argument.extents[0].text}..."])
            buffers[argument.name] = np.ascontiguousarray(array)
        for kind in ("out", "work"):
            for argument, (shape, dtype) in zip(self.template.of(kind), self.template.results(names, kind)):
                if min(shape, default=0) < 0:
                    raise KernelError(f"a shape is negative: `{argument.text}` is {shape}")
                output = np.empty(shape, np.dtype(dtype))
                output.reshape(-1).view(np.uint8)[:] = 1 if dtype == "bool" else _UNSET
                buffers[argument.name] = output
        try:
            for part in stages(body):
                evaluate.run(part, buffers)
        except OutOfBounds as problem:
            raise KernelError(f"its kernel leaves a buffer: {problem}") from None
        except ZeroDivisionError:
            raise KernelError("its kernel divides an index by 0") from None
        outputs = tuple([buffers[a.name] for a in self.template.of("out")])
        return outputs if len(outputs) != 1 else outputs[0]

    def type_of(self, types: Sequence[Type], attrs: Any, ctx: RelationContext) -> Type | None:
        """The type of a call, as relations give it."""
        result = None
        tensors = [tensor(types, n, ctx) for n in range(len(types))]
        if self.relation is not None:
            result = self.relation(types, attrs, ctx)
            parts = result.fields if isinstance(result, TupleType) else (result,)
            if not all(isinstance(p, TensorType) for p in parts):
                return result
        try:
            results = None if result is None else _fields(result)
            if results is not None and len(results) != len(self.template.of("out")):
                raise Misfit(f"has {len(results)} results, and its kernel {len(self.template.of('out'))}")
            names = self.template.bound([(t.shape, t.dtype) for t in tensors], values(attrs), results, ctx.unify_dims)
            outs = self.template.results(names)
            if all(map(_known, names.values())):
                self.template.body(names)
        except Misfit as problem:
            return ctx.fail(problem.message, problem.argument)  # type: ignore[no-any-return]
        except RelayError as problem:
            (first, *_) = problem.diagnostics
            place = f"{first.span.source.name}:{first.span.line}:{first.span.column}: " if first.span is not None else ""
            return ctx.fail(f"has a kernel that is wrong for this call: {place}{first.title}", notes=first.notes)  # type: ignore[no-any-return]
        if result is not None:
            return result
        fields = [TensorType(shape, dtype) for shape, dtype in outs]
        return fields[0] if len(fields) == 1 else TupleType(fields)


def _known(stands: Any) -> bool:
    """Whether a name stands for a plain number, text or list of such."""
    if isinstance(stands, (tuple, list)):
        return all(map(_known, stands))
    return stands is None or type(stands) in (int, float, bool, str)


def _fields(ty: Type | None) -> list[tuple[Sequence[Any], str]]:
    parts = ty.fields if isinstance(ty, TupleType) else (ty,)
    return [(p.shape, p.dtype) for p in parts if isinstance(p, TensorType)]


def values(attrs: Any) -> dict[str, Any]:
    """The attributes that a text may name."""
    if attrs is None:
        return {}
    return {name: getattr(attrs, name) for name, kind in type(attrs).schema.items() if kind.kind in _KINDS}


def from_text(source: SourceFile, first: int = 0, last: int | None = None) -> list[tuple[Op, TextKernel]]:
    """The operators of a text: records and kernels. Raises `RelayError` (R0644) with the place of a mistake."""
    return [_operator(template) for template in templates(source, first, last)]


def _operator(template: Template) -> tuple[Op, TextKernel]:
    template.examine()
    kernel = TextKernel(template)
    return Op(
        template.name,
        [a.name for a in template.of("in")],
        _attributes(template),
        kernel.type_of,
        doc=template.doc or f"{template.name}, by a kernel of its own.",
    ), kernel


def _attributes(template: Template) -> type | None:
    if not template.attributes:
        return None
    for a in template.attributes:
        if keyword.iskeyword(a.name) or a.name in _OF_PYTHON or hasattr(Attributes, a.name):
            wrong(a.span, f"no attribute can be called {a.name}", "Python has this name", notes=(f"use another name: {a.name}_",))
    body: dict[str, Any] = {"__annotations__": {a.name: a.kind for a in template.attributes}}
    body |= {a.name: a.default for a in template.attributes if a.default is not None}
    name = "".join(part.capitalize() for part in template.name.replace(".", "_").split("_")) + "Attrs"
    return attrs_class(f"relay.attrs.{name}")(type(name, (), body))


def with_text(op: Op, source: SourceFile, first: int = 0, last: int | None = None) -> tuple[Op, TextKernel]:
    """A record whose kernel is a text: the record with a relation that also holds the text's buffers, and the kernel.

    Raises `RelayError` (R0644) with the place of a mistake, or of a buffer that does not fit the record.
    """
    kinds = {name: field.kind for name, field in op.schema.items() if field.kind in _KINDS}
    template, *more = templates(source, first, last, kinds)
    if more:
        wrong(more[0].span, f"the text of {op.name} has one operator")
    if template.name != op.name:
        wrong(template.span, f"the text is of {template.name}, and the record of {op.name}")
    for attribute in template.attributes:
        attribute.default = op.schema[attribute.name].default
    names = [a.name for a in template.of("in")]
    if op.variadic or names != list(op.args):
        shown = "any number of arguments" if op.variadic else f"the arguments {', '.join(op.args) or '(none)'}"
        wrong(template.span, f"{op.name} takes {shown}, and its kernel reads {', '.join(names) or 'nothing'}")
    template.examine()
    _try_relation(template, op)
    kernel = TextKernel(template, op.rel)
    fields = {
        name: getattr(op, name) for name in Op.__slots__ if name not in ("name", "args", "attrs", "rel", "takes", "level", "pattern")
    }
    record = Op(op.name, op.args, op.attrs, kernel.type_of, op.pattern, op.level, **fields)
    object.__setattr__(record, "takes", op.takes)
    return record, kernel


def _try_relation(template: Template, op: Op) -> None:
    """Ask the record's relation for tensors as the text has them: the results have to fit the text's."""
    for names in template.samples():
        tensors = [TensorType(shape, dtype) for shape, dtype in template.results(names, "in")]
        attrs = None
        try:
            if op.attrs is not None:
                attrs = op.attrs(**{a.name: names[a.name] for a in template.attributes})
            result = op.rel(tensors, attrs, _Alone())
        except Exception:  # a relation may want other numbers than those of the trial
            continue
        results = _fields(result)
        outs = template.of("out")
        parts = result.fields if isinstance(result, TupleType) else (result,)
        if result is None or len(results) != len(parts):
            continue
        if len(results) != len(outs):
            wrong(template.span, f"{op.name} has {len(results)} results by its type relation, and {len(outs)} by its kernel")
        for out, part in zip(outs, parts):
            try:
                template.bound([(t.shape, t.dtype) for t in tensors], values(attrs), _fields(result))
            except Misfit as problem:
                types = ", ".join(map(type_text, tensors))
                wrong(
                    out.span,
                    f"`{out.text}` does not fit the type relation of {op.name}",
                    f"of {types} it makes {type_text(part)}",  # type: ignore[arg-type]
                    notes=(problem.message,),
                )


__all__ = ["TextKernel", "from_text", "values", "with_text"]
