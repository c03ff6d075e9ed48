"""The names of `relaylang.tvm.analysis`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.analysis import AnnotatedRegionSet as AnnotatedRegionSet
from relaylang.tvm.analysis import CallGraph as CallGraph
from relaylang.tvm.analysis import Feature as Feature
from relaylang.tvm.analysis import TypeKind as TypeKind
from relaylang.tvm.analysis import all_dtypes as all_dtypes
from relaylang.tvm.analysis import all_type_vars as all_type_vars
from relaylang.tvm.analysis import all_vars as all_vars
from relaylang.tvm.analysis import bound_type_vars as bound_type_vars
from relaylang.tvm.analysis import bound_vars as bound_vars
from relaylang.tvm.analysis import call_graph as call_graph
from relaylang.tvm.analysis import check_basic_block_normal_form as check_basic_block_normal_form
from relaylang.tvm.analysis import check_constant as check_constant
from relaylang.tvm.analysis import check_kind as check_kind
from relaylang.tvm.analysis import count_layers as count_layers
from relaylang.tvm.analysis import detect_feature as detect_feature
from relaylang.tvm.analysis import extract_fused_functions as extract_fused_functions
from relaylang.tvm.analysis import extract_intermdeiate_expr as extract_intermdeiate_expr
from relaylang.tvm.analysis import extract_intermediate_expr as extract_intermediate_expr
from relaylang.tvm.analysis import extract_operators as extract_operators
from relaylang.tvm.analysis import free_type_vars as free_type_vars
from relaylang.tvm.analysis import free_vars as free_vars
from relaylang.tvm.analysis import get_calibration_data as get_calibration_data
from relaylang.tvm.analysis import get_calibration_ranges as get_calibration_ranges
from relaylang.tvm.analysis import get_total_mac_number as get_total_mac_number
from relaylang.tvm.analysis import list_fake_quantized_op_freqs as list_fake_quantized_op_freqs
from relaylang.tvm.analysis import list_op_freqs as list_op_freqs
from relaylang.tvm.analysis import post_order_visit as post_order_visit
from relaylang.tvm.analysis import unmatched_cases as unmatched_cases
from relaylang.tvm.analysis import well_formed as well_formed
