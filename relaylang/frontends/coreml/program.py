"""The walk over an ML program: blocks of operations, whose inputs have names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from inspect import Parameter, signature
from typing import Any

from relaylang.frontends.common import Layer, Malformed, Unsupported
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.common.partial import stated_type
from relaylang.frontends.coreml.node import Node, each
from relaylang.frontends.coreml.table import CONTROL, REFUSED, table
from relaylang.frontends.coreml.values import DTYPES, dtype_of, extents, value
from relaylang.frontends.coreml.walk import MISSING, Names, Skipped, Walk, inner, value_of
from relaylang.ir import Expr, TensorType

#: The value of a result that has no form in Relay, such as the name of a class.
NOTHING = object()


class State:
    """A tensor that operations read and write. It is an input of the program, and its last value a result."""

    def __init__(self, first: Expr) -> None:
        self.first = self.value = first


def _stated(operation: Any) -> list[TensorType | None]:
    """The types that a program states for the results of an operation, None for each that it does not."""
    types = [out.type for out in operation.outputs]
    tensors = [ty.tensorType if ty.WhichOneof("type") == "tensorType" and ty.tensorType.dataType in DTYPES else None for ty in types]
    return [None if t is None else stated_type(extents(t), dtype_of(t.dataType)) for t in tensors]


class Program(Walk):
    """Converts the operations of one function."""

    def block(self, block: Any, names: Names) -> list[Any]:
        """The results of a block. `names` takes those of its operations."""
        for operation in block.operations:
            self._operation(operation, names)
        missing = [name for name in block.outputs if name not in names]
        if missing:
            raise Malformed(f"its result {missing[0][:60]!r} is that of no operation")
        return [names[name] for name in block.outputs]

    def _operation(self, operation: Any, names: Names) -> None:
        outputs = [out.name for out in operation.outputs]
        inputs = [bind.name for arg in operation.inputs.values() for bind in arg.arguments if bind.WhichOneof("binding") == "name"]
        layer = Layer(operation.type, "", inputs, outputs)
        results = self.place(layer, partial(self._converted, operation, names), names, partial(_stated, operation))
        names.update(zip(outputs, results))

    def _converted(self, operation: Any, names: Names, operands: list[Any]) -> Sequence[Any]:
        kind, count = operation.type, len(operation.outputs)
        own = CONTROL.index(kind) if kind in CONTROL else -1
        if own >= 0:
            return _CONTROL[own](self, operation, names)
        rule = table().find(kind)
        if rule is None:
            raise Unsupported(REFUSED.get(kind, ""))
        inputs = self._inputs(operation, names)
        operands += [x for xs in inputs.values() for x in xs if isinstance(x, Expr)]
        name = operation.outputs[0].name if count else kind
        results = each(rule.convert(Node(self.b, name, count), **bound(self, rule.convert, inputs)))
        return results

    def _inputs(self, operation: Any, names: Names) -> dict[str, list[Any]]:
        """The values of each input. Attributes of operations that unpack weights are inputs, too."""
        inputs: dict[str, list[Any]] = {}
        for name, argument in operation.inputs.items():
            inputs[name] = [self._bound(bind, names) for bind in argument.arguments]
        if operation.type.startswith("constexpr_"):
            for name, attribute in operation.attributes.items():
                if name != "name":
                    inputs.setdefault(name, [self._value(attribute)])
        return inputs

    def _bound(self, bind: Any, names: Names) -> Any:
        if bind.WhichOneof("binding") == "value":
            return self._value(bind.value)
        bound_value = value_of(names, bind.name)
        return bound_value

    def _value(self, attribute: Any) -> Any:
        constant = value(self.b.arrays, self.files, attribute)
        return constant if isinstance(constant, (str, list)) else self.b.const(constant)

    # ---- operations with blocks, names and states

    def _classify(self, operation: Any, names: Names) -> Sequence[Any]:
        """The probabilities. The name of the best class is a text."""
        return [NOTHING, self._one(operation, "probabilities", names)]

    def _cond(self, operation: Any, names: Names) -> Sequence[Any]:
        b = self.b
        if len(operation.blocks) != 2:
            raise Malformed(f"it has {len(operation.blocks)} branches")
        test = b.scalar(b.cast(self._one(operation, "pred", names), "bool"))
        known = b.value(test)
        if known is not None:
            return self._whole(self.block(operation.blocks[0 if bool(known) else 1], inner(names)))
        left, right = (self._whole(self.block(block, inner(names))) for block in operation.blocks)
        if len(left) != len(right):
            raise Malformed(f"its branches have {len(left)} and {len(right)} results")
        if len(left) == 1:
            return [b.if_(test, left[0], right[0])]
        branch = b.if_(test, b.tuple(left), b.tuple(right))
        return [b.field(branch, i) for i in range(len(left))]

    def _whole(self, results: Sequence[Any]) -> list[Expr]:
        """The results of a block where all of them are tensors."""
        if MISSING in results:
            raise Skipped
        if not all(isinstance(x, Expr) for x in results):
            raise Unsupported("a result of its block is no tensor")
        return list(results)

    def _const(self, operation: Any, names: Names) -> Sequence[Any]:
        if "val" not in operation.attributes:
            raise Malformed("it has no value")
        constant = value(self.b.arrays, self.files, operation.attributes["val"])
        name = operation.outputs[0].name if operation.outputs else ""
        return [constant if isinstance(constant, (str, list)) else self.b.weight(name, constant)]

    def _read_state(self, operation: Any, names: Names) -> Sequence[Any]:
        return [self._state(operation, names).value]

    def _while_loop(self, operation: Any, names: Names) -> Sequence[Any]:
        b, initial = self.b, self._whole(self._inputs(operation, names).get("loop_vars", []))
        if len(operation.blocks) != 2 or any(len(block.inputs) != len(initial) for block in operation.blocks):
            raise Malformed("it has no two blocks that take its variables")
        test, body = operation.blocks

        def run(block: Any, values: list[Expr]) -> list[Expr]:
            own = inner(names)
            own.update(zip([v.name for v in block.inputs], values))
            return self._whole(self.block(block, own))

        def more(values: list[Expr]) -> Expr:
            conditions = run(test, values)
            if len(conditions) != 1:
                raise Malformed(f"its condition has {len(conditions)} results")
            return b.scalar(b.cast(conditions[0], "bool"))

        def turn(values: list[Expr]) -> list[Expr]:
            results = run(body, values)
            if len(results) != len(initial):
                raise Malformed(f"its body has {len(results)} results, and it has {len(initial)} variables")
            return results

        return while_loop(b, more, turn, initial, [v.name for v in body.inputs])

    def _write_state(self, operation: Any, names: Names) -> Sequence[Any]:
        state = self._state(operation, names)
        data = self._one(operation, "data", names)
        if self.b.type_of(data) != self.b.type_of(state.first):
            raise Malformed("it writes a tensor of another type than that of the state")
        state.value = data
        return []

    def _state(self, operation: Any, names: Names) -> State:
        inputs = self._inputs(operation, names).get("input", [])
        if len(inputs) != 1 or not isinstance(inputs[0], State):
            raise Malformed("it names no state")
        return inputs[0]

    def _one(self, operation: Any, name: str, names: Names) -> Expr:
        inputs = self._inputs(operation, names).get(name, [])
        if len(inputs) != 1 or not isinstance(inputs[0], Expr):
            raise Malformed(f"its input {name} is no tensor")
        return inputs[0]


_CONTROL = (
    Program._classify,
    Program._cond,
    Program._const,
    Program._read_state,
    Program._while_loop,
    Program._write_state,
)


# ---- the inputs of conversions


def _number(walk: Program, x: Any, name: str) -> float:
    array = walk.b.need(x if isinstance(x, Expr) else None, f"its {name}")
    if array.size != 1:
        raise Malformed(f"its {name} has {array.size} elements")
    number = float(array.reshape(-1)[0])
    if math.isnan(number):
        raise Malformed(f"its {name} is no number")
    return number


def _whole(walk: Program, x: Any, name: str) -> int:
    numbers = _ints(walk, x, name)
    if len(numbers) != 1:
        raise Malformed(f"its {name} has {len(numbers)} elements")
    return numbers[0]


def _ints(walk: Program, x: Any, name: str) -> list[int]:
    return walk.b.need_ints(x if isinstance(x, Expr) else None, f"its {name}")


def _text(walk: Program, x: Any, name: str) -> str:
    if not isinstance(x, str):
        raise Malformed(f"its {name} is no text")
    return x


def _tensor(walk: Program, x: Any, name: str) -> Expr:
    if not isinstance(x, Expr):
        raise Malformed(f"its {name} is no tensor")
    return x


#: How an input becomes what the annotation of a conversion's parameter says.
_AS: dict[str, Callable[[Program, Any, str], Any]] = {
    "Bools": lambda walk, x, name: list(map(bool, _ints(walk, x, name))),
    "Expr": _tensor,
    "Ints": _ints,
    "bool": lambda walk, x, name: bool(_whole(walk, x, name)),
    "float": _number,
    "int": _whole,
    "str": _text,
}


@cache
def _parameters(convert: Callable[..., Any]) -> Mapping[str, tuple[str, bool]]:
    """The parameters of a conversion behind the first: what each is, and whether it must be there."""
    parameters = list(signature(convert).parameters.values())[1:]
    return {p.name: (str(p.annotation).removesuffix(" | None"), p.default is Parameter.empty) for p in parameters}


def bound(walk: Program, convert: Callable[..., Any], inputs: Mapping[str, list[Any]]) -> dict[str, Any]:
    """The inputs of an operation as the parameters of its conversion. Raises `Malformed`, and `Unsupported` for a further one."""
    known = _parameters(convert)
    arguments: dict[str, Any] = {}
    for name, values in inputs.items():
        if name not in known:
            raise Unsupported(f"it has the input {name[:40]}, which the importer does not know")
        kind = known[name][0]
        if kind == "Exprs":
            arguments[name] = [_tensor(walk, x, name) for x in values]
        elif len(values) == 1:
            arguments[name] = _AS[kind](walk, values[0], name)
        elif kind == "Ints":
            arguments[name] = [v for x in values for v in _ints(walk, x, name)]
        else:
            raise Malformed(f"its input {name} has {len(values)} values")
    missing = [name for name, (_, needed) in known.items() if needed and name not in arguments]
    if missing:
        raise Malformed(f"its input {missing[0]} is missing")
    return arguments


__all__ = ["NOTHING", "Program", "State", "bound"]
