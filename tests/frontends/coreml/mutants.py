"""Changed models of Core ML for tests/mutants.py."""

from __future__ import annotations

import io
import random
import zipfile
from typing import Any

from relaylang.frontends.coreml import import_coreml
from relaylang.frontends.coreml.schema import coreml
from tests.frontends.coreml.recorded import members

Random = random.Random
NUMBERS = [0, 1, -1, 2, 3, -2, 7, 100, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63)]


def network_seeds() -> list[bytes]:
    """Layers and networks in the older form of Core ML."""
    return [data for name, data in members().items() if data[:2] != b"PK" and len(data) < 20_000]


def package_seeds() -> list[bytes]:
    """Packages of ML programs, in zip archives that are not compressed."""
    made = []
    for name, data in members().items():
        if data[:2] == b"PK" and not name.endswith(".plain"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                made.append(_stored({n: archive.read(n) for n in archive.namelist()}))
    return made


def _stored(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def _changed_message(made: Any, rng: Random) -> None:
    """Numbers, texts and lists of a message and of those inside of it: one is another, is missing, or is there twice."""
    for _ in range(60):
        fields = [(f, v) for f, v in made.ListFields()]
        if not fields:
            return
        field, value = rng.choice(fields)
        many, message = field.is_repeated, field.message_type is not None
        if message and field.message_type.GetOptions().map_entry:
            parts = [v for v in value.values() if hasattr(v, "ListFields")] if value else []
        elif message:
            parts = list(value) if many else [value]
        else:
            parts = []
        if parts and rng.random() < 0.9:
            made = rng.choice(parts)
            continue
        if many and not message and len(value):
            at = rng.randrange(len(value))
            _set(value, at, field, rng)
        elif many and message and not field.message_type.GetOptions().map_entry and len(value):
            del value[rng.randrange(len(value))]
        elif not message:
            _set(made, field.name, field, rng)
        else:
            made.ClearField(field.name)
        return


def _set(owner: Any, at: Any, field: Any, rng: Random) -> None:
    kind = field.cpp_type
    new: Any = rng.choice(NUMBERS)
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        new = rng.choice([0.0, -1.0, 1e30, float("nan"), float("inf")])
    elif kind == field.CPPTYPE_BOOL:
        new = bool(rng.randrange(2))
    elif kind == field.CPPTYPE_STRING:
        data = rng.randbytes(rng.choice([0, 1, 4, 40]))
        new = data if field.type == field.TYPE_BYTES else rng.choice(["x0", "y0", "x", "conv", "reshape", "add", "", "fp16", "l"])
    try:
        if isinstance(at, int):
            owner[at] = new
        else:
            setattr(owner, at, new)
    except (ValueError, TypeError):
        return


def changed(data: bytes, rng: Random) -> bytes:
    """A model of Core ML, or the one of a package, with other fields."""
    files: dict[str, bytes] = {}
    name = ""
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {n: archive.read(n) for n in archive.namelist()}
        name = next(n for n in files if n.endswith(".mlmodel"))
    made = coreml()["Model"].FromString(files.get(name, data))
    for _ in range(rng.choice([1, 1, 2, 4])):
        _changed_message(made, rng)
    files[name] = made.SerializeToString()
    return _stored(files) if name else files[name]


def read(data: bytes, rng: Random) -> None:
    import_coreml(data, file="mutant.mlmodel")
