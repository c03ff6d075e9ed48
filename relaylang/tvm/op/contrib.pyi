"""TVM's place for pattern tables, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.partition.driver import get_pattern_table as get_pattern_table
from relaylang.partition.driver import partition_for_arm_compute_lib as partition_for_arm_compute_lib
from relaylang.partition.driver import partition_for_bnns as partition_for_bnns
from relaylang.partition.driver import partition_for_cmsisnn as partition_for_cmsisnn
from relaylang.partition.driver import partition_for_dnnl as partition_for_dnnl
from relaylang.partition.driver import partition_for_ethosn as partition_for_ethosn
from relaylang.partition.driver import partition_for_ethosu as partition_for_ethosu
from relaylang.partition.driver import register_pattern_table as register_pattern_table
