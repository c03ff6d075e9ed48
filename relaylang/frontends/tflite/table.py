"""The table of TFLite's conversions: those of every file in `families/`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from relaylang.frontends.common import Table
from relaylang.frontends.tflite import families

#: Operators that have no form in Relay, with the reason.
REFUSED = {
    "CONCAT_EMBEDDINGS": "the runtime has no form of it",
    "DELEGATE": "it stands for a part of another program",
    "HASHTABLE": "tables of keys have no form in Relay",
    "HASHTABLE_FIND": "tables of keys have no form in Relay",
    "HASHTABLE_IMPORT": "tables of keys have no form in Relay",
    "HASHTABLE_SIZE": "tables of keys have no form in Relay",
    "LSH_PROJECTION": "hashes of tensors have no form in Relay",
    "MULTINOMIAL": "random numbers differ from call to call",
    "RANDOM_STANDARD_NORMAL": "random numbers differ from call to call",
    "RANDOM_UNIFORM": "random numbers differ from call to call",
    "ethos-u": "Vela compiled it; relay run --executor ethosu-sim executes it",
    "SKIP_GRAM": "texts have no form in Relay",
    "STABLEHLO_CUSTOM_CALL": "it calls another program",
    "STABLEHLO_RNG_BIT_GENERATOR": "random numbers differ from call to call",
}


@cache
def table() -> Table:
    """All conversions, of builtin operators by the schema's name and of custom operators by their own."""
    names = sorted(module.name for module in iter_modules(families.__path__))
    return Table(*(import_module(f"{families.__name__}.{name}").RULES for name in names))


__all__ = ["REFUSED", "table"]
