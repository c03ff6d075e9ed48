"""TorchScript archives: a zip file with the program's sources, a pickle of its objects, and storages as raw bytes.

The sources are parsed and never run.
"""

from __future__ import annotations

import ast
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.versions import Versions
from relaylang.frontends.contents import zip_archive
from relaylang.frontends.torch.torchscript.unpickle import Unpickler
from relaylang.frontends.torch.torchscript.values import Record, Stored
from relaylang.runtime.budget import NODES_PER_LAYER, Budget
from relaylang.runtime.params import UNZIPPING

#: The versions of archives that PyTorch 2.13 takes; it refuses other ones.
_VERSIONS = Versions("the version of the archive", 1, 10)
#: What a byte of source may take as a syntax tree. Expressions and blocks are nested at most this deep.
_TREE_BYTES = 50
_DEEPEST = 150
#: What reading data of another structure raises.
_WRONG = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError)


def is_torchscript(data: bytes) -> bool:
    """Whether the bytes are an archive with sources and objects."""
    archive = zip_archive(data)
    names = archive.namelist() if archive is not None else []
    root = names[0].partition("/")[0] if names else ""
    return f"{root}/data.pkl" in names and any(n.startswith(f"{root}/code/") for n in names)


@dataclass(frozen=True)
class Class:
    """A class of the program: its methods, and its base class by name."""

    name: str
    base: str
    methods: dict[str, ast.FunctionDef]
    #: Constants and types of fields: those with a value, and all in their order.
    values: dict[str, ast.expr]
    types: dict[str, ast.expr]


@dataclass(frozen=True)
class Archive:
    """A program: its main object, the constants of its code, and the sources of its classes and functions.

    `version` is that of the archive, by which operators have their meaning.
    """

    module: Record
    constants: tuple[Any, ...]
    sources: Sources
    version: int = _VERSIONS.newest


class Sources:
    """The classes and functions of the program. A file is parsed when something of it is used."""

    def __init__(self, texts: dict[str, bytes], file: str) -> None:
        self.texts = texts
        self.file = file
        self._parsed: dict[str, dict[str, Class | ast.FunctionDef]] = {}

    def find(self, name: str) -> Class | ast.FunctionDef | None:
        """A class or function by its full name: `__torch__.torch.nn.functional.pad`."""
        space, _, short = name.rpartition(".")
        if space not in self._parsed:
            text = self.texts.get(space)
            self._parsed[space] = self._parse(space, text) if text is not None else {}
        return self._parsed[space].get(short)

    def _parse(self, space: str, text: bytes) -> dict[str, Class | ast.FunctionDef]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(_quoted(text.decode()))
        except (SyntaxError, *_WRONG):
            raise damaged(self.file, f"the source of {space} cannot be read") from None
        for depth, _ in _walk(tree):
            if depth > _DEEPEST:
                raise damaged(self.file, f"the source of {space} is nested more than {_DEEPEST} deep")
        definitions: dict[str, Class | ast.FunctionDef] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                definitions[node.name] = node
            elif isinstance(node, ast.ClassDef):
                definitions[node.name] = _class(node, f"{space}.{node.name}")
        return definitions


def _quoted(text: str) -> str:
    """The source with the names of its types and functions in Python's syntax: `__torch__.a.<locals>` is not."""
    return re.sub(r"\.<locals>", "._locals_", text)


def _walk(tree: ast.AST) -> Iterator[tuple[int, ast.AST]]:
    """All nodes with their depths."""
    stack: list[tuple[int, ast.AST]] = [(0, tree)]
    while stack:
        depth, node = stack.pop()
        yield depth, node
        stack += [(depth + 1, child) for child in ast.iter_child_nodes(node)]


def _class(node: ast.ClassDef, name: str) -> Class:
    methods, values, types = {}, {}, {}
    for part in node.body:
        match part:
            case ast.FunctionDef():
                methods[part.name] = part
            case ast.AnnAssign(target=ast.Name(id=field), annotation=kind, value=value):
                types[field] = kind
                if value is not None:
                    values[field] = value
            case ast.Assign(targets=[ast.Name(id=field)], value=value):
                values[field] = value
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str(field)))], value=value):
                types[field] = value
    base = node.bases[0] if node.bases else None
    return Class(name, base.id if isinstance(base, ast.Name) else "", methods, values, types)


def read_archive(data: bytes, file: str, budget: Budget) -> Archive:
    """The program in a file's contents. Raises `RelayError` for a damaged file (R0802), or one beyond its budget (R0016)."""
    archive = zip_archive(data)
    if archive is None:
        raise damaged(file, "this is not a zip archive, or it is cut short")
    try:
        return _Reader(archive, file, budget).archive()
    except (*UNZIPPING, *_WRONG):
        raise damaged(file, "the archive is damaged, or its objects have another structure") from None


class _Reader:
    def __init__(self, archive: zipfile.ZipFile, file: str, budget: Budget) -> None:
        self.zip = archive
        self.file = file
        self.budget = budget
        self.names = set(archive.namelist())
        self.root = archive.namelist()[0].partition("/")[0]

    def archive(self) -> Archive:
        order = f"{self.root}/byteorder"
        if order in self.names and self.member("byteorder").strip() != b"little":
            raise damaged(self.file, "its numbers are not in the order of little-endian machines")
        version = _VERSIONS.newest
        stated = next((name for name in ("version", ".data/version") if f"{self.root}/{name}" in self.names), None)
        if stated is not None:
            version = int(self.member(stated)[:20])
            _VERSIONS.refuse(version, self.file)
        module = self.pickle("data")
        if not isinstance(module, Record):
            raise damaged(self.file, "data.pkl holds no module")
        constants = self.pickle("constants") if f"{self.root}/constants.pkl" in self.names else ()
        for value in constants:
            if isinstance(value, Stored) and not value.array.ndim and value.array.dtype.name in ("float64", "int64", "bool"):
                value.number = True
        return Archive(module, tuple(constants), Sources(self.texts(), self.file), version)

    def member(self, name: str) -> bytes:
        path = f"{self.root}/{name}"
        if path not in self.names:
            raise damaged(self.file, f"the archive has no member {name}")
        return self.budget.unpack(self.zip, self.zip.getinfo(path))

    def pickle(self, name: str) -> Any:
        stores: dict[str, bytes] = {}

        def storage(key: str) -> bytes:
            if key not in stores:
                stores[key] = self.member(f"{name}/{key}")
            return stores[key]

        return Unpickler(self.file, f"{name}.pkl", storage, self.budget).load(self.member(f"{name}.pkl"))

    def texts(self) -> dict[str, bytes]:
        """The sources by the names of their files: `__torch__.torch.nn.functional`."""
        start, texts = f"{self.root}/code/", {}
        for path in sorted(self.names):
            if path.startswith(start) and path.endswith(".py"):
                text = self.member(path[len(self.root) + 1 :])
                # A byte of source becomes so much of a syntax tree; and each may be a turn of a loop that is written out.
                self.budget.take_bytes(_TREE_BYTES * len(text), f"reading {path[:60]!r}")
                self.budget.grant(layers=len(text) // NODES_PER_LAYER)
                texts[path[len(start) : -3].replace("/", ".")] = text
        return texts


__all__ = ["Archive", "Class", "Sources", "is_torchscript", "read_archive"]
