"""Tone mapping: f(x) = x (a x + b) / (x (c x + d) + e), of every colour of every pixel."""

import numpy as np

A, B, C, D, E = 2.51, 0.03, 2.43, 0.59, 0.14
"""Narkowicz's fit of the ACES film curve."""


def tone(img):
    """Colours 0 to 1 of any shape, f16: the same shape."""
    return (img * (A * img + B)) / (img * (C * img + D) + E)


if __name__ == "__main__":
    from workloads import compare

    image = np.random.default_rng(0).random((3, 108, 192)).astype(np.float16)
    compare(tone, {"img": image}, tone(image.astype(np.float64)), precision="fp16")
