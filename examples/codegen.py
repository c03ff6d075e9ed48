"""A code generator of your own: `relay compile examples/regions.relay --load examples/codegen.py -o net.so`.

Functions with the attribute Compiler="tiny" come here, each as a region. For element-wise arithmetic the generator writes C.
For all else it returns a Python function, which calls relaylang's interpreter.
"""

import numpy as np

import relaylang as relay
from relaylang.ir import Call, Constant, post_order
from relaylang.runtime.external import Code, codegen

SIGNS = {"add": "+", "subtract": "-", "multiply": "*"}


@codegen("tiny")
def generate(region):
    tensors = [*region.inputs, *region.outputs]
    simple = all(t.dtype == "float32" and t.shape == tensors[0].shape for t in tensors)
    nodes = [n for n in post_order(region.function.body) if isinstance(n, (Call, Constant))]
    if simple and all(getattr(n.op, "name", "") in SIGNS if isinstance(n, Call) else n.data.shape == tensors[0].shape for n in nodes):
        return in_c(region, nodes)
    mod = relay.IRModule.from_expr(relay.Function(region.function.params, region.function.body))
    call = relay.create_executor("debug", mod).evaluate()
    return lambda *tensors: np.copyto(tensors[-1], call(*tensors[:-1]))


def in_c(region, nodes):
    """A loop over the elements: a line for each call. Constants are passed behind the inputs."""
    names = {p: f"in{n}[i]" for n, p in enumerate(region.function.params)}
    lines, constants = [], []
    for number, node in enumerate(nodes):
        if isinstance(node, Constant):
            names[node] = f"in{len(region.inputs) + len(constants)}[i]"
            constants.append(region.constant_names[id(node)])
        else:
            left, right = (names[a] for a in node.args)
            lines.append(f"    const float v{number} = {left} {SIGNS[node.op.name]} {right};")
            names[node] = f"v{number}"
    count = len(region.inputs) + len(constants)
    arguments = ", ".join([*(f"const float* in{n}" for n in range(count)), "float* out"])
    source = "\n".join(
        [
            "#include <stdint.h>",
            f"int32_t {region.symbol}({arguments}) {{",
            f"  for (long i = 0; i < {int(np.prod(region.outputs[0].shape))}; i++) {{",
            *lines,
            f"    out[i] = {names[region.function.body]};",
            "  }",
            "  return 0;",
            "}",
        ]
    )
    return Code(source=source, constants=constants)
