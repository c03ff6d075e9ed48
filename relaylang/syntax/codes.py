"""The codes of what the reader says."""

from __future__ import annotations

from relaylang.diagnostics import define_codes

define_codes(
    {
        "R0101": "unexpected token",
        "R0102": "something is never closed",
        "R0103": "not an expression",
        "R0104": "a block without a value",
        "R0105": "not a number of its type",
        "R0106": "the text is empty",
        "R0107": "not a type",
        "R0109": "an attribute's value does not fit",
        "R0110": "more than one thing where one is wanted",
        "R0111": "another language",
        "R0112": "something is missing",
        "R0113": "an operator that Relay does not have",
        "R0114": "a name without its sign",
        "R0150": "the text has no version header",
        "R0151": "values are missing from the text",
        "R0152": "a call as an older TVM wrote it",
        "R0201": "unknown variable",
        "R0202": "unknown operator or constructor",
        "R0203": "unknown attribute",
        "R0204": "a graph binding is used outside its block",
        "R0205": "defined twice",
        "R0206": "unknown function",
        "R0207": "unknown type",
        "R0208": "an attribute is missing",
        "R0209": "a variable is used in its own value",
        "R0210": "unknown constructor",
    }
)
