"""Mistakes that people make in Relay text.

Each rule looks at the token that cannot follow and at its neighbours. It answers with a diagnostic and the repair with which
reading goes on, or with None.
"""

from __future__ import annotations

from relaylang.syntax.recovery.block_mistakes import blocks, branches, definition, misspelt_head, no_percent, words_of_others
from relaylang.syntax.recovery.language_mistakes import arrow_function, colon_block, definition_inside, loop
from relaylang.syntax.recovery.reading import Reading
from relaylang.syntax.recovery.rule import Answer, Here
from relaylang.syntax.recovery.token_mistakes import arrows, header, matmul, no_token, operator, other_language, string_over_lines
from relaylang.syntax.recovery.type_mistakes import argument_behind_attributes, brackets_of_lists, index, tensor
from relaylang.syntax.recovery.value_mistakes import (
    call_without_parentheses,
    choice_of_python,
    list_as_value,
    literal_as_pattern,
    value_of_attribute,
)

#: The rules, in the order in which they are asked.
_RULES = (
    matmul,
    other_language,
    string_over_lines,
    tensor,
    definition_inside,
    loop,
    no_token,
    header,
    operator,
    arrow_function,
    colon_block,
    definition,
    arrows,
    no_percent,
    blocks,
    choice_of_python,
    call_without_parentheses,
    misspelt_head,
    branches,
    words_of_others,
    index,
    brackets_of_lists,
    argument_behind_attributes,
    list_as_value,
    value_of_attribute,
    literal_as_pattern,
)


def recognise(r: Reading, i: int, kind: str) -> Answer:
    """The mistake that makes token `i` one that cannot follow, if it is a known one."""
    here = Here(r, i, kind)
    for rule in _RULES:
        answer = rule(here)
        if answer is not None:
            return answer
    return None
