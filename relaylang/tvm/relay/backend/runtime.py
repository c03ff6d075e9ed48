"""`Runtime("cpp")`: the library that compiled code is linked with. Every one means relaylang's own."""

from __future__ import annotations

from relaylang.tvm.relay.backend.options import Option


class Runtime(Option):
    """A runtime's name and settings."""

    known = {"cpp": {"system-lib": bool}, "crt": {"system-lib": bool}}


__all__ = ["Runtime"]
