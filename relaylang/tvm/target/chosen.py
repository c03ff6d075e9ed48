"""The targets that scripts give to compilers: a text, a target, several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.backends import parse_target
from relaylang.backends.bare_metal import ACCELERATORS
from relaylang.backends.registry import with_options
from relaylang.backends.target import Target
from relaylang.ir import Function, IRModule
from relaylang.passes.context import PassContext
from relaylang.tvm.target import ADDED

#: Names of accelerators in TVM's configuration, where they differ.
_CONFIGS = {"cmsis-nn": "cmsisnn"}


def targets_of(target: Any) -> list[Target]:
    """The targets of what scripts give: a text, a target, several in a list, or by device. None means the CPU.

    Targets that a script adds stand for functions of a code generator, which are compiled beside the others.
    """
    if target is None:
        return parse_target("c")
    if isinstance(target, Target):
        return [target]
    if isinstance(target, Mapping):
        target = list(target.values())
    if isinstance(target, (list, tuple)):
        return [chosen for item in target for chosen in targets_of(item)] or parse_target("c")
    if str(target).split(" ", 1)[0] in ADDED:
        host = getattr(target, "host", None)
        return targets_of(host) if host is not None else []
    return parse_target(str(target))


def accelerators_of(mod: IRModule, targets: Sequence[Target]) -> list[Target]:
    """The accelerators that a script has partitioned a module for, without those among `targets`.

    Their options are those of the current `PassContext`: `relay.ext.ethos-u.options`. Raises `RelayError` (R0602).
    """
    config = PassContext.current().config
    used = {f.attrs.get("Compiler") for f in mod.functions.values() if isinstance(f, Function)}
    left = [name for name in ACCELERATORS if name in used and all(t.name != name for t in targets)]
    return [with_options(Target(name), config.get(f"relay.ext.{_CONFIGS.get(name, name)}.options") or {}) for name in left]


__all__ = ["accelerators_of", "targets_of"]
