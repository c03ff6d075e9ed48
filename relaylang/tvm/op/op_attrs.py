"""The classes of operators' attributes, by the names that TVM gives them: `Conv2DAttrs`, `AdaptivePool2DAttrs`."""

from __future__ import annotations

from typing import Any

from relaylang.ops import OPS


def _classes() -> dict[str, Any]:
    classes: list[Any] = [op.attrs for op in OPS.values() if op.attrs is not None]
    return {cls.type_key.rpartition(".")[2]: cls for cls in classes}


def __getattr__(name: str) -> Any:
    attrs_class = _classes().get(name) if name.endswith("Attrs") else None
    if attrs_class is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return attrs_class


def __dir__() -> list[str]:
    return sorted(_classes())
