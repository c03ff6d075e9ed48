"""The reference interpreter: what a program means, in numpy."""

from relaylang.interpreter.compiler import Binding, Observer
from relaylang.interpreter.evaluate import Evaluator, Executor, create_executor, evaluate, missing_values
from relaylang.interpreter.kernels import KERNELS, Kernel, KernelError
from relaylang.interpreter.values import Builtin, Closure, ConstructorValue, RefValue, Value, value_text, value_type

__all__ = [
    "KERNELS", "Binding", "Builtin", "Closure", "ConstructorValue", "Evaluator", "Executor", "Kernel", "KernelError",
    "Observer", "RefValue", "Value", "create_executor", "evaluate", "missing_values", "value_text", "value_type",
]  # fmt: skip
