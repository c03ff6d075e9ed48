"""Run test files: `// RUN:` lines whose output must hold what the `// CHECK:` lines say.

Every .relay file of a folder is a test, but for those in folders named `inputs`. A RUN line calls relay; %s is the file.
With --verify-diagnostics in a RUN line the errors must be those of the `// expected-error@+1 {{text}}` comments. A line
`// -----` splits a file into parts that are run on their own. docs/golden.md has the whole of it.
"""

from __future__ import annotations

import argparse
import os
import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from relaylang.cli.common import check_ending, check_writable, report, write_bytes
from relaylang.cli.progress import Stages
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import RelayError, error, render
from relaylang.testing.runner import Result, Runner, collect

EPILOG = """\
examples:
  relay test tests/
  relay test tests/fold.relay --update      write the expected lines as they come now
  relay test tests/ -j 4 --junit results.xml

exit status: 0 all tests passed, 1 some test failed, 2 the call is wrong, or there are no tests
"""

_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="test files, and folders of them")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="tests at a time")
    parser.add_argument("-k", "--only", metavar="TEXT", help="only tests with TEXT in their path")
    parser.add_argument("--update", action="store_true", help="rewrite expected lines that are wrong; removes no file")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for each call (60)")
    parser.add_argument("--trust", action="store_true", help="let RUN lines run code of files: --load, scripts, compilers")
    parser.add_argument("--junit", metavar="FILE.xml", help="write the results as JUnit XML")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for every test")


def run(args: argparse.Namespace) -> int:
    if args.jobs < 1 or args.timeout <= 0:
        raise UsageError("relay test: --jobs and --timeout want a number above 0", "relay test --help")
    check_writable(args.junit)
    check_ending("test", args.junit, "--junit writes XML", (".xml",))
    paths = _tests_in(args.paths, args.only)
    began = time.perf_counter()
    results: list[Result] = []
    with Stages(delay=0.5) as stages, stages.stage("testing", total=len(paths)) as step:
        finished: list[Result] = []

        def count(result: Result) -> None:
            finished.append(result)
            failed = sum(bool(r.wrong) for r in finished)
            stages.rename(f"{len(finished)}/{len(paths)}" + (f", {failed} failed" if failed else ""))
            step(1)

        for result in Runner(args.timeout, args.update, args.trust).run_all(paths, args.jobs, count):
            results.append(result)
            with stages.hidden():
                report(result.wrong)
                if args.verbose or result.wrong or result.updated:
                    state = "FAILED" if result.wrong else "updated" if result.updated else "passed"
                    print(f"{state} {result.path} ({result.seconds:.2f} s)", flush=True)
    seconds = time.perf_counter() - began
    if args.junit:
        write_bytes(args.junit, junit(results, seconds))
    print(_summary(results, seconds))
    return 1 if any(r.wrong for r in results) else 0


def _tests_in(roots: Sequence[str], only: str | None) -> list[str]:
    """The files with tests in files and folders, each once; with `only`, those that have it in their paths."""
    for root in roots:
        if not Path(root).exists():
            raise RelayError(error("R0001", f"cannot read {root}: there is no such file or folder"))
    paths = list(dict.fromkeys(path for root in roots for path in collect(root) if only is None or only in path))
    if not paths:
        what = f" with {only} in their path" if only else ""
        raise UsageError(f"relay test: there are no tests{what} in {', '.join(roots)}", "relay test --help")
    return paths


def _summary(results: Sequence[Result], seconds: float) -> str:
    failed = sum(bool(r.wrong) for r in results)
    new = sum(r.updated and not r.wrong for r in results)
    counts = {"passed": len(results) - failed - new, "updated": new, "failed": failed}
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n) + f" in {seconds:.1f} s"


def junit(results: Sequence[Result], seconds: float) -> bytes:
    """The results as JUnit XML."""
    suite = ET.Element(
        "testsuite",
        name="relay test",
        tests=str(len(results)),
        failures=str(sum(bool(r.wrong) for r in results)),
        errors="0",
        time=f"{seconds:.3f}",
    )
    for result in results:
        path = Path(result.path)
        case = ET.SubElement(
            suite,
            "testcase",
            classname=_text(".".join(path.parent.parts) or "."),
            name=_text(path.name),
            file=_text(result.path),
            time=f"{result.seconds:.3f}",
        )
        if result.wrong:
            failure = ET.SubElement(case, "failure", message=_text(result.wrong[0].title))
            failure.text = _text("\n".join(render(d) for d in result.wrong))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _text(text: str) -> str:
    """The text without the characters that XML forbids."""
    return _NO_XML.sub("?", text)
