"""What `tvm.relay.ty` has beside the types: whether extents are unknown."""

from __future__ import annotations

from relaylang.ir import FuncType, TensorType, TupleType, Type
from relaylang.ir.types import Any


def is_dynamic(ty: Type) -> bool:
    """Whether a tensor in a type has an extent that is `?`; tuples and function types are searched, too."""
    stack = [ty]
    while stack:
        match stack.pop():
            case TensorType() as tensor:
                if any(isinstance(extent, Any) for extent in tensor.shape):
                    return True
            case TupleType(fields):
                stack.extend(fields)
            case FuncType(arg_types, ret_type):
                stack.extend((*arg_types, ret_type))
    return False


#: Its earlier name.
type_has_any = is_dynamic

__all__ = ["is_dynamic", "type_has_any"]
