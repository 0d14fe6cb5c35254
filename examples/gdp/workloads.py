"""What the examples of this folder share: a picture, and a run beside NumPy's result in f64."""

import numpy as np

from davinci import gdp


def compare(program, inputs, expected, precision="mixed"):
    """Runs a program on the simulated Ascend 310 and prints its time and largest relative error."""
    task = gdp.run_async(gdp.compile(program, precision=precision), inputs, profile=True)
    gdp.sync()
    wanted = expected if isinstance(expected, dict) else {"out0": expected}
    for name, array in task.result().items():
        print(f"{name:9} largest error {error(array, wanted[name]):.2e} of the largest value")
    record = task.profile.record
    kernels = sum(kernel["launches"] for kernel in record["kernels"])
    print(f"{program.__name__}: {record['time_us']:.1f} us in {kernels} launches")


def error(found, expected):
    """The largest difference as a share of the largest expected value."""
    apart = np.abs(np.asarray(found, np.float64) - expected).max()
    return apart / max(np.abs(expected).max(), 1e-30)


def picture(height, width, seed=0):
    """Planes R, G, B of bytes: soft and hard edges, and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    image = np.stack([np.sin(9 * x + c) + np.cos(7 * y * (c + 1)) for c in range(3)]) * 40 + 120
    for _ in range(40):
        top, left = rng.integers(0, height), rng.integers(0, width)
        size = rng.integers(4, max(5, height // 3), 2)
        image[:, top : top + size[0], left : left + size[1]] += rng.integers(-80, 80, (3, 1, 1))
    return np.clip(image + rng.normal(0, 3, image.shape), 0, 255).astype(np.uint8)
