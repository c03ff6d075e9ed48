"""TVM's functions for accelerators."""

from __future__ import annotations

import inspect

import pytest

from relaylang.tvm.op import contrib

SIGNATURES = {
    "ethosn": ["mod", "params", "opts"],
    "ethosu": ["mod", "params", "mod_name", "opts"],
    "bnns": ["mod", "params"],
    "cmsisnn": ["mod", "params", "mod_name", "opts"],
    "arm_compute_lib": ["mod", "params", "disabled_ops", "opts"],
    "cutlass": ["mod", "params"],
    "tensorrt": ["mod", "params", "target", "opts"],
    "dnnl": ["mod", "params", "alter_layout", "prune_subgraphs"],
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_partition_for_has_tvms_signature(name: str) -> None:
    assert list(inspect.signature(getattr(contrib, f"partition_for_{name}")).parameters) == SIGNATURES[name]
