"""Training steps of small networks, compiled as one function of JAX: their cycles, and errors.

    python benchmarks/speed/training_steps.py [--machine NAME] [--cores N] [--precision P]
        [--only TEXT]

A step takes parameters, the optimizer's state and a batch, and returns the loss and what parameters
and state become: forward, `jax.grad`, and the updates of SGD with momentum or of Adam. A line shows
the cycles, the share of them that kernels of the scalar unit take, the machine's bound, and the
largest error of a result against JAX, relative to the largest number in it. Exits with 1 if the
scalar unit takes 5 % or more, or an error is larger than 1e-5 with `--precision fp32`, else 5e-2:
where products are of f16, ReLU and pooling choose otherwise where numbers are nearly equal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import davinci

MOST_SCALAR = 0.05
MOST_ERROR = {"fp32": 1e-5}
MOST_ERROR_OF_HALVES = 5e-2


def cross_entropy(logits: Any, labels: Any) -> Any:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
    return -chosen.mean()


def weights(random: Any, *shape: int) -> Any:
    fan_in = int(np.prod(shape[:-1]))
    return jnp.asarray(random.normal(0, fan_in**-0.5, shape), jnp.float32)


def mlp(random: Any) -> tuple[Any, Callable[..., Any], tuple[Any, ...]]:
    """Two layers of 64 on 32 rows of 48."""
    parameters = {
        "w1": weights(random, 48, 64),
        "b1": jnp.zeros(64),
        "w2": weights(random, 64, 10),
        "b2": jnp.zeros(10),
    }

    def loss(p: Any, x: Any, labels: Any) -> Any:
        hidden = jax.nn.relu(x @ p["w1"] + p["b1"])
        return cross_entropy(hidden @ p["w2"] + p["b2"], labels)

    return parameters, loss, (weights(random, 32, 48), random.integers(0, 10, 32))


def cnn(random: Any) -> tuple[Any, Callable[..., Any], tuple[Any, ...]]:
    """Two convolutions with max pooling on 4 images of 16x16x3."""
    parameters = {
        "k1": weights(random, 3, 3, 3, 16),
        "k2": weights(random, 3, 3, 16, 32),
        "w": weights(random, 4 * 4 * 32, 10),
    }

    def layer(x: Any, kernel: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout)
        window = (1, 2, 2, 1)
        return lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, window, window, "VALID")

    def loss(p: Any, x: Any, labels: Any) -> Any:
        x = layer(layer(x, p["k1"]), p["k2"])
        return cross_entropy(x.reshape(4, -1) @ p["w"], labels)

    images = jnp.asarray(random.normal(0, 1, (4, 16, 16, 3)), jnp.float32)
    return parameters, loss, (images, random.integers(0, 10, 4))


def transformer(random: Any) -> tuple[Any, Callable[..., Any], tuple[Any, ...]]:
    """One causal layer, 2 heads of 32, on 2 rows of 16 tokens of 100; positions are learned, and
    layer norms have scales and shifts."""
    parameters = {
        "table": weights(random, 100, 64),
        "positions": weights(random, 16, 64),
        "scale1": jnp.ones(64),
        "shift1": jnp.zeros(64),
        "scale2": jnp.ones(64),
        "shift2": jnp.zeros(64),
        "qkv": weights(random, 64, 192),
        "out": weights(random, 64, 64),
        "up": weights(random, 64, 128),
        "bias": jnp.zeros(128),
        "down": weights(random, 128, 64),
    }

    def normalised(x: Any, scale: Any, shift: Any) -> Any:
        x = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * scale + shift

    def loss(p: Any, tokens: Any, labels: Any) -> Any:
        x = p["table"][tokens] + p["positions"]
        projected = normalised(x, p["scale1"], p["shift1"]) @ p["qkv"]
        q, k, v = jnp.split(projected.reshape(2, 16, 2, 96), 3, -1)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 32**0.5
        scores = jnp.where(jnp.tril(jnp.ones((16, 16), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
        x = x + mixed.reshape(2, 16, 64) @ p["out"]
        up = normalised(x, p["scale2"], p["shift2"]) @ p["up"] + p["bias"]
        x = x + jax.nn.gelu(up) @ p["down"]
        return cross_entropy((x @ p["table"].T).reshape(32, 100), labels)

    tokens = random.integers(0, 100, (2, 16))
    return parameters, loss, (tokens, random.integers(0, 100, 32))


def sgd(p: Any, g: Any, state: Any) -> tuple[Any, Any]:
    """SGD with momentum; the state is the velocity."""
    velocity = 0.9 * state["v"] + g
    return p - 0.01 * velocity, {"v": velocity}


def adam(p: Any, g: Any, state: Any) -> tuple[Any, Any]:
    """Adam's third step, with its corrections of the means."""
    m, v = 0.9 * state["m"] + 0.1 * g, 0.999 * state["v"] + 0.001 * g * g
    step = m / (1 - 0.9**3) / (jnp.sqrt(v / (1 - 0.999**3)) + 1e-8)
    return p - 0.001 * step, {"m": m, "v": v}


