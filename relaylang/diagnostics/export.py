"""Diagnostics for other programs: JSON, one object a diagnostic, and SARIF 2.1.0, one log for all of them.

Lines and columns count from 1, columns in Unicode code points; `offset` counts code points of the text from 0. Where a
stretch ends, the column is the one behind it. docs/diagnostics.md has the schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from relaylang.diagnostics import Diagnostic
from relaylang.diagnostics.source import Span

#: The version of the JSON objects' format. It rises when a field changes its meaning or goes away.
JSON_VERSION = 1

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def _place(span: Span) -> dict[str, Any]:
    start, end = span.start, span.end
    line, column = span.source.locate(start)
    end_line, end_column = span.source.locate(end)
    return {
        "file": span.source.name,
        "start": {"line": line, "column": column, "offset": start},
        "end": {"line": end_line, "column": end_column, "offset": end},
    }


def as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic as an object of plain JSON values.

    - `version`, `severity`, `code`, `title`, `notes`
    - `labels`: each `file`, `start`, `end`, `text`, `primary`; the first primary one is the diagnostic's place
    - `fix`: `file`, `start`, `end`, `replacement`, `title`, or null
    """
    fix = diagnostic.fix
    return {
        "version": JSON_VERSION,
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "title": diagnostic.title,
        "labels": [{**_place(label.span), "text": label.text, "primary": label.primary} for label in diagnostic.labels],
        "notes": list(diagnostic.notes),
        "fix": None if fix is None else {**_place(fix.span), "replacement": fix.replacement, "title": fix.title},
    }


def json_lines(diagnostics: Iterable[Diagnostic]) -> str:
    """One line of JSON for each diagnostic."""
    return "".join(json.dumps(as_json(d)) + "\n" for d in diagnostics)


def _uri(name: str) -> str:
    """A file's name as a URI: relative names stay relative."""
    text = name.encode("utf-8", "surrogateescape")
    if Path(name).is_absolute():
        return "file://" + quote(text)
    return quote(text)


def _region(span: Span) -> dict[str, Any]:
    start, end = span.start, span.end
    line, column = span.source.locate(start)
    end_line, end_column = span.source.locate(end)
    return {
        "startLine": line,
        "startColumn": column,
        "endLine": end_line,
        "endColumn": end_column,
        "charOffset": start,
        "charLength": end - start,
    }


def _location(span: Span) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(span.source.name)}, "region": _region(span)}}


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    text = diagnostic.title + "".join(f"\n{note}" for note in diagnostic.notes)
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.severity,
        "message": {"text": text},
    }
    if diagnostic.span is not None:
        result["locations"] = [_location(diagnostic.span)]
    others = [label for label in diagnostic.labels if label.span is not diagnostic.span]
    if others:
        result["relatedLocations"] = [
            {"id": i, **_location(label.span), "message": {"text": label.text or "see here"}} for i, label in enumerate(others)
        ]
    fix = diagnostic.fix
    if fix is not None:
        replacement = {"deletedRegion": _region(fix.span), "insertedContent": {"text": fix.replacement}}
        result["fixes"] = [
            {
                "description": {"text": fix.title or f"write `{fix.replacement}`"},
                "artifactChanges": [{"artifactLocation": {"uri": _uri(fix.span.source.name)}, "replacements": [replacement]}],
            }
        ]
    return result


def as_sarif(diagnostics: Sequence[Diagnostic], version: str, exit_code: int = 0) -> dict[str, Any]:
    """A SARIF 2.1.0 log with one run: the diagnostics of relaylang `version`, and the process's exit code."""
    from relaylang.diagnostics.pages import PAGES  # every verb imports this module, and few calls write a log

    codes = sorted({d.code for d in diagnostics})
    titles = {code: PAGES[code].title if code in PAGES else code for code in codes}
    rules = [{"id": code, "shortDescription": {"text": title}} for code, title in titles.items()]
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "relaylang", "version": version, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": exit_code == 0, "exitCode": exit_code}],
                "results": [_result(d, codes.index(d.code)) for d in diagnostics],
            }
        ],
    }


def sarif_text(diagnostics: Sequence[Diagnostic], version: str, exit_code: int = 0) -> str:
    """The log of `as_sarif` as text."""
    return json.dumps(as_sarif(diagnostics, version, exit_code), indent=1) + "\n"
