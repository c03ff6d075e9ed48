"""The names of a program: its functions' code, and the values of free variables and constants."""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.diagnostics import RelayError, error
from relaylang.interpreter.code import Code
from relaylang.interpreter.values import Builtin, Closure, ConstructorValue, Value, as_slot_value
from relaylang.ir import Constant, Constructor, Expr, GlobalVar, IRModule, MetaRef, Var


class Names:
    """Gives names their values. `codes` holds the code of the functions that have been asked for."""

    def __init__(self, module: IRModule, values: Mapping[str, Value], codes: Mapping[GlobalVar, Code] | None = None) -> None:
        self.module = module
        self.values = values
        self.codes = dict(codes or {})

    def code(self, name: GlobalVar) -> Code:
        """The code of a module's function, which is not made before it is called. Raises `RelayError`."""
        code = self.codes.get(name)
        if code is None:
            function = self.module.functions.get(name)
            if function is None:
                if name.name_hint not in self.module:
                    raise RelayError(error("R0403", f"there is no function @{name.name_hint}", name.span))
                function = self.module[name.name_hint]
            code = self.codes[name] = Code(f"@{name.name_hint}", function)
        return code

    def free_value(self, var: Var) -> Value:
        """The value that was given for a free variable. Raises `RelayError`."""
        if var.name_hint not in self.values:
            what = f"the free variable %{var.name_hint} has no value"
            raise RelayError(error("R0403", what, var.span, notes=["give it one by its name"]))
        return as_slot_value(self.values[var.name_hint])

    def value(self, atom: Expr) -> Value:
        """The value of a constant, a function's name or a constructor. Raises `RelayError`."""
        match atom:
            case Constant(data):
                return as_slot_value(data)
            case MetaRef():
                if atom.name_hint not in self.values:
                    raise RelayError(error("R0403", f"the constant {atom.name_hint} has no value", atom.span))
                return as_slot_value(self.values[atom.name_hint])
            case GlobalVar():
                return Closure(self.code(atom), [])
            case Constructor():
                return Builtin(atom.name_hint, lambda *args: ConstructorValue(atom, args))
        raise AssertionError(f"{type(atom).__name__} is no atom")


__all__ = ["Names"]
