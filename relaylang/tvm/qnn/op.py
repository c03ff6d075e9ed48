"""Functions that make calls of quantized operators, as in TVM's `tvm.relay.qnn.op`."""

from relaylang.passes.quantize.legalizations import register_qnn_canonicalize as register_qnn_canonicalize
from relaylang.passes.quantize.legalizations import register_qnn_legalize as register_qnn_legalize
from relaylang.passes.quantize.requantize_config import RequantizeConfig as RequantizeConfig
from relaylang.passes.quantize.requantize_config import current_requantize_config as current_requantize_config
from relaylang.passes.quantize.requantize_config import requantize_config as requantize_config
from relaylang.tvm.op.namespace import lazy

__getattr__, __dir__ = lazy(__name__, "qnn.op.")
