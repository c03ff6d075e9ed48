"""`TempOpAttr` where TVM has it: an attribute of an operator holds while a `with` block runs."""

from __future__ import annotations

from typing import Any

from relaylang.passes.layout import registry
from relaylang.tvm.ir.attributes import get_attr, is_known, reset_attr, set_attr
from relaylang.tvm.op import get


class TempOpAttr:
    """An attribute for as long as a `with` block lasts. Passes see theirs, as `relaylang`'s own `TempOpAttr` has it.

    Any other key is one for `op.get_attr`. Raises `RelayError`.
    """

    def __init__(self, op_name: str, attr_key: str, attr_value: Any) -> None:
        self._passes = registry.TempOpAttr(op_name, attr_key, attr_value) if is_known(attr_key) else None
        self.op = get(op_name)
        self.attr_key = attr_key
        self.attr_value = attr_value
        self.older_attr: Any = None

    def __enter__(self) -> TempOpAttr:
        if self._passes is not None:
            self._passes.__enter__()
        else:
            self.older_attr = get_attr(self.op, self.attr_key)
            self._set(self.attr_value)
        return self

    def __exit__(self, *error: object) -> None:
        if self._passes is not None:
            self._passes.__exit__(*error)
        else:
            self._set(self.older_attr)

    def _set(self, value: Any) -> None:
        reset_attr(self.op, self.attr_key)
        if value is not None:
            set_attr(self.op, self.attr_key, value)


__all__ = ["TempOpAttr"]
