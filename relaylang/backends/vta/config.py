"""A configuration of VTA: the widths of its numbers, the shape of its GEMM unit, and the sizes of its memories.

The names and units are those of `vta_config.json`: each value is a power of two, given by its logarithm. Sizes of memories
are in bytes. A target string has the same values as options (`-block-in=16 -log-inp-buff=15`), and `-config=FILE` names a
`vta_config.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.artifact import read_file
from relaylang.runtime.schema import document

#: The memories on the chip whose sizes can be chosen, by the names that instructions use.
_MEMORIES = ("uop", "inp", "wgt", "acc")
#: Options of target strings that give a size, and the values that they set.
_SIZES = {
    "batch": ("log_batch",),
    "block": ("log_block_in", "log_block_out"),
    "block-in": ("log_block_in",),
    "block-out": ("log_block_out",),
}
#: Options of target strings that give a value as it is.
_VALUES = {
    **{f"log-{name}-buff": f"log_{name}_buff_size" for name in _MEMORIES},
    "dram-bandwidth": "bandwidth",
    "dram-latency": "latency",
}
#: Keys of `vta_config.json` that choose a board or a version of the hardware. They change no program.
_OF_BOARDS = ("TARGET", "HW_VER")
#: An index on the chip has 16 bits.
_MOST_DEPTH = 16


@dataclass(frozen=True)
class Config:
    """A configuration that can be built. `bandwidth` (bytes a cycle) and `latency` (cycles) are those of the DRAM."""

    log_inp_width: int = 3
    log_wgt_width: int = 3
    log_acc_width: int = 5
    log_batch: int = 0
    log_block_in: int = 4
    log_block_out: int = 4
    log_uop_buff_size: int = 15
    log_inp_buff_size: int = 15
    log_wgt_buff_size: int = 18
    log_acc_buff_size: int = 17
    bandwidth: int = 8
    latency: int = 32

    @property
    def batch(self) -> int:
        return 1 << self.log_batch

    @property
    def block_in(self) -> int:
        return 1 << self.log_block_in

    @property
    def block_out(self) -> int:
        return 1 << self.log_block_out

    @cached_property
    def element_bytes(self) -> dict[str, int]:
        """The bytes of one element of each memory: a micro-operation, or a tile of numbers."""
        inp, out = self.batch * self.block_in, self.batch * self.block_out
        return {"uop": 4, "wgt": self.block_in * self.block_out, "inp": inp, "acc": 4 * out, "out": out, "acc8": out}

    @cached_property
    def log_depth(self) -> dict[str, int]:
        """The logarithm of the number of elements of each memory. `out` holds what `acc` does, in fewer bits."""
        depths = {name: self._log_size(name) - (self.element_bytes[name].bit_length() - 1) for name in _MEMORIES}
        return {**depths, "out": depths["acc"], "acc8": depths["acc"]}

    @cached_property
    def depth(self) -> dict[str, int]:
        return {name: 1 << log for name, log in self.log_depth.items()}

    def _log_size(self, memory: str) -> int:
        size: int = getattr(self, f"log_{memory}_buff_size")
        return size

    def json(self) -> dict[str, int]:
        """The values under the names of `vta_config.json`."""
        return {f.name.upper(): getattr(self, f.name) for f in fields(self)}

    def __str__(self) -> str:
        """The configuration as VTA names its bitstreams: `1x16x16_i8w8a32_15_15_18_17`."""
        widths = f"i{1 << self.log_inp_width}w{1 << self.log_wgt_width}a{1 << self.log_acc_width}"
        return f"{self.batch}x{self.block_in}x{self.block_out}_{widths}_{'_'.join(str(self._log_size(name)) for name in _MEMORIES)}"


def config_of(options: Mapping[str, Any]) -> Config:
    """The configuration of a target's options. Raises `RelayError` (R0001, R0602)."""
    values: dict[str, int] = {}
    if "config" in options:
        path, content = options["config"], read_file(options["config"])
        try:
            values |= values_of(document(content))
        except ValueError as problem:
            raise cannot_build(f"{path} is no vta_config.json: {problem}") from None
    for option in [option for option in _SIZES if option in options]:
        size = options[option]
        if size < 1 or size & (size - 1):
            raise cannot_build(f"-{option}={size} is no power of two")
        values |= dict.fromkeys(_SIZES[option], size.bit_length() - 1)
    return checked({**values, **{name: options[option] for option, name in _VALUES.items() if option in options}})


def values_of(record: Mapping[str, Any]) -> dict[str, int]:
    """The values of what a `vta_config.json` holds. Raises `ValueError` for other keys and values."""
    values: dict[str, int] = {}
    known = {"LOG_BLOCK": ["log_block_in", "log_block_out"], **{f.name.upper(): [f.name] for f in fields(Config)}}
    for key, value in record.items():
        if key in _OF_BOARDS:
            continue
        if key not in known:
            raise ValueError(f"{key} is no key of it; they are {', '.join(known)}")
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{key} is no whole number")
        values |= dict.fromkeys(known[key], value)
    return values


def checked(values: Mapping[str, int]) -> Config:
    """The configuration with these values. Raises `RelayError` (R0602) where no hardware can be built of it."""
    config = Config(**values)
    widths = (config.log_inp_width, config.log_wgt_width, config.log_acc_width)
    if widths != (3, 3, 5):
        raise cannot_build(f"the widths 2^{', 2^'.join(map(str, widths))}: inputs and weights have 8 bits, sums 32")
    for name in ("batch", "block_in", "block_out"):
        if not 0 <= getattr(config, f"log_{name}") <= 8:
            raise cannot_build(f"{name.upper()} must be from 1 to 256")
    if config.bandwidth < 1 or config.latency < 0:
        raise cannot_build("the DRAM moves at least 1 byte a cycle, and its latency is not negative")
    for name in _MEMORIES:
        memory, depth = f"the memory {name} of 2^{config._log_size(name)} bytes", config.log_depth[name]
        if depth < 1:
            raise cannot_build(f"{memory} has no room for two elements of {config.element_bytes[name]} bytes")
        if depth > _MOST_DEPTH:
            raise cannot_build(f"{memory} has 2^{depth} elements; an index has {_MOST_DEPTH} bits")
    return config


def cannot_build(why: str) -> RelayError:
    """The error (R0602) of a configuration of which there can be no hardware."""
    return RelayError(error("R0602", f"this configuration of VTA cannot be built: {why}"))


__all__ = ["Config", "cannot_build", "checked", "config_of", "values_of"]
