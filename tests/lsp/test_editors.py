"""The VS Code extension: its grammar is the language's, its files go together."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from relaylang.lsp.settings import Settings
from relaylang.ops import OPS
from tests.shared import ROOT

FOLDER = ROOT / "editors/vscode"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("editors_script", ROOT / "scripts/editors.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def patterns(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "match" in node or "begin" in node:
            yield node
        for value in node.values():
            yield from patterns(value)
    elif isinstance(node, list):
        for value in node:
            yield from patterns(value)


def kind(grammar: dict[str, Any], text: str) -> str:
    """What the grammar takes a text's beginning for: of the rules that fit, the first."""
    for rule in grammar["repository"]["all"]["patterns"]:
        if "match" in rule and re.match(rule["match"], text):
            return str(rule["name"])
    return ""


def test_the_grammar_is_current(script: ModuleType) -> None:
    committed = (FOLDER / "syntaxes/relay.tmLanguage.json").read_text(encoding="utf-8")
    assert committed == script.text(), "run `python scripts/editors.py`"


def test_the_grammar_knows_the_language(script: ModuleType) -> None:
    grammar = script.grammar()
    for rule in patterns(grammar):
        for key in ("match", "begin", "end"):
            if key in rule:
                re.compile(rule[key].replace(r"\z", r"\Z"))
    words, _ = script.terminals()
    assert {"def", "match", "ref_write", "free_var"} <= set(words)
    for word in words:
        assert kind(grammar, f"{word} ").startswith(("storage.", "keyword."))
    for name in OPS:
        assert kind(grammar, f"{name}(%x)") == "support.function.relay"
    for text, wanted in (
        ("%x", "variable.other"),
        ('%"a b"', "variable.other"),
        ("@main", "entity.name.function"),
        ("axis=1", "variable.parameter"),
        ("1.5f", "constant.numeric"),
        ("Tensor[", "support.type"),
        ("Cons(", "entity.name.type"),
        ("// x", "comment.line"),
        ("=>", "keyword.operator"),
        ("#[version", ""),
    ):
        assert kind(grammar, text).startswith(wanted)


#: Runs the extension with a VS Code that notes what it is asked; prints the notes.
ACTIVATE = """
const Module = require("module"), told = { shown: [] };
const vscode = {
  workspace: { getConfiguration: () => ({ get: () => ["relay", "lsp"], lenses: true }) },
  window: { showErrorMessage: (text) => told.shown.push(text) },
  commands: { registerCommand: (name) => ((told.command = name), {}) },
};
class LanguageClient {
  constructor(id, name, server, options) { Object.assign(told, { server, options }); }
  outputChannel = { show: () => told.shown.push("the log") };
  start() { return Promise.resolve(); }
}
const load = Module._load;
Module._load = (name, ...rest) =>
  name === "vscode" ? vscode : name.startsWith("vscode-languageclient") ? { LanguageClient } : load(name, ...rest);
require(process.argv[1]).activate({ subscriptions: [], extensionPath: "/extension" }).then(() => {
  told.result = told.options.middleware.executeCommand("relay.run", [1], (name, given) => [name, given]);
  console.log(JSON.stringify(told));
});
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_extension_starts_the_server_and_runs_lenses() -> None:
    ran = subprocess.run(["node", "-e", ACTIVATE, str(FOLDER / "extension.js")], capture_output=True, text=True, check=True)
    told = json.loads(ran.stdout)
    server = told["server"]
    assert (server["command"], server["args"], told["command"]) == ("relay", ["lsp"], "relay.restart")
    assert server["options"]["cwd"] == "/extension" and server["options"]["env"]["PYTHONSAFEPATH"] == "1"
    assert told["options"]["initializationOptions"] == {"lenses": True}
    assert told["result"] == ["relay.run", [1]] and told["shown"] == ["the log"]


def test_the_extension_goes_together() -> None:
    package = json.loads((FOLDER / "package.json").read_text())
    json.loads((FOLDER / "language-configuration.json").read_text())
    contributes = package["contributes"]
    assert (FOLDER / package["main"]).exists()
    assert (FOLDER / contributes["grammars"][0]["path"]).exists()
    assert (FOLDER / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    ours = {f"relay.hints.{name}": getattr(Settings(), name) for name in ("types", "defaults")} | {"relay.lenses": Settings().lenses}
    settings = {name: value["default"] for name, value in contributes["configuration"]["properties"].items()}
    assert settings == {**ours, "relay.command": ["relay", "lsp"]}
    node = shutil.which("node")
    if node:
        assert subprocess.run([node, "--check", str(FOLDER / "extension.js")], capture_output=True).returncode == 0


def test_a_workspace_gives_the_extension_nothing_to_run() -> None:
    """A workspace that is not trusted cannot name the server, and the server does not start in its folder."""
    package = json.loads((FOLDER / "package.json").read_text())
    untrusted = package["capabilities"]["untrustedWorkspaces"]
    assert untrusted["supported"] == "limited" and untrusted["restrictedConfigurations"] == ["relay.command"]
    assert package["contributes"]["configuration"]["properties"]["relay.command"]["scope"] == "machine-overridable"
    code = (FOLDER / "extension.js").read_text()
    assert "cwd: context.extensionPath" in code and "{ command, args, options }" in code
