"""Functions that make calls of quantized operators, as in TVM's `tvm.relay.qnn.op`."""

from relaylang.op.legalizations import register_qnn_canonicalize as register_qnn_canonicalize
from relaylang.op.legalizations import register_qnn_legalize as register_qnn_legalize
from relaylang.op.namespace import lazy
from relaylang.qnn.config import RequantizeConfig as RequantizeConfig
from relaylang.qnn.config import current_requantize_config as current_requantize_config
from relaylang.qnn.config import requantize_config as requantize_config

__getattr__, __dir__ = lazy(__name__, "qnn.op.")
