"""The table of Keras's conversions: those of every file in `families/`.

The domain "" has layers, "ops" has Keras 3's operations, "tf" has functions of TensorFlow that Keras 2 keeps as layers.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from relaylang.frontends.common import Table
from relaylang.frontends.keras import families

_CODE = "its code is Python, which an import does not run"
_TEXT = "texts and tables of keys have no form in Relay"
#: Layers that have no form in Relay, with the reason.
REFUSED = {
    "Lambda": _CODE,
    "TensorFlowOpLayer": "it holds a graph of TensorFlow",
    "TFSMLayer": "it is a SavedModel of TensorFlow",
    "TorchModuleWrapper": _CODE,
    "JaxLayer": _CODE,
    "FlaxLayer": _CODE,
    "Hashing": _TEXT,
    "StringLookup": _TEXT,
    "IntegerLookup": _TEXT,
    "TextVectorization": _TEXT,
    "HashedCrossing": _TEXT,
    "FeatureSpace": _TEXT,
}


@cache
def table() -> Table:
    """All conversions, by the class names of layers and operations."""
    names = sorted(module.name for module in iter_modules(families.__path__))
    return Table(*(import_module(f"{families.__name__}.{name}").RULES for name in names))


__all__ = ["REFUSED", "table"]
