"""What a caller gives as a symbol and as its weights: files, texts, and objects of MXNet, which tell their own contents."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.inputs import no_model
from relaylang.frontends.mxnet.params import plain_name, read_params
from relaylang.frontends.mxnet.reader import Symbol
from relaylang.frontends.mxnet.table import own_name
from relaylang.frontends.mxnet.weights import is_weight
from relaylang.frontends.options import Options
from relaylang.runtime.budget import Budget
from relaylang.runtime.params import read_view
from relaylang.runtime.text import read_bytes

_WANTED = "the importer takes a Symbol or HybridBlock of MXNet, a symbol's JSON, or the path of its file"


@dataclass
class Source:
    """A symbol's JSON, the name and path of its file ("" for none), and the weights that came with it (None for none)."""

    text: bytes | str
    name: str = ""
    path: str = ""
    weights: dict[str, np.ndarray] | None = field(default=None)


def symbol_text(model: Any, file: str = "", names: tuple[str, ...] = ("data",)) -> Source:
    """The symbol that a caller gives. Raises `RelayError`."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return Source(bytes(model), file, file)
    if isinstance(model, str) and model.lstrip().startswith("{"):
        return Source(model, file)
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        return Source(read_bytes(path), file or path, path)
    if hasattr(model, "tojson") and not isinstance(model, type):
        return Source(model.tojson(), file)
    if hasattr(model, "collect_params") and not isinstance(model, type):
        return _of_block(model, file, names)
    raise RelayError(no_model(model, "MXNet symbol", _WANTED))


def _of_block(block: Any, file: str, names: tuple[str, ...]) -> Source:
    """The symbol that a block makes of variables, by MXNet's own functions, and the values of its parameters."""
    mxnet = sys.modules.get(type(block).__module__.partition(".")[0])
    home = mxnet if hasattr(mxnet, "sym") else sys.modules.get("mxnet")
    if home is None:
        raise RelayError(no_model(block, "MXNet symbol", _WANTED))
    outputs = block(*[home.sym.var(name) for name in names])
    symbol = home.sym.Group(list(outputs)) if isinstance(outputs, (list, tuple)) else outputs
    weights = {name: array_of(name, parameter.data()) for name, parameter in block.collect_params().items()}
    return Source(symbol.tojson(), file, weights=weights)


def array_of(name: str, value: Any) -> np.ndarray:
    """The array of a weight: numpy's, MXNet's (`asnumpy`) or TVM's (`numpy`). Raises `RelayError`."""
    for method in ("asnumpy", "numpy"):
        if hasattr(value, method):
            value = getattr(value, method)()
            break
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        raise RelayError(error("R0804", f"the value of the weight {name} is no array of numbers"))
    return array


def companion(source: Source, params: Any, options: Options, symbol: Symbol, budget: Budget) -> tuple[Mapping[str, np.ndarray], bool]:
    """The weights of a symbol by name, and whether all must be among them. Raises `RelayError`."""
    if isinstance(params, Mapping):
        return {plain_name(name): array_of(name, value) for name, value in params.items()}, False
    if params is not None and not isinstance(params, (str, os.PathLike)):
        raise RelayError(error("R0804", f"the weights are {repr(params)[:60]}; they are a mapping of names to arrays, or a path"))
    if params is None and source.weights is not None:
        return source.weights, True
    path = os.fspath(params) if params is not None else options.weights
    if not path and (not source.path or not (options.folder or os.path.exists(source.path))):
        return {}, False
    wanted = _weights(symbol, options)
    if not path:
        params_path = beside(source.path)
        if params_path is None:
            if not wanted:
                return {}, False
            stem = prefix(source.path)
            notes = [f"MXNet writes them as {stem}-0000.params, with the number of the epoch", "--weights names another file"]
            said = f"{len(wanted)} of its inputs are weights, and no parameter file {stem}-*.params is beside it"
            raise damaged(source.path, said, *notes)
        path = params_path
    data = read_view(path)
    budget.grant_file(path, len(data))
    return read_params(data, path, budget), True


def _weights(symbol: Symbol, options: Options) -> set[str]:
    """The variables that are weights, for which the caller gives neither shape nor value."""
    nodes = symbol.nodes
    names = {
        nodes[source].name
        for node in nodes
        for place, (source, _) in enumerate(node.inputs)
        if nodes[source].op == "null" and is_weight(own_name(node.op), place)
    }
    return names - set(options.shapes) - set(options.values)


def prefix(path: str) -> str:
    """The name that a symbol's file and its parameter files have in common."""
    name = os.path.basename(path)
    return name.removesuffix(".json").removesuffix("-symbol")


def beside(path: str) -> str | None:
    """The parameter file beside a symbol's file: of the last epoch, or of the symbol's own name."""
    folder, stem = os.path.dirname(path), prefix(path)
    form = re.compile(re.escape(stem) + r"-(\d+)\.params")
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return None
    epochs = sorted((int(match[1]), name) for name in names if (match := form.fullmatch(name)))
    chosen = epochs[-1][1] if epochs else f"{stem}.params" if f"{stem}.params" in names else None
    return os.path.join(folder, chosen) if chosen is not None else None


__all__ = ["Source", "array_of", "beside", "companion", "prefix", "symbol_text"]
