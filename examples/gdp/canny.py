"""Canny's edges, as OpenCV finds them: brightness, Gaussian, gradient, non-maximum suppression and
two thresholds. All values are whole numbers, so that rounding moves no edge.

The source of the workload (GDPNPU) ends with the thresholds; `hysteresis`, which keeps weak edges
that touch strong ones, follows pixel by pixel and is left to the host.
"""

import numpy as np

from davinci import gdp

GAUSSIAN = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1])
SOBEL = np.outer([1, 2, 1], [-1, 0, 1])
LOW, HIGH = 100, 200
TANGENT = 13573 / 32768
"""Of 22.5 degrees, as OpenCV has it."""
RED, GREEN, BLUE = 9798, 19235, 3735
"""Weights of brightness, of 32,768."""


def canny(img):
    """Planes R, G, B [3, h, w] of bytes: [h, w] of f32, 1 for weak and 2 for strong edges."""
    red, green, blue = (img[c].astype(np.float32) for c in range(3))
    gray = whole((RED * red + GREEN * green + BLUE * blue) * (1 / 32768))
    smooth = whole(gdp.filter2d(gray, GAUSSIAN / 256))
    across, down = gdp.filter2d(smooth, SOBEL), gdp.filter2d(smooth, SOBEL.T)
    wide, high = abs(across), abs(down)
    size = wide + high
    i, j = gdp.indices()
    level, steep = high < TANGENT * wide, high > (2 + TANGENT) * wide
    falling = across * down >= 0
    before = gdp.where(falling, size[i - 1, j - 1], size[i - 1, j + 1])
    behind = gdp.where(falling, size[i + 1, j + 1], size[i + 1, j - 1]) + 1  # is to be less
    before = gdp.where(level, size[i, j - 1], gdp.where(steep, size[i - 1, j], before))
    behind = gdp.where(level, size[i, j + 1], gdp.where(steep, size[i + 1, j], behind))
    largest = (size > before) & (size >= behind)
    strength = gdp.where(size > HIGH, 2.0, gdp.where(size > LOW, 1.0, 0.0))
    return gdp.where(largest, strength, 0.0)


def whole(x):
    """The nearest whole number of what is not negative, halves up."""
    return (x + 0.5).astype(np.int32).astype(np.float32)


def by_numpy(img):
    weights = np.array([RED, GREEN, BLUE]) / 32768
    gray = np.floor(np.tensordot(weights, img, 1) + 0.5)
    smooth = np.floor(filtered(gray, GAUSSIAN / 256) + 0.5)
    across, down = filtered(smooth, SOBEL), filtered(smooth, SOBEL.T)
    wide, high = abs(across), abs(down)
    size = np.pad(wide + high, 1)
    height, width = gray.shape

    def at(rows, columns):
        return size[1 + rows : 1 + rows + height, 1 + columns : 1 + columns + width]

    level, steep = high < TANGENT * wide, high > (2 + TANGENT) * wide
    falling = across * down >= 0
    before = np.where(falling, at(-1, -1), at(-1, 1))
    behind = np.where(falling, at(1, 1), at(1, -1)) + 1
    before = np.where(level, at(0, -1), np.where(steep, at(-1, 0), before))
    behind = np.where(level, at(0, 1), np.where(steep, at(1, 0), behind))
    largest = (at(0, 0) > before) & (at(0, 0) >= behind)
    return largest * ((at(0, 0) > LOW) + 1.0 * (at(0, 0) > HIGH))


def filtered(plane, kernel):
    """A plane with zeros around it, each pixel the sum of its neighbours times a kernel."""
    (rows, columns), (height, width) = kernel.shape, plane.shape
    around = np.pad(plane, ((rows // 2,) * 2, (columns // 2,) * 2))
    return sum(
        kernel[i, j] * around[i : i + height, j : j + width] for i, j in np.ndindex(kernel.shape)
    )


if __name__ == "__main__":
    from workloads import compare, picture

    image = picture(108, 192)
    compare(canny, {"img": image}, by_numpy(image.astype(np.float64)))
