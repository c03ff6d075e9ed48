"""The choices that a caller makes about an import, the same for every format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relaylang.ir.types import Dim


@dataclass(frozen=True)
class Options:
    """How to import a model.

    | field | meaning |
    |---|---|
    | `shapes` | shapes of inputs by name; they replace those of the file. `(1,)` for the name of an extent is its number |
    | `dtypes` | element types of inputs by name |
    | `values` | values of inputs by name, which become constants: arrays; lists for sequences; None for an empty optional |
    | `freeze` | weights are constants; otherwise they are parameters of `@main` |
    | `layout` | "NHWC" or "NCHW" to convert convolutions and pools; "" keeps the file's |
    | `partial` | put external functions where layers cannot be converted |
    | `keep_quantized` | quantised weights that are parameters are whole numbers; otherwise the program quantises real ones |
    | `folder` | where files beside the model are; "" forbids them |
    | `weights` | the file of the weights, where the format has one; "" looks beside the model |
    | `nodes` | the nodes that layers may become by inlining and unrolling; None: see `relaylang.runtime.budget` |
    | `bytes` | the bytes that unpacking and folding may take; None: see `relaylang.runtime.budget` |
    | `work` | the steps that folding may take; None: see `relaylang.runtime.budget` |
    """

    shapes: Mapping[str, tuple[Dim, ...]] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    freeze: bool = True
    layout: str = ""
    partial: bool = False
    keep_quantized: bool = False
    folder: str = ""
    weights: str = ""
    nodes: int | None = None
    bytes: int | None = None
    work: int | None = None


#: An import that says nothing.
DEFAULTS = Options()

__all__ = ["DEFAULTS", "Options"]
