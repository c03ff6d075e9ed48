"""Targets, as in `tvm.target`: texts such as "llvm -mcpu=skylake" whose parts have names."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaylang.partition.targets import target_names
from relaylang.passes.devices.virtual_device import (
    DEVICE_TYPES,
    CompilationConfig,
    VirtualDevice,
    device_type_of,
    make_compilation_config,
)

#: The number of a device's kind -> what targets for it have as their key.
_KEYS = {number: "gpu" if name in ("cuda", "opencl", "vulkan", "metal", "rocm") else name for name, number in DEVICE_TYPES.items()}

#: Kinds of targets that scripts add, with the defaults of their attributes.
ADDED: dict[str, dict[str, Any]] = {}

#: Kinds of targets whose kernels take so many arguments at most, as in TVM.
_MOST_ARGUMENTS = {"opencl": 128, "metal": 31}


class TargetKind:
    """The first word of a target, as its `name`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TargetKind) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def _text_of(target: Mapping[str, Any]) -> str:
    """A target that is given by its attributes, as text."""
    words = [str(target["kind"])]
    for key, value in target.items():
        if key not in ("kind", "host", "tag"):
            words.append(f"-{key}={','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")
    return " ".join(words)


class Target(str):
    """A target: the text, with its parts as attributes. A `with` block makes it the current one.

    `target` is a text such as "llvm -mcpu=skylake", a mapping with a "kind", or another target. `host` is a target, too.
    """

    host: Target | None
    attrs: dict[str, Any]
    kind: TargetKind
    keys: list[str]
    _stack: list[Target] = []

    def __new__(cls, target: Any, host: Any = None) -> Target:
        if isinstance(target, str) and target.lstrip().startswith("{"):
            target = json.loads(target)
        if isinstance(target, Mapping):
            if host is None and target.get("host") is not None:
                host = target["host"]
            target = _text_of(target)
        instance = super().__new__(cls, target)
        words = shlex.split(str(target)) or [""]
        instance.kind = TargetKind(words[0])
        instance.attrs = dict(ADDED.get(words[0], {}))
        for word in words[1:]:
            key, _, value = word.lstrip("-").partition("=")
            if words[0] in ADDED and key not in (*ADDED[words[0]], "keys", "device", "model"):
                raise ValueError(f"the target {words[0]} has no attribute {key}; it has {', '.join(ADDED[words[0]]) or 'none'}")
            instance.attrs[key] = _option(key, value)
        keys = instance.attrs.pop("keys", None)
        if not keys:
            keys = [_KEYS[device_type_of("ext_dev" if words[0] in ADDED else words[0]) if words[0] else 1]]
            if keys == ["gpu"] and words[0] != "gpu":
                keys = [words[0], "gpu"]
        instance.keys = list(keys)
        if "device" in instance.attrs and instance.attrs["device"] not in instance.keys:
            instance.keys.insert(0, instance.attrs["device"])
        instance.host = None if host is None else host if isinstance(host, Target) else Target(host)
        return instance

    @property
    def libs(self) -> list[str]:
        """The libraries that the target may call."""
        return list(self.attrs.get("libs", []))

    @property
    def mcpu(self) -> str:
        """The processor, or ""."""
        return str(self.attrs.get("mcpu", ""))

    @property
    def device_name(self) -> str:
        """What `-device=` says, or ""."""
        return str(self.attrs.get("device", ""))

    @property
    def max_num_threads(self) -> int:
        """The threads of a block, for GPUs; 1 for others."""
        return int(self.attrs.get("max_num_threads", 256 if "gpu" in self.keys else 1))

    @property
    def max_function_args(self) -> int:
        """The most arguments of a kernel; 0 for no limit."""
        return int(self.attrs.get("max_function_args", _MOST_ARGUMENTS.get(self.kind.name, 0)))

    def get_target_device_type(self) -> int:
        """The number of the kind of devices for which it compiles. Raises `RelayError`."""
        return device_type_of("ext_dev" if self.kind.name in ADDED else self.kind.name)

    def export(self) -> dict[str, Any]:
        """The parts in a mapping, which `Target` takes again."""
        return {"kind": self.kind.name, "tag": "", "keys": list(self.keys), **self.attrs}

    def with_host(self, host: Any) -> Target:
        """The same target with a host."""
        return Target(str(self), host)

    def __enter__(self) -> Target:
        Target._stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        Target._stack.pop()

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost `with` block. Raises `ValueError` where there is none, but for `allow_none`."""
        if Target._stack:
            return Target._stack[-1]
        if allow_none:
            return None
        raise ValueError("no target is current: with Target(...):")

    @staticmethod
    def list_kinds() -> list[str]:
        """The kinds that a target can name: the devices, `c`, `llvm`, and the accelerators."""
        return sorted({"c", "llvm", *DEVICE_TYPES, *target_names(), *ADDED})

    @staticmethod
    def canon_target_and_host(target: Any, target_host: Any = None) -> tuple[Any, Any]:
        """A target and its host, as targets."""
        if target is None:
            return None, None
        canonical = target if isinstance(target, Target) else Target(target, target_host)
        return canonical, canonical.host


def _option(key: str, value: str) -> Any:
    """The value of `-key=value`: a list, a number, a text, or True where there is none."""
    if key in ("keys", "libs", "mattr"):
        return value.split(",")
    return int(value) if value.isdigit() else value or True


def create(target: Any) -> Target:
    """A target of a text or a mapping."""
    return Target(target)


def _made(text: str, options: Sequence[str] | str | None) -> Target:
    texts = [options] if isinstance(options, str) else list(options or ())
    return Target(" ".join([text, *texts]))


def arm_cpu(model: str = "unknown", options: Sequence[str] | str | None = None) -> Target:
    """A target for an Arm CPU."""
    return _made(f"llvm -keys=arm_cpu,cpu -device=arm_cpu -model={model}", options)


def cuda(model: str = "unknown", arch: str | None = None, options: Sequence[str] | str | None = None) -> Target:
    """A target for CUDA: it can be named, and is not compiled for."""
    return _made(f"cuda -model={model}" + (f" -arch={arch}" if arch else ""), options)


def _named(text: str, default: str) -> Callable[..., Target]:
    def make(model: str = default, options: Sequence[str] | str | None = None) -> Target:
        return _made(f"{text} -model={model}", options)

    make.__doc__ = f"A target `{text}`: it can be named."
    return make


rocm = _named("rocm", "unknown")
mali = _named("opencl -device=mali", "unknown")
bifrost = _named("opencl -device=bifrost", "unknown")
adreno = _named("opencl -device=adreno", "unknown")
intel_graphics = _named("opencl -device=intel_graphics -thread_warp_size=16", "unknown")
vta = _named("ext_dev -keys=vta,cpu -device=vta", "unknown")
#: A microcontroller: C for a `model`.
micro = _named("c -keys=cpu", "unknown")


__all__ = [
    "CompilationConfig",
    "Target",
    "TargetKind",
    "VirtualDevice",
    "adreno",
    "arm_cpu",
    "bifrost",
    "create",
    "cuda",
    "intel_graphics",
    "make_compilation_config",
    "mali",
    "micro",
    "rocm",
    "vta",
]
