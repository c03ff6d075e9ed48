"""The C of an Ethos-U region: its command stream and weights, and a call of Arm's driver."""

from __future__ import annotations

from relaylang.backends.bare_metal.rom import ALIGN, HEAD, stored
from relaylang.backends.ethosu.artifact import RegionCode
from relaylang.runtime.external import Code, Region

#: The driver's header, which is the user's.
DRIVER = "ethosu_driver.h"


def region_source(region: Region, code: RegionCode, handle: str) -> Code:
    """The C of a region. `handle` is the variable with the driver."""
    driver = code.details["driver"]
    scratch, fast = driver["scratch"], driver["scratch_fast"]
    # Memory regions of the command stream by number, each with its address and bytes.
    bases: dict[int, tuple[str, int]] = {driver["weights_region"]: ("weights", len(code.weights))}
    workspace = 0
    for memory in (scratch, fast):
        if memory["bytes"]:
            bases[memory["region"]] = (f"(char*)workspace + {workspace}", memory["bytes"])
            workspace += -(-memory["bytes"] // ALIGN) * ALIGN
    places = [bases.get(n, ("0", 0)) for n in range(max(bases) + 1)]
    inputs = [f"in{n}" for n in range(len(code.inputs))]
    outputs = [f"out{n}" for n in range(len(code.outputs))]
    params = [*(f"const void* {name}" for name in inputs), *(f"void* {name}" for name in outputs), "void* workspace"]
    signature = f"int32_t {region.symbol}({', '.join(params)})"

    def address(place: dict[str, int]) -> str:
        return f"{bases[place['region']][0]} + {place['address']}"

    body = [
        f"  uint64_t base[] = {{{', '.join(f'(uintptr_t)({at})' for at, _ in places)}}};",
        f"  const size_t sizes[] = {{{', '.join(str(size) for _, size in places)}}};",
        *(f"  memcpy({address(at)}, {name}, {at['bytes']});" for name, at in zip(inputs, driver["inputs"])),
        f"  if (ethosu_invoke({handle}, commands, {len(code.command_stream)}, base, sizes, {len(places)})) return 1;",
        *(f"  memcpy({name}, {address(at)}, {at['bytes']});" for name, at in zip(outputs, driver["outputs"])),
        "  return 0;",
    ]
    source = "\n".join([
        f"// {region.symbol}, made by relaylang", "#include <stddef.h>", "#include <stdint.h>", "#include <string.h>",
        f'#include "{DRIVER}"', HEAD, "", stored("commands", code.command_stream), "", stored("weights", code.weights), "",
        f"extern void* {handle};", f"{signature};", f"{signature} {{", *body, "}", "",
    ])  # fmt: skip
    return Code(source=source, workspace=workspace, constant_bytes=len(code.command_stream) + len(code.weights))


__all__ = ["DRIVER", "region_source"]
