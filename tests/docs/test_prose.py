"""The standard of prose, applied to the pages that people read first, and to docstrings and comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.prose import faults, sentences, texts, words
from tests.shared import ROOT

PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks/results").glob("*.md")),
]

#: Folders and modules whose docstrings and comments meet the standard, subfolders included.
CODE = [
    "relaylang",
    "interpreter",
    "repl",
    "benchmarks",
    "fuzz",
    "grammar",
    "scripts",
    "tests",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_meet_the_standard(page: Path) -> None:
    found = [f"{reason}: {sentence}" for sentence, reason in faults(page.read_text(encoding="utf-8"))]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("code", CODE)
def test_docstrings_and_comments_meet_the_standard(code: str) -> None:
    found = []
    for path in sorted(ROOT.glob(code) if code.endswith(".py") else (ROOT / code).rglob("*.py")):
        for line, text in texts(path.read_text(encoding="utf-8")):
            found += [f"{path.relative_to(ROOT)}:{line}: {reason}: {sentence}" for sentence, reason in faults(text)]
    assert found == [], "\n".join(found)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_code_tables_and_headings_do_not_count() -> None:
    text = """# What is a heading

A sentence. `what is code` is one word: see [a link](what/is/this.md)!

    what is indented code

```python
what = is_fenced  # what is a comment
```

| what is | a table |
|---|---|

- An item
  that goes on. Another sentence.
"""
    assert list(sentences(text)) == [
        "A sentence.",
        "`what is code` is one word: see a link!",
        "An item that goes on.",
        "Another sentence.",
    ]
    assert list(faults(text)) == []


def test_sentences_end_at_full_stops_alone() -> None:
    assert list(sentences("TVM 0.6 reads net.relay, e.g. Here. It ends")) == [
        "TVM 0.6 reads net.relay, e.g. Here.",
        "It ends",
    ]
    assert words("Run `relay check x.relay` (or `-`) - twice") == 5


def test_faults_name_the_reason() -> None:
    long = " ".join(["word"] * 31) + "."
    assert list(faults(long)) == [(long, "31 words, at most 30")]
    assert list(faults(long, limit=31)) == []
    [(sentence, reason)] = faults("Read what is printed. Then stop.")
    assert sentence == "Read what is printed." and reason.startswith("“what is”")
    assert [r.split(":")[0] for _, r in faults("The user is told of names that are none.")] == [
        "“is told”",
        "“that are none”",
    ]


def test_texts_are_docstrings_and_comments() -> None:
    source = '''"""A module.

    an = "example"

More of it."""
import x  # type: ignore

#: A table
#: of numbers.
TABLE = {"#": '# no comment'}  # the first
LIST = []  # the second

def f():
    """A function.

    Its rules.
        code()
    """
    # a step
    return "# a string"
'''
    assert sorted(texts(source)) == [
        (1, 'A module.\n\n    an = "example"\n\nMore of it.'),
        (8, "A table\nof numbers."),
        (10, "the first"),
        (11, "the second"),
        (14, "A function.\n\nIts rules.\n    code()\n"),
        (19, "a step"),
    ]
