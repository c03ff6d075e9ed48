"""Writes the metadata section of a text: the JSON that TVM reads, with TVM's own bytes where possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

from relaylang.diagnostics import RelayError, error
from relaylang.syntax.metadata import MODULE_KEY
from relaylang.syntax.metadata_nodes import MetaNode
from relaylang.syntax.node_writer import NodeWriter


class _Writer(NodeWriter):
    """A section's nodes."""

    def adopt(self, found: Sequence[MetaNode]) -> None:
        """Begin with the nodes that unknown types may refer to, so that the numbers in them keep their meaning."""
        documents = {id(node.document): node.document for node in found if node.document is not None}
        if len(documents) > 1:
            title = "nodes of two metadata sections with unknown types cannot be written into one"
            raise RelayError(error("R0011", title))
        for document in documents.values():
            wanted = set().union(*(document.mentioned(node.attrs) for node in found if node.document is not None))
            if not wanted:
                return
            none = {"type_key": ""}
            self.nodes = [document.nodes[n] if n in wanted else none for n in range(max(wanted) + 1)]
            kept = [n.get("attrs", {}).get("data", "") for n in self.nodes if n.get("type_key") == "relay.Constant"]
            blobs = {int(n) for n in kept if str(n).isdecimal()} & set(range(len(document.blobs)))
            self.blobs = [document.blobs[n] if n in blobs else "" for n in range(max(blobs, default=-1) + 1)]


def _unknown(values: AnyValue) -> list[MetaNode]:
    """The nodes of unknown types among values, lists and maps."""
    nodes = []
    stack = [values]
    while stack:
        value = stack.pop()
        if isinstance(value, MetaNode):
            if value.parts is None:
                nodes.append(value)
            else:
                stack.extend(value.parts.values())
        elif isinstance(value, (list, tuple)):
            stack.extend(value)
        elif isinstance(value, Mapping):
            stack.extend(value.values())
    return nodes


def save_metadata(meta: Mapping[str, list[AnyValue]], typed: bool = False) -> str:
    """The JSON of a metadata section with these values by type key, which TVM and `load_metadata` read.

    Under `IRModule` stand maps of module attributes. `typed` writes the constants' checked types, as TVM does.
    Raises `RelayError` (R0011) for a value that has no form in it.
    """
    writer = _Writer(typed)
    writer.adopt(_unknown(list(meta.values())))
    values = dict(meta)
    if MODULE_KEY in values:
        values[MODULE_KEY] = [MetaNode("DictAttrs", {}, None, {"__dict__": attrs}) for attrs in values[MODULE_KEY]]
    return writer.document(writer.number(values))
