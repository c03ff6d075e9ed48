"""The table of StableHLO's conversions: those of every file in `families/`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from relaylang.frontends.common import Table
from relaylang.frontends.stablehlo import families

_DEVICES = "it moves data between devices"
_RANDOM = "random numbers differ from call to call"
_HOST = "it exchanges data with the host"

#: Operators that have no form in Relay, with the reason.
REFUSED = {
    "stablehlo.after_all": _HOST,
    "stablehlo.all_gather": _DEVICES,
    "stablehlo.all_reduce": _DEVICES,
    "stablehlo.all_to_all": _DEVICES,
    "stablehlo.collective_broadcast": _DEVICES,
    "stablehlo.collective_permute": _DEVICES,
    "stablehlo.cross-replica-sum": _DEVICES,
    "stablehlo.infeed": _HOST,
    "stablehlo.outfeed": _HOST,
    "stablehlo.partition_id": _DEVICES,
    "stablehlo.recv": _HOST,
    "stablehlo.reduce_scatter": _DEVICES,
    "stablehlo.replica_id": _DEVICES,
    "stablehlo.rng": _RANDOM,
    "stablehlo.rng_bit_generator": "Relay has no random bits of its algorithm; jax_default_prng_impl=threefry2x32 exports arithmetic",
    "stablehlo.send": _HOST,
    "stablehlo.set_dimension_size": "bounded extents have no form in Relay",
}


@cache
def table() -> Table:
    """All conversions, by the operator's name with its dialect."""
    names = sorted(module.name for module in iter_modules(families.__path__))
    return Table(*(import_module(f"{families.__name__}.{name}").RULES for name in names))


__all__ = ["REFUSED", "table"]
