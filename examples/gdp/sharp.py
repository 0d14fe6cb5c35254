"""How sharp an image is: the variance of the Laplacian of its brightness."""

import numpy as np

from davinci import gdp

WEIGHTS = (0.299, 0.587, 0.114)
LAPLACIAN = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]])


def sharp(img):
    """Planes R, G, B [3, h, w] of f16, 0 to 1: one number."""
    red, green, blue = WEIGHTS
    gray = red * img[0] + green * img[1] + blue * img[2]
    return gdp.var(gdp.filter2d(gray, LAPLACIAN))


def by_numpy(img):
    gray = np.tensordot(WEIGHTS, img, 1)
    around = np.pad(gray, 1)
    middle = around[1:-1, 1:-1]
    beside = around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
    return (beside - 4 * middle).var()


if __name__ == "__main__":
    from workloads import compare

    image = np.random.default_rng(0).random((3, 108, 192)).astype(np.float16)
    compare(sharp, {"img": image}, by_numpy(image.astype(np.float64)))
