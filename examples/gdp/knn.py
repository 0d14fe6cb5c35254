"""The nearest of many feature vectors to one query."""

import numpy as np

from davinci import gdp


def knn(features, query):
    """Features [n, k] and a query [k] of f16: the index of the nearest one, and its distance."""
    apart = features - query
    squared = gdp.sum(apart * apart, 1)
    return {"index": gdp.argmin(squared), "distance": gdp.sqrt(gdp.min(squared))}


def by_numpy(features, query):
    squared = ((features - query) ** 2).sum(1)
    return {"index": squared.argmin(), "distance": np.sqrt(squared.min())}


if __name__ == "__main__":
    from workloads import compare

    rng = np.random.default_rng(0)
    features = rng.random((500, 1000)).astype(np.float16)
    query = rng.random(1000).astype(np.float16)
    expected = by_numpy(features.astype(np.float64), query.astype(np.float64))
    compare(knn, {"features": features, "query": query}, expected)
