"""Analyses under the names that they have in `tvm.relay.analysis`."""

from __future__ import annotations

from relaylang.ir import Function, IRModule, all_vars, bound_vars, free_vars, post_order, post_order_visit
from relaylang.ir.structural import structural_hash
from relaylang.partition.annotated_regions import AnnotatedRegionSet
from relaylang.passes.analysis import (
    Feature,
    all_dtypes,
    all_type_vars,
    bound_type_vars,
    call_graph,
    check_basic_block_normal_form,
    check_constant,
    detect_feature,
    extract_intermdeiate_expr,
    extract_intermediate_expr,
    extract_operators,
    free_type_vars,
    get_total_mac_number,
    list_op_freqs,
    unmatched_cases,
    well_formed,
)
from relaylang.passes.context import PassContext
from relaylang.passes.counting import CallGraph, count_layers, list_fake_quantized_op_freqs
from relaylang.passes.fusion.fuse_ops import FuseOps
from relaylang.passes.infer_type import InferType
from relaylang.passes.manager import Sequential
from relaylang.passes.rewriting import is_primitive
from relaylang.passes.simplify.simplify_inference import SimplifyInference
from relaylang.tvm.calibration import get_calibration_data, get_calibration_ranges
from relaylang.typing.kinds import TypeKind, check_kind


def extract_fused_functions(mod: IRModule) -> dict[str, Function]:
    """The kernels that SimplifyInference and FuseOps(3) make of @main, by their structural hash, each once."""
    with PassContext(opt_level=3):
        fused = Sequential([InferType(), SimplifyInference(), FuseOps(3)])(mod)
    kernels: dict[str, Function] = {}
    for node in post_order(fused["main"]):
        if isinstance(node, Function) and is_primitive(node):
            kernels.setdefault(str(structural_hash(node)), node)
    return kernels


__all__ = [
    "AnnotatedRegionSet",
    "CallGraph",
    "count_layers",
    "list_fake_quantized_op_freqs",
    "Feature",
    "TypeKind",
    "all_dtypes",
    "all_type_vars",
    "all_vars",
    "bound_type_vars",
    "bound_vars",
    "call_graph",
    "check_basic_block_normal_form",
    "check_constant",
    "check_kind",
    "detect_feature",
    "extract_fused_functions",
    "extract_intermdeiate_expr",
    "extract_intermediate_expr",
    "extract_operators",
    "free_type_vars",
    "free_vars",
    "get_calibration_data",
    "get_calibration_ranges",
    "get_total_mac_number",
    "list_op_freqs",
    "post_order_visit",
    "unmatched_cases",
    "well_formed",
]
