"""The language server, asked by a client over stdio."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import URI, Client, Failed
from tests.shared import ROOT, processor_time

pytest.importorskip("pygls", reason="relay lsp needs pygls: pip install 'relaylang[lsp]'")

TEXT = """\
#[version = "0.0.5"]
type Tree { Leaf(int32), Fork(Tree, Tree), }
def @sum(%t: Tree) -> int32 {
  match (%t) { Leaf(%n) => %n, Fork(%l, %r) => add(@sum(%l), @sum(%r)) }
}
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
  let %y = nn.dense(%x, %w, units=4); // the "größe" 😀
  %0 = nn.relu(%y);
  add(%0, %y)
}
"""
LINES = TEXT.splitlines()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    made = Client(tmp_path_factory.mktemp("lsp"))
    yield made
    assert made.close() == 0


@pytest.fixture
def client(server: Client) -> Client:
    (hint,) = server.open(TEXT)
    assert (hint["code"], hint["severity"], hint["tags"]) == ("R1003", 4, [1])  # nobody calls @sum
    return server


def find(text: str, nth: int = 1) -> tuple[int, int]:
    """The line and column of a text's nth place."""
    for number, line in enumerate(LINES):
        at = -1
        while (at := line.find(text, at + 1)) >= 0:
            nth -= 1
            if not nth:
                return number, at
    raise AssertionError(text)


def places(found: list[Any]) -> list[tuple[int, int]]:
    return sorted((f["range"]["start"]["line"], f["range"]["start"]["character"]) for f in found)


def test_capabilities(server: Client) -> None:
    for name in (
        "hover",
        "definition",
        "references",
        "rename",
        "completion",
        "signatureHelp",
        "documentSymbol",
        "semanticTokens",
        "documentFormatting",
        "codeAction",
        "inlayHint",
        "workspaceSymbol",
    ):
        assert server.capabilities.get(f"{name}Provider"), name


def test_diagnostics_come_and_go_with_keystrokes(client: Client) -> None:
    line, column = find("nn.relu")
    client.change((line, column), (line, column + 7), "nn.rellu")
    (found,) = client.diagnostics()
    assert (found["code"], found["severity"], found["source"]) == ("R0202", 1, "relay")
    assert found["range"] == {"start": {"line": line, "character": column}, "end": {"line": line, "character": column + 8}}
    action = client.whole("codeAction", range=found["range"], context={"diagnostics": [found]})[0]
    (edit,) = action["edit"]["changes"][URI]
    assert "nn.relu" in edit["newText"] and action["kind"] == "quickfix"
    client.change((line, column), (line, column + 8), "nn.relu")
    assert [d["severity"] for d in client.diagnostics()] == [4]
    client.change((line, column), (line, column + 7), "nn.dense(%x, %x, units=5)  +")
    assert any(d["relatedInformation"] for d in client.diagnostics() if d.get("relatedInformation"))


def test_hover(client: Client) -> None:
    said = client.at("hover", *find("nn.dense"))["contents"]["value"]
    assert ": Tensor[(2, 4), float32]" in said and "`units`" in said and "transposed" in said
    assert "%y: Tensor[(2, 4), float32]" in client.at("hover", *find("%y", 2))["contents"]["value"]
    assert "%0: Tensor[(2, 4), float32]" in client.at("hover", *find("%0", 2))["contents"]["value"]
    assert "@sum: fn (Tree[]) -> int32" in client.at("hover", *find("@sum", 2))["contents"]["value"]
    assert "%l: Tree" in client.at("hover", *find("%l", 1))["contents"]["value"]
    assert "Leaf, Fork" in client.at("hover", *find("Tree", 4))["contents"]["value"]
    assert "Fork(Tree, Tree)" in client.at("hover", *find("Fork", 2))["contents"]["value"]
    assert "whole number, or None" in client.at("hover", *find("units"))["contents"]["value"]
    assert client.at("hover", *find("größe")) is None


def test_definitions_and_references(client: Client) -> None:
    found = client.at("definition", *find("%y", 3))
    assert (found["range"]["start"]["line"], found["range"]["start"]["character"]) == find("%y", 1)
    found = client.at("definition", *find("@sum", 3))
    assert (found["range"]["start"]["line"], found["range"]["start"]["character"]) == find("@sum", 1)
    assert client.at("definition", *find("nn.relu")) is None
    uses = client.at("references", *find("%y", 2), context={"includeDeclaration": True})
    assert places(uses) == [find("%y", 1), find("%y", 2), find("%y", 3)]
    assert len(client.at("references", *find("%y", 2), context={"includeDeclaration": False})) == 2
    assert len(client.at("documentHighlight", *find("Fork", 1))) == 2


