"""Records what TVM gives for the kernels' cases, into tests/interpreter/recorded.npz.

    RELAY_ORACLE=PYTHON_WITH_TVM python scripts/record_kernels.py [--all]

Without --all only the cases that are not in the file yet are run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.interpreter import recorded
from tests.interpreter.every_case import EVERY, KEYS
from tests.interpreter.oracle import ORACLE, Oracle, program


def main() -> int:
    if not ORACLE:
        print("RELAY_ORACLE names no Python with TVM", file=sys.stderr)
        return 2
    known: dict[str, Any] = recorded.load() if recorded.FILE.is_file() and "--all" not in sys.argv else {}
    results: dict[str, Any] = {}
    oracle = Oracle()
    for key, (name, attrs, args, constant) in zip(KEYS, EVERY):
        if key in known:
            results[key] = known[key]
            continue
        parts = recorded.flat(args)
        bound = {f"p{i}": part for i, part in enumerate(parts) if i in constant}
        inputs = [part for i, part in enumerate(parts) if i not in constant]
        try:
            answer = oracle.run(program(name, attrs, args), inputs, bound)
        except EOFError:  # it died
            answer, oracle = "died", Oracle()
        if isinstance(answer, str):
            answer = "refused"
            print(f"{key}: refused")
        results[key] = answer
    oracle.close()
    recorded.save(results)
    print(f"{len(results)} cases, {recorded.FILE.stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
