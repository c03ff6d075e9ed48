"""Pages on the interactive session: R072x."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

PAGES = (
    Page(
        "R0720",
        "unknown command",
        """Commands of the session begin with a colon; `:help` lists them.""",
        ":hlep",
        ":help",
        "session",
    ),
    Page(
        "R0721",
        "wrong argument of a command",
        """A command of the session lacks its argument, or it names something that does not exist.""",
        ":doc nn.rellu",
        ":doc nn.relu",
        "session",
    ),
    Page(
        "R0722",
        "a variable without a value",
        """The session evaluates what is entered, and the expression uses a variable that has no value yet. Bind it:
        `let %x = 1`.""",
        "add(%x, 1)",
        "let %x = 1\nadd(%x, 1)",
        "session",
    ),
    Page(
        "R0723",
        "nothing to evaluate",
        """An expression is wanted, as behind `relay run -e`, and what was given holds definitions.""",
        "$ relay run examples/numbers.relay -e 'def @f() { 1 }'",
        "$ relay run examples/numbers.relay -e '@total(Two(5, 6))'",
        "shell",
    ),
    Page(
        "R0724",
        "no such place to stop at",
        """`--break` names a variable (%x), a function (@f), an operator or a line of the program; this one is none of them.""",
        "$ relay run examples/loop.relay --break %nowhere",
        "$ relay run examples/loop.relay",
        "shell",
    ),
    Page(
        "R0725",
        "cannot save",
        """The session's definitions cannot be written: the file is there already (`:save!` replaces it), or the directory does
        not exist or may not be written to.""",
        ":save no/such/directory/session.relay",
        ":save session.relay",
        "session",
    ),
    Page(
        "R0726",
        "nothing to take back",
        """`:undo` takes the session's last definition back, and there is none.""",
        ":undo",
        "let %x = 1\n:undo",
        "session",
    ),
    Page(
        "R0727",
        "the configuration is wrong",
        """A warning. The session's configuration file cannot be read, or has a setting that does not exist or a value that it
        cannot take; the default is used instead.""",
        "[repl]\nvi-mod = yes",
        "[repl]",
        "text",
    ),
    Page(
        "R0728",
        "the history cannot be kept",
        """A warning. The file with the session's history cannot be read or written. The session goes on, and its history is gone
        at its end.""",
        "$ XDG_STATE_HOME=/no/such/place relay repl",
        "$ relay repl",
        "text",
    ),
)
