"""Ctrl-C while `relay` starts: each import of the start is interrupted in turn, without regard to time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals and forks are those of Unix")

#: Calls relay in a fork for each `step`-th module that the call loads; the import of that module gets SIGINT.
_EACH = """
import json, os, signal, sys
step, start = int(sys.argv[1]), sys.argv[2]
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
sys.path[:] = [folder for folder in sys.path if folder]

def call(hook):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv[:] = ["/usr/bin/relay" if start == "script" else "-m", *sys.argv[3:]]
        sys.orig_argv[:] = ["python", "-m", "relaylang"]
        sys.meta_path.insert(0, hook)
        from relaylang.cli import main
        sys.exit(main())
    os.close(write)
    with open(read, "rb") as said:
        text = said.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text

class Names:
    def find_spec(self, name, path=None, target=None):
        os.write(out, name.encode() + b"\\n")

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            os.kill(os.getpid(), signal.SIGINT)

inp, out = os.pipe()
status, said = call(Names())
assert status == 0, said
os.close(out)
names = [n for n in open(inp).read().split() if n not in ("relaylang", "__future__", "relaylang._start")]
found = {}
for name in names[::step]:
    hook = Interrupt()
    hook.name = name
    found[name] = call(hook)
print(json.dumps(found))
"""


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("start", "step"), [("script", 100), *[pytest.param(s, 7, marks=pytest.mark.sweep) for s in ("script", "module")]]
)
def test_every_import_of_the_start(tmp_path: Path, start: str, step: int) -> None:
    file = tmp_path / "net.relay"
    file.write_text("def @main(%x: int32) { add(%x, 1) }\n")
    command = [sys.executable, "-c", _EACH, str(step), start, "check", str(file)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", timeout=600)
    found = json.loads(ran.stdout)
    assert len(found) > 200 // step
    assert {name: ended for name, ended in found.items() if ended != [130, "interrupted\n"]} == {}
