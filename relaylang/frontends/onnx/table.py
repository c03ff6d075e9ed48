"""The table of ONNX's conversions: those of every file in `families/`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from relaylang.frontends.common import Table
from relaylang.frontends.onnx import families

_PARTS = "how many parts a text has depends on the text"
#: Operators without a form in Relay, by name, and the reasons.
REFUSED = {
    "ATen": "it calls a function of PyTorch by its name; export the network again, with a later opset",
    "CastMap": "maps have no form in Relay",
    "DictVectorizer": "maps have no form in Relay",
    "Gradient": "it names a part of the graph to differentiate",
    "ImageDecoder": "images in files are decoded before a network",
    "RegexFullMatch": "regular expressions have no form in Relay",
    "StringSplit": _PARTS,
    "Tokenizer": _PARTS,
}


@cache
def table() -> Table:
    """All conversions."""
    names = sorted(module.name for module in iter_modules(families.__path__))
    return Table(*(import_module(f"{families.__name__}.{name}").RULES for name in names))


__all__ = ["REFUSED", "table"]
