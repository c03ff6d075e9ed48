"""Services: the few functions that a low floor uses and a higher floor provides.

A node prints itself (`node.astext()`), `x + y` makes a call of an operator: the printer and the builders stand above
the nodes. The low floor asks for such a function by name; `relaylang/_names.py` registers the provider of each, and
nobody else does. A provider is "module:function"; the module is imported when somebody first uses the service.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

_PROVIDERS: dict[str, str] = {}
_FOUND: dict[str, Callable[..., Any]] = {}


def provide(providers: Mapping[str, str]) -> None:
    """Register the providers of services: name -> "module:function"."""
    _PROVIDERS.update(providers)


def service(name: str) -> Callable[..., Any]:
    """The function that provides a service. Raises `KeyError` for a service without a provider."""
    if name not in _FOUND:
        module, function = _PROVIDERS[name].split(":")
        _FOUND[name] = getattr(importlib.import_module(module), function)
    return _FOUND[name]
