"""Finds batch normalisations that are written out as arithmetic, and puts the operator in their place.

Usage:

    relay tvm examples/legacy/rewrite.py
"""

import numpy as np
from tvm import relay
from tvm.relay.dataflow_pattern import DFPatternCallback, is_constant, is_op, rewrite, wildcard


class BatchNormCallback(DFPatternCallback):
    """gamma * (x - mean) / sqrt(var + eps) + beta"""

    def __init__(self):
        super().__init__()
        self.x = wildcard()
        self.gamma = wildcard()
        self.beta = wildcard()
        self.mean = wildcard()
        self.var = wildcard()
        self.eps = is_constant()
        deviation = is_op("sqrt")(self.var + self.eps)
        self.pattern = self.gamma * (self.x - self.mean) / deviation + self.beta

    def callback(self, pre, post, node_map):
        parts = [node_map[part][0] for part in (self.x, self.gamma, self.beta, self.mean, self.var)]
        eps = node_map[self.eps][0].data.numpy().item()
        return relay.nn.batch_norm(*parts, epsilon=eps)[0]


x = relay.var("x", shape=(1, 3, 4, 4))
gamma, beta, mean, var = [relay.var(name, shape=(3, 1, 1)) for name in ("gamma", "beta", "mean", "var")]
written = gamma * (x - mean) / relay.sqrt(var + relay.const(1e-5)) + beta
assert (gamma * (x - mean)).op.name == "multiply"

callback = BatchNormCallback()
assert callback.pattern.match(written)
made = rewrite(callback, relay.nn.relu(written))
assert isinstance(made, relay.Call) and made.op == relay.op.get("nn.relu")
text = str(made)
print(text.splitlines()[-1].strip())
print("sqrt is gone:", "sqrt" not in text, "and batch_norm is there:", "nn.batch_norm" in text)
print("epsilon:", made.args[0].tuple_value.attrs.epsilon == np.float64(np.float32(1e-5)))
