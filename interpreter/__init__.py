"""The reference interpreter: what a program means, in numpy."""

from relaylang.interpreter.evaluate import Evaluator, evaluate, missing_values
from relaylang.interpreter.kernels import KERNELS, Kernel, KernelError
from relaylang.interpreter.onlookers import Binding, Observer
from relaylang.interpreter.profile import Profile
from relaylang.interpreter.values import Builtin, Closure, ConstructorValue, RefValue, Value, value_text, value_type
from relaylang.interpreter.watch import Intermediates, NanWatch, Trace, Watch, Watches

__all__ = [
    "KERNELS",
    "Binding",
    "Builtin",
    "Closure",
    "ConstructorValue",
    "Evaluator",
    "Intermediates",
    "Kernel",
    "KernelError",
    "NanWatch",
    "Observer",
    "Profile",
    "RefValue",
    "Trace",
    "Value",
    "Watch",
    "Watches",
    "evaluate",
    "missing_values",
    "value_text",
    "value_type",
]
