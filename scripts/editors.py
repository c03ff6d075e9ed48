"""Write what the editors' packages derive from the language: `python scripts/editors.py`.

The TextMate grammar's words are the literal terminals of grammar/relay.lark and the names in the operator registry.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from relaylang.grammar import literals
from relaylang.ops import OPS

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "editors/vscode/syntaxes/relay.tmLanguage.json"
#: Terminals that declare something; the other words of the grammar steer.
_DECLARING = frozenset({"def", "type", "data", "extern", "free_var", "let", "fn"})


def terminals() -> tuple[list[str], list[str]]:
    """The words and the signs among the grammar's literal terminals."""
    found = literals().values()
    words = sorted(w for w in found if w.isidentifier() and w != "Tensor")
    signs = sorted((s for s in found if not s[0].isalnum()), key=lambda s: (-len(s), s))
    return words, signs


def _any(words: list[str]) -> str:
    return "|".join(re.escape(w).replace("/", r"\/") for w in sorted(words, key=lambda w: (-len(w), w)))


def grammar() -> dict[str, Any]:
    """The TextMate grammar."""
    words, signs = terminals()
    declaring = [w for w in words if w in _DECLARING]
    steering = [w for w in words if w not in _DECLARING]
    operators = [s for s in signs if s not in "()[]{},;:."]
    quoted = r'"(?:\\.|[^"\\])*"'

    def rule(name: str, match: str) -> dict[str, Any]:
        return {"name": f"{name}.relay", "match": match}

    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Relay",
        "scopeName": "source.relay",
        "fileTypes": ["relay"],
        "patterns": [{"include": "#all"}],
        "repository": {
            "all": {
                "patterns": [
                    {
                        "name": "meta.metadata.relay",
                        "begin": r"^\s*(#\[metadata\])",
                        "end": r"\z",
                        "beginCaptures": {"1": {"name": "keyword.control.directive.relay"}},
                        "patterns": [{"include": "source.json"}],
                    },
                    rule("keyword.control.directive", r"#\[[^\]\n]*\]"),
                    {"include": "#comment"},
                    rule("comment.line.double-slash", r"//.*$"),
                    rule("comment.line.number-sign", r"#(?!\[).*$"),
                    rule("variable.other", rf"%(?:{quoted}|[\w/]+(?:(?:\.\d+)*\.\w*[A-Za-z_]\w*)*)"),
                    rule("entity.name.function", rf"@(?:{quoted}|[\w/]+(?:(?:\.\d+)*\.\w*[A-Za-z_]\w*)*)"),
                    {
                        "name": "string.quoted.double.relay",
                        "begin": '"',
                        "end": '"',
                        "patterns": [rule("constant.character.escape", r"\\(?:x[0-9a-fA-F]{2}|.)")],
                    },
                    rule("storage.type", rf"\b(?:{_any(declaring)})\b"),
                    rule("keyword.control", rf"\b(?:{_any(steering)})\b"),
                    rule("constant.language", r"\b(?:True|False|None)\b"),
                    rule("support.type", r"\b(?:Tensor|u?int(?:1|4|8|16|32|64)|float(?:16|32|64)|bfloat16|bool)\b"),
                    rule("support.function", rf"(?<![\w.])(?:{_any(list(OPS))})(?=\s*\()"),
                    rule("variable.parameter", r"\b[A-Za-z_]\w*(?=\s*=(?![=>]))"),
                    rule("entity.name.type", r"\b[A-Z]\w*\b"),
                    rule(
                        "constant.numeric",
                        r"\b\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?:[iu](?:8|16|32|64)|f(?:16|32|64)?|bf16)?\b",
                    ),
                    rule("keyword.operator", "|".join(map(re.escape, operators))),
                ]
            },
            "comment": {
                "name": "comment.block.relay",
                "begin": r"/\*",
                "end": r"\*/",
                "patterns": [{"include": "#comment"}],
            },
        },
    }


def text() -> str:
    """The grammar's file."""
    return json.dumps(grammar(), indent=2) + "\n"


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text(), encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {len(OPS)} operators")
