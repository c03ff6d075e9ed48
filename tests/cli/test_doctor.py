"""relay doctor: the installed tools, the missing ones, and how to get them."""

from __future__ import annotations

import json
import sys
from importlib import metadata

import pytest

from relaylang.cli import doctor
from tests.cli.command import relay

Caps = pytest.CaptureFixture[str]


def test_everything_is_looked_at(capsys: Caps) -> None:
    ran = relay(capsys, "doctor", "--json")
    assert (ran.status, ran.err) == (0, "")
    found = {(f["kind"], f["name"]): f for f in json.loads(ran.out)}
    assert found["core", "numpy"]["state"] == "ok" and found["core", "language"]["state"] == "ok"
    assert {"ethosu", "safetensors", "lsp", "test", "docs"} <= {name for kind, name in found if kind == "extra"}
    assert "dev" not in {name for kind, name in found if kind == "extra"}
    assert {name for kind, name in found if kind == "backend"} == {"c", "cmsis-nn", "ethos-u", "vta"}
    for f in found.values():
        assert f["state"] == "ok" or f["repair"] or f["state"] == "broken", f


def test_what_is_missing_comes_with_the_command(capsys: Caps, monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version

    def without(name: str) -> str:
        if name in ("safetensors", "ethos-u-vela"):
            raise metadata.PackageNotFoundError(name)
        return "0.1" if name == "pygls" else version(name)

    monkeypatch.setattr(metadata, "version", without)
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("PATH", "/nowhere")
    ran = relay(capsys, "doctor")
    assert ran.status == 0
    for text in (
        "pip install 'relaylang[safetensors]'",
        "pip install 'relaylang[ethosu]'",
        "pygls 0.1 does not suit: pygls>=",
        "apt install gcc",
        "apt install graphviz",
        "broken: lsp",
    ):
        assert text in ran.out, ran.out


def test_an_old_package_of_an_extra_that_is_not_installed_is_no_fault(capsys: Caps, monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version

    def fresh(name: str) -> str:
        if name in ("pytest", "filecheck"):
            raise metadata.PackageNotFoundError(name)
        return "65.5.0" if name == "setuptools" else version(name)

    monkeypatch.setattr(metadata, "version", fresh)
    found = {f["name"]: f for f in json.loads(relay(capsys, "doctor", "--quick", "--json").out)}
    assert found["test"]["state"] == "missing"
    assert "pytest is missing" in found["test"]["says"] and "setuptools 65.5.0 does not suit" in found["test"]["says"]


def test_a_core_package_that_is_missing_is_a_fault(capsys: Caps, monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version

    def without(name: str) -> str:
        if name == "lark":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    ran = relay(capsys, "doctor", "--quick")
    assert ran.status == 1 and "pip install 'lark" in ran.out and "broken: lark" in ran.out


@pytest.mark.parametrize(
    ("version", "wanted", "suits"),
    [
        ("1.2.3", ">=1.2", True),
        ("1.10", ">=1.2", True),
        ("1.1", ">=1.2", False),
        ("5.2.0", "==5.2.0", True),
        ("5.2.1", "==5.2.0", False),
        ("2.0rc1", ">=2.0", True),
        ("1", "", True),
    ],
)
def test_versions(version: str, wanted: str, suits: bool) -> None:
    assert doctor._suits(version, wanted) is suits


def test_markers_of_requirements() -> None:
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert doctor._applies("lark>=1") and doctor._applies("x>=1; extra == 'fuzz'")
    assert doctor._applies(f"x==1; (python_version == '{here}' and sys_platform == '{sys.platform}') and extra == \"fuzz\"")
    assert doctor._applies("x==1; python_version >= '3.9' and python_version < '4.0'")
    assert not doctor._applies("x==1; python_version < '3.10'") and not doctor._applies("x==1; sys_platform == 'none'")
