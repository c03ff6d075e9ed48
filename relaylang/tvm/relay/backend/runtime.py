"""`Runtime("cpp")`: what compiled code is linked with. Libraries need no other; C for `crt` needs the C library alone."""

from __future__ import annotations

from relaylang.tvm.relay.backend.options import Option


class Runtime(Option):
    """A runtime's name and settings."""

    known = {"cpp": {"system-lib": bool}, "crt": {"system-lib": bool}}


__all__ = ["Runtime"]