def test_rename(client: Client) -> None:
    edit = client.at("rename", *find("%y", 2), newName="hidden")
    edits = edit["changes"][URI]
    assert places(edits) == [find("%y", 1), find("%y", 2), find("%y", 3)] and {e["newText"] for e in edits} == {"%hidden"}
    assert len(client.at("rename", *find("@sum"), newName="@total")["changes"][URI]) == 3
    assert len(client.at("rename", *find("Leaf"), newName="Blatt")["changes"][URI]) == 2
    assert client.at("prepareRename", *find("%y", 2))["placeholder"] == "%y"
    for place, new in ((find("%y", 2), "not good"), (find("%y", 2), "x"), (find("nn.relu"), "nn.gelu"), (find("@sum"), "@main")):
        with pytest.raises(Failed):
            client.at("rename", *place, newName=new)
    assert client.at("prepareRename", *find("nn.relu")) is None


def test_completion_and_its_documentation(client: Client) -> None:
    line = find("add(%0")[0]
    client.change((line, 2), (line, 2), "nn.conv2d(%x, %w, ")
    items = {i["label"]: i for i in client.at("completion", line, 20)["items"]}
    assert items["strides="]["detail"] == "list of whole numbers; default [1, 1]"
    variables = {i["label"]: i.get("detail") for i in _complete(client, line, 20, "%")}
    assert variables["%y"] == "Tensor[(2, 4), float32]" and "%n" not in variables and "%x" in variables
    assert {"@sum", "@main"} <= {i["label"] for i in _complete(client, line, 20, "@")}
    found = {i["label"]: i for i in _complete(client, line, 2, "nn.soft")}
    assert found["nn.softmax"]["textEdit"]["range"]["start"]["character"] == 2
    resolved = client.request("completionItem/resolve", found["nn.softmax"])
    assert "`axis`" in resolved["documentation"]["value"]
    assert _complete(client, line, 2, "Lea")[0]["label"] == "Leaf"
    comment = find("größe")
    assert client.at("completion", *comment)["items"] == []


def _complete(client: Client, line: int, column: int, text: str) -> list[Any]:
    client.change((line, column), (line, column), text)
    items = client.at("completion", line, column + len(text))["items"]
    client.change((line, column), (line, column + len(text)), "")
    return list(items)


def test_signatures(client: Client) -> None:
    line, column = find("units")
    found = client.at("signatureHelp", line, column + 6)
    (shown,) = found["signatures"]
    assert shown["label"].startswith("nn.dense(data, weight, units: int | None")
    assert shown["parameters"][found["activeParameter"]]["label"] == "units: int | None"
    line, column = find("@sum(%l)")
    (shown,) = client.at("signatureHelp", line, column + 6)["signatures"]
    assert shown["label"] == "@sum(Tree[]) -> int32"
    assert client.at("signatureHelp", 0, 0) is None


def test_symbols_colours_and_hints(client: Client) -> None:
    symbols = client.whole("documentSymbol")
    assert [s["name"] for s in symbols] == ["Tree", "@sum", "@main"]
    assert [c["name"] for c in symbols[0]["children"]] == ["Leaf", "Fork"]
    assert (symbols[1]["range"]["start"]["line"], symbols[1]["range"]["end"]["line"]) == (2, 4)
    data = client.whole("semanticTokens/full")["data"]
    legend = client.capabilities["semanticTokensProvider"]["legend"]["tokenTypes"]
    line = column = 0
    seen = {}
    for i in range(0, len(data), 5):
        line, column = line + data[i], data[i + 1] + (column if not data[i] else 0)
        encoded = LINES[line].encode("utf-16-le")[2 * column : 2 * (column + data[i + 2])]
        seen[encoded.decode("utf-16-le")] = legend[data[i + 3]]
    assert seen["nn.dense"] == "function" and seen["units"] == "property" and seen["def"] == "keyword"
    assert seen["%y"] == "variable" and seen["%x"] == "parameter" and seen["Leaf"] == "enumMember"
    assert seen['// the "größe" 😀'] == "comment"
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    hints = {(h["position"]["line"], h["position"]["character"]): h["label"] for h in client.whole("inlayHint", range=whole)}
    line, column = find("%y")
    assert hints[line, column + 2] == ": Tensor[(2, 4), float32]"
    line, column = find("%w: ")
    assert (line, column + 2) not in hints


