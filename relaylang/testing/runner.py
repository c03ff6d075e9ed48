"""Runs test files: each RUN line in separate processes, its output through filecheck, its diagnostics against expectations."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.runtime.files import atomic_write
from relaylang.runtime.processes import Processes, relay
from relaylang.runtime.trust import MADE
from relaylang.testing.directives import Command, Found, Part, Run, TestFile, checks, read_test
from relaylang.testing.expected import EXAMPLE, compare
from relaylang.testing.matching import FileCheck, diagnose
from relaylang.testing.update import Checks, Output, joined, text_of, with_expectations

#: Set for the calls of RUN lines: a test that runs tests could run itself without an end.
_INSIDE = "RELAY_TEST_INSIDE"
#: Folders whose files are inputs of tests, not tests.
INPUTS = frozenset({"inputs", "Inputs"})
_MOST_NOTES = 12


@dataclass
class Result:
    """A test file's result. `wrong` is empty where it passed."""

    path: str
    seconds: float = 0.0
    wrong: list[Diagnostic] = field(default_factory=list)
    updated: bool = False


def collect(path: str) -> list[str]:
    """The tests of a folder: its `.relay` files, in order, without those in folders named `inputs`."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    files = sorted(p for p in folder.rglob("*.relay") if p.is_file())
    return [str(p) for p in files if not INPUTS.intersection(p.relative_to(folder).parts[:-1])]


class Runner:
    """Runs test files. `timeout` limits each call, in seconds; `update` rewrites wrong expectations.

    Without `trust`, calls run no code that a file holds: no script, compiled program or compiler.

    Raises `RelayError` for a wrong call in a RUN line (R0762), and without filecheck (R0763).
    """

    def __init__(self, timeout: float = 60.0, update: bool = False, trust: bool = False) -> None:
        if _INSIDE in os.environ:
            raise RelayError(error("R0762", "a RUN line runs no tests"))
        self.timeout = timeout
        self.update = update
        self.trust = trust
        self._filecheck = FileCheck()
        self._processes = Processes()

    def run_all(self, paths: Sequence[str], jobs: int, finished: Callable[[Result], None]) -> Iterator[Result]:
        """Each test's result, in order. `finished` is called as each one ends. Ctrl-C ends the running tests."""
        pool = ThreadPoolExecutor(max(1, jobs))

        def run(path: str) -> Result:
            result = self.run(path)
            with self._filecheck.lock:
                finished(result)
            return result

        try:
            for result in pool.map(run, paths):
                with self._filecheck.lock:  # what the caller prints must not go where a check's output is caught
                    yield result
        except BaseException:
            self._processes.end()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def run(self, path: str) -> Result:
        """Run one test file. A file that does not pass after its update gets its text back."""
        began = time.perf_counter()
        result = Result(path)
        original = b""
        try:
            test = _test(path)
            original = Path(path).read_bytes()
            for run in test.runs:
                wrong = self._one(test, run, self.update)
                if wrong is None:
                    result.updated = True
                    test = _test(path)
                else:
                    result.wrong += wrong
            if result.updated and not result.wrong:
                result.wrong = [d for run in test.runs for d in self._one(test, run, False) or []]
        except RelayError as e:
            result.wrong += e.diagnostics
        if result.updated and result.wrong:
            atomic_write(path, original)
            result.updated = False
        result.seconds = time.perf_counter() - began
        return result

    def _one(self, test: TestFile, run: Run, update: bool) -> list[Diagnostic] | None:
        """The errors of one RUN line; None where its expectations were wrong and are rewritten."""
        nothing = self._checks_nothing(test, run)
        if nothing is not None and not update:
            return [nothing]
        outputs = self._outputs(test, run)
        wrong = [nothing] if nothing is not None else []
        wrong += _compare(test, run, outputs) if run.verify else self._check(test, run, joined(outputs))
        if not wrong or not update:
            return wrong
        lines = self._updated(test, run, outputs)
        if lines is not None:
            atomic_write(test.source.name, text_of(lines))
            return None
        if any(text.strip() for _, text, _ in outputs):
            return [*wrong, error("R0761", "no line of the output is near to these checks: change them by hand", run.span)]
        return [*wrong, error("R0761", "the output is empty, so there is nothing to expect", run.span)]

    def _updated(self, test: TestFile, run: Run, outputs: Sequence[Output]) -> list[str] | None:
        """The lines of a file with expectations that one RUN line fits."""
        if run.verify:
            return with_expectations(test, outputs)
        words = self._options(test, run)
        return Checks(
            test.lines,
            run.prefixes,
            outputs,
            lambda text: self._filecheck.miss(text, words, joined(outputs)),
            lambda text: self._filecheck.checks(text, words),
        ).updated()

    def _checks_nothing(self, test: TestFile, run: Run) -> Diagnostic | None:
        if run.verify:
            if any(p.expected for p in test.parts):
                return None
            example = EXAMPLE
        elif checks(test, run.prefixes):
            return None
        else:
            example = f"`// {run.prefixes[0]}: text` says what the output must hold"
        return error("R0761", "this RUN line checks nothing", run.span, notes=[example, "relay test --update writes it"])

    # -- processes

    def _outputs(self, test: TestFile, run: Run) -> list[Output]:
        path = test.source.name
        with tempfile.TemporaryDirectory(prefix="relay-test-") as folder:
            if len(test.parts) == 1:
                return [self._pipeline(test, run, test.parts[0], path, folder)]
            outputs = []
            for part in test.parts:
                file = Path(folder, Path(path).name)
                file.write_text(test.part_text(part), encoding="utf-8")
                outputs.append(self._pipeline(test, run, part, str(file), folder))
            return outputs

    def _pipeline(self, test: TestFile, run: Run, part: Part, file: str, folder: str) -> Output:
        data = b""
        diagnostics: list[Found] = []
        for command in run.commands:
            words = [_fill(w, file, test.source.name, folder) for w in command.words]
            words += ["--format", "json"] if run.verify else []
            status, data, err = self._call(run, words, data, folder)
            said = err.decode("utf-8", "replace").replace(file, test.source.name)
            if run.verify:
                diagnostics += list(_diagnostics(said, file, test.source.name))
                self._crashed(run, status, said)
            else:
                self._judge(run, command, status, said)
                data = data + err if command.merge else data
        text = data.decode("utf-8", "replace").replace(file, test.source.name).replace("\r\n", "\n")
        return part, text, diagnostics

    def _call(self, run: Run, words: Sequence[str], data: bytes, folder: str) -> tuple[int, bytes, bytes]:
        variables = {"NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", _INSIDE: "1"}
        if not self.trust:
            variables[MADE] = folder
        try:
            ended = self._processes.run(relay(*words), data, self.timeout, folder=os.getcwd(), variables=variables)
        except TimeoutError:
            raise RelayError(
                error("R0760", f"the call takes longer than {self.timeout:g} s", run.span, notes=[f"ran: {run}"])
            ) from None
        except InterruptedError:
            raise RelayError(error("R0760", "the call was ended", run.span)) from None
        return ended.status, ended.out, ended.err

    def _crashed(self, run: Run, status: int, said: str) -> None:
        if status < 0 or "R0900" in said or "Traceback (most recent call last)" in said:
            how = f"was ended by signal {-status}" if status < 0 else "found an error of relaylang's own"
            raise RelayError(error("R0760", f"the call {how}", run.span, notes=[f"ran: {run}", *_tail(said)]))

    def _judge(self, run: Run, command: Command, status: int, said: str) -> None:
        self._crashed(run, status, said)
        if command.fails and status == 0:
            raise RelayError(error("R0760", "the call succeeds, and `not` stands in front of it", run.span, notes=[f"ran: {run}"]))
        if not command.fails and status != 0:
            title = f"the call ended with status {status}"
            raise RelayError(error("R0760", title, run.span, notes=[f"ran: {run}", *_tail(said)]))

    # -- filecheck

    def _check(self, test: TestFile, run: Run, output: str) -> list[Diagnostic]:
        """The output against the file's checks."""
        try:
            miss = self._filecheck.miss(test.source.text, self._options(test, run), output)
        except ValueError as e:
            return [error("R0762", f"filecheck cannot run: {e}", run.span)]
        return [] if miss is None else [diagnose(miss, test, run, output)]

    def _options(self, test: TestFile, run: Run) -> list[str]:
        """The options of a RUN line's filecheck, and the name of the file with the checks."""
        name = test.source.name
        return [_fill(w, name, name, "") for w in run.filecheck] or [name]


