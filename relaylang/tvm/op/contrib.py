"""TVM's functions for accelerators: `partition_for_cmsisnn` and the others, and the registry of pattern tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import IRModule
from relaylang.partition.api import partition
from relaylang.partition.inline import inline_regions
from relaylang.partition.tables import PATTERN_TABLES, get_pattern_table, register_pattern_table
from relaylang.partition.targets import arm_compute_lib, tensorrt
from relaylang.passes.infer_type import InferType
from relaylang.tvm.target import Target

Params = Mapping[str, Any] | None  # values by the names of parameters of @main

#: TVM's name of the tables that scripts register.
_PATTERN_TABLES = PATTERN_TABLES


def partition_for_ethosn(mod: IRModule, params: Params = None, **opts: Any) -> IRModule:
    """The module partitioned for an Arm Ethos-N; see `partition`. TVM's further options say nothing here."""
    return partition(mod, "ethos-n", params)


def partition_for_ethosu(mod: IRModule, params: Params = None, mod_name: str = "default", **opts: Any) -> IRModule:
    """The module partitioned for an Arm Ethos-U; see `partition`. TVM's further options say nothing here."""
    return partition(mod, "ethos-u", params, mod_name)


def partition_for_bnns(mod: IRModule, params: Params = None) -> IRModule:
    """The module partitioned for Apple's BNNS; see `partition`. Regions are single calls and composites, as in TVM."""
    return partition(mod, "bnns", params)


def partition_for_dnnl(mod: IRModule, params: Params = None, alter_layout: bool = False, prune_subgraphs: bool = True) -> IRModule:
    """The module partitioned for oneDNN; see `partition`. Without `prune_subgraphs` regions stay that have no product in
    them. Layouts stay as they are: `alter_layout`, which TVM asks the library for, is not there."""
    if alter_layout:
        raise RelayError(error("R0501", "partition_for_dnnl has no alter_layout: layouts stay as they are"))
    return partition(mod, "dnnl", params, prune=prune_subgraphs)


def partition_for_cmsisnn(mod: IRModule, params: Params = None, mod_name: str = "default", **opts: Any) -> IRModule:
    """The module partitioned for CMSIS-NN; see `partition`. TVM's further options say nothing here."""
    return partition(mod, "cmsis-nn", params, mod_name)


def partition_for_arm_compute_lib(
    mod: IRModule, params: Params = None, disabled_ops: Sequence[str] = ("concatenate",), **opts: Any
) -> IRModule:
    """The module partitioned for the Arm Compute Library; see `partition`. Rows of `disabled_ops` take nothing."""
    return partition(mod, "arm_compute_lib", params, table=arm_compute_lib.pattern_table(disabled_ops))


def partition_for_cutlass(mod: IRModule, params: Params = None) -> IRModule:
    """The module partitioned for NVIDIA's CUTLASS; see `partition`. Constants are parameters of the regions, as in TVM."""
    return partition(mod, "cutlass", params)


def partition_for_tensorrt(mod: IRModule, params: Params = None, target: Any = None, **opts: Any) -> Any:
    """The module partitioned for NVIDIA's TensorRT; see `partition`.

    `target` is a target "tensorrt", whose attributes `tensorrt_version`, `use_implicit_batch`, `use_fp16` and
    `remove_no_mac_subgraphs` count. The default is that of the `with` block around the call, or else version 6.0.1 with
    an implicit batch.

    TVM 0.8 has options instead: `version`, `use_implicit_batch`, `use_fp16`, and others. A call with them gives a pair,
    the module and the options for the pass context. Raises `RelayError` for another target or option.
    """
    unknown = sorted(opts.keys() - _EARLIER.keys())
    if unknown or (opts and target is not None):
        what = f"has no option {unknown[0]}" if unknown else "takes a target or the options of TVM 0.8, and not both"
        raise RelayError(error("R0501", f"partition_for_tensorrt {what}", notes=[f"its options are {', '.join(_EARLIER)}"]))
    if opts:
        config = {name: opts.get(key, default) for key, (name, default) in _EARLIER.items()}
        attrs = {name: value for name, value in config.items() if name in _ATTRIBUTES and value is not None}
        attrs["tensorrt_version"] = ".".join(map(str, attrs.get("tensorrt_version", tensorrt.Settings().version)))
        return partition_for_tensorrt(mod, params, Target({"kind": "tensorrt", **attrs})), config
    if target is None:
        target = Target.current()
        target = target if target is not None and target.kind.name == "tensorrt" else Target("tensorrt")
    settings = _settings(target if isinstance(target, Target) else Target(target))
    done = partition(mod, "tensorrt", params, table=tensorrt.pattern_table(settings), prune=False)
    return InferType()(inline_regions(done, "tensorrt", lambda func: not tensorrt.keep(func, settings)))


#: The attributes of a target "tensorrt" that count here.
_ATTRIBUTES = ("tensorrt_version", "use_implicit_batch", "remove_no_mac_subgraphs", "use_fp16")
#: The options of TVM 0.8: their names in the pass context, and their defaults.
_EARLIER: dict[str, tuple[str, Any]] = {
    "version": ("tensorrt_version", None),
    "use_implicit_batch": ("use_implicit_batch", True),
    "remove_no_mac_subgraphs": ("remove_no_mac_subgraphs", False),
    "max_workspace_size": ("max_workspace_size", 1 << 30),
    "use_fp16": ("use_fp16", False),
    "use_uint8": ("use_uint8", False),
}


def _settings(target: Target) -> tensorrt.Settings:
    """What a target "tensorrt" says. Raises `RelayError` for another one, and for a wrong version."""
    if target.kind.name != "tensorrt":
        raise RelayError(error("R0501", f'partition_for_tensorrt takes a target "tensorrt", and not "{target}"'))
    have, stated = tensorrt.Settings(), target.attrs
    version = str(stated.get("tensorrt_version") or ".".join(map(str, have.version))).replace(",", ".").split(".")
    if len(version) != 3 or not all(part.isdigit() for part in version):
        said = stated["tensorrt_version"]
        raise RelayError(error("R0501", f"tensorrt_version is {said!r}; it takes three numbers, such as 7.2.1"))
    return tensorrt.Settings(
        tuple(map(int, version)),
        _flag(stated.get("use_implicit_batch", have.implicit_batch)),
        _flag(stated.get("use_fp16", have.fp16)),
        _flag(stated.get("remove_no_mac_subgraphs", have.only_products)),
    )


def _flag(value: Any) -> bool:
    return str(value).lower() not in ("false", "0")


__all__ = [
    "get_pattern_table",
    "partition_for_arm_compute_lib",
    "partition_for_bnns",
    "partition_for_cmsisnn",
    "partition_for_cutlass",
    "partition_for_dnnl",
    "partition_for_ethosn",
    "partition_for_ethosu",
    "partition_for_tensorrt",
    "register_pattern_table",
]
