"""A simulator of the Ethos-U: executes a command stream to the integers that the accelerator computes.

Each unit is a file. Those of memory: `memory` (regions), `feature_maps` (addresses of tensors), `transfers`, `weights` with
`codec`, `fast_codec` and `order`. Those that compute: `macs` (convolution), `pooling`, `elementwise`, `accumulators`,
`scales` with `scaling`, `output` (limits, order of axes), `tables` with `curves`. `machine` reads the stream.
Facts come from Arm's `ethos_u_core_driver` (registers) and from the public sources of Vela (encodings, scales).
"""

from relaylang.backends.ethosu.simulator.machine import simulate

__all__ = ["simulate"]
