"""Pages on backends and compiled programs: R06xx."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

#: The beginning of examples with kernels that the interpreter computes.
_FALLBACK = """\
import numpy as np
import relaylang as relay
from relaylang.backends.vm import compile_vm

made = compile_vm(relay.parse("def @main(%x: Tensor[(3), bool]) { argwhere(%x) }"))
"""
#: The beginning of examples with external code.
_REGION = (
    "import numpy as np\nimport relaylang as relay\nfrom relaylang.runtime.external import codegen\n\n"
    "mod = relay.parse('def @f(%x: Tensor[(2), float32], Compiler=\"example\") { exp(%x) }\\n'\n"
    "                  'def @main(%x: Tensor[(2), float32]) { @f(%x) }')\n"
)

PAGES = (
    Page(
        "R0601",
        "unknown target",
        """There is no backend of this name. `relay compile --help` lists the targets.""",
        "$ relay compile examples/mlp.relay --target cude --random-params 0 -o net.so",
        "$ relay compile examples/mlp.relay --target c --random-params 0 --emit c -o net.c",
        "shell",
    ),
    Page(
        "R0602",
        "wrong target option",
        """A target has options, `-key=value`, and does not have this one, or not with this value. A processor (`-mcpu`,
        `-march`) or a feature (`-mattr`) must be known to the C compiler; the notes list its names. As a note: the option
        is one of TVM's that has no effect.""",
        '$ relay compile examples/mlp.relay --target "c -threads=4" -o net.so',
        '$ relay compile examples/mlp.relay --target "c -num-threads=4" --random-params 0 --emit c -o net.c',
        "shell",
    ),
    Page(
        "R0603",
        "nothing to compile",
        """The module has no function of this name.""",
        'import relaylang as relay\nfrom relaylang.backends import compile_module\nmod = relay.parse("def @f() { 1 }")\n'
        'compile_module(mod, "c", entry="main")',
        'import relaylang as relay\nfrom relaylang.backends.cpu import emit_c\nmod = relay.parse("def @f() { 1 }")\n'
        'emit_c(relay.transform.InferType()(mod), {}, "f", {})',
        "python",
    ),
    Page(
        "R0604",
        "a backend failed",
        """An installed backend raised an exception other than a diagnostic, or returned a value that is no artifact.
        The message says where in its code; it is the package's to mend.""",
        "def compile_for(mod, target, fallback, params, entry):\n    return None",
        "def compile_for(mod, target, fallback, params, entry):\n"
        "    return Program(mod, params, entry)    # with run(**inputs), save(path), input_names",
        "text",
    ),
    Page(
        "R0605",
        "a code generator failed",
        """A function with the attribute `Compiler` goes to the code generator of that name. The generator raised an exception,
        returned no code, or C that does not compile. The message shows where in its file, or in the program.""",
        _REGION + 'codegen("example", lambda region: None)\nrelay.build(mod)',
        _REGION + 'codegen("example", lambda region: lambda x, y: np.exp(x, out=y))\nrelay.build(mod)',
        "python",
    ),
    Page(
        "R0606",
        "external code failed",
        """Code of another compiler inside a program failed in a run. A Python function raised an exception, or C code returned
        another number than 0. The notes have the region's place in the program.""",
        _REGION + 'codegen("example", lambda region: lambda x, y: y.fill(1 / 0))\nrelay.build(mod).run(np.ones(2, "f4"))',
        _REGION + 'codegen("example", lambda region: lambda x, y: np.exp(x, out=y))\nrelay.build(mod).run(np.ones(2, "f4"))',
        "python",
    ),
    Page(
        "R0608",
        "a device that is not here",
        """Compiled programs run on the CPU, `tvm.cpu()`. Scripts may name other devices, but no tensor and no program can be
        put on one. Accelerators are targets of `relay.build`.""",
        "import numpy as np\nfrom relaylang.tvm import nd\nnd.array(np.ones(3), nd.cuda())",
        "import numpy as np\nfrom relaylang.tvm import nd\nnd.array(np.ones(3), nd.cpu())",
        "python",
    ),
    Page(
        "R0609",
        "not part of this runtime",
        """TVM's runtime had this, and relaylang's has not: sessions with other machines, static libraries, values inside a
        running program. The notes say what to use instead.""",
        "from relaylang.tvm import rpc\nrpc.connect('board', 9090)",
        "from relaylang.tvm import rpc\nrpc.LocalSession().cpu()",
        "python",
    ),
    Page(
        "R0611",
        "the Ethos-U tools are not installed",
        """Compiling for Ethos-U needs Arm's Vela and the TOSA tools, which the extra brings: `pip install 'relaylang[ethosu]'`.""",
        '$ relay compile examples/quantized.relay --target "ethos-u, c" -o net.tar',
        "$ pip install 'relaylang[ethosu]'",
        "text",
    ),
    Page(
        "R0612",
        "the Ethos-U compiler cannot take it",
        """Vela refuses the form of a part that goes to the NPU. Or inputs or results of the program are not tensors of
        known shape. The page docs/ethosu.md lists the operators that the NPU takes. `ethos-u, c` leaves the rest to the CPU.""",
        '$ relay compile net.relay --target "ethos-u" -o net.tar',
        '$ relay compile net.relay --target "ethos-u, c" -o net.tar',
        "text",
    ),
    Page(
        "R0613",
        "the TOSA reference model cannot run it",
        """The reference model, which computes what the NPU computes, stopped at a region. The notes carry what it said.""",
        "artifact.run(...)    # a region that the reference model refuses",
        'artifact = compile_module(mod, "c")    # run the program on the CPU instead',
        "text",
    ),
    Page(
        "R0614",
        "nothing for the accelerator",
        """No operator of the program can go to the Ethos-U or VTA: they take quantized networks. The notes say of each
        operator why it stays. Quantize the network, or compile for the CPU.""",
        "$ relay compile examples/mlp.relay --target ethos-u --random-params 0 -o net.tar",
        "$ relay compile examples/mlp.relay --target c --random-params 0 -o net.so",
        "text",
    ),
    Page(
        "R0615",
        "no command stream",
        """A file for an Ethos-U or VTA is truncated, is of another format, or has commands that its accelerator does not know. The
        message says at which byte. Compile the network again.""",
        "$ relay disasm net.npu.bin    # the half of a file",
        "$ relay disasm net.tar",
        "text",
    ),
    Page(
        "R0616",
        "a command stream does what hardware does not forgive",
        """The simulator of the Ethos-U or VTA stops at a command. It reads memory to which nothing was written, leaves its
        memory, or misses a wait. Its weight stream may also be damaged.
        The message names the command and its byte in the file; `relay disasm`
        shows it. The simulator also stops at units that it does not have.""",
        "artifact.executor = 'ethosu-sim'\nartifact.run(...)    # of a stream that was changed",
        "artifact.executor = 'tosa'\nartifact.run(...)",
        "text",
    ),
    Page(
        "R0617",
        "CMSIS-NN is not here, or rounds otherwise",
        """A program for `cmsis-nn` calls Arm's library of this name. To run it on this machine, relay links the library that
        you have built: the folder has `Include/arm_nnfunctions.h` and `libcmsis-nn.a`. It must be built with
        `CMSIS_NN_USE_SINGLE_ROUNDING`, because Relay rounds once. For a microcontroller no such folder is needed.""",
        "import numpy as np\nimport relaylang as relay\nfrom relaylang.backends import compile_module\n\n"
        'mod = relay.parse("def @main(%x: Tensor[(4), int8]) { qnn.mul(%x, %x, 0.1f, 0, 0.1f, 0, 0.5f, 0) }")\n'
        "compile_module(mod, 'cmsis-nn -path=elsewhere, c').run(np.int8([1, 2, 3, 4]))",
        "import relaylang as relay\nfrom relaylang.backends import compile_module\n\n"
        'mod = relay.parse("def @main(%x: Tensor[(4), int8]) { qnn.mul(%x, %x, 0.1f, 0, 0.1f, 0, 0.5f, 0) }")\n'
        "print(compile_module(mod, 'cmsis-nn, c').source)",
        "python",
    ),
    Page(
        "R0618",
        "more memory than the limit",
        """A program for a microcontroller needs more bytes of workspace than `--workspace-limit` allows. The place is that of
        the operators at which most is in use. Smaller inputs, int8 in place of float32, or another accelerator need less.""",
        "import relaylang as relay\nfrom relaylang.backends.bare_metal import compile_bare_metal\n\n"
        'mod = relay.parse("def @main(%x: Tensor[(4, 64), float32]) { nn.softmax(cumsum(%x, axis=1)) }")\n'
        "compile_bare_metal(mod, 'c', workspace_limit=512)",
        "import relaylang as relay\nfrom relaylang.backends.bare_metal import compile_bare_metal\n\n"
        'mod = relay.parse("def @main(%x: Tensor[(4, 64), float32]) { nn.softmax(cumsum(%x, axis=1)) }")\n'
        "compile_bare_metal(mod, 'c', workspace_limit=4096)",
        "python",
    ),
    Page(
        "R0620",
        "stays on the host",
        """A note of an accelerator's backend: an operator that it could have taken stays on the CPU, and why. With
        --npu-only it is an error of the Ethos-U's backend.""",
        '$ relay compile examples/convnet.relay --target "ethos-u, c" --random-params 0 -o net.tar',
        '$ relay compile examples/quantized.relay --target "ethos-u, c" --random-params 0 -o net.tar',
        "text",
    ),
    Page(
        "R0630",
        "no C compiler",
        """Compiling for the CPU calls a C compiler: the one of --cc or $CC, else cc, gcc, clang or zig. This machine has
        none of them, or the chosen compiler does not start. On Debian or Ubuntu: apt install gcc. Anywhere:
        pip install 'relaylang[zig]'. For another machine (`-mtriple`) it takes a cross compiler, clang or zig.""",
        "$ relay compile examples/mlp.relay --cc /no/such/cc --random-params 0 -o net.so",
        "$ relay compile examples/mlp.relay --random-params 0 --emit c -o net.c",
        "shell",
    ),
    Page(
        "R0631",
        "the C compiler failed",
        """The C compiler refused what relaylang wrote, or a flag of -cflags. The notes carry its words. Without flags
        of your own please report it.""",
        '$ relay compile examples/mlp.relay --target "c -cflags=--no-such-flag" --random-params 0 -o net.so',
        "$ relay compile examples/mlp.relay --random-params 0 --emit c -o net.c",
        "text",
    ),
    Page(
        "R0632",
        "cannot be compiled",
        """The CPU backend compiles programs of known shape. Functions as values, values of type definitions, references and
        results without tensors are left to the VM and the interpreter.""",
        "import relaylang as relay\nfrom relaylang.backends import compile_module\n\n"
        'compile_module(relay.parse("def @main(%x: Tensor[(2), float32]) { ref_read(ref(%x)) }"), "c")',
        "import relaylang as relay\nfrom relaylang.backends import compile_module\n\n"
        'compile_module(relay.parse("def @main(%x: Tensor[(2), float32]) { exp(%x) }"), "c")',
        "python",
    ),
    Page(
        "R0633",
        "an operator without code",
        """The CPU backend has no code for the operator. The interpreter may have: `relay run`.""",
        "$ relay compile net.relay -o net.so",
        "$ relay run net.relay",
        "text",
    ),
    Page(
        "R0634",
        "an extent is not known",
        """The CPU backend makes loops over known extents, and a `?` is in a type. State the extent in the program.""",
        "$ relay compile unknown_extent.relay -o net.so",
        "$ relay compile known_extent.relay --emit c -o net.c",
        "shell",
    ),
    Page(
        "R0635",
        "an element type cannot be compiled",
        """The CPU backend has no C type for the element type. `cast` to one that it has.""",
        "$ relay compile strange_dtype.relay --emit c -o net.c",
        "$ relay compile known_extent.relay --emit c -o net.c",
        "text",
    ),
    Page(
        "R0636",
        "cannot become plain C",
        """Target `c` and `--runtime aot` have no memory that grows. All memory has a known size, and all functions are
        known. Branches and loops are fine: a loop is a function whose recursive calls are the last that happens. Other
        recursion, values of type definitions, references and functions chosen in a run need the VM.""",
        "$ relay compile examples/loop.relay --entry power --runtime aot -o power.c",
        "$ relay compile examples/loop.relay --runtime aot -o loop.c",
        "shell",
    ),
    Page(
        "R0640",
        "wrong input of a compiled program",
        """A call of a compiled program has a wrong input. It is missing, unknown, given twice, or of another shape or
        element type.""",
        "import numpy as np\nimport relaylang as relay\n"
        'mod = relay.parse("def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }")\n'
        'relay.build(mod, target="c").run(x=np.ones(3, np.float32))',
        "import numpy as np\nimport relaylang as relay\n"
        'mod = relay.parse("def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }")\n'
        'relay.build(mod, target="c").run(x=np.ones(2, np.float32))',
        "python",
    ),
    Page(
        "R0641",
        "not a compiled program",
        """The file does not come from `relay compile` or `save`, or is damaged, or was made for another machine. The notes say
        which part is wrong. A file of an earlier version has to be compiled again.""",
        'from relaylang.runtime.artifact import load\nload("my_passes.py")',
        'from relaylang.runtime.artifact import load\nload("net.so")    # written by relay compile -o net.so',
        "text",
    ),
    Page(
        "R0642",
        "the temporary directory cannot be used",
        """Compiling and loading a program write files into the temporary directory. Its disk is full, it is read-only or
        missing, or its file system forbids code (`noexec`). Free some space, or name another directory in TMPDIR.""",
        "TMPDIR=/full relay compile net.relay -o net.so",
        "TMPDIR=/var/tmp relay compile net.relay -o net.so",
        "text",
    ),
    Page(
        "R0643",
        "a schedule does not fit",
        """A schedule is a JSON file of choices for kernels. `relay compile --emit space` writes one. The file is missing or no
        schedule, or a value is none of its knob's choices.""",
        "$ relay compile examples/mlp.relay --schedule no_such_file.json --random-params 0 -o net.so",
        "$ relay compile examples/mlp.relay --random-params 0 --emit space -o schedule.json",
        "shell",
    ),
    Page(
        "R0644",
        "a text of the loop language is wrong",
        """`relay compile --emit loops` shows kernels in the loop language, and `relaylang.kernels.reader.parse` reads them
        back. The text is not of the language, or its statements break one of the language's rules.""",
        'from relaylang.kernels.reader import parse\nparse("kernel k\\n  out z: float32[4]\\n  for i in 0 .. 4\\n    z[j] = 0")',
        'from relaylang.kernels.reader import parse\nparse("kernel k\\n  out z: float32[4]\\n  for i in 0 .. 4\\n    z[i] = 0")',
        "python",
    ),
    Page(
        "R0645",
        "a tuning log cannot be used",
        """A log of `relay tune` has a record in each line (JSON). `relay compile --tuning` reads one. The file is missing, is no
        log, or cannot be written. As a note: some of its lines or records are left out.""",
        "$ relay compile examples/convnet.relay --tuning no_such_log.jsonl --random-params 0 -o net.so",
        "$ relay tune examples/convnet.relay --trials 2 --random-params 0 -o log.jsonl",
        "shell",
    ),
    Page(
        "R0646",
        "a kernel without compiled code",
        """The VM lets the interpreter compute operators without compiled code, and extents for which no code was made.
        `relay run --no-fallback` makes that an error. The message says what the code is for.""",
        _FALLBACK + "made.fallback = False\nmade.run(np.ones(3, bool))",
        _FALLBACK + "made.run(np.ones(3, bool))\nprint(*made.fallbacks())",
        "python",
    ),
)
