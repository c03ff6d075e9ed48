"""VTA, TVM's open accelerator: int8 subgraphs become its instructions, and a simulator runs them.

    artifact = compile_module(mod, "vta -config=vta_config.json, c")
    print(artifact.report())
    artifact.save("net.tar")
    artifact.run(x=x)            # regions in the simulator

The package depends on nothing but numpy.
"""

from relaylang.backends.vta.artifact import VTAArtifact, loads
from relaylang.backends.vta.driver import compile_for

__all__ = ["VTAArtifact", "compile_for", "loads"]
