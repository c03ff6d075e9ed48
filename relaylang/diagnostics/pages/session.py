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
        """The session evaluates each expression, and this one uses a variable that has no value yet. Bind it: `let %x
        = 1`.""",
        "add(%x, 1)",
        "let %x = 1\nadd(%x, 1)",
        "session",
    ),
    Page(
        "R0723",
        "nothing to evaluate",
        """`relay run -e` and similar calls take an expression, and this text holds definitions.""",
        "$ relay run examples/numbers.relay -e 'def @f() { 1 }'",
        "$ relay run examples/numbers.relay -e '@total(Two(5, 6))'",
        "shell",
    ),
    Page(
        "R0724",
        "no such place to stop at",
        """`--break` takes a variable (%x), a function (@f), an operator or a line of the program. The program has no
        such place.""",
        "$ relay run examples/loop.relay --break %nowhere",
        "$ relay run examples/loop.relay",
        "shell",
    ),
    Page(
        "R0725",
        "cannot save",
        """The definitions of the session cannot be written. The file is there already (`:save!` replaces it), or the
        directory does not exist or is not writable.""",
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
        """A warning. The configuration file of the session cannot be read. Or a setting does not exist or has a wrong
        value; the session uses the default.""",
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
