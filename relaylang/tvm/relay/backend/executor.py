"""`Executor("graph")`: how `relay.build` calls kernels. `Executor("aot")` with `Runtime("crt")` gives C source."""

from __future__ import annotations

from relaylang.tvm.relay.backend.options import Option


class Executor(Option):
    """An executor's name and settings."""

    defaults = {"graph": {"link-params": False}}
    known = {
        "graph": {"link-params": bool},
        "aot": {"link-params": bool, "unpacked-api": bool, "interface-api": str, "workspace-byte-alignment": int,
                "constant-byte-alignment": int},
    }  # fmt: skip


__all__ = ["Executor"]
