"""Extensions of installed packages, by their entry points in the groups `GROUPS`.

Names are read from the packages' metadata when one is asked for that relaylang does not have itself. A package's code is
imported when its name is used.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from relaylang.diagnostics import RelayError, error

PASS_GROUP = "relaylang.passes"
TABLE_GROUP = "relaylang.pattern_tables"
OPERATOR_GROUP = "relaylang.ops"
BACKEND_GROUP = "relaylang.backends"
CODEGEN_GROUP = "relaylang.codegens"

#: Each group of entry points, and the noun for its members.
GROUPS = {
    PASS_GROUP: "pass",
    TABLE_GROUP: "pattern table",
    OPERATOR_GROUP: "operator",
    BACKEND_GROUP: "backend",
    CODEGEN_GROUP: "code generator",
}

#: (group, the folders that were looked into) -> name -> entry points of that name.
_FOUND: dict[tuple[str, tuple[str, ...]], dict[str, list[Any]]] = {}


def _points(group: str) -> dict[str, list[Any]]:
    key = (group, tuple(sys.path))
    points = _FOUND.get(key)
    if points is None:
        points = {}
        for point in _read(group):
            same = points.setdefault(point.name, [])
            if all((point.value, owner(point)) != (p.value, owner(p)) for p in same):
                same.append(point)
        _FOUND[key] = points
    return points


def _read(group: str) -> list[Any]:
    from importlib.metadata import distributions, entry_points

    try:
        return list(entry_points(group=group))
    except Exception:  # some package's metadata is damaged: the others are read one by one
        points: list[Any] = []
        seen: set[str] = set()
        for package in distributions():
            with contextlib.suppress(Exception):
                name = str(package.metadata["Name"]).lower().replace("_", "-")
                if name not in seen:
                    seen.add(name)
                    points += [p for p in package.entry_points if p.group == group]
        return points


def owner(point: Any) -> str:
    """The package that an entry point is from."""
    return str(point.dist.name) if getattr(point, "dist", None) is not None else "an installed package"


def installed_names(group: str) -> list[str]:
    """The names in a group, without importing anything."""
    return list(_points(group))


def package_of(group: str, name: str) -> str:
    """The package that adds a name."""
    points = _points(group).get(name)
    return owner(points[0]) if points else ""


def load_installed(group: str, name: str) -> Any:
    """What a package adds to a group under a name; None where none does.

    Raises `RelayError` (R0512) where it cannot be loaded, or where two packages add the name.
    """
    points = _points(group).get(name)
    if not points:
        return None
    what = f"the {GROUPS[group]} {name}"
    if len(points) > 1:
        by = ", ".join(sorted(f"{owner(p)} ({p.value})" for p in points))
        raise RelayError(error("R0512", f"{what} is added by several packages: {by}", notes=["uninstall all but one"]))
    point = points[0]
    try:
        value = point.load()
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as problem:  # a package may even call sys.exit
        said = " ".join(str(problem).split())[:300]
        text = f"{what} of the package {owner(point)} cannot be loaded: {type(problem).__name__}{': ' + said if said else ''}"
        raise RelayError(error("R0512", text, notes=[f"its entry point is {point.value}"])) from problem
    if value is None:
        raise wrong_plugin(group, name, "is None")
    return value


def wrong_plugin(group: str, name: str, says: str) -> RelayError:
    """The error for a plug-in that is something else than its group wants."""
    point = _points(group)[name][0]
    text = f"the {GROUPS[group]} {name} of the package {owner(point)} {says}"
    return RelayError(error("R0512", text, notes=[f"its entry point is {point.value}"]))


__all__ = [
    "BACKEND_GROUP",
    "CODEGEN_GROUP",
    "GROUPS",
    "OPERATOR_GROUP",
    "PASS_GROUP",
    "TABLE_GROUP",
    "installed_names",
    "load_installed",
    "package_of",
    "wrong_plugin",
]
