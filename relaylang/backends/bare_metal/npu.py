"""The C of an Ethos-U region: its command stream and weights, and a call of Arm's driver."""

from __future__ import annotations

from collections.abc import Mapping

from relaylang.backends.bare_metal.rom import ALIGN, head, stored
from relaylang.backends.ethosu.artifact import RegionCode
from relaylang.runtime.external import Code, Region

#: The driver's header, which is the user's.
DRIVER = "ethosu_driver.h"


def handle(prefix: str) -> str:
    """The variable with the driver."""
    return f"{prefix}_ethos_u"


def fast_memory(prefix: str) -> str:
    """The array that is the NPU's own memory, which regions use one after the other."""
    return f"{prefix}_fast"


def fast_bytes(regions: Mapping[str, RegionCode]) -> int:
    """The bytes of the NPU's own memory: 0 where the memory mode has none."""
    return max((code.details["driver"]["scratch_fast"]["bytes"] for code in regions.values()), default=0)


def region_source(codes: Mapping[str, RegionCode], prefix: str, region: Region) -> Code:
    """The C of a region of the program whose names begin with `prefix`."""
    code = codes[region.symbol]
    driver = code.details["driver"]
    scratch, fast = driver["scratch"], driver["scratch_fast"]
    # Memory regions of the command stream by number, each with its address and bytes.
    bases: dict[int, tuple[str, int]] = {driver["weights_region"]: ("weights", len(code.weights))}
    if scratch["bytes"]:
        bases[scratch["region"]] = ("(char*)workspace", scratch["bytes"])
    if fast["bytes"]:
        bases[fast["region"]] = (fast_memory(prefix), fast["bytes"])
    places = [bases.get(n, ("0", 0)) for n in range(max(bases) + 1)]
    inputs = [f"in{n}" for n in range(len(code.inputs))]
    outputs = [f"out{n}" for n in range(len(code.outputs))]
    params = [*(f"const void* {name}" for name in inputs), *(f"void* {name}" for name in outputs)]
    params += ["void* workspace"] if scratch["bytes"] else []
    signature = f"int32_t {region.symbol}({', '.join(params)})"

    def address(place: dict[str, int]) -> str:
        return f"{bases[place['region']][0]} + {place['address']}"

    body = [
        f"  uint64_t base[] = {{{', '.join(f'(uintptr_t)({at})' for at, _ in places)}}};",
        f"  const size_t sizes[] = {{{', '.join(str(size) for _, size in places)}}};",
        *(f"  memcpy({address(at)}, {name}, {at['bytes']});" for name, at in zip(inputs, driver["inputs"])),
        f"  if (ethosu_invoke({handle(prefix)}, commands, {len(code.command_stream)}, base, sizes, {len(places)})) return 1;",
        *(f"  memcpy({name}, {address(at)}, {at['bytes']});" for name, at in zip(outputs, driver["outputs"])),
        "  return 0;",
    ]
    source = "\n".join(
        [
            f"// {region.symbol}, made by relaylang",
            "#include <stddef.h>",
            "#include <stdint.h>",
            "#include <string.h>",
            f'#include "{DRIVER}"',
            head(prefix),
            "",
            stored(prefix, "commands", code.command_stream),
            "",
            stored(prefix, "weights", code.weights),
            "",
            f"extern void* {handle(prefix)};",
            *([f"extern char {fast_memory(prefix)}[];"] if fast["bytes"] else []),
            f"{signature};",
            f"{signature} {{",
            *body,
            "}",
            "",
        ]
    )
    workspace = -(-scratch["bytes"] // ALIGN) * ALIGN
    return Code(source=source, workspace=workspace, constant_bytes=len(code.command_stream) + len(code.weights))


__all__ = ["DRIVER", "fast_bytes", "fast_memory", "handle", "region_source"]
