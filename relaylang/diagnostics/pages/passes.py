"""Pages on passes and partitioning: R05xx without those on patterns."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

_R = "import relaylang as relay\n"
_MOD = 'mod = relay.parse("def @main(%x: Tensor[(2), float32]) { nn.relu(nn.relu(%x)) }")\n'
_CIRCLE = '''import relaylang as relay
from relaylang.transform import PartitionGraph, Sequential

program = """{program}"""
Sequential([PartitionGraph()])(relay.parse(program))
'''
_Q = '''import numpy as np
import relaylang as relay
from relaylang import quantize

mod = relay.parse("""def @main(%x: Tensor[(1, 1, 4, 4), float32], %w: Tensor[(1, 1, 1, 1), float32]) {
  nn.relu(nn.conv2d(nn.conv2d(%x, %w, kernel_size=[1, 1]), %w, kernel_size=[1, 1]))
}""")
'''

PAGES = (
    Page(
        "R0501",
        "a pass has no such option",
        """A pass is given an option that it does not have, or a value that the option cannot take. `relay opt --list` shows
        every pass with its options.""",
        '$ relay opt examples/mlp.relay --passes "FuseOps(level=2)"',
        '$ relay opt examples/mlp.relay --passes "FuseOps(fuse_opt_level=2)"',
        "shell",
    ),
    Page(
        "R0502",
        "a pass failed",
        """A pass raised an exception that is no diagnostic. The place shown is the line of the pass that failed; for a pass of
        your own, repair it there. For one of relaylang's please report it.""",
        "$ relay opt examples/mlp.relay --load failing_pass.py --passes Failing",
        "$ relay opt examples/mlp.relay --passes FuseOps",
        "shell",
    ),
    Page(
        "R0503",
        "a pass returned no module",
        """A pass takes a module and returns one. This pass got or returned another value. A `return` is missing, or
        the argument is an expression. `IRModule.from_expr` makes a module of an expression.""",
        _R + _MOD + "@relay.transform.module_pass(opt_level=0)\ndef forgets(mod, ctx):\n    mod\n\nforgets(mod)",
        _R + _MOD + "@relay.transform.module_pass(opt_level=0)\ndef keeps(mod, ctx):\n    return mod\n\nkeeps(mod)",
        "python",
    ),
    Page(
        "R0504",
        "a pass made a wrong program",
        """The result of a pass is not well-typed, or uses variables where they are not bound. The later errors give
        the places. `relay opt --verify` checks after every pass.""",
        "$ relay opt examples/mlp.relay --load wrong_pass.py --passes Wrong --verify",
        "$ relay opt examples/mlp.relay --passes FuseOps --verify",
        "text",
    ),
    Page(
        "R0505",
        "there is no such pass",
        """The list of passes names one that does not exist. `relay opt --list` shows all; passes of your own are loaded with
        --load.""",
        "$ relay opt examples/mlp.relay --passes FuseOp",
        "$ relay opt examples/mlp.relay --passes FuseOps",
        "shell",
    ),
    Page(
        "R0506",
        "a pass changed what the program computes",
        """`relay opt --bisect` ran the program after each pass, and after this one the result is another. Look at what it changed
        with --print-changed.""",
        "$ relay opt examples/mlp.relay --load changing_pass.py --passes Changing --bisect --random-params 0",
        "$ relay opt examples/mlp.relay --passes FuseOps --bisect --random-params 0",
        "text",
    ),
    Page(
        "R0507",
        "a list of passes is not written right",
        """A list of passes is names with commas between, each with options in parentheses where it has some:
        `SimplifyInference,FuseOps(fuse_opt_level=2)`.""",
        '$ relay opt examples/mlp.relay --passes "SimplifyInference,,FuseOps("',
        '$ relay opt examples/mlp.relay --passes "SimplifyInference,FuseOps(fuse_opt_level=2)"',
        "shell",
    ),
    Page(
        "R0508",
        "there is no such configuration",
        """The pass context is given a configuration that no pass reads, or a value of another type than it wants.""",
        "$ relay opt examples/mlp.relay --passes FuseOps --config relay.FuseOps.depth=3",
        "$ relay opt examples/mlp.relay --passes FuseOps --config relay.FuseOps.max_depth=3",
        "shell",
    ),
    Page(
        "R0509",
        "a variable is not bound as it should be",
        """In a program made from Python a variable is bound twice, or used where nothing binds it. `Verify` finds it behind the
        pass that caused it.""",
        _R + 'x = relay.var("x")\nrelay.Let(x, relay.const(1), relay.Let(x, relay.const(2), x))',
        _R + 'x, y = relay.var("x"), relay.var("y")\nrelay.Let(x, relay.const(1), relay.Let(y, relay.const(2), y))',
        "text",
    ),
    Page(
        "R0510",
        "there is nothing to analyse",
        """An analysis is asked for an expression that the function does not have: its number is too large.""",
        "from relaylang.passes.analysis import extract_intermdeiate_expr\nextract_intermdeiate_expr(mod, 99)",
        "from relaylang.passes.analysis import extract_intermdeiate_expr\nextract_intermdeiate_expr(mod, 0)",
        "text",
    ),
    Page(
        "R0511",
        "there is no gradient",
        """The first-order gradient takes data flow: calls of operators that have a gradient, and tuples. It goes through no
        `if`, `match`, reference or function value, and not through operators that have no gradient.""",
        _R + 'mod = relay.parse("def @main(%x: float32, %c: bool) { if (%c) { %x } else { negative(%x) } }")\n'
        'relay.transform.InferType()(mod)\nrelay.transform.gradient(mod["main"], mode="first_order")',
        _R + 'mod = relay.parse("def @main(%x: Tensor[(2, 3), float32]) { multiply(%x, %x) }")\n'
        'relay.transform.InferType()(mod)\nrelay.transform.gradient(mod["main"], mode="first_order")',
        "python",
    ),
    Page(
        "R0512",
        "a plug-in or a file of passes cannot be loaded",
        """The file given with --load cannot be read or raised an exception; the message says where. Or the name of an
        installed package cannot be imported, or does not fit the group of its entry point. The message names the
        package. The message names the package.""",
        "$ relay opt examples/mlp.relay --load broken_file.py --passes FuseOps",
        "$ relay opt examples/mlp.relay --load my_passes.py --passes FuseOps",
        "shell",
    ),
    Page(
        "R0513",
        "there is no such accelerator",
        """Partitioning is asked for an accelerator that has no table of patterns. The note lists those that have one; a package
        of your own adds one with `register_pattern_table`.""",
        'from relaylang.partition import get_pattern_table\nget_pattern_table("dnll")',
        'from relaylang.partition import get_pattern_table\nget_pattern_table("dnnl")',
        "python",
    ),
    Page(
        "R0514",
        "a parameter's value does not fit",
        """The value becomes part of the program. It has another element type or another number of dimensions than its
        parameter.""",
        "import numpy as np\nimport relaylang as relay\nfrom relaylang.partition import bind_params\n"
        + _MOD
        + 'bind_params(mod, {"x": np.ones(2)})',
        "import numpy as np\nimport relaylang as relay\nfrom relaylang.partition import bind_params\n"
        + _MOD
        + 'bind_params(mod, {"x": np.ones(2, np.float32)})',
        "python",
    ),
    Page(
        "R0515",
        "a function has another form than the pass takes",
        """Some passes take functions of one form. UnCPS takes those whose last parameter is a continuation.
        Defunctionalization takes an entry that neither takes nor returns functions.""",
        _R + 'mod = relay.transform.InferType()(relay.parse("def @main(%x: float32) { %x }"))\nrelay.transform.un_cps(mod["main"])',
        _R + 'mod = relay.transform.InferType()(relay.parse("def @main(%x: float32) { %x }"))\nrelay.transform.UnCPS()(mod)',
        "python",
    ),
    Page(
        "R0516",
        "an operator has no integer form",
        """FakeQuantizationToInteger with `hard_fail` meets an operator between qnn.dequantize and qnn.quantize that it has no
        rule for, or `optional_qnn_ops` names one. Without `hard_fail` such a part stays in floats.""",
        _R + 'relay.transform.FakeQuantizationToInteger(optional_qnn_ops=["sinh"])(\n'
        '    relay.parse("def @main(%x: float32) { sinh(%x) }"))',
        _R + 'relay.transform.FakeQuantizationToInteger(optional_qnn_ops=["nn.softmax"])(\n'
        '    relay.parse("def @main(%x: float32) { sinh(%x) }"))',
        "python",
    ),
    Page(
        "R0517",
        "a quantized operator cannot be lowered",
        """QnnCanonicalizeOps makes plain integer operators of those of the qnn dialect, also where scales and zero
        points are no constants. Operators with meaningless attributes stay. Examples are an output scale of 0, an
        unknown rounding or compute_dtype, and an input scale of qnn.softmax above 1.""",
        _R + 'relay.transform.QnnCanonicalizeOps()(relay.parse("""def @main(%x: Tensor[(3), int32]) {\n'
        '  qnn.requantize(%x, 0.5f, 0, 0f, 0, out_dtype="int8")\n}"""))',
        _R + 'relay.transform.QnnCanonicalizeOps()(relay.parse("""def @main(%x: Tensor[(3), int32]) {\n'
        '  qnn.requantize(%x, 0.5f, 0, 0.25f, 0, out_dtype="int8")\n}"""))',
        "python",
    ),
    Page(
        "R0518",
        "a region waits for its own result",
        """In an annotated program a value leaves a region. A call outside takes it, and the result of that call goes
        into the same region again. A region is one call, so this cannot run. AnnotateTarget and
        MergeCompilerRegions draw no such region. Annotations from elsewhere must end the region before the call
        outside, and begin another one behind it.""",
        _CIRCLE.format(
            program="""def @main(%x: float32) {
  %0 = negative(annotation.compiler_begin(%x, compiler="npu"));
  %1 = exp(annotation.compiler_end(%0, compiler="npu"));
  %2 = multiply(%0, annotation.compiler_begin(%1, compiler="npu"));
  annotation.compiler_end(%2, compiler="npu")
}"""
        ),
        _CIRCLE.format(
            program="""def @main(%x: float32) {
  %0 = negative(annotation.compiler_begin(%x, compiler="npu"));
  %1 = annotation.compiler_end(%0, compiler="npu");
  %2 = exp(%1);
  %3 = multiply(annotation.compiler_begin(%1, compiler="npu"), annotation.compiler_begin(%2, compiler="npu"));
  annotation.compiler_end(%3, compiler="npu")
}"""
        ),
        "python",
    ),
    Page(
        "R0519",
        "a pattern table is not well made",
        """A row of a pattern table is `(name, pattern)` or `(name, pattern, check)`. The check is a function that gets
        each match.""",
        _R + "from relaylang.dataflow_pattern import is_op, wildcard\n"
        'relay.transform.MergeComposite([("npu.exp", "exp")])(relay.parse("def @main(%x: float32) { exp(%x) }"))',
        _R + "from relaylang.dataflow_pattern import is_op, wildcard\n"
        'relay.transform.MergeComposite([("npu.exp", is_op("exp")(wildcard()))])(\n'
        '    relay.parse("def @main(%x: float32) { exp(%x) }"))',
        "python",
    ),
    Page(
        "R0527",
        "a partition has no name, or one that another function has",
        """A partition moves into the module under its `global_symbol`, which PartitionGraph gives it. Each partition
        needs one, and two partitions of one name must be equal. Only a partition (a function with `Compiler`) can
        be inlined by name.""",
        _R + 'mod = relay.transform.InferType()(relay.parse("def @main(%x: float32) { negative(%x) }"))\n'
        'relay.transform.InlineCompilerFunctionsBoundTo(["main"])(mod)',
        _R + "from relaylang.op.contrib import partition_for_dnnl\n"
        'mod = partition_for_dnnl(relay.parse("def @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }"))\n'
        'names = [gv for gv, f in mod.functions.items() if "Compiler" in f.attrs]\n'
        "relay.transform.InlineCompilerFunctionsBoundTo(names)(mod)",
        "python",
    ),
    Page(
        "R0528",
        "a value is wanted on two devices",
        """All operands of an operator lie where its result does, and a function's parameters and result have one
        device each. `device_copy` moves a value from one device to another. So does `on_device` around a value that
        names its device.""",
        _R + 'text = """def @main(%x: float32) {\n'
        '  %0 = device_copy(%x, src_virtual_device="cpu", dst_virtual_device="cuda");\n'
        '  device_copy(%0, src_virtual_device="cpu", dst_virtual_device="cuda")\n}"""\n'
        'relay.transform.PlanDevices(["llvm", "cuda"])(relay.parse(text))',
        _R + 'text = """def @main(%x: float32) {\n'
        '  %0 = device_copy(%x, src_virtual_device="cpu", dst_virtual_device="cuda");\n'
        '  device_copy(%0, src_virtual_device="cuda", dst_virtual_device="cpu")\n}"""\n'
        'relay.transform.PlanDevices(["llvm", "cuda"])(relay.parse(text))',
        "python",
    ),
    Page(
        "R0529",
        "there is no such device, or no target for it",
        """PlanDevices takes the targets that a program is compiled for: one for each kind of device that the program names. A device
        is a name such as `cpu`, `cuda`, `cuda(1)`, or a target's.""",
        _R + "mod = relay.parse('def @main(%x: float32) { on_device(%x, virtual_device=\"cuda\") }')\n"
        'relay.transform.PlanDevices(["llvm"])(mod)',
        _R + "mod = relay.parse('def @main(%x: float32) { on_device(%x, virtual_device=\"cuda\") }')\n"
        'relay.transform.PlanDevices(["llvm", "cuda"])(mod)',
        "python",
    ),
    Page(
        "R0530",
        "a network cannot be quantised as the configuration says",
        """Weights must be constants: `quantize(mod, params)` binds them. The modes kl_divergence and percentile need a data
        set. "fully_integral" wants a network that computes in whole numbers between its conversions.""",
        _Q + 'with quantize.qconfig(calibrate_mode="percentile"):\n'
        '    quantize.quantize(mod, {"w": np.ones((1, 1, 1, 1), "float32")})',
        _Q + 'with quantize.qconfig(calibrate_mode="percentile"):\n'
        '    quantize.quantize(mod, {"w": np.ones((1, 1, 1, 1), "float32")}, [{"x": np.ones((1, 1, 4, 4), "float32")}])',
        "python",
    ),
)
