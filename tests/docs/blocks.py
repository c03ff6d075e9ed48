"""The code blocks of a page, and running them.

Marks of blocks:

    <!-- file: net.relay -->       the block below is written to this file
    ```relay                       is read and checked        ```relay-wrong   must be wrong
    ```python                      is run, in the page's own namespace
    <!-- setup ... -->             Python that the page's blocks build on, and no reader sees
    ```console                     `$ command` lines, and what they print; `...` stands for anything
    ```diff                        is applied to a copy of the tree by test_extending.py
    ```relay-console               is the message of the block in front of it, by test_mistakes.py
"""

from __future__ import annotations

import contextlib
import doctest
import io
import math
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaylang.cli import main
from relaylang.diagnostics import RelayError
from relaylang.stdlib.library import read
from relaylang.typing import infer

_FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.M | re.S)
_SETUP = re.compile(r"<!-- setup\n(.*?)-->", re.S)
#: A float whose last digits depend on the order of a sum. numpy's rows align it with blanks.
_LONG = re.compile(r" *(-?\d+\.\d{5,}(?:e[-+]?\d+)?) ?")
_FLOAT = r" *(-?\d+\.\d+(?:e[-+]?\d+)?) *"
_FILE = re.compile(r"<!-- file: (\S+) -->\n$")


@dataclass
class Block:
    """A fenced block: its language, its text, where it stands, and the file that it is."""

    language: str
    text: str
    start: int
    line: int
    file: str | None


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page's text."""
    out = []
    for found in _FENCE.finditer(page):
        named = _FILE.search(page, 0, found.start())
        file = named[1] if named is not None and named.end() == found.start() else None
        out.append(Block(found[1], found[2], found.start(2), page.count("\n", 0, found.start(2)) + 1, file))
    return out


def indented(page: str) -> Iterator[tuple[int, str]]:
    """The lines of blocks that are set in by four blanks, without the blanks."""
    for number, line in enumerate(_FENCE.sub(lambda m: "\n" * m[0].count("\n"), page).splitlines(), 1):
        if line.startswith("    "):
            yield number, line[4:]


def transcripts(page: str) -> list[tuple[int, str, str]]:
    """The `$ command` lines of indented blocks: line, command, and the output below it."""
    out: list[tuple[int, str, str]] = []
    end = -1  # the line behind the last command's output
    for number, line in indented(page):
        if line.startswith("$ "):
            out.append((number, line[2:], ""))
        elif number == end:
            out[-1] = (*out[-1][:2], out[-1][2] + line + "\n")
        else:
            continue
        end = number + 1
    return out


def calls(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    out: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            out.append((line[2:], ""))
        else:
            command, printed = out[-1]
            out[-1] = (command, printed + line + "\n")
    return out


def run_call(command: str) -> str:
    """What `relay ...`, or `echo ... | relay ...`, prints: stderr behind stdout."""
    data = b""
    words: list[str] = []
    for part in _pipeline(command):
        if part[0] == "echo":
            data = (" ".join(part[1:]) + "\n").encode()
        else:
            words = part
    assert words and words[0] == "relay", f"only relay is run here, not {command}"
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
            main(words[1:])
    finally:
        sys.stdin = before
    return out.getvalue() + err.getvalue()


def _pipeline(command: str) -> list[list[str]]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    parts: list[list[str]] = [[]]
    for word in lexer:
        if word == "|":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def fits(wanted: str, printed: str) -> bool:
    """Whether a text is what the page shows.

    `...` matches any part of a line. Floats with five or more fractional digits are compared as numbers, to 1e-5 of their
    size. Processors and versions of numpy add in different orders.
    """
    parts = _LONG.split(wanted)  # text, number, text, number, ..., text
    texts = (re.escape(text).replace(r"\.\.\.", r"[^\n]*") for text in parts[::2])
    found = re.fullmatch(_FLOAT.join(texts), printed)
    return found is not None and all(
        math.isclose(float(a), float(b), rel_tol=1e-5, abs_tol=1e-9) for a, b in zip(parts[1::2], found.groups())
    )


class _Numbers(doctest.OutputChecker):
    """What a Python session prints, with floats compared as numbers."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or fits(want, got)


def run_page(path: Path, update: bool = False) -> list[str]:
    """Run a page's blocks in the current folder. Returns the differences; with `update` the page gets the new outputs."""
    page = path.read_text(encoding="utf-8")
    wrong: list[str] = []
    names: dict[str, Any] = {"__name__": "__main__"}
    changes: list[tuple[int, int, str]] = []
    for setup in _SETUP.finditer(page):
        exec(compile(setup[1], f"{path.name}: setup", "exec", dont_inherit=True), names)
    for block in blocks(page):
        where = f"{path.name}:{block.line}"
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")
        if block.language == "python" and block.text.startswith(">>>"):
            wrong += _session(block.text, names, where)
        elif block.language == "python":
            try:
                exec(compile(block.text, where, "exec", dont_inherit=True), names)
            except Exception as e:
                wrong.append(f"{where}: {type(e).__name__}: {e}")
        elif block.language in ("relay", "relay-wrong"):
            right, says = _check(block.text)
            if right != (block.language == "relay"):
                wrong.append(f"{where}: {says or 'this is right'}")
        elif block.language == "console":
            new = []
            for command, wanted in calls(block.text):
                printed = run_call(command)
                if not fits(wanted, printed):
                    wrong.append(f"{where}: {command} prints\n{printed}")
                    wanted = printed
                new.append(f"$ {command}\n{wanted}")
            changes.append((block.start, block.start + len(block.text), "".join(new)))
        elif block.language not in ("text", "toml", "diff", "relay-console"):
            wrong.append(f"{where}: nobody runs a block of `{block.language}`")
    if update and wrong:
        for start, end, text in reversed(changes):
            page = page[:start] + text + page[end:]
        path.write_text(page, encoding="utf-8")
    return wrong


def _session(text: str, names: dict[str, Any], where: str) -> list[str]:
    """Run an interactive session of Python."""
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, names, where, where, 0)
    doctest.DocTestRunner(_Numbers(), verbose=False).run(test, out=said.append)
    return ["".join(said)] if said else []


def _check(text: str) -> tuple[bool, str]:
    try:
        result = read(text, "<page>")
        found = [*infer(result.value, fragment=result.module is None)]
    except RelayError as e:
        return False, str(e)
    errors = [d for d in found if d.severity == "error"]
    return not errors, "\n".join(map(str, errors))


if __name__ == "__main__":
    # python -m tests.docs.blocks PAGE...: write the outputs as they come now
    for name in sys.argv[1:]:
        page_path = Path(name).resolve()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            print("\n".join(run_page(page_path, update=True)))
