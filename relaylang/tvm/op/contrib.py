"""TVM's functions for accelerators: `partition_for_cmsisnn` and the others, and the registry of pattern tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import IRModule
from relaylang.partition.api import partition
from relaylang.partition.tables import get_pattern_table, register_pattern_table
from relaylang.partition.targets import arm_compute_lib

Params = Mapping[str, Any] | None  # values by the names of parameters of @main


def partition_for_ethosn(mod: IRModule, params: Params = None, **opts: Any) -> IRModule:
    """The module partitioned for an Arm Ethos-N; see `partition`. TVM's further options say nothing here."""
    return partition(mod, "ethos-n", params)


def partition_for_ethosu(mod: IRModule, params: Params = None, mod_name: str = "default", **opts: Any) -> IRModule:
    """The module partitioned for an Arm Ethos-U; see `partition`. TVM's further options say nothing here."""
    return partition(mod, "ethos-u", params, mod_name)


def partition_for_bnns(mod: IRModule, params: Params = None) -> IRModule:
    """The module partitioned for Apple's BNNS; see `partition`. Regions are single calls and composites, as in TVM."""
    return partition(mod, "bnns", params)


def partition_for_dnnl(
    mod: IRModule, params: Params = None, alter_layout: bool = False, prune_subgraphs: bool = True
) -> IRModule:
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


__all__ = [
    "get_pattern_table", "partition_for_arm_compute_lib", "partition_for_bnns", "partition_for_cmsisnn",
    "partition_for_dnnl", "partition_for_ethosn", "partition_for_ethosu", "register_pattern_table",
]  # fmt: skip
