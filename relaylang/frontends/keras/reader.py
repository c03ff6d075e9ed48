"""Reads `.h5` and `.keras` files: the configuration of the network, and its weights by h5py."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.frontends.common.files import damaged, need_package
from relaylang.frontends.contents import zip_archive
from relaylang.frontends.keras.spec import Path, Spec, model_spec
from relaylang.frontends.keras.variables import parts, slots
from relaylang.runtime.budget import Budget
from relaylang.runtime.params import UNZIPPING

#: How an HDF5 file begins.
HDF5 = b"\x89HDF\r\n\x1a\n"
#: The members of a `.keras` archive.
CONFIG, WEIGHTS, METADATA = "config.json", "model.weights.h5", "metadata.json"
#: An attribute that is longer than HDF5 allows stands in pieces, of which there are at most so many.
_PIECES = 1 << 16

#: An array that is read when a layer asks for it.
Array = Callable[[], np.ndarray]


@dataclass(frozen=True)
class Model:
    """A network: its layer (a model), and the arrays of each layer by its path, in the order of `get_weights`."""

    spec: Spec
    weights: Callable[[Path, Spec], list[Array]]


@contextmanager
def _reading(file: str, what: str) -> Iterator[None]:
    """Turns what h5py raises for a damaged file into a diagnostic. Its classes of errors are many."""
    try:
        yield
    except (RelayError, MemoryError):
        raise
    except Exception as wrong:
        said = str(wrong).splitlines()[0][:100] if str(wrong) else type(wrong).__name__
        raise damaged(file, f"{what} cannot be read", f"h5py: {said}") from None


#: A heap of texts begins so, in its only version.
_HEAP = b"GCOL\1\0\0\0"


def _check_heaps(data: bytes, file: str) -> None:
    """Raise `RelayError` (R0802) where a heap of texts has an object that leaves it: HDF5's library walks it without an end."""
    at = data.find(_HEAP)
    while at >= 0:
        end = at + int.from_bytes(data[at + 8 : at + 16], "little")
        place = at + 16
        while place + 16 <= end <= len(data):
            number, size = int.from_bytes(data[place : place + 2], "little"), int.from_bytes(data[place + 8 : place + 16], "little")
            if number == 0 and size != 0 and size == end - place:
                break
            place += 16 + (size + 7) // 8 * 8
            if number == 0 or place > end:
                raise damaged(file, "a heap of the HDF5 file is damaged")
        if not at + 16 < end <= len(data):
            raise damaged(file, "a heap of the HDF5 file is damaged")
        at = data.find(_HEAP, at + 1)


class Store:
    """An HDF5 file. Only what lies in the file itself is read: links to other files and outer storages are refused."""

    def __init__(self, data: bytes, file: str, budget: Budget) -> None:
        _check_heaps(data, file)
        self.h5py = need_package("h5py", "keras", "importing keras")
        self.file = file
        self.budget = budget
        with _reading(file, "the HDF5 file"):
            self.root = self.h5py.File(io.BytesIO(data), "r")

    def member(self, group: Any, name: str) -> Any:
        """A group or data set below a group, by a path; None where there is none."""
        for part in name.split("/"):
            if not part:
                continue
            if not isinstance(group, self.h5py.Group) or part not in group:
                return None
            link = group.get(part, getlink=True)
            if not isinstance(link, self.h5py.HardLink):
                raise damaged(self.file, f"{part[:60]!r} is a link to another place")
            group = group[part]
        return group

    def group(self, group: Any, name: str) -> Any:
        """A group below a group; None where there is none."""
        with _reading(self.file, f"the group {name[:60]!r}"):
            member = self.member(group, name)
            return member if isinstance(member, self.h5py.Group) else None

    def array(self, group: Any, name: str) -> Array:
        """The array of a data set, which is read when somebody calls the result."""

        def read() -> np.ndarray:
            with _reading(self.file, f"the weight {name[:60]!r}"):
                dataset = self.member(group, name)
                if not isinstance(dataset, self.h5py.Dataset):
                    raise damaged(self.file, f"the weight {name[:60]!r} is missing")
                kind = dataset.dtype
                if kind.kind not in "biuf" and kind.names is None and kind.kind != "V":
                    raise damaged(self.file, f"the weight {name[:60]!r} has no numbers")
                if dataset.is_virtual or dataset.external:
                    raise damaged(self.file, f"the weight {name[:60]!r} lies in another file")
                self.budget.take_bytes(int(dataset.size or 0) * kind.itemsize, "reading its weights")
                return np.asarray(dataset[()])

        return read

    def text(self, holder: Any, name: str) -> str | None:
        """An attribute that is a text; None where there is none."""
        with _reading(self.file, f"the attribute {name}"):
            value = holder.attrs.get(name)
            if value is None:
                return None
            return value.decode("utf-8") if isinstance(value, bytes) else str(value)

    def names(self, holder: Any, name: str) -> list[str]:
        """An attribute that is a list of names, in one piece or in several."""
        with _reading(self.file, f"the attribute {name}"):
            if name in holder.attrs:
                return _texts(holder.attrs[name])
            names: list[str] = []
            for piece in range(_PIECES):
                if f"{name}{piece}" not in holder.attrs:
                    break
                names += _texts(holder.attrs[f"{name}{piece}"])
            return names


