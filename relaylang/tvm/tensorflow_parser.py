"""TVM's reader of TensorFlow's files: `relay.frontend.tensorflow_parser.TFParser`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.frontends.common.protobuf import parsed, parsed_text
from relaylang.frontends.contents import is_saved_model, is_text, main_file
from relaylang.frontends.tensorflow.schema import tensorflow
from relaylang.runtime.text import read_bytes


class SavedGraph:
    """The graph of a SavedModel, whose variables stay in its `folder`; `relay.frontend.from_tensorflow` reads both."""

    def __init__(self, graph: Any, folder: str) -> None:
        self.graph = graph
        self.folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.graph, name)


class TFParser:
    """The graph in a file (.pb, .pbtxt) or in the folder of a SavedModel. `outputs` are kept for the caller."""

    def __init__(self, model_dir: str, outputs: Sequence[str] | None = None) -> None:
        self._model_dir = model_dir
        self._outputs = list(outputs or [])

    def parse(self) -> Any:
        """The GraphDef; of a SavedModel with the place of its variables. Raises `RelayError`."""
        path = os.fspath(self._model_dir)
        if os.path.isdir(path) and os.path.isfile(os.path.join(path, "checkpoint")):
            raise RelayError(error("R0801", f"{path} is a checkpoint without a graph", notes=["save a SavedModel of the network"]))
        file = main_file(path)
        data = read_bytes(file)
        saved = is_saved_model(data)
        read = parsed_text if is_text(data) else parsed
        proto = read(tensorflow()["SavedModel" if saved else "GraphDef"], data, file, "the file")
        if not saved:
            return proto
        if not proto.meta_graphs:
            raise RelayError(error("R0802", f"{file}: the SavedModel has no graph"))
        return SavedGraph(proto.meta_graphs[0].graph_def, os.path.dirname(file) or ".")


__all__ = ["SavedGraph", "TFParser"]
