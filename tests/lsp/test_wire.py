"""Unusual input of clients: headers in other cases, malformed messages, documents not open."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.shared import PATIENCE

pytest.importorskip("pygls", reason="relay lsp needs pygls: pip install 'relaylang[lsp]'")

TEXT = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { add(%x, %x) }\n'
AT = {"line": 1, "character": 11}


def message(method: str, params: object = None, number: int | None = None, header: str = "Content-Length: {}\r\n\r\n") -> bytes:
    told: dict[str, object] = {"jsonrpc": "2.0", "method": method}
    if number is not None:
        told["id"] = number
    if params is not None:
        told["params"] = params
    body = json.dumps(told).encode()
    return header.format(len(body)).encode() + body


def answers(*messages: bytes) -> tuple[dict[int, dict], str]:
    """What the server answers, by the request's number, and what it wrote to stderr."""
    start = message("initialize", {"capabilities": {}, "rootUri": None, "processId": None}, 1)
    opened = {"uri": "file:///a.relay", "languageId": "relay", "version": 1, "text": TEXT}
    whole = [
        start,
        message("textDocument/didOpen", {"textDocument": opened}),
        *messages,
        message("shutdown", None, 99),
        message("exit"),
    ]
    ran = subprocess.run([sys.executable, "-m", "relaylang", "lsp"], input=b"".join(whole), capture_output=True, timeout=PATIENCE)
    assert ran.returncode == 0
    return by_number(ran.stdout), ran.stderr.decode()


def by_number(out: bytes) -> dict[int, dict]:
    """The answers by the request's number."""
    bodies = re.split(r"Content-Length: \d+\r\n(?:Content-Type: [^\r]*\r\n)?\r\n", out.decode())
    found = [json.loads(b) for b in bodies if b]
    return {f["id"]: f for f in found if "id" in f}


def asks(what: str, uri: str, number: int, **more: str) -> bytes:
    return message(f"textDocument/{what}", {"textDocument": {"uri": uri}, "position": AT, **more}, number)


@pytest.mark.sweep
def test_what_is_not_open_is_refused() -> None:
    kinds = ["hover", "definition", "rename", "documentSymbol", "semanticTokens/full"]
    requests = [asks(kind, "file:///no/such.relay", n, newName="q") for n, kind in enumerate(kinds, 10)]
    found, err = answers(*requests, asks("hover", "file:///a.relay", 50))
    for n, _ in enumerate(kinds, 10):
        assert found[n]["error"] == {
            "code": -32602,
            "message": "file:///no/such.relay is not open, and no file that can be read",
        }
    assert "float32" in str(found[50]["result"]) and err == "" and 99 in found


@pytest.mark.sweep
def test_a_late_cancellation_is_silent() -> None:
    cancel = message("$/cancelRequest", {"id": 12345})
    found, err = answers(cancel, asks("hover", "file:///a.relay", 50))
    assert "float32" in str(found[50]["result"]) and err == ""


@pytest.mark.sweep
def test_requests_too_early_and_too_late_are_refused() -> None:
    start = message("initialize", {"capabilities": {}, "rootUri": None, "processId": None}, 1)
    whole = [asks("hover", "file:///a.relay", 5), start, message("shutdown", None, 2), asks("hover", "file:///a.relay", 6)]
    command = [sys.executable, "-m", "relaylang", "lsp"]
    ran = subprocess.run(command, input=b"".join([*whole, message("exit")]), capture_output=True, timeout=PATIENCE)
    found = by_number(ran.stdout)
    assert [found[number]["error"]["code"] for number in (5, 6)] == [-32002, -32600]
    assert ran.returncode == 0 and ran.stderr == b""
    assert subprocess.run(command, input=start + message("exit"), capture_output=True, timeout=PATIENCE).returncode == 1


@pytest.mark.sweep
@pytest.mark.parametrize("header", ["content-length: {}\r\n\r\n", "CONTENT-LENGTH:{}\r\n\r\n", "Content-Length: {}\n\n"])
def test_headers_in_any_case(header: str) -> None:
    request = message("textDocument/hover", {"textDocument": {"uri": "file:///a.relay"}, "position": AT}, 7, header)
    found, err = answers(request)
    assert "float32" in str(found[7]["result"]) and 99 in found and err == ""


@pytest.mark.sweep
def test_what_is_no_message_is_one_line() -> None:
    bad = [b"{not json", b"[]", b'"x"', b"\xff\xfe"]
    sent = [b"Content-Length: %d\r\n\r\n%s" % (len(b), b) for b in bad]
    far = {"textDocument": {"uri": "file:///a.relay"}, "position": {"line": -1, "character": 10**30}}
    found, err = answers(
        *sent,
        message("textDocument/hover", far, 7),
        message("textDocument/hover", {}, 8),
        asks("hover", "file:///a.relay", 50),
    )
    assert "float32" in str(found[50]["result"]) and 99 in found
    assert "Traceback" not in err and set(err.splitlines()) <= {
        "Unable to handle message",
        "Unable to deserialize message",
    }
