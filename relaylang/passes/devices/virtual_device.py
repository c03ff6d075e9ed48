"""Virtual devices: the known part of a value's place, and the devices that a program is compiled for.

Source of the rules: TVM 0.16, `tvm/target/virtual_device.h`, `compilation_config.h`; element values of DLPack's DLDeviceType.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.passes.context import PassContext
from relaylang.syntax import metadata_nodes
from relaylang.syntax.metadata_nodes import MetaNode

#: Kinds of devices by name, with their numbers.
DEVICE_TYPES: dict[str, int] = {
    "cpu": 1,
    "cuda": 2,
    "cuda_host": 3,
    "opencl": 4,
    "vulkan": 7,
    "metal": 8,
    "vpi": 9,
    "rocm": 10,
    "rocm_host": 11,
    "ext_dev": 12,
    "cuda_managed": 13,
    "oneapi": 14,
    "webgpu": 15,
    "hexagon": 16,
}
_NAMES = {number: name for name, number in DEVICE_TYPES.items()}
#: Targets that have another name than the device for which they compile.
_DEVICE_OF = {
    **dict.fromkeys(
        (
            "llvm",
            "c",
            "ccompiler",
            "stackvm",
            "test",
            "hybrid",
            "composite",
            "ethos-n",
            "ethos-u",
            "cmsis-nn",
            "bnns",
            "dnnl",
            "arm_compute_lib",
        ),
        "cpu",
    ),
    **dict.fromkeys(("nvptx", "gpu", "tensorrt", "cutlass"), "cuda"),
    "cl": "opencl",
}
_WRITTEN = re.compile(r"([\w-]+)(?:[:(](\d+)\)?)?")


def device_type_of(name: str) -> int:
    """The number of a device's kind, by its name or by that of a target for it. Raises `RelayError` (R0529)."""
    number = DEVICE_TYPES.get(_DEVICE_OF.get(name, name))
    if number is None:
        near = did_you_mean(name, [*DEVICE_TYPES, *_DEVICE_OF])
        notes = [f"did you mean {near}?"] if near else [f"there are {', '.join(DEVICE_TYPES)}"]
        raise RelayError(error("R0529", f"there is no device {name}", notes=notes))
    return number


def target_node(target: Any) -> MetaNode:
    """A target as a metadata section has it: of a text such as "llvm -mcpu=skylake", or of such a node.

    Raises `RelayError` (R0529)."""
    if isinstance(target, MetaNode):
        return target
    try:
        words = shlex.split(str(target))
    except ValueError:
        words = []
    if not words:
        raise RelayError(error("R0529", f"{target!r} is no target"))
    options = {key.lstrip("-"): value or "1" for key, _, value in (w.partition("=") for w in words[1:])}
    number = device_type_of(words[0])
    return metadata_nodes.target_node(words[0], number, [_NAMES[number]], options)


def kind_of(target: MetaNode) -> str:
    """The name of a target's kind: "llvm"."""
    kind = (target.parts or {}).get("kind")
    if isinstance(kind, MetaNode):
        kind = (kind.parts or {}).get("name")
    return kind if isinstance(kind, str) else ""


def _same_target(a: MetaNode | None, b: MetaNode | None) -> bool:
    """Whether two targets are one. Their hosts do not count: a program has one host."""
    if a is None or b is None:
        return a is b
    ours, theirs = a.parts or {}, b.parts or {}
    return a is b or (kind_of(a) == kind_of(b) and (ours.get("attrs") or {}) == (theirs.get("attrs") or {}))


