"""Pages on the command line, the Python interface and tests: R07xx without the session; faults of relaylang: R09xx."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

PAGES = (
    Page(
        "R0700",
        "wrong arguments",
        """The call has an option, a verb or a value that does not exist, or lacks one. `relay VERB --help` shows them with
        examples. Exit status 2.""",
        "$ relay chek examples/mlp.relay",
        "$ relay check examples/mlp.relay",
        "shell",
    ),
    Page(
        "R0704",
        "cannot write a file",
        """The result cannot be written: the directory does not exist or is not writable, or the disk is full.
        relaylang writes files whole or not at all, so an earlier file stays.""",
        "$ relay print examples/mlp.relay -o no/such/directory/net.relay",
        "$ relay print examples/mlp.relay -o net.relay",
        "shell",
    ),
    Page(
        "R0705",
        "wrong value for an option",
        """A value of --input or --params does not fit its parameter. It has another shape or element type, or a name
        that the function does not have.""",
        "$ relay run examples/loop.relay --entry power --input base=1.5 --input n=1.5",
        "$ relay run examples/loop.relay --entry power --input base=1.5 --input n=10",
        "shell",
    ),
    Page(
        "R0706",
        "a value is missing",
        """The program has parameters (or constants that its text does not carry) that nothing gives a value. Give them with
        --input NAME=VALUE, --params FILE, or --random-params SEED.""",
        "$ relay run examples/mlp.relay",
        "$ relay run examples/mlp.relay --random-params 0",
        "shell",
    ),
    Page(
        "R0707",
        "no such function",
        """The module has no function of this name to run or compile. --entry NAME chooses one; without it that is @main.""",
        "$ relay run examples/loop.relay --entry powr --input base=1.5 --input n=10",
        "$ relay run examples/loop.relay --entry power --input base=1.5 --input n=10",
        "shell",
    ),
    Page(
        "R0708",
        "a type is taken from a comment",
        """A note. A variable of a fragment has no type of its own. The checker used the comment `/* ty=... */` behind
        a call that takes the variable. Declare the variable to be sure.""",
        "nn.relu(%x) /* ty=Tensor[(2, 3), float32] */",
        "free_var %x: Tensor[(2, 3), float32];\nnn.relu(%x) /* ty=Tensor[(2, 3), float32] */",
    ),
    Page(
        "R0709",
        "large constants are in a file of their own",
        """A note. Constants of more than a megabyte do not stand in the text that `-o FILE` writes, but in FILE.params beside
        it. The verbs of `relay` read them from there, so move or copy the two files together. --constants names another
        file; --style tvm keeps the constants in the text.""",
        "$ relay import large.onnx -o large.relay",
        "$ relay import large.onnx -o large.relay --constants large.npz",
        "text",
    ),
    Page(
        "R0710",
        "the settings of lints are wrong",
        """`[tool.relay]` in pyproject.toml, or an option of `relay check --lint`, names a lint that does not exist, or has an
        unknown key. `select` and `ignore` are lists of codes; R10 stands for all lints. `per-file-ignores` has such a
        list for each pattern of file names.""",
        "$ relay check --lint --select R9999 examples/mlp.relay",
        "$ relay check --lint --select R1001 examples/mlp.relay",
        "shell",
    ),
    Page(
        "R0730",
        "wrong argument of the Python interface",
        """A function of relaylang is called with an argument that it does not know.""",
        "import relaylang as relay\nmod = relay.parse('def @main() { 1 }')\nrelay.create_executor('debugg', mod)",
        "import relaylang as relay\nmod = relay.parse('def @main() { 1 }')\nrelay.create_executor('debug', mod)",
        "python",
    ),
    Page(
        "R0760",
        "a test failed",
        """The output of a file differs from its `// CHECK:` lines, or its errors differ from its `// expected-error`
        comments. Or the call failed. `--update` writes the expectations as the output is now.""",
        "// RUN: relay print %s --no-types\n// CHECK: subtract\nadd(1, 2)",
        "// RUN: relay print %s --no-types\n// CHECK: add(1, 2)\nadd(1, 2)",
        "text",
    ),
    Page(
        "R0761",
        "a test that checks nothing",
        """A RUN line without a `// CHECK:` line would pass whatever it prints. State the expectations, or let `relay
        test --update` write them.""",
        "// RUN: relay print %s --no-types\nadd(1, 2)",
        "// RUN: relay print %s --no-types\n// CHECK: add(1, 2)\nadd(1, 2)",
        "text",
    ),
    Page(
        "R0762",
        "a wrong directive in a test",
        """A comment for `relay test` has another form. A RUN line calls `relay`, `not relay` or `filecheck`.
        docs/golden.md has the list.""",
        "// RUN: rm -rf %s\n// CHECK: add\nadd(1, 2)",
        "// RUN: relay print %s\n// CHECK: add\nadd(1, 2)",
        "text",
    ),
    Page(
        "R0763",
        "a package is not installed",
        """The call needs a package of an extra of relaylang. The note has the line that installs it.""",
        "$ relay test tests/",
        "$ pip install 'relaylang[golden]'",
        "text",
    ),
    Page(
        "R0764",
        "a test that would run code of a file",
        """`relay test` runs files of strangers, so its RUN lines run no code that a file holds. They take no `--load`, script,
        compiled program or compiler of the folder. A program that the test itself compiled runs.
        `relay test --trust` lifts this for tests that you trust.""",
        "// RUN: relay opt %s --load %S/passes.py --passes Mine\n// CHECK: add\nadd(1, 2)",
        "// RUN: relay opt %s --passes FuseOps\n// CHECK: add\nadd(1, 2)",
        "text",
    ),
    Page(
        "R0770",
        "no picture could be made",
        """PNG pictures need the package resvg-py with a font, PDF pages the package svglib. The browser Chromium makes both.
        `dot` of Graphviz draws only for `tvm.contrib.relay_viz`. An SVG picture (-o net.svg) and an HTML page (-o net.html)
        need no program.""",
        "$ PATH= relay viz examples/mlp.relay -o net.png",
        "$ relay viz examples/mlp.relay -o net.svg",
        "text",
    ),
    Page(
        "R0771",
        "a file does not fit the picture",
        """`relay viz --profile` takes a file that `relay run --profile FILE` wrote. `--partition-report` takes one of
        `relay partition --report-format json -o FILE`. As a note, it says what of the file the picture does not show.""",
        "$ relay viz examples/mlp.relay --profile examples/mlp.relay",
        "$ relay run examples/mlp.relay --random-params 0 --profile run.json",
        "shell",
    ),
    Page(
        "R0900",
        "internal error of relaylang",
        """Something went wrong inside relaylang; your program may be right. Please report it with the input, the call,
        `relay --version`, and the traceback that RELAY_TRACEBACK=1 in front of the call shows. Exit status 1.""",
        "$ relay check net.relay",
        "$ RELAY_TRACEBACK=1 relay check net.relay",
        "text",
    ),
    Page(
        "R0901",
        "there is not enough memory",
        """The system gives no more memory. Close something, or take a machine with more; `relay run --memory-limit` ends a
        program before that.""",
        "$ relay run net.relay",
        "$ relay run net.relay --memory-limit 4GiB",
        "text",
    ),
)
