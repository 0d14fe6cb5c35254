"""Mean, standard deviation, largest and smallest value of every plane of a data set."""

import numpy as np

from davinci import gdp


def mean_std(img):
    """Planes [c, h, w] of f16: four vectors [c], mean and deviation of f32."""
    wide = img.astype(np.float32)
    mean = gdp.mean(wide, (1, 2))
    square = gdp.mean(wide * wide, (1, 2))
    return {
        "mean": mean,
        "std": gdp.sqrt(square - mean * mean),
        "max": gdp.max(img, (1, 2)),
        "min": gdp.min(img, (1, 2)),
    }


def by_numpy(img):
    planes = img.reshape(img.shape[0], -1)
    return {
        "mean": planes.mean(1),
        "std": planes.std(1),
        "max": planes.max(1),
        "min": planes.min(1),
    }


if __name__ == "__main__":
    from workloads import compare

    image = np.random.default_rng(0).random((3, 108, 192)).astype(np.float16)
    compare(mean_std, {"img": image}, by_numpy(image.astype(np.float64)))
