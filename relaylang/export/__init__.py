"""Programs for other tools: ONNX models, StableHLO and Relax text.

`export(mod, "onnx")` gives what the format's own function gives, as bytes or text, and arrays that stand beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from relaylang.export.onnx import export_onnx
from relaylang.export.onnx.model import external_data, serialized
from relaylang.export.relax import export_relax
from relaylang.export.stablehlo import export_stablehlo
from relaylang.ir import IRModule

#: The formats, with the file endings that name them.
FORMATS = {"onnx": (".onnx",), "stablehlo": (".mlir", ".stablehlo"), "relax": (".py",)}


@dataclass(frozen=True)
class Exported:
    """A file's contents; the arrays that the format keeps beside it, by name; or the bytes of a file with them."""

    data: bytes
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    external: bytes | None = None


def export(mod: IRModule, format: str, entry: str = "main", file: str = "<module>", location: str = "") -> Exported:
    """A typed program as a file of a format of `FORMATS`.

    `location` is the path, relative to the model's folder, of a file for an ONNX model's large constants.

    Relax keeps constants, but for scalars, beside the text: they are its parameters behind the inputs. Raises `RelayError` (R0806)
    with every operator that the format lacks, and `KeyError` for an unknown format.
    """
    if format == "onnx":
        model = export_onnx(mod, entry, file)
        external = external_data(model, location) if location else None
        return Exported(serialized(model), external=external)
    if format == "stablehlo":
        return Exported(export_stablehlo(mod, entry, file).encode())
    if format == "relax":
        text, constants = export_relax(mod, entry, file)
        return Exported(text.encode(), constants)
    raise KeyError(format)


__all__ = ["FORMATS", "Exported", "export", "export_onnx", "export_relax", "export_stablehlo"]