def _texts(values: Any) -> list[str]:
    return [v.decode("utf-8") if isinstance(v, bytes) else str(v) for v in np.asarray(values).reshape(-1).tolist()]


def parsed(text: str | bytes, file: str, what: str) -> Any:
    """A value of JSON. Raises `RelayError` (R0802)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise damaged(file, f"{what} is no JSON text") from None


def read_model(data: bytes, file: str, budget: Budget) -> Model:
    """The network of a file's bytes. Raises `RelayError`."""
    return _whole(data, file, budget) if data[: len(HDF5)] == HDF5 else _archive(data, file, budget)


def _whole(data: bytes, file: str, budget: Budget) -> Model:
    """A whole model in one HDF5 file."""
    store = Store(data, file, budget)
    text = store.text(store.root, "model_config")
    group = store.group(store.root, "model_weights")
    if text is None:
        alone = group is None and not store.names(store.root, "layer_names")
        what = "it has no network of Keras" if alone else "it has weights alone, and no network"
        raise damaged(file, what, '`model.save("net.keras")` writes both')
    version = store.text(store.root, "keras_version") or "1"
    spec = model_spec(parsed(text, file, "its model_config"), version, file)
    weights: dict[Path, list[Array]] = {}
    if group is None:
        return Model(spec, lambda path, of: weights.get(path, []))
    for path, layer in spec.layers():
        own = store.group(group, layer.name)
        names = store.names(own, "weight_names") if own is not None else []
        give(weights, path, layer, [store.array(own, n) for n in names], file)
    return Model(spec, lambda path, of: weights.get(path, []))


def give(found: dict[Path, list[Array]], path: Path, layer: Spec, arrays: list[Array], file: str) -> None:
    """Hand the arrays of a layer of the outermost model to the layers that it is made of."""
    if not layer.nested:
        found[path] = arrays
        return
    places = slots(layer, path)
    if len(places) != len(arrays):
        raise damaged(file, f"the layer {layer.name[:60]!r} has {len(arrays)} weights, and its layers take {len(places)}")
    for place, array in zip(places, arrays):
        found.setdefault(place, []).append(array)


def _archive(data: bytes, file: str, budget: Budget) -> Model:
    """An archive of Keras 3: the configuration as JSON, and the weights as an HDF5 file."""
    archive = zip_archive(data)
    if archive is None:
        raise damaged(file, "the archive is cut short or damaged")
    try:
        with archive:
            members = {m.filename: m for m in archive.infolist()}
            for name in (CONFIG, WEIGHTS):
                if name not in members:
                    raise damaged(file, f"the archive has no {name}")
            config = budget.unpack(archive, members[CONFIG])
            inner = budget.unpack(archive, members[WEIGHTS])
            about = budget.unpack(archive, members[METADATA]) if METADATA in members else b"{}"
    except (*UNZIPPING, ValueError):
        raise damaged(file, "the archive is cut short or damaged") from None
    metadata = parsed(about, file, METADATA)
    version = metadata.get("keras_version") if isinstance(metadata, dict) else None
    spec = model_spec(parsed(config, file, CONFIG), version if isinstance(version, str) else "3", file)
    store = Store(inner, file, budget)
    old = store.group(store.root, "layers") is None  # The first versions of the format had another name for it.

    def weights(path: Path, of: Spec) -> list[Array]:
        steps = ["_layer_checkpoint_dependencies" if old and p == "layers" else p for p in path]
        own = store.group(store.root, "/".join(steps))
        arrays: list[Array] = []
        for part in parts(of):
            inside = own
            for step in part:
                if inside is not None:
                    inside = store.group(inside, step) or store.group(inside, f"_{step}")
            values = store.group(inside, "vars") if inside is not None else None
            count = 0
            while values is not None and count < _PIECES and str(count) in values:
                arrays.append(store.array(values, str(count)))
                count += 1
        return arrays

    return Model(spec, weights)


__all__ = ["CONFIG", "HDF5", "Array", "Model", "give", "parsed", "read_model"]
