"""Opens Core ML's files: a model alone, a package as a folder, or a package in a zip archive."""

from __future__ import annotations

import io
import os
import zipfile
from typing import Any

from relaylang.frontends.common.files import check_version, damaged
from relaylang.frontends.common.protobuf import parsed
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.contents import root_model
from relaylang.frontends.coreml.schema import coreml
from relaylang.runtime.budget import Budget
from relaylang.runtime.params import UNZIPPING
from relaylang.runtime.text import read_bytes

#: How a name of a file of weights begins: the folder of the model's own file.
_HERE = "@model_path/"

#: The specification of iOS 26.
_SPECIFICATION = 10


class Files:
    """The files beside a model: in a folder, in a zip archive, or none. Each is read once, under the budget."""

    def __init__(self, budget: Budget, folder: str = "", archive: zipfile.ZipFile | None = None) -> None:
        self.budget = budget
        self.folder = folder
        self.archive = archive
        self._read: dict[str, bytes] = {}

    def read(self, name: str) -> bytes:
        """The contents of a file of weights. Raises `Malformed` where it is missing or outside of the model's folder."""
        inner = name.removeprefix(_HERE)
        parts = inner.replace("\\", "/").split("/")
        if not name.startswith(_HERE) or any(part in ("", ".", "..") for part in parts) or ":" in inner or "\0" in inner:
            raise Malformed(f"it names the file {name[:80]!r}, which is not beside the model")
        if inner not in self._read:
            self._read[inner] = self._contents(parts)
        return self._read[inner]

    def _contents(self, parts: list[str]) -> bytes:
        shown = "/".join(parts)[:80]
        if self.archive is not None:
            try:
                member = self.archive.getinfo(f"{self.folder}/{'/'.join(parts)}".lstrip("/"))
                return self.budget.unpack(self.archive, member)
            except KeyError:
                raise Malformed(f"the package has no file {shown!r}") from None
            except (*UNZIPPING, ValueError):
                raise Malformed(f"the file {shown!r} of the package is damaged") from None
        path = os.path.join(self.folder, *parts)
        if not self.folder or not os.path.isfile(path):
            raise Malformed(f"its weights are in the file {shown!r}, which is not beside the model")
        if not os.path.realpath(path).startswith(os.path.realpath(self.folder) + os.sep):
            raise Malformed(f"the file {shown!r} is a link out of the model's folder")
        data = read_bytes(path)
        self.budget.grant_file(path, len(data))
        return data


def opened(data: bytes, file: str, folder: str, budget: Budget) -> tuple[Any, Files]:
    """The model in some bytes and the files beside it. Raises `RelayError` (R0802)."""
    if data[:2] != b"PK":
        return _model(data, file), Files(budget, folder)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        manifests = sorted((n for n in archive.namelist() if n.split("/")[-1] == "Manifest.json"), key=len)
        if not manifests:
            raise damaged(file, "the archive has no Manifest.json, so it is no package of Core ML")
        manifest = budget.unpack(archive, archive.getinfo(manifests[0]))
        name = root_model(manifest)
        if not name:
            raise damaged(file, "its Manifest.json names no model")
        path = f"{manifests[0].removesuffix('Manifest.json')}Data/{name}"
        if path not in archive.NameToInfo:
            raise damaged(file, f"the archive has no file {path[:80]!r}, which its Manifest.json names")
        inner = budget.unpack(archive, archive.getinfo(path))
    except (*UNZIPPING, ValueError):
        raise damaged(file, "the archive is damaged") from None
    return _model(inner, file), Files(budget, os.path.dirname(path), archive)


def _model(data: bytes, file: str) -> Any:
    model = parsed(coreml()["Model"], data, file, "the model")
    check_version(file, "its specification", model.specificationVersion, _SPECIFICATION)
    return model


__all__ = ["Files", "opened"]
