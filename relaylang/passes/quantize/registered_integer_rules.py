"""Rules that users register for FakeQuantizationToInteger, with TVM's interface.

    @register_fake_quantization_to_integer("my.op")
    def whole(expr, type_map):
        x = type_map[expr.args[0]]           # what is known of the operand: scale, zero_point, dtype, axis
        return [expr, x]                     # the call in whole numbers, and what is known of its result

`expr` is the call with whole numbers for operands. `type_map[expr]` is the scale that its result flows to, if there is
one, else the first operand's. An operand that is real raises `KeyError` there; with that, or an `AssertionError`, the
call stays in floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Expr, Tuple
from relaylang.passes.manager import raised_in
from relaylang.rules.fake_quantization.affine import Affine, Rule, Wanted, affine, const

#: `(call, type map)` to a call and an affine type.
Own = Callable[[Any, Any], Any]
OWN: dict[str, Own] = {}
OWN_OPTIONAL: dict[str, Own] = {}


@dataclass(frozen=True)
class TensorAffineType:
    """`(x - zero_point) * scale` in real numbers: `scale` (float32) and `zero_point` (int32) are constants."""

    scale: Expr
    zero_point: Expr
    dtype: str
    axis: int = -1


@dataclass(frozen=True)
class TupleAffineType:
    """Those of a tuple's fields."""

    types: tuple[TensorAffineType, ...]


class _TypeMap:
    """Affine types of expressions, by identity."""

    def __init__(self) -> None:
        self.held: dict[int, tuple[Expr, Any]] = {}

    def set(self, expr: Expr, ty: Any) -> None:
        self.held[id(expr)] = expr, ty

    def __getitem__(self, expr: Expr) -> Any:
        return self.held[id(expr)][1]

    def __contains__(self, expr: object) -> bool:
        return id(expr) in self.held

    def get(self, expr: Expr, default: Any = None) -> Any:
        return self.held[id(expr)][1] if id(expr) in self.held else default

    def items(self) -> list[tuple[Expr, Any]]:
        return list(self.held.values())


def _register(rules: dict[str, Own], op_name: str, func: Own | None) -> Any:
    def add(function: Own) -> Own:
        rules[op_name] = function
        return function

    return add(func) if func is not None else add


def register_fake_quantization_to_integer(op_name: str, func: Own | None = None, level: int = 10) -> Any:
    """Add a rule for an operator, in the place of one that there is; also a decorator."""
    return _register(OWN, op_name, func)


def register_optional_fake_quantization_to_integer(op_name: str, func: Own | None = None, level: int = 10) -> Any:
    """As `register_fake_quantization_to_integer`, for use where `optional_qnn_ops` names the operator."""
    return _register(OWN_OPTIONAL, op_name, func)


def _type(scale: Any, zero: Any, dtype: str, axis: int) -> TensorAffineType:
    return TensorAffineType(const(scale, "float32"), const(zero, "int32"), dtype, axis)


def own_rule(name: str, function: Own, fold: Callable[[Expr], Expr], hard_fail: bool = True) -> Rule:
    """A rule of one's own as the pass calls it; `fold` makes constants of expressions of constants.

    Where it raises, the call has no integer form; with `hard_fail` that is an error (R0502).
    """

    def rule(call: Call, operands: list[Affine | None], wanted: Wanted | None) -> Affine | None:
        types, args, rest = _TypeMap(), [], list(operands)
        for arg in call.args:
            fields = list(arg.fields) if isinstance(arg, Tuple) else [arg]
            inner_operands, rest = rest[: len(fields)], rest[len(fields) :]
            int_fields = [f if o is None else o.ints for f, o in zip(fields, inner_operands)]
            for field, o in zip(int_fields, inner_operands):
                if o is not None:
                    types.set(field, _type(o.scale, o.zero, o.dtype, o.axis))
            joined = Tuple(int_fields) if isinstance(arg, Tuple) else int_fields[0]
            if isinstance(arg, Tuple) and all(f in types for f in int_fields):
                types.set(joined, TupleAffineType(tuple([types[f] for f in int_fields])))
            args.append(joined)
        rewritten = Call(call.op, args, call.attrs, (), call.span)
        first = next(o for o in operands if o is not None)
        target = wanted or Wanted(first.scale, first.zero, first.dtype)
        types.set(rewritten, _type(target.scale, target.zero, target.dtype, -1 if wanted else first.axis))
        try:
            result = function(rewritten, types)
        except (KeyError, AssertionError, NotImplementedError):
            return None
        except RelayError:
            raise
        except Exception as problem:
            if not hard_fail:
                return None
            raise RelayError(raised_in(f"FTVMFakeQuantizationToInteger of {name}", problem, "the rule")) from problem
        return _checked(name, result, call, fold)

    return rule


def _checked(name: str, result: Any, call: Call, fold: Callable[[Expr], Expr]) -> Affine:
    parts = list(result) if isinstance(result, (list, tuple)) else []
    ty = parts[1] if len(parts) == 2 else None
    if isinstance(ty, TupleAffineType) and ty.types and all(t == ty.types[0] for t in ty.types):
        ty = ty.types[0]
    if not isinstance(ty, TensorAffineType) or not isinstance(parts[0], Expr):
        said = f"the rule for {name} in whole numbers returned {result!r:.60}, not [expression, affine type]"
        raise RelayError(error("R0503", said, call.span))
    numbers = [n if isinstance(n, Constant) else fold(n) for n in (ty.scale, ty.zero_point)]
    if not all(isinstance(n, Constant) for n in numbers):
        raise RelayError(error("R0503", f"the rule for {name} in whole numbers gave a scale that is no constant", call.span))
    scale, zero = (n.data for n in numbers if isinstance(n, Constant))
    return affine(parts[0], scale, zero, str(ty.dtype), int(ty.axis))
