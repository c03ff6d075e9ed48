"""Functions that differ by target: `generic_func` makes one, whose `register` adds a form for a target's key."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from relaylang.tvm.target import Target

Function = Callable[..., Any]


class GenericFunc:
    """A function with forms for keys of targets. A call takes the first one that fits the current target."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.default: Function | None = None
        self.forms: dict[str, Function] = {}

    def set_default(self, func: Function, allow_override: bool = False) -> None:
        """Set the form for all other targets. Raises `ValueError` where there is one, but for `allow_override`."""
        if self.default is not None and not allow_override:
            raise ValueError(f"the generic function {self.name} has a default already")
        self.default = func

    def register(self, func: Function, key_list: Sequence[str], allow_override: bool = False) -> None:
        """Set the form for some keys. Raises `ValueError` for one that has a form, but for `allow_override`."""
        for key in key_list:
            if key in self.forms and not allow_override:
                raise ValueError(f"the generic function {self.name} has a form for {key} already")
            self.forms[key] = func

    def form(self) -> Function:
        """The form for the current target. Raises `ValueError` where there is none."""
        target = Target.current()
        keys = target.keys if target is not None else ()
        form = next((self.forms[key] for key in keys if key in self.forms), self.default)
        if form is None:
            raise ValueError(f"the generic function {self.name} has no form for {target}, and no default")
        return form

    def __call__(self, *args: Any) -> Any:
        return self.form()(*args)


def generic_func(fdefault: Function) -> Any:
    """A decorator of the default form. The function's `register(keys)` is a decorator of others; `fdefault` is the default."""
    generic = GenericFunc(fdefault.__name__)
    generic.set_default(fdefault)

    @functools.wraps(fdefault)
    def call(*args: Any, **named: Any) -> Any:
        return generic.form()(*args, **named)

    def register(key: str | Sequence[str], func: Function | None = None, override: bool = False) -> Any:
        def add(form: Function) -> Function:
            generic.register(form, [key] if isinstance(key, str) else key, override)
            return form

        return add(func) if func is not None else add

    dispatcher: Any = call
    dispatcher.fdefault, dispatcher.register, dispatcher.get_packed_func = fdefault, register, lambda: generic
    return dispatcher


__all__ = ["GenericFunc", "generic_func"]
