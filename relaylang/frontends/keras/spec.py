"""A layer as the configuration states it, with the forms of Keras 1, 2 and 3 told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from relaylang.frontends.common.files import damaged
from relaylang.frontends.keras.upgrade import upgraded
from relaylang.ir import ANY

#: The place of a layer's weights, in the words of Keras 3: ("layers", "dense_1").
Path = tuple[str, ...]
#: Operations with an element type of their own, as all layers have.
_TYPED = frozenset(("Cast", "Cumprod", "Cumsum", "FullLike", "MultiHot", "OneHot", "OnesLike", "Prod", "SaturateCast", "ZerosLike"))
#: Models contain models this deep.
DEEPEST = 32
#: The extent of axis 0 that a file leaves open: one for all inputs of a model.
BATCH = "batch"
_FUNCTIONAL = frozenset(("Functional", "Model", "Network"))


@dataclass
class Spec:
    """A layer: the name of its class, its own name, its configuration, and the calls of it in a functional model.

    `major` is the version of Keras that wrote the file. `operation` says that it is no layer but an operation.
    """

    kind: str
    name: str
    config: dict[str, Any]
    inbound: list[Any] = field(default_factory=list)
    major: int = 3
    operation: bool = False
    file: str = ""
    depth: int = 0
    #: The class's name as the file has it.
    written: str = ""

    @property
    def is_sequential(self) -> bool:
        return self.kind == "Sequential" or ("layers" in self.config and "input_layers" not in self.config)

    @property
    def is_model(self) -> bool:
        """Whether it is made of layers."""
        return self.kind == "Sequential" or self.kind in _FUNCTIONAL or isinstance(self.config.get("layers"), list)

    @property
    def nested(self) -> bool:
        """Whether it is made of layers whose weights stand in one list."""
        return self.is_model or any(True for _ in self.children())

    @cached_property
    def members(self) -> list[Spec]:
        """The layers of a model in the order of the file."""
        listed = self.config.get("layers")
        if not isinstance(listed, list):
            raise damaged(self.file, f"the model {self.name[:60]!r} has no list of layers")
        return [self.inner(entry) for entry in listed]

    def inner(self, entry: Any) -> Spec:
        """A layer that the configuration of this one holds."""
        if self.depth >= DEEPEST:
            raise damaged(self.file, f"its models contain models more than {DEEPEST} deep")
        return layer_spec(entry, self.major, self.file, self.depth + 1)

    def layers(self, path: Path = ()) -> Iterator[tuple[Path, Spec]]:
        """The layers of a model, each with its place among the weights."""
        counts: dict[str, int] = {}
        skipped = self.is_sequential
        for member in self.members:
            if member.operation or (skipped and member.kind == "InputLayer"):
                continue
            name = snake(member.written or member.kind)
            count = counts.get(name, 0)
            counts[name] = count + 1
            yield (*path, "layers", f"{name}_{count}" if count else name), member

    def children(self) -> Iterator[tuple[str, Spec]]:
        """The layers that a wrapper holds, each with the name of the attribute that Keras keeps it in."""
        if self.kind == "Bidirectional":
            inner = self.inner(self.config.get("layer"))
            yield "forward_layer", inner
            back = self.config.get("backward_layer")
            turned = {**inner.config, "go_backwards": not inner.config.get("go_backwards", False)}
            if isinstance(back, Mapping):
                yield "backward_layer", self.inner(back)
            else:
                yield "backward_layer", Spec(inner.kind, inner.name, turned, [], self.major, False, self.file, inner.depth)
        elif self.kind in ("TimeDistributed", "SpectralNormalization", "Wrapper"):
            yield "layer", self.inner(self.config.get("layer"))
        elif self.kind == "RNN":
            yield "cell", self.inner(self.config.get("cell"))
        elif self.kind == "StackedRNNCells":
            cells = self.config.get("cells")
            counts: dict[str, int] = {}
            for cell in cells if isinstance(cells, list) else []:
                inner = self.inner(cell)
                name = snake(inner.written or inner.kind)
                count = counts.get(name, 0)
                counts[name] = count + 1
                yield f"cells/{name}_{count}" if count else f"cells/{name}", inner


def input_shape(entry: Spec) -> tuple[Any, ...] | None:
    """The extents that a layer states for its operand, `?` for unknown ones; None where it states none."""
    for key in ("batch_shape", "batch_input_shape"):
        shape = entry.config.get(key)
        if isinstance(shape, Mapping):
            shape = shape.get("items", shape.get("config"))
        if isinstance(shape, (list, tuple)):
            return tuple([d if isinstance(d, int) and not isinstance(d, bool) and d >= 0 else ANY for d in shape])
    own = entry.config.get("input_shape")
    if isinstance(own, (list, tuple)):
        return (ANY, *[d if isinstance(d, int) and not isinstance(d, bool) and d >= 0 else ANY for d in own])
    return None


def snake(name: str) -> str:
    """A class's name in small letters, as Keras writes it: `Conv2DTranspose` is `conv2d_transpose`."""
    plain = re.sub(r"\W+", "", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", plain)).lower()


def layer_spec(entry: Any, major: int, file: str, depth: int = 0) -> Spec:
    """The layer of an entry of a configuration. Raises `RelayError` (R0802)."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("class_name"), str):
        raise damaged(file, "an entry of its layers has no class_name")
    config = entry.get("config")
    kind = entry["class_name"].rpartition(">")[2]
    if isinstance(config, list):  # Sequential models of Keras 1 and of early versions of Keras 2.
        config = {"layers": config}
    if not isinstance(config, Mapping):
        raise damaged(file, f"the layer {kind[:60]!r} has no config")
    name = entry.get("name", config.get("name"))
    module = entry.get("module")
    inbound = entry.get("inbound_nodes")
    written = {"GroupQueryAttention": "GroupedQueryAttention"}.get(kind, kind)
    kind, upgraded_config = upgraded(kind, dict(config), major)
    operation = isinstance(module, str) and ".ops" in module
    if major >= 3 and not isinstance(module, str):  # `.h5` files leave the module out.
        known = "trainable" in config or "layers" in config or "batch_shape" in config
        operation = not known and ("dtype" not in config or kind in _TYPED)
    calls = inbound if isinstance(inbound, list) else []
    return Spec(kind, name if isinstance(name, str) else snake(kind), upgraded_config, calls, major, operation, file, depth, written)


def model_spec(entry: Any, version: str, file: str) -> Spec:
    """The model of a file that a version of Keras wrote. Raises `RelayError` (R0802)."""
    stated = version.partition(".")[0]
    major = int(stated) if stated.isdecimal() and len(stated) < 10 else 3
    spec = layer_spec(entry, major, file)
    if not spec.is_model:
        raise damaged(file, f"its model is a {spec.kind[:60]}, and not Sequential or functional")
    return spec


__all__ = ["BATCH", "DEEPEST", "Path", "Spec", "input_shape", "layer_spec", "model_spec", "snake"]
