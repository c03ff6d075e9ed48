"""A process that runs Relay text with TVM: pickled (text, inputs, constants) in, pickled results or an error out.

Runs under the oracle's Python (`RELAY_ORACLE`); its argument is the folder of `x86.py`. `constants` are bound to
parameters by name before compilation.
"""

import pickle
import sys

sys.path.insert(0, sys.argv[1])
import numpy as np
import x86  # noqa: F401
from tvm import relay, runtime, transform


def plain(value):
    if isinstance(value, (list, tuple, runtime.container.ADT)):
        return tuple(plain(value[i]) for i in range(len(value)))
    return np.asarray(value.numpy())


def run(text, inputs, constants):
    module = relay.fromtext('#[version = "0.0.5"]\n' + text)
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
