"""Records the signatures of TVM's operator functions, and the text of what calls of them make, for tests/tvm/op.

    PYTHON_WITH_TVM scripts/record_builders.py FOLDER_OF_X86_PY

It writes tests/tvm/op/tvm.json: names, parameters, defaults and Relay text.
"""

import inspect
import json
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import x86  # noqa: F401
from tvm import relay

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("", "nn", "image", "vision", "random", "annotation", "qnn.op", "op.vm")
HOMES = ("tvm.relay.op", "tvm.relay.qnn.op.qnn")
#: Functions of helpers, of strategies, and of the wheel's own operators.
FOREIGN = ("get_pad_tuple", "strategy", "contrib.", "csi", "register")


def plain(value):
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else repr(value)


def signatures():
    found = {}
    for module in MODULES:
        place = relay
        for part in filter(None, module.split(".")):
            place = getattr(place, part)
        for name in sorted(dir(place)):
            function = getattr(place, name)
            home = getattr(function, "__module__", "") or ""
            if name.startswith("_") or not inspect.isfunction(function) or not home.startswith(HOMES):
                continue
            if any(word in f"{home}.{name}" for word in FOREIGN):
                continue
            parameters = inspect.signature(function).parameters.values()
            found[f"{module}.{name}".lstrip(".")] = [
                [p.name] if p.default is p.empty else [p.name, plain(p.default)] for p in parameters
            ]
    return found


def texts():
    source = {}
    exec((ROOT / "tests/tvm/op/calls.py").read_text(), source)
    names = {"relay": relay}
    exec(source["VARIABLES"], names)
    found = {}
    for call in source["CALLS"]:
        try:
            found[call] = relay.Function(relay.analysis.free_vars(eval(call, names)), eval(call, names)).astext()
        except Exception as problem:
            found[call] = None
            print(f"{call}: {str(problem)[:100]}", file=sys.stderr)
    return found


if __name__ == "__main__":
    made = {"signatures": signatures(), "texts": texts()}
    (ROOT / "tests/tvm/op/tvm.json").write_text(json.dumps(made, indent=0, separators=(",", ":"), sort_keys=True) + "\n")
    print(len(made["signatures"]), "signatures,", len(made["texts"]), "texts")
