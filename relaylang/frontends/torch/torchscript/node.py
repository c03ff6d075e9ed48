"""A call of a TorchScript program as the conversions of `families/` see it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from relaylang.frontends.common import Builder, Unsupported
from relaylang.frontends.torch.node import Node
from relaylang.frontends.torch.pt2 import Node as Call
from relaylang.ir import Expr

#: Operators on whole numbers whose result keeps their element type.
_KEEP = frozenset(
    "pow full_like zeros_like ones_like empty_like new_zeros new_ones new_full new_empty new_empty_strided to _to_copy rsub".split()
)
#: Operators on whole numbers whose result is int64.
_LONG = frozenset("sum prod cumsum cumprod trace".split())


class ScriptNode(Node):
    """A call whose arguments are values already. The file states nothing about results; PyTorch's rules tell their types."""

    def __init__(self, b: Builder, call: Call) -> None:
        self.b = b
        self.call = call
        self.scope: Any = SimpleNamespace(resolve=lambda value: value)

    def get(self, name: str, default: Any = None) -> Any:
        return self.call.args.get(name, default)

    def write(self, name: str, value: Expr) -> None:
        """Raises `Unsupported` where an argument other than the first would change."""
        if isinstance(self.get(name), Expr):
            raise Unsupported(f"it changes {name}, as in training")

    def meta(self, index: int = 0) -> Any:
        return None

    def used(self, index: int) -> bool:
        return True

    def result_dtype(self, index: int = 0) -> str:
        """The element type that PyTorch gives the result."""
        stated = self.dtype()
        if stated:
            return stated
        name = self.call.target.split(".")[1]
        if name == "arange":
            numbers = [self.get(a, 0) for a in ("start", "end", "step")]
            return "float32" if any(self._real(v) for v in numbers) else "int64"
        if name in ("full", "scalar_tensor"):
            value = self.get("fill_value", self.get("s"))
            return "bool" if isinstance(value, bool) else "float32" if name == "scalar_tensor" or self._real(value) else "int64"
        tensor = next((v for v in self.call.args.values() if isinstance(v, Expr)), None)
        if tensor is None or name in ("zeros", "ones", "empty"):
            return "float32"
        dtype = self.b.dtype(tensor)
        if "float" in dtype or name in _KEEP:
            return dtype
        return "int64" if name in _LONG else "float32"

    def _real(self, value: Any) -> bool:
        return "float" in self.b.dtype(value) if isinstance(value, Expr) else isinstance(value, float)


__all__ = ["ScriptNode"]
