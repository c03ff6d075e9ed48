"""What the three tables of automatic quantisation share: the configuration, kinds of values, and marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from relaylang.ir import Call, Expr, Tuple
from relaylang.rules.quantization.scoped import Scoped

CAST_HINT = "annotation.cast_hint"
SIMULATED = "relay.op.annotation.simulated_quantize"
STOP_FUSION = "annotation.stop_fusion"


class QAnnotateKind(IntEnum):
    """The kind of a rounded value. It chooses the value's bits, and where its scale comes from."""

    IDENTITY = 0
    INPUT = 1
    WEIGHT = 2
    ACTIVATION = 3


@dataclass(frozen=True)
class QConfig(Scoped):
    """How a network is quantised; in force inside `with`. The names and defaults are those of TVM's `qconfig`.

    - `nbit_*`, `dtype_*`: bits and element types of inputs of operators, of weights, and of sums
    - `calibrate_mode`: "global_scale" gives all values the scale `global_scale`. The others need a data set. "kl_divergence"
      takes the least divergence of histograms, "percentile" the 0.99999 quantile
    - `weight_scale`: a weight's scale is its largest magnitude ("max"), or the next power of two ("power2")
    - `skip_dense_layer`: products of matrices stay in floats; `skip_conv_layers`: numbers of convolutions that stay
    - `do_simulation`: round in floats, and make no whole numbers
    - `round_for_shift`: shifts to the right round; `rounding` of products: "UPWARD" or "TONEAREST"
    - `debug_enabled_ops`: names of the only operators to quantise
    - `calibrate_chunk_by`: values of so many layers are held at once; -1 for all
    - `partition_conversions`: "enabled" makes functions of the conversions on both sides; "fully_integral" refuses
      floats between them
    """

    nbit_input: int = 8
    nbit_weight: int = 8
    nbit_activation: int = 32
    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    calibrate_mode: str = "global_scale"
    global_scale: float = 8.0
    weight_scale: str = "power2"
    skip_dense_layer: bool = True
    skip_conv_layers: Sequence[int] | None = (0,)
    do_simulation: bool = False
    round_for_shift: bool = True
    debug_enabled_ops: Sequence[str] | None = None
    rounding: str = "UPWARD"
    calibrate_chunk_by: int = -1
    partition_conversions: str = "disabled"

    def get_nbit_by_kind(self, kind: int) -> int:
        """The bits of values of a kind."""
        return int(getattr(self, f"nbit_{QAnnotateKind(kind).name.lower()}"))

    def get_dtype_by_kind(self, kind: int) -> str:
        """The element type of values of a kind."""
        return str(getattr(self, f"dtype_{QAnnotateKind(kind).name.lower()}"))


#: Where no `with` sets one. As in TVM, no convolution stays in floats then.
DEFAULT = QConfig(skip_conv_layers=None)


def current_qconfig() -> QConfig:
    """The configuration that is in force."""
    return QConfig.current() or DEFAULT


class Mark:
    """A value with known facts."""

    __slots__ = ()

    def plain(self) -> Expr:
        """The value as an expression of the program."""
        raise AssertionError(f"{type(self).__name__} has no method plain")


#: What an operand became.
Value = Any  # Expr | Mark | tuple of them
Rule = Callable[[Call, Sequence[Value], Any], Value]
Rules = Mapping[str, Rule]


def plain(value: Value) -> Expr:
    """A value as an expression of the program."""
    if isinstance(value, tuple):
        return Tuple([plain(v) for v in value])
    return value.plain() if isinstance(value, Mark) else value


def with_args(call: Call, args: Sequence[Expr], attrs: Any = None) -> Call:
    """The same call of other operands."""
    return Call(call.op, args, attrs if attrs is not None else call.attrs, call.type_args, call.span)
