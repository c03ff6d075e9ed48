"""The tables of Core ML's conversions: operators of programs, and layers of networks."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from relaylang.frontends.common import Table
from relaylang.frontends.coreml import families, layers

_RANDOM = "random numbers differ from call to call"
_CODE = "its code is not in the file"
#: Operators of programs that have no form in Relay, with the reason.
REFUSED = {
    "conv_quantized": "its weights are quantised in a way that coremltools left",
    "custom_layer": _CODE,
    "random_bernoulli": _RANDOM,
    "random_categorical": _RANDOM,
    "random_normal": _RANDOM,
    "random_uniform": _RANDOM,
}
#: Operators of programs that the walk itself converts, since they hold blocks, names or states.
CONTROL = ("classify", "cond", "const", "read_state", "while_loop", "write_state")
#: Layers of networks that have no form in Relay, with the reason.
REFUSED_LAYERS = {
    "categoricalDistribution": _RANDOM,
    "custom": _CODE,
    "loopBreak": "loops end by their conditions alone",
    "loopContinue": "loops end by their conditions alone",
    **dict.fromkeys(
        (f"random{kind}{how}" for kind in ("Normal", "Uniform", "Bernoulli") for how in ("Like", "Static", "Dynamic")), _RANDOM
    ),
}
#: Layers of networks that the walk itself converts, since they hold networks.
CONTROL_LAYERS = ("branch", "loop")


def _of(package: ModuleType) -> Table:
    names = sorted(module.name for module in iter_modules(package.__path__))
    return Table(*(import_module(f"{package.__name__}.{name}").RULES for name in names))


@cache
def table() -> Table:
    """The conversions of programs, by the names of operators."""
    return _of(families)


@cache
def layer_table() -> Table:
    """The conversions of networks, by the kinds of layers."""
    return _of(layers)


__all__ = ["CONTROL", "CONTROL_LAYERS", "REFUSED", "REFUSED_LAYERS", "layer_table", "table"]
