"""The Ethos-U's pattern table."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.ir import Call
from relaylang.partition.entries import Entry
from relaylang.partition.fixed_point import Unsupported
from relaylang.partition.targets.ethos_u import arithmetic, convolutions, movement, pools
from relaylang.patterns import DFPattern, Match, is_constant, is_op, is_tuple, wildcard

#: The readers of composites' calls, by the composite's name.
READERS: dict[str, Callable[[Sequence[Call]], Any]] = {
    "ethos-u.qnn_conv2d": convolutions.read_conv,
    "ethos-u.qnn_dense": convolutions.read_dense,
    "ethos-u.qnn_add": arithmetic.read_add,
    "ethos-u.qnn_concatenate": movement.read_qnn_concat,
    "ethos-u.concatenate": movement.read_concat,
    "ethos-u.max_pool2d": pools.read_max_pool,
    "ethos-u.avg_pool2d": pools.read_avg_pool,
    "ethos-u.qnn_requantize": arithmetic.read_requantize,
    "ethos-u.clamp": arithmetic.read_clamp,
    "ethos-u.pad": movement.read_pad,
    "ethos-u.reshape": movement.read_reshape,
}
#: Composites that only move or limit what others computed: no reason for a region of their own.
HELPERS = frozenset({"ethos-u.reshape", "ethos-u.pad", "ethos-u.concatenate", "ethos-u.clamp"})


def _any(count: int) -> list[DFPattern]:
    return [wildcard() for _ in range(count)]


def _clips(pattern: DFPattern, cast: bool = True) -> DFPattern:
    """Behind the pattern: clip or relu, then a cast, then clip or relu, each of which may be missing."""

    pattern = pattern.optional(limits)
    return pattern.optional(lambda p: is_op("cast")(p)).optional(limits) if cast else pattern


def limits(pattern: DFPattern) -> DFPattern:
    """clip or relu of the pattern."""
    return is_op("clip")(pattern) | is_op("nn.relu")(pattern)


def _requantized(pattern: DFPattern) -> DFPattern:
    """The pattern with a bias, then requantized, then limited."""
    summed = pattern.optional(lambda p: is_op("nn.bias_add")(p, wildcard()) | is_op("add")(p, is_constant()))
    limited = summed.optional(lambda p: is_op("nn.relu")(p))
    return _clips(is_op("qnn.requantize")(limited, *_any(4)))


def _summed(pattern: DFPattern) -> DFPattern:
    return pattern.optional(lambda p: is_op("nn.bias_add")(p, wildcard()) | is_op("add")(p, is_constant()))


def _check(name: str) -> Callable[[Match], str | None]:
    reader = READERS[name]

    def check(match: Match) -> str | None:
        try:
            reader([node for node in match.nodes if isinstance(node, Call)])
        except Unsupported as refusal:
            return refusal.reason
        return None

    return check


def pattern_table() -> list[Entry]:
    """The rows for the Ethos-U, those that take most first."""

    def conv(data: DFPattern) -> DFPattern:
        return is_op("qnn.conv2d")(data, *_any(5))

    def padded() -> DFPattern:
        return conv(is_op("nn.pad")(wildcard(), wildcard()))

    def dense() -> DFPattern:
        return is_op("qnn.dense")(*_any(6))

    reshapes = (
        is_op("reshape")(wildcard())
        | is_op("nn.batch_flatten")(wildcard())
        | is_op("squeeze")(wildcard())
        | is_op("expand_dims")(wildcard())
    )
    limit = is_op("clip")(wildcard()) | is_op("nn.relu")(wildcard())
    widened = is_op("cast")(wildcard())
    averaged = is_op("nn.avg_pool2d")(widened) | is_op("nn.global_avg_pool2d")(widened)
    rows = [
        ("ethos-u.qnn_conv2d", _requantized(padded())),
        ("ethos-u.qnn_conv2d", _requantized(conv(wildcard()))),
        ("ethos-u.qnn_dense", _requantized(dense())),
        ("ethos-u.qnn_conv2d", _summed(padded())),
        ("ethos-u.qnn_conv2d", _summed(conv(wildcard()))),
        ("ethos-u.qnn_dense", _summed(dense())),
        ("ethos-u.qnn_add", _clips(is_op("qnn.add")(*_any(8)), cast=False)),
        ("ethos-u.qnn_concatenate", is_op("qnn.concatenate")(is_tuple(None), is_tuple(None), is_tuple(None), *_any(2))),
        ("ethos-u.concatenate", is_op("concatenate")(is_tuple(None))),
        ("ethos-u.max_pool2d", is_op("nn.max_pool2d")(wildcard())),
        ("ethos-u.avg_pool2d", _clips(is_op("qnn.requantize")(averaged, *_any(4)))),
        ("ethos-u.avg_pool2d", is_op("cast")(averaged.optional(limits))),
        ("ethos-u.avg_pool2d", _clips(is_op("qnn.avg_pool2d")(*_any(5)), cast=False)),
        ("ethos-u.avg_pool2d", is_op("nn.avg_pool2d")(wildcard()) | is_op("nn.global_avg_pool2d")(wildcard())),
        ("ethos-u.qnn_requantize", _clips(is_op("qnn.requantize")(*_any(5)))),
        ("ethos-u.clamp", limits(limit)),
        ("ethos-u.clamp", limit),
        ("ethos-u.pad", is_op("nn.pad")(wildcard(), wildcard())),
        ("ethos-u.reshape", reshapes),
    ]
    return [Entry(name, pattern, _check(name)) for name, pattern in rows]


__all__ = ["HELPERS", "READERS", "pattern_table"]
