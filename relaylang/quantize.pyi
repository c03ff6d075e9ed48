"""The names of `relaylang.quantise`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.quantise import QAnnotateKind as QAnnotateKind
from relaylang.quantise import QConfig as QConfig
from relaylang.quantise import QuantizeCalibrate as QuantizeCalibrate
from relaylang.quantise import annotate as annotate
from relaylang.quantise import calibrate as calibrate
from relaylang.quantise import collect_stats as collect_stats
from relaylang.quantise import current_qconfig as current_qconfig
from relaylang.quantise import partition as partition
from relaylang.quantise import partition_conversions as partition_conversions
from relaylang.quantise import prerequisite_optimize as prerequisite_optimize
from relaylang.quantise import qconfig as qconfig
from relaylang.quantise import quantize as quantize
from relaylang.quantise import realize as realize
