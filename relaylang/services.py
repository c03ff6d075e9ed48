"""Services: the few functions that a low floor uses and a higher floor provides.

A node prints itself (`node.astext()`), and `x + y` makes a call. The printer and the builders stand above the nodes. The
low floor asks for such a function by name. `relaylang/_names.py` alone registers the provider of each. A provider is
"module:function"; the first use of the service imports the module.

A table of a low floor may have rows on higher floors, too, each in a file of its own. `folders` gives their packages.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

_PROVIDERS: dict[str, str] = {}
_FOLDERS: dict[str, tuple[str, ...]] = {}
_FOUND: dict[str, Callable[..., Any]] = {}


def provide(providers: Mapping[str, str], folders: Mapping[str, tuple[str, ...]]) -> None:
    """Register the providers of services, name -> "module:function", and the packages whose files are a table's rows."""
    _PROVIDERS.update(providers)
    _FOLDERS.update(folders)


def service(name: str) -> Callable[..., Any]:
    """The function that provides a service. Raises `KeyError` for a service without a provider."""
    if name not in _FOUND:
        module, function = _PROVIDERS[name].split(":")
        _FOUND[name] = getattr(importlib.import_module(module), function)
    return _FOUND[name]


def folders(name: str) -> tuple[str, ...]:
    """The packages whose files are the rows of a table, lowest floor first. Raises `KeyError` for another table."""
    return _FOLDERS[name]
