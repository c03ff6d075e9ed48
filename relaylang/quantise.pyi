"""The names of `relaylang.quantize`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.quantize import QAnnotateKind as QAnnotateKind
from relaylang.quantize import QConfig as QConfig
from relaylang.quantize import QuantizeCalibrate as QuantizeCalibrate
from relaylang.quantize import annotate as annotate
from relaylang.quantize import calibrate as calibrate
from relaylang.quantize import collect_stats as collect_stats
from relaylang.quantize import current_qconfig as current_qconfig
from relaylang.quantize import partition as partition
from relaylang.quantize import partition_conversions as partition_conversions
from relaylang.quantize import prerequisite_optimize as prerequisite_optimize
from relaylang.quantize import qconfig as qconfig
from relaylang.quantize import quantize as quantize
from relaylang.quantize import realize as realize
