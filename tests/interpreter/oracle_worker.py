"""A process that runs Relay text with TVM: pickled (program, inputs, constants) in, pickled results or an error out.

Runs under the oracle's Python (`RELAY_ORACLE`); its argument is the folder of `x86.py`. `program` is a text or
(operator, parameters' names, their shapes and types, attributes). `constants` are bound to parameters by name before
compilation.
"""

import inspect
import pickle
import sys

sys.path.insert(0, sys.argv[1])
import numpy as np
import x86  # noqa: F401
from tvm import IRModule, relay, runtime, transform


def plain(value):
    if isinstance(value, (list, tuple, runtime.container.ADT)):
        return tuple(plain(value[i]) for i in range(len(value)))
    return np.asarray(value.numpy())


#: Attributes whose parameters in TVM's Python have another name.
RENAMED = {"unique": {"sorted": "is_sorted"}}


def built(name, names, params, attrs):
    """`@main` that calls one operator through TVM's Python function, for attributes that its text cannot give."""
    function = relay
    for part in name.split("."):
        function = getattr(function, part)
    variables = [relay.var(f"p{i}", shape=shape, dtype=dtype) for i, (shape, dtype) in enumerate(params)]
    attrs = {RENAMED.get(name, {}).get(k, k): v for k, v in attrs.items()}
    if set(names) <= set(inspect.signature(function).parameters):
        call = function(**dict(zip(names, variables)), **attrs)
    else:
        call = function(*variables, **attrs)
    call = call.astuple() if isinstance(call, relay.expr.TupleWrapper) else call
    return IRModule.from_expr(relay.Function(variables, call))


def run(program, inputs, constants):
    if isinstance(program, str):
        module = relay.fromtext('#[version = "0.0.5"]\n' + program)
    else:
        module = built(*program)
    if constants:
        module["main"] = relay.build_module.bind_params_by_name(module["main"], constants)
    with transform.PassContext(opt_level=1):
        function = relay.create_executor("vm", mod=module, target="llvm").evaluate()
    return plain(function(*inputs))


def main():
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = run(*request)
        except Exception as problem:
            answer = f"{type(problem).__name__}: {str(problem)[-600:]}"
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


main()
