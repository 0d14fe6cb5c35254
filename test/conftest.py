"""Settings of all tests."""

import gc

from hypothesis import settings

# Simulated kernels take tens of milliseconds, and the same examples must run everywhere.
settings.register_profile("davinci", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("davinci")


def pytest_collection_finish() -> None:
    """What is there now stays to the end: the collector, which goes through all that it knows each
    time the number of objects has grown by a quarter, need not go through it again."""
    gc.collect()
    gc.freeze()
