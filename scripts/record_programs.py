"""Records what TVM saves of programs as JSON, for tests/tvm.

    PYTHON_WITH_TVM scripts/record_programs.py FOLDER_OF_X86_PY

It writes tests/tvm/programs.json, of the programs in tests/tvm/programs.py.
"""

import json
import runpy
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import x86  # noqa: F401
from tvm import ir, relay, runtime

TESTS = Path(__file__).resolve().parent.parent / "tests/tvm"


def built(text):
    names = {"tvm": sys.modules["tvm"], "relay": relay}
    exec(text, names)
    return json.loads(ir.save_json(names["made"]))


programs = runpy.run_path(str(TESTS / "programs.py"))
typed = relay.fromtext(programs["TYPED"]).with_attr("abc", runtime.convert(3))
found = {"built": {name: built(text) for name, text in programs["BUILT"].items()}, "typed": json.loads(ir.save_json(typed))}
(TESTS / "programs.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")