class VirtualDevice(MetaNode):
    """The place of a value: a kind of device, its number, the target that compiles for it, and its memory.

    Each may be unknown: -1, -1, None and "". `device` is "cuda", "cuda(1)", a number of `DEVICE_TYPES`, or an object
    that has `device_type` and `device_id`. Without it the target gives the kind. `target` is a text, or a node of a
    metadata section. It is a node of such a section itself, and a value of the attributes of `on_device` and
    `device_copy`. Raises `RelayError` (R0529).
    """

    __slots__ = ("device_type", "memory_scope", "target", "virtual_device_id")

    def __init__(self, device: Any = None, target: Any = None, memory_scope: str = "", virtual_device_id: int | None = None) -> None:
        self.target = None if target is None else target_node(target)
        self.memory_scope = memory_scope
        kind, number = -1, 0
        if isinstance(device, str):
            written = _WRITTEN.fullmatch(device.strip())
            kind = device_type_of(written[1] if written else device)
            number = int(written[2] or 0) if written else 0
        elif isinstance(device, int):
            kind = device
        elif device is not None:
            kind, number = int(device.device_type), int(device.device_id)
        elif self.target is not None:
            kind = device_type_of(kind_of(self.target))
        self.device_type = kind
        self.virtual_device_id = (number if kind >= 0 else -1) if virtual_device_id is None else virtual_device_id
        node = metadata_nodes.device_node(kind, self.virtual_device_id, self.target, memory_scope)
        super().__init__(node.type_key, node.attrs, None, node.parts)

    @staticmethod
    def of(value: Any) -> VirtualDevice:
        """An attribute's value as a device: a node of a metadata section, a name, or nothing. Raises `RelayError`."""
        if isinstance(value, VirtualDevice):
            return value
        if value is None:
            return UNKNOWN
        if isinstance(value, MetaNode) and value.type_key == "VirtualDevice":
            parts = value.parts or {}
            try:
                numbers = [int(value.attrs.get(name, "-1")) for name in ("device_type_int", "virtual_device_id")]
            except ValueError:
                raise RelayError(error("R0529", "a VirtualDevice of the metadata section has no numbers")) from None
            target, scope = parts.get("target"), parts.get("memory_scope")
            return VirtualDevice(
                numbers[0], target if isinstance(target, MetaNode) else None, scope if isinstance(scope, str) else "", numbers[1]
            )
        if isinstance(value, str) or hasattr(value, "device_type"):
            return VirtualDevice(value)
        raise RelayError(error("R0529", f"{str(value)[:60]!r} is no device"))

    @property
    def known(self) -> bool:
        """Whether anything is known of it."""
        return self.device_type >= 0 or self.virtual_device_id >= 0 or self.target is not None or bool(self.memory_scope)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VirtualDevice):
            return NotImplemented if not isinstance(other, MetaNode) else MetaNode.__eq__(self, other)
        return self._key() == other._key() and _same_target(self.target, other.target)

    def _key(self) -> tuple[int, int, str]:
        return self.device_type, self.virtual_device_id, self.memory_scope

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        if not self.known:
            return "any device"
        name = _NAMES.get(self.device_type, f"device type {self.device_type}") if self.device_type >= 0 else "any device"
        number = f"({self.virtual_device_id})" if self.virtual_device_id > 0 else ""
        return f"{name}{number}" + (f" in memory {self.memory_scope}" if self.memory_scope else "")

    def __repr__(self) -> str:
        return f"VirtualDevice({self})"

    def join(self, other: VirtualDevice) -> VirtualDevice | None:
        """What both say; None where they contradict."""
        if self is other or not other.known:
            return self
        if not self.known:
            return other
        apart = (
            (self.device_type >= 0 <= other.device_type and self.device_type != other.device_type)
            or (self.virtual_device_id >= 0 <= other.virtual_device_id and self.virtual_device_id != other.virtual_device_id)
            or (self.target is not None and other.target is not None and not _same_target(self.target, other.target))
            or (self.memory_scope and other.memory_scope and self.memory_scope != other.memory_scope)
        )
        return None if apart else self.filled(other)

    def filled(self, other: VirtualDevice) -> VirtualDevice:
        """This device, with its unknown parts taken from `other`. Its target is taken where it compiles for the device."""
        is_full = self.device_type >= 0 and self.virtual_device_id >= 0 and self.target is not None
        if is_full and (self.memory_scope or not other.memory_scope):
            return self
        kind = self.device_type if self.device_type >= 0 else other.device_type
        target = self.target
        if target is None and other.target is not None and (kind == other.device_type or other.device_type < 0):
            target = other.target
        number = self.virtual_device_id if self.virtual_device_id >= 0 else other.virtual_device_id
        return VirtualDevice(kind if kind >= 0 else None, target, self.memory_scope or other.memory_scope, number)


#: A device of which nothing is known.
UNKNOWN = VirtualDevice()


@dataclass(frozen=True)
class CompilationConfig:
    """The targets that a program is compiled for. The device `host` runs the program, and `default` runs operators that
    nothing places.
    """

    targets: tuple[MetaNode, ...]
    host: VirtualDevice
    default: VirtualDevice
    _known: dict[VirtualDevice, VirtualDevice] = field(default_factory=dict, repr=False, compare=False)

    def canonical(self, device: VirtualDevice) -> VirtualDevice:
        """The device with its target, which is one of the configuration's; equal ones are one object.

        Raises `RelayError` (R0529) where there is no target for it."""
        canonical_device = self._known.get(device)
        if canonical_device is None:
            full = _with_target(self.targets, device)
            canonical_device = self._known[device] = self._known.setdefault(full, full)
        return canonical_device


def _with_target(targets: tuple[MetaNode, ...], device: VirtualDevice) -> VirtualDevice:
    target = device.target
    if target is not None:
        target = next((t for t in targets if _same_target(t, target)), target)
    elif device.device_type >= 0:
        target = next((t for t in targets if device_type_of(kind_of(t)) == device.device_type), None)
        if target is None:
            there = ", ".join(kind_of(t) for t in targets)
            raise RelayError(error("R0529", f"there is no target for {device}", notes=[f"the targets are {there}"]))
    if target is device.target:
        return device
    kind = device.device_type if device.device_type >= 0 else None
    return VirtualDevice(kind, target, device.memory_scope, device.virtual_device_id)


def make_compilation_config(ctx: PassContext, targets: Any, target_host: Any = None) -> CompilationConfig:
    """The configuration for targets: one, a list, or a map from devices to targets; each as `VirtualDevice` takes it.

    The host is `target_host`, or that of the first target that has one. Else it is the first target for a CPU, else
    "llvm". Operators run on the context's `relay.fallback_device_type`, else on the one kind of device that there is,
    else on the CPU. Raises `RelayError` (R0529).
    """
    listed: Iterable[Any] = targets.values() if isinstance(targets, Mapping) else targets
    if isinstance(targets, (str, MetaNode)) or not isinstance(listed, Iterable):
        listed = [targets]
    nodes = tuple([target_node(t) for t in listed])
    if not nodes:
        raise RelayError(error("R0529", "at least one target is needed"))
    kinds = [kind_of(t) for t in nodes]
    twice = next((k for i, k in enumerate(kinds) if k in kinds[:i]), None)
    if twice is not None:
        raise RelayError(error("R0529", f"the target {twice} is given twice"))
    types = [device_type_of(k) for k in kinds]
    hosts = [target_host, *[(t.parts or {}).get("host") for t in nodes], *[t for t, n in zip(nodes, types, strict=True) if n == 1]]
    host = VirtualDevice(target=next((h for h in hosts if h is not None), "llvm"))
    fallback = ctx.config.get("relay.fallback_device_type")
    if fallback is None:
        fallback = types[0] if len(set(types)) == 1 else DEVICE_TYPES["cpu"]
    return CompilationConfig(nodes, host, _with_target(nodes, VirtualDevice(int(fallback))))
