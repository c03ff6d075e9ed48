"""The distributions: the sdist has every file of the repository, the wheel every file of the packages."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.shared import ROOT

pytestmark = pytest.mark.sweep  # the build of a sdist and a wheel takes seconds

#: Files that the build adds to an sdist.
MADE = {"PKG-INFO", "setup.cfg"}
FOLDERS = {"relaylang": "relaylang", "grammar": "relaylang/grammar", "interpreter": "relaylang/interpreter", "repl": "relaylang/repl"}


def tracked() -> list[str]:
    """The files of the repository that exist."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no git repository here: it lists the files of a distribution")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in listed.split("\0") if name and (ROOT / name).is_file())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An sdist and a wheel of a copy of the repository."""
    setuptools = pytest.importorskip("setuptools", reason="pip install 'relaylang[test]'")
    if int(setuptools.__version__.split(".")[0]) < 77:
        pytest.skip(f"setuptools {setuptools.__version__} is older than 77: pip install 'relaylang[test]'")
    folder = tmp_path_factory.mktemp("distribution")
    for name in tracked():
        (folder / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / "copy" / name)
    code = f"import setuptools.build_meta as b; b.build_sdist({str(folder)!r}); b.build_wheel({str(folder)!r})"
    env = {**os.environ, "PYTHONPATH": str(Path(setuptools.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder / "copy", capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


def test_the_sdist_has_every_file(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    names = {name for name in names if ".egg-info/" not in name} - MADE
    assert names == set(tracked())


def test_the_wheel_has_every_file_of_the_packages_and_the_stubs(built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = set()
    for name in tracked():
        folder, _, rest = name.partition("/")
        if folder in FOLDERS and rest:
            wanted.add(f"{FOLDERS[folder]}/{rest}")
    monkeypatch.setattr(sys, "path", [*sys.path])  # the script puts the sources in front of the installed package
    wanted |= set(runpy.run_path(str(ROOT / "scripts" / "make_stubs.py"))["stubs"]())
    with zipfile.ZipFile(built[1]) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == wanted


def test_the_wheel_has_the_licence_and_absolute_links(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        names = {name.partition(".dist-info/")[2] for name in archive.namelist()}
        [path] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(path).decode()
    assert {"licenses/LICENSE", "licenses/NOTICE"} <= names
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    links = re.findall(r"\]\(([^)\s]+)\)", metadata.partition("\n\n")[2])
    assert links and all(link.startswith(("https://", "#")) for link in links), links
    for link in links:
        inside = re.match(r"https://(?:github\.com|raw\.githubusercontent\.com)/relaylang/relaylang/(?:blob/)?main/([^#]+)", link)
        assert inside is None or (ROOT / inside[1]).is_file(), link
