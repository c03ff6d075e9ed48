"""Lenses above each function that run, time or compile it. Each calls `relay` with the text as it is now."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from lsprotocol import types as lsp

from relaylang.lsp import structure
from relaylang.lsp.protocol import RelayServer, token_range
from relaylang.runtime.processes import Processes, relay
from relaylang.syntax.literals import string

#: The most seconds that a command takes.
_LONGEST = 300
_RANDOM = ("--random-params", "0")


def arguments(command: str, name: str, path: str) -> list[str]:
    """The call of `relay` for a command on a function. `path` is the text's file; the text comes from the standard input."""
    calls = {
        "relay.run": ["run", "-", "--entry", name, *_RANDOM],
        "relay.time": ["run", "-", "--entry", name, *_RANDOM, "--executor", "cpu", "--benchmark"],
        "relay.compile": ["compile", "-", "--entry", name, "--report", "-o", output(name, path)],
    }
    return calls[command]


def output(name: str, path: str) -> str:
    """The library that a function is compiled into, beside the text's file."""
    file = Path(path)
    return str(file.with_suffix(".so" if name == "main" else f".{name}.so"))


#: The commands, with the titles of their lenses.
_TITLES = {"relay.run": "run", "relay.time": "time", "relay.compile": "compile"}
#: The longest output that a message shows; the log has all of it.
_SHOWN = 400


def add(server: RelayServer) -> None:
    """Give a server the lenses and their commands."""

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        uri = params.text_document.uri
        analysis = server.analysis(uri)
        out = []
        for function in structure.functions(analysis) if server.settings.lenses else ():
            assert function.definition is not None
            place = token_range(analysis, function.definition)
            for command, title in _TITLES.items():
                out.append(lsp.CodeLens(place, lsp.Command(title, command, arguments=[uri, function.name])))
        return out

    for command in _TITLES:
        server.command(command)(_runner(server, command))


def _runner(server: RelayServer, command: str) -> Callable[[str, str], Awaitable[str]]:
    async def run(uri: str, name: str) -> str:
        """Run a command on a function of a text. The output is the answer; the editor shows it, too."""
        document = server.workspace.get_text_document(uri)
        entry = string(name[1:]) if name[1:2] == '"' else name.removeprefix("@")
        good, said = await execute(command, entry, server.analysis(uri).text, document.path or "")
        kind = lsp.MessageType.Info if good else lsp.MessageType.Error
        server.window_log_message(lsp.LogMessageParams(kind, f"{_TITLES[command]} {name}\n{said}"))
        short = said if len(said) <= _SHOWN else said[:_SHOWN] + " …"
        server.window_show_message(lsp.ShowMessageParams(kind, short))
        return said

    return run


async def execute(command: str, name: str, text: str, path: str) -> tuple[bool, str]:
    """Whether a command succeeded, and its output. A command that is given up ends."""
    if command == "relay.compile" and not os.path.isfile(path):
        return False, "save the text first: the library comes into its folder"
    processes = Processes()
    call = relay(*arguments(command, name, path))
    try:
        ended = await asyncio.to_thread(processes.run, call, text.encode(), _LONGEST, together=True)
    except TimeoutError:
        return False, f"{_TITLES[command]} @{name} took more than {_LONGEST} seconds"
    finally:
        processes.end()
    # messages name the text's file, which the command does not read
    shown = ended.text().rstrip().replace("<stdin>:", f"{os.path.basename(path) or '<stdin>'}:")
    return not ended.status, shown


__all__ = ["add", "execute"]