def _test(path: str) -> TestFile:
    """A test file with its RUN lines. Raises `RelayError` where it has none."""
    test = read_test(path)
    if test.runs:
        return test
    notes = ["`// RUN: relay check %s` says what to run", "a folder named `inputs` holds no tests"]
    raise RelayError(error("R0761", "the file has no RUN line", test.span(1), notes=notes))


def _fill(word: str, file: str, own: str, folder: str) -> str:
    """A word of a RUN line after substitution of %s (file), %S (folder), %t (temporary file) and %%."""
    values = {"s": file, "S": str(Path(own).resolve().parent), "t": os.path.join(folder, "t"), "%": "%"}
    return re.sub(r"%([sSt%])", lambda m: values[m[1]], word)


def _tail(said: str) -> list[str]:
    lines = [line.removeprefix("  = note: ") for line in said.splitlines() if line.strip()]
    return lines[:_MOST_NOTES]


def _diagnostics(said: str, file: str, own: str) -> Iterator[Found]:
    """The diagnostics among the lines of JSON that a call wrote."""
    for line in said.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if not isinstance(record, dict) or "severity" not in record:
            continue
        places = [label for label in record["labels"] if label["primary"]] or record["labels"]
        here = [p for p in places[:1] if p["file"] in (file, own)]
        notes = [*(label["text"] for label in record["labels"] if label["text"]), *record["notes"]]
        yield Found(record["severity"], record["code"], record["title"], here[0]["start"]["line"] if here else None, tuple(notes))


def _compare(test: TestFile, run: Run, outputs: Sequence[Output]) -> list[Diagnostic]:
    return [d for part, _, diagnostics in outputs for d in compare(test, part, diagnostics, run.span)]
