"""Gaussian blur of 5x5 of every plane of an image."""

import numpy as np

from davinci import gdp

TAPS = np.array([1, 4, 6, 4, 1]) / 16
KERNEL = np.outer(TAPS, TAPS)


def gaussian(img):
    """Planes [c, h, w] of f16, zeros around them: the same shape."""
    return gdp.filter2d(img, KERNEL)


def by_numpy(img):
    height, width = img.shape[-2:]
    around = np.pad(img, ((0, 0), (2, 2), (2, 2)))
    rows = sum(TAPS[i] * around[:, i : i + height] for i in range(5))
    return sum(TAPS[i] * rows[:, :, i : i + width] for i in range(5))


if __name__ == "__main__":
    from workloads import compare

    image = np.random.default_rng(0).random((3, 108, 192)).astype(np.float16)
    compare(gaussian, {"img": image}, by_numpy(image.astype(np.float64)))
