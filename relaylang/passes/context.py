"""The pass context: the passes that a `Sequential` runs, their configuration, and their instruments."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ir import IRModule

#: The configuration that passes here look at, with its type.
CONFIG: dict[str, type] = {
    "relay.FuseOps.max_depth": int,
    "relay.FuseOps.link_params": bool,
    "relay.ToMixedPrecision.keep_orig_output_dtype": bool,
    "relay.fallback_device_type": int,
}
#: Beginnings of keys that configure parts of TVM that are not here; they are accepted and say nothing.
_FOREIGN = ("tir.", "relay.ext.", "relay.backend.", "relay.collage.", "testing.", "ir.", "te.")
_FOREIGN_KEYS = frozenset({"relay.frontend.fill_span", "relay.remove_standalone_reshapes.enable"})


class PassInstrument:
    """What may watch passes: override any of the methods. `name` is the instrument's, for messages."""

    name = "PassInstrument"

    def enter_pass_ctx(self) -> None:
        """The context with this instrument becomes the current one."""

    def exit_pass_ctx(self) -> None:
        """The context is left."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass is to run. Passes that others require always do."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Before each pass that runs, with the module that it gets."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """After each pass, with the module that it returned."""


class PassInfo:
    """A pass's name, the level from which a `Sequential` runs it, and the passes that must have run before it."""

    __slots__ = ("builtin", "name", "opt_level", "required", "sequence", "traceable")

    def __init__(
        self,
        opt_level: int,
        name: str,
        required: Sequence[str] = (),
        traceable: bool = False,
        *,
        builtin: bool = False,
        sequence: bool = False,
    ) -> None:
        self.opt_level = opt_level
        self.name = name
        self.required = tuple(required)
        self.traceable = traceable
        #: One of ours: a failure inside is our error.
        self.builtin = builtin
        #: A list of passes. The context enables each of them by itself.
        self.sequence = sequence

    def __repr__(self) -> str:
        return f"PassInfo({self.name}, opt_level={self.opt_level}, required={list(self.required)})"


class PassContext:
    """With which passes work, as a `with` block.

        with PassContext(opt_level=3, disabled_pass=["FastMath"], instruments=[PassTimingInstrument()]):
            mod = seq(mod)

    `opt_level`: a `Sequential` runs the passes of this level and below (default 2). `required_pass` run whatever their
    level, `disabled_pass` never. `config` are options by name. Raises `RelayError` (R0508) for a wrong option.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[PassInstrument] | None = None,
        config: Mapping[str, Any] | None = None,
        trace: Any = None,
        trace_stack: Any = None,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = frozenset(required_pass or ())
        self.disabled_pass = frozenset(disabled_pass or ())
        self.instruments = list(instruments or ())
        self.config = _checked(config or {})

    def __enter__(self) -> PassContext:
        _stack().append(self)
        try:
            self._enter()
        except BaseException:
            _stack().pop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        _stack().pop()
        self._exit()

    def _enter(self) -> None:
        """Enter each instrument. Where one raises, leave those before it, drop all, and raise what it raised."""
        for number, instrument in enumerate(self.instruments):
            try:
                instrument.enter_pass_ctx()
            except BaseException:
                entered, self.instruments = self.instruments[:number], []
                for before in entered:
                    before.exit_pass_ctx()
                raise

    def _exit(self) -> None:
        """Leave each instrument. Where one raises, drop all and raise it: those behind it are not left, as in TVM."""
        try:
            for instrument in self.instruments:
                instrument.exit_pass_ctx()
        except BaseException:
            self.instruments = []
            raise

    def override_instruments(self, instruments: Sequence[PassInstrument] | None) -> None:
        """Other instruments from here on, inside the `with` block."""
        self._exit()
        self.instruments = list(instruments or ())
        self._enter()

    def pass_enabled(self, info: PassInfo) -> bool:
        """Whether a `Sequential` runs a pass in this context."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or self.opt_level >= info.opt_level

    @staticmethod
    def current() -> PassContext:
        """The context of the innermost `with` block, or the default one."""
        stack = _stack()
        return stack[-1] if stack else _DEFAULT

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """The configuration that passes here look at."""
        return {key: {"type": kind.__name__} for key, kind in CONFIG.items()}


def _checked(config: Mapping[str, Any]) -> dict[str, Any]:
    wrong = []
    for key, value in config.items():
        kind = CONFIG.get(key)
        if kind is not None:
            fits = isinstance(value, (bool, int)) if kind is bool else isinstance(value, kind)
            if not fits:
                wrong.append(error("R0508", f"the configuration {key} must be {kind.__name__}, not {value!r}"))
        elif not key.startswith(_FOREIGN) and key not in _FOREIGN_KEYS:
            near = did_you_mean(key, CONFIG)
            notes = [f"did you mean {near}?"] if near else [f"there are {', '.join(CONFIG)}"]
            wrong.append(error("R0508", f"there is no configuration {key}", notes=notes))
    if wrong:
        raise RelayError(wrong)
    return dict(config)


class _Local(threading.local):
    def __init__(self) -> None:
        self.stack: list[PassContext] = []


_LOCAL = _Local()
_DEFAULT = PassContext()


def _stack() -> list[PassContext]:
    return _LOCAL.stack


def share_contexts() -> Callable[[], None]:
    """Return a function. Called in another thread, it makes the contexts of this thread current there."""
    stack = list(_stack())

    def take() -> None:
        _LOCAL.stack = stack

    return take
