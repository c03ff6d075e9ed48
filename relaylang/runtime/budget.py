"""What reading one file may cost: nodes of its layers, bytes unpacked, folded and laid out, and steps of folding.

A small file can ask for everything: functions that call each other twice, constants that double, archives that swell. Every
reader of models, parameters and compiled programs takes what it makes from a budget first. A file's own size raises it.
"""

from __future__ import annotations

import os
import zipfile

from relaylang.diagnostics import RelayError, error

#: Nodes for every file, and more for each of its layers. Recurrent layers and bodies of loops are written out.
NODES, NODES_PER_LAYER = 1 << 16, 32
#: Bytes for every file, and more for each of its own bytes.
BYTES, BYTES_PER_BYTE = 1 << 28, 16
#: Steps of constant folding for every file, and more for each of its own bytes. A step takes a few nanoseconds.
WORK, WORK_PER_BYTE = 1 << 31, 256


class Exhausted(RelayError):
    """A file asks for more than its budget (R0016). A reader that goes on after other errors stops here."""


class Budget:
    """The budget of one file. `file` is its name in diagnostics, `size` its length in bytes.

    `nodes`, `bytes` and `work` are what every file may use, without what it gets for its own size. By default they are those of the
    environment variables `RELAY_BUDGET_NODES`, `RELAY_BUDGET_BYTES` and `RELAY_BUDGET_WORK`, or of this module.
    """

    __slots__ = ("_files", "bytes", "file", "nodes", "used_bytes", "used_nodes", "used_work", "work")

    def __init__(self, file: str, size: int = 0, nodes: int | None = None, bytes: int | None = None, work: int | None = None) -> None:
        self.file = file
        self.nodes = _setting("RELAY_BUDGET_NODES", NODES) if nodes is None else nodes
        self.bytes = _setting("RELAY_BUDGET_BYTES", BYTES) if bytes is None else bytes
        self.work = _setting("RELAY_BUDGET_WORK", WORK) if work is None else work
        self.used_nodes = self.used_bytes = self.used_work = 0
        self._files: set[str] = set()
        self.grant(size)

    def grant(self, size: int = 0, layers: int = 0) -> None:
        """Raise the budget for bytes and layers that the file has."""
        self.bytes += size * BYTES_PER_BYTE
        self.work += size * WORK_PER_BYTE
        self.nodes += layers * NODES_PER_LAYER

    def grant_file(self, path: str, size: int) -> None:
        """Raise the budget for a file beside the model, once."""
        if path not in self._files:
            self._files.add(path)
            self.grant(size)

    def take_nodes(self, count: int, what: str) -> None:
        """Use some nodes; `what` is who needs them. Raises `Exhausted`."""
        self.used_nodes += count
        if self.used_nodes > self.nodes:
            raise self._exhausted(what, self.used_nodes, self.nodes, "nodes")

    def take_bytes(self, count: int, what: str) -> None:
        """Use some bytes, before they are allocated; `what` is who needs them. Raises `Exhausted`."""
        self.used_bytes += count
        if self.used_bytes > self.bytes:
            raise self._exhausted(what, self.used_bytes, self.bytes, "bytes")

    def take_work(self, count: int, what: str) -> None:
        """Use some steps, before they are done; `what` is who needs them. Raises `Exhausted`."""
        self.used_work += count
        if self.used_work > self.work:
            raise self._exhausted(what, self.used_work, self.work, "work")

    def unpack(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
        """The contents of an archive's member, never more than it claims. Raises `Exhausted`, and what zipfile raises."""
        self.take_bytes(member.file_size, f"unpacking {member.filename[:60]!r}")
        with archive.open(member) as stream:
            return stream.read(member.file_size)  # with a length, zipfile unpacks no more; it still compares the checksum

    def _exhausted(self, what: str, wanted: int, allowed: int, kind: str) -> Exhausted:
        """The error: which budget, how much, and how to raise it."""
        unit = "steps" if kind == "work" else kind
        said = f"{self.file}: {what} needs {wanted:,} {unit} in all, and the budget of this file is {allowed:,}"
        enough = 1 << wanted.bit_length()
        notes = [f"if you trust the file, set RELAY_BUDGET_{kind.upper()}={enough}, or in Python Options({kind}={enough})"]
        return Exhausted(error("R0016", said, notes=notes))


def _setting(name: str, default: int) -> int:
    text = os.environ.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 18:
        raise RelayError(error("R0016", f"{name} must be a whole number, not {text[:40]!r}"))
    return int(text)


__all__ = ["BYTES", "NODES", "WORK", "Budget", "Exhausted"]
