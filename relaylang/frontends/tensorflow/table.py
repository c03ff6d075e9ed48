"""The table of TensorFlow's conversions: those of every file in `families/`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from relaylang.frontends.common import Table
from relaylang.frontends.tensorflow import families

_RANDOM = "random numbers differ from call to call"
_TEXTS = "texts have no form in Relay"
_TABLES = "tables of keys have no form in Relay"
_SUMS = "its sums of quantised numbers have no form in Relay; quantise with FakeQuant, or by TensorFlow Lite"
#: Operators that have no form in Relay, with the reason.
REFUSED = {
    **dict.fromkeys(("Multinomial", "ParameterizedTruncatedNormal", "RandomGamma", "RandomPoissonV2", "RandomShuffle",
                     "RandomStandardNormal", "RandomUniform", "RandomUniformInt", "StatefulStandardNormalV2", "StatefulUniform",
                     "StatelessMultinomial", "StatelessRandomNormal", "StatelessRandomNormalV2", "StatelessRandomUniform",
                     "StatelessRandomUniformV2", "TruncatedNormal"), _RANDOM),
    **dict.fromkeys(("AsString", "ReadFile", "RegexReplace", "StaticRegexReplace", "StringJoin", "StringLower", "StringSplitV2",
                     "StringToHashBucketFast", "StringToNumber", "Substr", "UnicodeDecode", "DecodeRaw",
                     "ParseExampleV2", "ParseExample"), _TEXTS),
    **dict.fromkeys(("HashTable", "HashTableV2", "LookupTableFind", "LookupTableFindV2", "MutableHashTableV2"), _TABLES),
    **dict.fromkeys(("QuantizedConv2D", "QuantizedMatMul", "QuantizedBiasAdd", "QuantizedMaxPool", "QuantizedAvgPool",
                     "QuantizedRelu", "QuantizedRelu6", "Requantize", "RequantizationRange", "QuantizedAdd", "QuantizedMul",
                     "QuantizedConv2DWithBiasAndReluAndRequantize"), _SUMS),
    "PyFunc": "it calls Python of the process that made the graph",
    "EagerPyFunc": "it calls Python of the process that made the graph",
    "TensorArrayGradV3": "gradients of arrays belong to training",
}  # fmt: skip
#: The files whose operators take lists, handles and texts, too.
_MIXED = ("control", "lists", "variables")


def _modules() -> dict[str, Any]:
    names = sorted(module.name for module in iter_modules(families.__path__))
    return {name: import_module(f"{families.__name__}.{name}") for name in names}


@cache
def table() -> Table:
    """All conversions, by the operator's name."""
    return Table(*(module.RULES for module in _modules().values()))


@cache
def mixed() -> frozenset[str]:
    """The operators whose operands need not be tensors."""
    return frozenset(rule.name for name, module in _modules().items() if name in _MIXED for rule in module.RULES)


__all__ = ["REFUSED", "mixed", "table"]
