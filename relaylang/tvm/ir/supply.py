"""Supplies of names, and of global variables, that are not taken yet."""

from __future__ import annotations

from relaylang.ir import GlobalVar, IRModule


class NameSupply:
    """Names with a prefix, each given once."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._taken: dict[str, int] = {}

    def _whole(self, name: str, add_prefix: bool) -> str:
        return f"{self.prefix}_{name}" if add_prefix and self.prefix else name

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """Take a name, which may be taken already."""
        full_name = self._whole(name, add_prefix)
        self._taken[full_name] = 0
        return full_name

    def fresh_name(self, name: str, add_prefix: bool = True, add_underscore: bool = True) -> str:
        """A name that is not taken: the name itself, or with a number behind it. Dots become "_"."""
        fresh = full_name = self._whole(name, add_prefix).replace(".", "_")
        while fresh in self._taken:
            self._taken[full_name] += 1
            fresh = f"{full_name}{'_' if add_underscore else ''}{self._taken[full_name]}"
        self._taken[fresh] = 0
        return fresh

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """Whether a name is taken."""
        return self._whole(name, add_prefix) in self._taken


class GlobalVarSupply:
    """Global variables, one for each name. Those of a module are taken; its name is the prefix of others."""

    def __init__(self, value: NameSupply | IRModule | list[IRModule] | None = None) -> None:
        modules = [value] if isinstance(value, IRModule) else value if isinstance(value, list) else []
        prefix = str(modules[0].attrs.get("mod_name", "tvmgen_default")) if modules else ""
        self._names = value if isinstance(value, NameSupply) else NameSupply(prefix)
        self._variables: dict[str, GlobalVar] = {}
        for mod in modules:
            for var in mod.functions:
                self.reserve_global(var)

    def reserve_global(self, global_var: GlobalVar, allow_conflict: bool = False) -> None:
        """Take a variable's name. Raises `ValueError` for a name that is taken, but for `allow_conflict`."""
        name = self._names.reserve_name(global_var.name_hint, False)
        if name in self._variables and not allow_conflict:
            raise ValueError(f"@{name} is in this supply already")
        self._variables[name] = global_var

    def unique_global_for(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """The variable of a name, which is made at the first use."""
        full_name = self._names.reserve_name(name, add_prefix)
        return self._variables.setdefault(full_name, GlobalVar(full_name))

    def fresh_global(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """A new variable, of a name that is not taken."""
        full_name = self._names.fresh_name(name, add_prefix)
        self._variables[full_name] = GlobalVar(full_name)
        return self._variables[full_name]


__all__ = ["GlobalVarSupply", "NameSupply"]
