"""What scripts ask of an ONNX graph below `relay.frontend.from_onnx`."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.onnx.tensors import type_of


def get_info(info_proto: Any) -> tuple[str, list[Any], str | None, list[str]]:
    """The name, the shape, the element type and the names of the extents of an ONNX `ValueInfoProto`.

    An extent without a number is `?` in the shape. Its name is that of the file, or "?". The element type
    of a value without a shape is None. Raises `RelayError` for strings.
    """
    name = info_proto.name
    ty = type_of(info_proto, "", f"the value {name}")
    if ty is None:
        return name, [], None, []
    extents = info_proto.type.tensor_type.shape.dim
    return name, list(ty.shape), ty.dtype, [d.dim_param or str(d.dim_value or "?") for d in extents]


__all__ = ["get_info"]
