"""A client of the language server, over its stdin and stdout."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from tests.shared import PATIENCE

URI = "file:///tmp/net.relay"


class Failed(Exception):
    """The server answered with an error."""


class Client:
    """Starts `relay lsp`; `request` waits for the answer, `diagnostics` for the next ones of a text."""

    def __init__(self, cwd: Path, encodings: list[str] | None = None, options: Sequence[str] = ()) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "relaylang", "lsp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
        )
        self.answers: dict[int, Queue[Any]] = {}
        self.published: Queue[Any] = Queue()
        self.count = 0
        self.version = 0
        threading.Thread(target=self._read, daemon=True).start()
        general = {"positionEncodings": encodings} if encodings else {}
        self.capabilities = self.request("initialize", {"processId": None, "rootUri": None, "capabilities": {"general": general}})[
            "capabilities"
        ]
        self.notify("initialized", {})

    def _read(self) -> None:
        out = self.process.stdout
        assert out is not None
        while True:
            length = 0
            while line := out.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                return
            message = json.loads(out.read(length))
            if "id" in message and "method" not in message:
                self.answers[message["id"]].put(message)
            elif message.get("method") == "textDocument/publishDiagnostics":
                self.published.put(message["params"])

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        self.count += 1
        number = self.count
        self.answers[number] = Queue()
        self._send({"id": number, "method": method, "params": params})
        answer = self.answers[number].get(timeout=PATIENCE)
        if "error" in answer:
            raise Failed(answer["error"]["message"])
        return answer["result"]

    def open(self, text: str, uri: str = URI) -> list[Any]:
        self.version += 1
        document = {"uri": uri, "languageId": "relay", "version": self.version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics()

    def change(self, start: tuple[int, int], end: tuple[int, int], text: str, uri: str = URI) -> None:
        """Replace a stretch, as an editor says it."""
        self.version += 1
        span = {"start": dict(zip(("line", "character"), start)), "end": dict(zip(("line", "character"), end))}
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": self.version}, "contentChanges": [{"range": span, "text": text}]},
        )

    def diagnostics(self) -> list[Any]:
        """The diagnostics published last for the newest version."""
        while True:
            try:
                got = self.published.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError("no diagnostics came") from None
            if got.get("version") in (None, self.version):
                return list(got["diagnostics"])

    def at(self, method: str, line: int, character: int, **more: Any) -> Any:
        place = {"textDocument": {"uri": URI}, "position": {"line": line, "character": character}}
        return self.request(f"textDocument/{method}", {**place, **more})

    def whole(self, method: str, **more: Any) -> Any:
        return self.request(f"textDocument/{method}", {"textDocument": {"uri": URI}, **more})

    def close(self) -> int:
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(PATIENCE)
