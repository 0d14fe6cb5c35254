"""Compiles a function of JAX whose parameters are a tree, and a recurrent network with a scan."""

import jax
import jax.numpy as jnp
import numpy as np

import davinci


def mlp(params, x):
    hidden = jax.nn.relu(x @ params["w1"] + params["b1"])
    return {"logits": hidden @ params["w2"]}


def rnn(weights, steps):
    def step(state, x):
        state = jnp.tanh(x + state @ weights)
        return state, state.mean()

    return jax.lax.scan(step, jnp.zeros(weights.shape[0]), steps)


rng = np.random.default_rng(0)
shapes = {"w1": (64, 128), "b1": (128,), "w2": (128, 10)}
params = {name: rng.standard_normal(s, np.float32) / 8 for name, s in shapes.items()}
x = rng.standard_normal((16, 64), np.float32)
weights, steps = rng.standard_normal((16, 16), np.float32) / 8, rng.standard_normal((5, 16))
steps = steps.astype(np.float32)

executable = davinci.compile(mlp, example_inputs=(params, x))
logits = executable.run(params, x)["logits"]
recurrent = davinci.compile(jax.jit(rnn), example_inputs=(weights, steps))
state = recurrent.run(weights, steps)["out0"]

errors = logits - mlp(params, x)["logits"], state - rnn(weights, steps)[0]
print(f"largest error {max(float(abs(error).max()) for error in errors):.2g}")

print("inputs", ", ".join(f"{spec.name}: {spec}" for spec in executable.inputs))
