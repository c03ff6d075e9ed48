"""The errors of `tvm.error`: every failure is a `RelayError` here, with its diagnostics."""

from __future__ import annotations

from relaylang.diagnostics import RelayError

TVMError = RelayError
DiagnosticError = RelayError
InternalError = RelayError
OpError = RelayError
OpNotImplemented = RelayError
OpAttributeRequired = RelayError
OpAttributeInvalid = RelayError
OpAttributeUnImplemented = RelayError
OpNotRegistered = RelayError

__all__ = [
    "DiagnosticError",
    "InternalError",
    "OpAttributeInvalid",
    "OpAttributeRequired",
    "OpAttributeUnImplemented",
    "OpError",
    "OpNotImplemented",
    "OpNotRegistered",
    "TVMError",
]
