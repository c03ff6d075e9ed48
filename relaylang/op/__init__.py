"""TVM's functions that make calls of operators: `relaylang.op.add`, `relaylang.op.nn.conv2d`, ...

Those at the top are `relaylang.add` and so on, too; the modules below are `relaylang.nn`, `relaylang.image`, ....
`get` finds an operator by its name, `register` adds one.
"""

from relaylang.op.build import TupleWrapper
from relaylang.op.namespace import lazy
from relaylang.ops.extensions import find, register
from relaylang.ops.record import Op


def get(name: str) -> Op:
    """The operator of a name, also one that an installed package adds. Raises `KeyError`."""
    op = find(name)
    if op is None:
        raise KeyError(name)
    return op


__getattr__, __dir__ = lazy(__name__, "", ("annotation", "image", "nn", "random", "vision", "vm"))

__all__ = ["TupleWrapper", "get", "register"]
