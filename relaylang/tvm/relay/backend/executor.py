"""`Executor("graph")`: how `relay.build` calls kernels. `Executor("aot")` with `Runtime("crt")` gives C source."""

from __future__ import annotations

from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.tvm.relay.backend.options import Option


class Executor(Option):
    """An executor's name and settings."""

    defaults = {"graph": {"link-params": False}}
    known = {
        "graph": {"link-params": bool},
        "aot": {
            "link-params": bool,
            "unpacked-api": bool,
            "interface-api": str,
            "workspace-byte-alignment": int,
            "constant-byte-alignment": int,
        },
    }


class Runtime(Option):
    """What compiled code is linked with. Libraries need no other than "cpp"; C for "crt" needs the C library alone."""

    known = {"cpp": {"system-lib": bool}, "crt": {"system-lib": bool}}


def check_interface(executor: Any, runtime: Any) -> None:
    """Raises `RelayError` (R0501) where the interface that an "aot" executor asks for contradicts its other options.

    The C interface has unpacked arguments, and the C++ runtime calls with packed ones.
    """
    if getattr(executor, "name", "") != "aot":
        return
    interface, unpacked = executor.attrs.get("interface-api", "packed"), executor.attrs.get("unpacked-api", False)
    if getattr(runtime, "name", "cpp") != "crt" and (unpacked or interface == "c"):
        note = 'give Runtime("crt"), or leave interface-api and unpacked-api out'
        raise RelayError(error("R0501", "the C interface of an aot executor needs the C runtime", notes=[note]))
    if interface == "c" and not unpacked:
        note = 'write Executor("aot", {"interface-api": "c", "unpacked-api": True})'
        raise RelayError(error("R0501", "the interface `c` has unpacked arguments, and unpacked-api is false", notes=[note]))


__all__ = ["Executor", "Runtime", "check_interface"]