def test_formatting(client: Client) -> None:
    client.change((7, 0), (7, 2), "         ")
    line = {"start": {"line": 7, "character": 0}, "end": {"line": 7, "character": 30}}
    (edit,) = client.whole("rangeFormatting", range=line, options={"tabSize": 2, "insertSpaces": True})
    assert edit["newText"] == "" and edit["range"]["start"]["line"] == edit["range"]["end"]["line"] == 7
    assert edit in client.whole("formatting", options={"tabSize": 2, "insertSpaces": True})
    data = client.whole("semanticTokens/range", range=line)["data"]
    assert data[0] == 7 and not any(data[5::5])
    client.change((7, 0), (7, 9), "((")
    assert client.whole("formatting", options={"tabSize": 2, "insertSpaces": True}) in (None, [])


UNFINISHED = ["", "\n", "def", "((((", '"', "%", "@", "\ufeff1", "\x00", "#[metadata]", "/*", "let %x = ", "type T {"]


@pytest.mark.parametrize("text", UNFINISHED)
def test_texts_that_are_not_there_yet(server: Client, text: str) -> None:
    server.open(text)
    end = len(text.split("\n")[-1])
    line = text.count("\n")
    for method in ("hover", "definition", "completion", "signatureHelp", "documentHighlight"):
        assert isinstance(server.at(method, line, end), (dict, list, type(None)))
    assert isinstance(server.whole("documentSymbol"), list)
    assert isinstance(server.whole("semanticTokens/full")["data"], list)


def test_types_stay_while_a_line_is_written(client: Client) -> None:
    line = find("add(%0")[0]
    client.change((line, 2), (line, 2), "nn.softmax((")
    assert client.diagnostics()
    assert "%y: Tensor[(2, 4), float32]" in client.at("hover", *find("%y", 2))["contents"]["value"]


