"""An option of `relay.build` that is a name with settings: an executor or a runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from relaylang.diagnostics import RelayError, did_you_mean, error


class Option:
    """A name with settings; `option["link-params"]` is a setting. Raises `RelayError` for one that is not known."""

    #: Name -> its settings and their types.
    known: ClassVar[dict[str, dict[str, type]]] = {}

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        what = type(self).__name__.lower()
        if name not in self.known:
            raise RelayError(error("R0501", f"there is no {what} {name}", notes=[f"there are {', '.join(self.known)}"]))
        self.name = name
        self.attrs = dict(options or {})
        for key, value in self.attrs.items():
            kind = self.known[name].get(key)
            if kind is None:
                near = did_you_mean(key, self.known[name])
                notes = [f"did you mean {near}?"] if near else []
                raise RelayError(error("R0501", f"the {what} {name} has no setting {key}", notes=notes))
            if not isinstance(value, (bool, int) if kind is bool else kind):
                raise RelayError(error("R0501", f"the setting {key} of the {what} {name} must be {kind.__name__}, not {value!r:.60}"))

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
