"""TVM's functions that make calls of operators: `relaylang.op.add`, `relaylang.op.nn.conv2d`, ...

Those at the top are `relaylang.add` and so on, too; the modules below are `relaylang.nn`, `relaylang.image`, ....
`get` finds an operator by its name.
"""

from relaylang.op.build import TupleWrapper
from relaylang.op.namespace import lazy
from relaylang.ops import get

__getattr__, __dir__ = lazy(__name__, "")

__all__ = ["TupleWrapper", "get"]
