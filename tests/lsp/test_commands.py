"""Commands of lenses: each is a call of `relay` that ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="relay lsp needs pygls: pip install 'relaylang[lsp]'")

from relaylang.lsp import commands

LOOP = "def @main(%n: int32) -> int32 { @main(%n) }\n"


def test_a_command_that_takes_too_long_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(commands, "_LONGEST", 0.5)
    good, said = asyncio.run(commands.execute("relay.run", "main", LOOP, str(tmp_path / "net.relay")))
    assert not good and said == "run @main took more than 0.5 seconds"


@pytest.mark.sweep
def test_messages_name_the_texts_file(tmp_path: Path) -> None:
    text = "def @main() {\n  nn.rellu(1)\n}\n"
    good, said = asyncio.run(commands.execute("relay.run", "main", text, str(tmp_path / "net.relay")))
    assert not good and said.startswith("net.relay:2:3: error[R0202]")


def test_libraries_have_names_of_their_own() -> None:
    assert commands.output("main", "/a/net.relay") == "/a/net.so" and commands.output("f", "/a/net.relay") == "/a/net.f.so"
