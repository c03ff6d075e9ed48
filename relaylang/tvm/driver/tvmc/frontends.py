"""Reads networks and Relay text for tvmc."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.cli.common import report
from relaylang.cli.program import check
from relaylang.cli.program import load as read
from relaylang.diagnostics import RelayError, error
from relaylang.frontends.options import Options
from relaylang.ir import ANY
from relaylang.runtime.random import random_params
from relaylang.tvm.driver.tvmc.model import TVMCModel

#: tvmc's names of formats -> how to read them where relaylang does not.
FORMATS: dict[str, str] = {
    "onnx": "",
    "tflite": "",
    "pytorch": "",
    "relay": "",
    "keras": "",
    "pb": "",
    "paddle": "",
}
_SHAPE = re.compile(r"\s*(?P<name>[^\s:\[\]]+(?::\d+)?)\s*:\s*\[(?P<extents>[^\]]*)\]\s*,?")


def parse_shapes(text: str) -> dict[str, list[Any]]:
    """Shapes as tvmc writes them: `name:[1,3,224,224] other:[1,-1]`. Raises `RelayError` (R0707)."""
    shapes: dict[str, list[Any]] = {}
    at = 0
    while text[at:].strip():
        match = _SHAPE.match(text, at)
        extents = [e.strip() for e in match["extents"].split(",") if e.strip()] if match else []
        if match is None or not all(re.fullmatch(r"-?\d+|\?", e) for e in extents):
            notes = ['write --input-shapes "data:[1,3,224,224]"']
            raise RelayError(error("R0707", f"the shapes `{text[at:].strip()}` cannot be read", notes=notes))
        shapes[match["name"]] = [ANY if e == "?" or int(e) < 0 else int(e) for e in extents]
        at = match.end()
    return shapes


def load_model(
    path: str, model_format: str | None = None, shape_dict: Mapping[str, Sequence[Any]] | None = None, **kwargs: Any
) -> TVMCModel:
    """A network or a Relay text as a model. `shape_dict` gives shapes of inputs.

    Other parameters of a Relay text get random values where `shape_dict` names its inputs. Raises `RelayError`.
    """
    if model_format is not None and FORMATS.get(model_format, "it is none of tvmc's"):
        notes = [FORMATS.get(model_format) or f"formats: {', '.join(n for n, why in FORMATS.items() if not why)}"]
        raise RelayError(error("R0609", f"networks of the format {model_format} are not read", notes=notes))
    shapes = {name: tuple(extents) for name, extents in (shape_dict or {}).items()}
    program = read(path, options=Options(shapes=shapes), text_too=True)
    check(program)
    report(program.notes)
    params = {}
    if not program.network and shapes and "main" in program.module:
        params = random_params(0, [p for p in program.module["main"].params if p.name_hint not in shapes])
    return TVMCModel(program.module, params)


__all__ = ["FORMATS", "load_model", "parse_shapes"]
