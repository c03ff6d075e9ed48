"""The program of the process in which Vela's native part runs, so that a crash of it harms nothing else.

`vela_process` starts this file with the folder of the package as its argument. Requests and replies are values of `marshal`,
on the standard input and output. What native code prints goes to the standard error. Nothing of relaylang is imported here:
a start takes some 20 ms.
"""

from __future__ import annotations

import marshal
import os
import sys
from typing import Any


def _tensor(tensor: Any) -> tuple[Any, ...]:
    return list(tensor.shape), tensor.element_size, tensor.region, tensor.address, tensor.size


def _memory(memory: Any) -> tuple[Any, ...]:
    traffic = {access.accessType: (access.bytesRead, access.bytesWritten) for access in memory.accesses.values()}
    return memory.memoryName, memory.peakUsage, memory.totalAccessCycles, traffic


def _table(database: Any, name: str) -> tuple[Any, Any]:
    """The columns and rows of a table of the compiler's database."""
    stored = database.tables.get(name)
    return ([], []) if stored is None else (list(stored.header), [list(row) for row in stored.data])


def _plain(model: Any) -> dict[str, Any]:
    """A compiled model as numbers, texts and bytes."""
    report = model.perf_report
    return {
        "command_stream": bytes(model.command_stream),
        "weights": bytes(model.read_only.data),
        "weights_region": model.read_only.region,
        "scratch_size": model.scratch.size,
        "scratch_region": model.scratch.region,
        "scratch_fast_size": model.scratch_fast.size,
        "scratch_fast_region": model.scratch_fast.region,
        "inputs": [_tensor(tensor) for tensor in model.inputs],
        "outputs": [_tensor(tensor) for tensor in model.outputs],
        "total_cycles": report.totalCycles,
        "npu_cycles": report.npuCycles,
        "macs": report.macCount,
        "operations": report.npuOps,
        "original_weights": report.originalWeights,
        "encoded_weights": report.encodedWeights,
        "memories": [_memory(memory) for memory in report.memories.values()],
        "tables": {name: _table(model.opt_database, name) for name in ("perf", "queue")},
    }


def main() -> None:
    """Compile until the standard input ends."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path.append(sys.argv[1])
    from ethosu import regor

    while True:
        try:
            architecture, model, kind, config, options = marshal.load(sys.stdin.buffer)
        except EOFError:
            return
        reply: dict[str, Any] | str
        try:
            reply = _plain(regor.compile(architecture, model, kind, config, options=options))
        except Exception as problem:
            reply = f"{problem}" if isinstance(problem, (RuntimeError, ValueError)) else f"{type(problem).__name__}: {problem}"
        marshal.dump(reply, replies)
        replies.flush()


if __name__ == "__main__":
    main()