@pytest.mark.sweep
def test_five_thousand_lines(server: Client) -> None:
    def keystroke(lines: int) -> float:
        body = ["  %0 = nn.relu(%x);", *(f"  %{i} = add(%{i - 1}, %x);" for i in range(1, lines - 3))]
        text = "\n".join(["def @main(%x: Tensor[(2, 3), float32]) {", *body, f"  %{lines - 4}", "}", ""])
        assert len(text.splitlines()) == lines
        server.open(text)
        began = processor_time(server.process.pid)
        for _ in range(3):
            server.change((lines // 2, 2), (lines // 2, 2), " ")
            assert server.diagnostics() == []
        return processor_time(server.process.pid) - began

    # the system counts in hundredths of a second
    assert keystroke(5000) < 10 * 4 * max(keystroke(500), 0.03)


def test_names_of_imported_models(server: Client) -> None:
    text = (
        "def @main(%conv1.0.weight: int32, %layer-1: int32, %n: (int32, int32), %input:0: int32) {\n"
        "  let %x = add(%layer-1, %conv1.0.weight);\n  %x-1 + %n.0 + %input:0\n}\n"
    )
    assert server.open(text) == []
    edits = server.at("rename", 1, 16, newName='%"layer one"')["changes"][URI]
    assert len(edits) == 2 and {e["range"]["end"]["character"] - e["range"]["start"]["character"] for e in edits} == {8}
    for line, column, name in ((1, 26, "%conv1.0.weight"), (2, 2, "%x"), (2, 9, "%n"), (2, 16, "%input:0")):
        assert server.at("prepareRename", line, column)["placeholder"] == name
        assert len(server.at("documentHighlight", line, column)) == 2


@pytest.mark.sweep
def test_positions_in_other_encodings(tmp_path: Path) -> None:
    client = Client(tmp_path, ["utf-8"])
    assert client.capabilities["positionEncoding"] == "utf-8"
    (found, *_) = client.open("def @main() { nn.relu(1f) /* größe 😀 */ + nn.rellu(1f) }\n")
    assert found["range"]["start"]["character"] == len("def @main() { nn.relu(1f) /* größe 😀 */ + ".encode())
    assert client.close() == 0


def test_definitions_in_the_library(server: Client) -> None:
    text = 'import "prelude.rly"\ndef @main(%l: List[int32]) { @map(fn (%x: int32) { %x + 1 }, Cons(1, %l)) }\n'
    assert server.open(text) == []
    body = text.splitlines()[1]
    for word, there in (("@map", "def @map["), ("List", "type List["), ("Cons", "Cons(")):
        found = server.at("definition", 1, body.index(word) + 1)
        file = Path(found["uri"].removeprefix("file://"))
        assert file.name == "prelude.relay"
        start, end = found["range"]["start"], found["range"]["end"]
        line = file.read_text(encoding="utf-8").splitlines()[start["line"]]
        assert line[start["character"] : end["character"]] == word and there in line
    assert server.at("definition", 0, 10)["uri"].endswith("/prelude.relay")
    assert "fn" in server.at("hover", 1, body.index("@map") + 1)["contents"]["value"]
    assert server.at("definition", 1, body.index("%x + 1")) is not None
    server.open(body)
    assert server.at("definition", 0, body.index("@map") + 1) is None


def test_symbols_of_all_open_files(server: Client) -> None:
    server.open(TEXT)
    server.open("def @summary(%x: int32) { %x }\n", "file:///tmp/other.relay")
    found = server.request("workspace/symbol", {"query": "sum"})
    assert sorted((s["name"], s["location"]["uri"]) for s in found) == [("@sum", URI), ("@summary", "file:///tmp/other.relay")]
    (fork,) = server.request("workspace/symbol", {"query": "frk"})
    assert (fork["name"], fork["containerName"]) == ("Fork", "Tree")
    assert len(server.request("workspace/symbol", {"query": ""})) == 6
    server.notify("textDocument/didClose", {"textDocument": {"uri": "file:///tmp/other.relay"}})
    assert server.diagnostics() == []
    assert len(server.request("workspace/symbol", {"query": "sum"})) == 1


@pytest.mark.sweep
def test_lines_end_as_the_protocol_says(server: Client) -> None:
    """Not at form feeds and Unicode's line ends; at a lone carriage return."""
    for end in ("\x0c", "\x85", "\u2028", "\x1c"):
        server.open(f"// a{end}b\ndef @f() {{ 1 }}\n")
        server.change((1, 11), (1, 12), "adx(1, 2)")
        (found,) = server.diagnostics()
        assert found["message"].startswith("unknown operator `adx`") and found["range"]["start"] == {"line": 1, "character": 11}
    server.open("/* a\r b\r\nc */ def @f() {\r1 }\r\n")
    server.change((3, 0), (3, 1), "adx(1, 2)")
    (found,) = server.diagnostics()
    assert found["range"] == {"start": {"line": 3, "character": 0}, "end": {"line": 3, "character": 3}}
    data = server.whole("semanticTokens/full")["data"]
    assert data[:15] == [0, 0, 4, 9, 0, 1, 0, 2, 9, 0, 1, 0, 4, 9, 0]


@pytest.mark.sweep
def test_files_whose_address_is_quoted(server: Client) -> None:
    uri = "file:///tmp/my%20d%C3%AFr/net.relay"
    assert server.open("def @there() { 1 }\n", uri) == []
    server.change((0, 15), (0, 16), "adx(1, 2)", uri)
    (found,) = server.diagnostics()
    assert found["code"] == "R0202"
    assert uri in {s["location"]["uri"] for s in server.request("workspace/symbol", {"query": "@there"})}
    server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    server.diagnostics()


@pytest.mark.sweep
def test_a_refused_request_writes_no_traceback(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.open(TEXT)
    with pytest.raises(Failed, match="there is no name here"):
        client.at("rename", 0, 0, newName="%y")
    assert client.close() == 0
    assert client.process.stderr is not None and client.process.stderr.read() == b""


def test_folding_selections_and_links(client: Client) -> None:
    assert {(f["startLine"], f["endLine"]) for f in client.whole("foldingRange")} == {(2, 3), (5, 8)}
    line, column = find("%x, %w")
    (found,) = client.whole("selectionRange", positions=[{"line": line, "character": column}])
    sizes = []
    while found is not None:
        start, end = found["range"]["start"], found["range"]["end"]
        sizes.append((end["line"] - start["line"], end["character"] - start["character"]))
        found = found.get("parent")
    assert sizes[:2] == [(0, 2), (0, len("%x, %w, units=4"))] and sizes[-1][0] == len(LINES)
    assert client.whole("documentLink") == []
    client.open('import "prelude.rly"\ndef @main() { 1 }\n')
    (link,) = client.whole("documentLink")
    assert link["target"].endswith("/prelude.relay") and link["range"]["start"] == {"line": 0, "character": 8}


def test_call_hierarchy(client: Client) -> None:
    (item,) = client.at("prepareCallHierarchy", *find("@sum(%l)"))
    assert item["name"] == "@sum" and item["range"]["start"]["line"] == 2 and "Tree" in item["detail"]
    (call,) = client.request("callHierarchy/incomingCalls", {"item": item})
    assert call["from"]["name"] == "@sum" and len(call["fromRanges"]) == 2
    (call,) = client.request("callHierarchy/outgoingCalls", {"item": item})
    assert call["to"]["name"] == "@sum" and places([{"range": r} for r in call["fromRanges"]]) == [find("@sum", 2), find("@sum", 3)]
    assert client.at("prepareCallHierarchy", *find("%y")) in (None, [])


def test_all_findings_are_repaired_at_once(server: Client) -> None:
    body = 'let %unused = add(%x, %x);\n  reshape(cast(%x, dtype="float32"), newshape=[2, 3])'
    server.open(f"def @main(%x: Tensor[(2, 3), float32]) {{\n  {body}\n}}\n")
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 4, "character": 0}}
    (action,) = server.whole("codeAction", range=whole, context={"diagnostics": [], "only": ["source.fixAll"]})
    assert action["kind"] == "source.fixAll"
    (edit,) = action["edit"]["changes"][URI]
    start, end = (edit["range"][at] for at in ("start", "end"))
    server.change((start["line"], start["character"]), (end["line"], end["character"]), edit["newText"])
    assert server.diagnostics() == []
    assert server.whole("codeAction", range=whole, context={"diagnostics": [], "only": ["source.fixAll"]}) in (None, [])


@pytest.mark.sweep
def test_lenses_run_time_and_compile(tmp_path: Path, server: Client) -> None:
    uri = (tmp_path / "net.relay").as_uri()
    server.open("def @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }\ndef @one() { add(1, 2) }\n", uri)
    found = server.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert [(f["command"]["title"], f["command"]["arguments"][1]) for f in found] == [
        (title, name) for name in ("@main", "@one") for title in ("run", "time", "compile")
    ]

    def execute(lens: Any) -> str:
        return str(server.request("workspace/executeCommand", {k: lens["command"][k] for k in ("command", "arguments")}))

    assert "Tensor[(2, 3), float32]" in execute(found[0])
    assert execute(found[3]) == "3 : int32"
    assert {lens["command"]["command"] for lens in found} == set(server.capabilities["executeCommandProvider"]["commands"])
    assert "error[R0" in execute({"command": {"command": "relay.run", "arguments": [uri, "@none"]}})
    assert execute(found[2]).startswith("save the text first")


@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_lenses_that_need_a_compiler(tmp_path: Path, server: Client) -> None:
    uri = (tmp_path / "net.relay").as_uri()
    (tmp_path / "net.relay").write_text("an earlier text")
    server.open("def @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }\n", uri)
    for command, wanted in (("relay.time", "mean"), ("relay.compile", str(tmp_path / "net.so"))):
        assert wanted in server.request("workspace/executeCommand", {"command": command, "arguments": [uri, "@main"]})
    assert (tmp_path / "net.so").exists()


def test_hints_are_chosen(client: Client) -> None:
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}

    def hints() -> set[str]:
        return {h["label"] for h in client.whole("inlayHint", range=whole)}

    client.change((7, 7), (7, 18), "nn.softmax(%y)")
    assert any(label.startswith(": ") for label in hints()) and ", axis=-1" not in hints()
    client.notify("workspace/didChangeConfiguration", {"settings": {"relay": {"hints": {"types": False, "defaults": True}}}})
    assert hints() == {", axis=-1"}
    client.notify("workspace/didChangeConfiguration", {"settings": {"relay": {"hints": {"types": True, "defaults": False}}}})
    assert any(label.startswith(": ") for label in hints())


def test_operators_of_a_text(tmp_path: Path) -> None:
    net = ROOT / "examples" / "kernels" / "detect.relay"
    client = Client(tmp_path, options=["--load", str(net.with_suffix(".kernel"))])
    try:
        assert client.open(net.read_text(encoding="utf-8")) == []
    finally:
        client.close()
