"""Headless Chromium through ChromeDriver, in the few calls that the tests need."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.shared import PATIENCE

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
]


def chromium() -> tuple[str, str] | None:
    """The browser and its driver, None where either is missing."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


class Browser:
    """A page in a browser of its own."""

    def __init__(self, profile: Path) -> None:
        found = chromium()
        assert found is not None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen([found[1], f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        options = {"binary": found[0], "args": [*FLAGS, f"--user-data-dir={profile}"]}
        body = {
            "capabilities": {
                "alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            }
        }
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.session = self._call("POST", "/session", body)["sessionId"]
                return
            except OSError:
                if time.monotonic() > deadline:
                    self.close()
                    raise
                time.sleep(0.2)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)["value"]

    def _do(self, path: str, body: Any) -> Any:
        return self._call("POST", f"/session/{self.session}{path}", body)

    def open(self, url: str) -> None:
        self._do("/url", {"url": url})

    def resize(self, width: int, height: int) -> None:
        self._do("/window/rect", {"width": width, "height": height})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of `return ...` in the page."""
        return self._do("/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str) -> Any:
        """The value of `return ...` in the page, once it is true."""
        for _ in range(20 * PATIENCE):
            if value := self.run(script):
                return value
            time.sleep(0.05)
        raise TimeoutError(script)

    def act(self, *actions: dict[str, Any], kind: str = "pointer") -> None:
        self._do("/actions", {"actions": [{"type": kind, "id": kind, "actions": list(actions)}]})

    def acts(self, *devices: dict[str, Any]) -> None:
        """Actions of several devices at once, as WebDriver writes them."""
        self._do("/actions", {"actions": list(devices)})

    def print(self) -> str:
        """The page as PDF in base 64."""
        return self._do("/print", {})

    def click(self, x: float, y: float) -> None:
        self.act(
            {"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        )

    def log(self) -> list[str]:
        """What the browser complained of."""
        return [entry["message"] for entry in self._do("/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def close(self) -> None:
        try:
            self._call("DELETE", f"/session/{self.session}")
        except (OSError, AttributeError):
            pass
        self.driver.terminate()
        self.driver.wait(20)
