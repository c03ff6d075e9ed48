"""A simulator of the Ethos-U: executes a command stream to the integers that the accelerator computes.

One file for each unit: `memory` (regions, DMA), `feature_maps` (addresses of tensors), `weights` (weight streams, tables of
scales), `macs` (convolution), `pooling`, `elementwise`, `output` (scaling, limits, tables), `machine` (the command stream).
Facts come from Arm's `ethos_u_core_driver` (registers) and from the public sources of Vela (encodings, scales).
"""

from relaylang.backends.ethosu.simulator.machine import simulate

__all__ = ["simulate"]