NETWORKS = {"mlp": mlp, "cnn": cnn, "transformer": transformer}
OPTIMIZERS = {"sgd": (sgd, ("v",)), "adam": (adam, ("m", "v"))}


def training_step(network: str, optimizer: str) -> tuple[Callable[..., Any], list[Any]]:
    """A step as a function of a list of arrays, and these."""
    random = np.random.default_rng(0)
    parameters, loss, batch = NETWORKS[network](random)
    update, names = OPTIMIZERS[optimizer]
    state = {
        key: {name: jnp.asarray(random.random(p.shape), jnp.float32) * 0.01 for name in names}
        for key, p in parameters.items()
    }
    batch = tuple(b if hasattr(b, "at") else jnp.asarray(b, jnp.int32) for b in batch)
    leaves, tree = jax.tree.flatten((parameters, state, batch))

    def step(*arrays: Any) -> Any:
        p, s, given = jax.tree.unflatten(tree, arrays)
        value, gradients = jax.value_and_grad(loss)(p, *given)
        new = {key: update(p[key], gradients[key], s[key]) for key in p}
        return [value, *jax.tree.leaves(new)]

    return step, leaves


def measured(network: str, optimizer: str, **options: Any) -> tuple[dict[str, Any], float]:
    """The profile of a step, and its largest relative error."""
    step, arrays = training_step(network, optimizer)
    text = jax.jit(step).lower(*arrays).as_text()
    executable = davinci.compile(text, **options)
    found = executable.run(*map(np.asarray, arrays)).values()
    wanted = map(np.asarray, step(*arrays))
    errors = [
        float(np.abs(a - b).max() / max(1e-6, np.abs(b).max()))
        for a, b in zip(found, wanted, strict=True)
    ]
    return executable.profile, max(errors)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--cores", type=int, default=0, help="0: all of the machine")
    parser.add_argument("--precision", default="mixed")
    parser.add_argument("--only", default="", help="steps whose names contain this")
    options = parser.parse_args()
    line = "{:<20} {:>12} {:>9} {:>9} {:>9} {}"
    print(line.format("step", "cycles", "scalar", "bound", "error", ""))
    over, most = 0, MOST_ERROR.get(options.precision, MOST_ERROR_OF_HALVES)
    for network in NETWORKS:
        for optimizer in OPTIMIZERS:
            name = f"{network}, {optimizer}"
            if options.only not in name:
                continue
            profile, error = measured(
                network,
                optimizer,
                machine=options.machine,
                cores=options.cores,
                precision=options.precision,
            )
            total = profile["total_cycles"]
            scalar = sum(k["cycles"] for k in profile["kernels"] if k["unit"] == "scalar") / total
            bad = scalar >= MOST_SCALAR or not error < most
            over += bad
            cells = (f"{total:,}", f"{scalar:.1%}", f"{profile['bound_cycles']:,}", f"{error:.1e}")
            print(line.format(name, *cells, "over" if bad else ""), flush=True)
            if scalar >= MOST_SCALAR:
                for kernel in profile["kernels"]:
                    if kernel["unit"] == "scalar":
                        print(f"    {kernel['cycles']:>10,} {kernel['name']}", flush=True)
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
