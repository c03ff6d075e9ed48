"""An option of `relay.build` that is a name with settings: an executor or a runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from relaylang.diagnostics import RelayError, did_you_mean, error

#: TVM's names of the settings' types.
_TYPES: dict[type, str] = {bool: "IntImm", int: "IntImm", str: "runtime.String"}

#: Truth values in texts.
_TRUTH = {"1": True, "true": True, "0": False, "false": False}


def _value(key: str, kind: type, text: str) -> Any:
    """A setting from a text, as command lines have it: 1 and true are True. Raises `RelayError` (R0501)."""
    try:
        return _TRUTH[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        wanted = {bool: "0 or 1", int: "a whole number"}[kind]
        raise RelayError(error("R0501", f"the setting {key} wants {wanted}, not {text}")) from None


class Option:
    """A name with settings; `option["link-params"]` is a setting. Raises `RelayError` for one that is not known."""

    #: Name -> its settings and their types.
    known: ClassVar[dict[str, dict[str, type]]] = {}
    #: Name -> the settings that have a value without being given.
    defaults: ClassVar[dict[str, dict[str, Any]]] = {}

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        what, known = type(self).__name__, self._settings(name)
        self.name = name
        self.attrs = {**self.defaults.get(name, {}), **(options or {})}
        for key, value in self.attrs.items():
            kind = known.get(key)
            if kind is None:
                near = did_you_mean(key, known)
                notes = [f"did you mean {near}?"] if near else [f"{name} has {', '.join(known)}"]
                raise RelayError(error("R0501", f'Attribute "{key}" is not available on this {what}', notes=notes))
            if not isinstance(value, (bool, int) if kind is bool else kind) or (kind is str and isinstance(value, bool)):
                type_name = _TYPES.get(type(value), type(value).__name__)
                title = f'Attribute "{key}" should have type "{_TYPES[kind]}" but instead found "{type_name}"'
                raise RelayError(error("R0501", title))

    @classmethod
    def of_texts(cls, name: str, options: Mapping[str, Mapping[str, str]]) -> Option:
        """A name with its settings from texts: `options` has them by name. Raises `RelayError` for settings of another name."""
        known = cls._settings(name)
        for other, settings in options.items():
            for key in settings:
                if key not in cls._settings(other):
                    cls(other, settings)
                if other != name:
                    what = cls.__name__.lower()
                    title = f"--{what}-{other}-{key} is given, and the {what} is {name}"
                    raise RelayError(error("R0501", title, notes=[f"add --{what} {other}"]))
        return cls(name, {key: _value(key, known[key], text) for key, text in options.get(name, {}).items()})

    @classmethod
    def _settings(cls, name: str | Option) -> dict[str, type]:
        name = str(name)
        if name not in cls.known:
            raise RelayError(error("R0501", f'{cls.__name__} "{name}" is not defined', notes=[f"there are {', '.join(cls.known)}"]))
        return cls.known[name]

    @classmethod
    def list_registered(cls) -> list[str]:
        """The names."""
        return list(cls.known)

    @classmethod
    def list_registered_options(cls, name: str | Option) -> dict[str, str]:
        """The settings of a name, with TVM's names of their types. Raises `RelayError` for another name."""
        return {key: _TYPES[kind] for key, kind in cls._settings(name).items()}

    def __contains__(self, key: str) -> bool:
        return key in self.attrs

    def __getitem__(self, key: str) -> Any:
        return self.attrs[key]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (other.name, other.attrs) == (self.name, self.attrs)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self.attrs)))

    def __str__(self) -> str:
        return self.name
