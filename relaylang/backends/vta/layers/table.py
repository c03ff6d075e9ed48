"""The pattern table of VTA: a layer is a result of int8 with all int32 values above it that nothing else uses."""

from __future__ import annotations

from collections.abc import Callable

from relaylang.backends.vta.config import Config
from relaylang.backends.vta.isa import Codec
from relaylang.backends.vta.layers.reader import READERS, read_layer
from relaylang.backends.vta.tiling import choose
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call
from relaylang.partition.checks import dtype, op_name
from relaylang.partition.entries import Entry
from relaylang.patterns import DFPattern, Match, is_op, wildcard


def _limits(pattern: DFPattern) -> DFPattern:
    """A limit of int8 numbers, which joins the layer before it."""
    clipped = is_op("clip")(pattern) | is_op("nn.relu")(pattern)
    return clipped | is_op("maximum")(pattern, wildcard()) | is_op("minimum")(pattern, wildcard())


def _patterns() -> list[tuple[str, DFPattern]]:
    """The patterns of results by name, those of most calls first."""
    results = {
        "layer": is_op("cast")(wildcard()),
        "requantize": is_op("qnn.requantize")(*[wildcard() for _ in range(5)]),
        "add": is_op("qnn.add")(*[wildcard() for _ in range(8)]),
        "max_pool2d": is_op("nn.max_pool2d")(wildcard()) | is_op("nn.global_max_pool2d")(wildcard()),
        "avg_pool2d": is_op("nn.avg_pool2d")(wildcard()) | is_op("nn.global_avg_pool2d")(wildcard()),
        "qnn_avg_pool2d": is_op("qnn.avg_pool2d")(*[wildcard() for _ in range(5)]),
    }
    patterns = []
    for limit in (lambda p: _limits(_limits(p)), _limits, lambda p: p):
        patterns += [(name, limit(pattern)) for name, pattern in results.items()]
    return [*patterns, ("limit", _limits(_limits(wildcard()))), ("limit", _limits(wildcard()))]


def refusal(config: Config) -> Callable[[Match], str | None]:
    """A check that names the reason why a match is no layer for a configuration."""

    def check(match: Match) -> str | None:
        try:
            choose(read_layer([node for node in match.nodes if isinstance(node, Call)]), config)
        except Unsupported as problem:
            return problem.reason
        return None

    return check


def pattern_table(config: Config | None = None) -> list[Entry]:
    """The rows for a configuration, by default for that of TVM's `vta_config.json`. Raises `RelayError` (R0602)."""
    config = config or Config()
    Codec(config)
    return [
        Entry(
            f"vta.{name}",
            pattern,
            refusal(config),
            lambda call: op_name(call) in READERS and dtype(call) == "int32",
            mover=name == "limit",
        )
        for name, pattern in _patterns()
    ]


__all__ = ["pattern_table"]
