"""Settings of all tests."""

from hypothesis import settings

# Simulated kernels take tens of milliseconds, and the same examples must run everywhere.
settings.register_profile("davinci", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("davinci")
