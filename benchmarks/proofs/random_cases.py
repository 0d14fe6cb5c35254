"""The random tests of the suite, with as many draws as wanted instead of a few.

    python benchmarks/proofs/random_cases.py [--first 100] [--count 50] [NAME ...]

Each is the test itself, called with other seeds; pools are drawn by Hypothesis. Prints what fails;
exits with 1 if anything does. Convolutions have a proof of their own, convolutions.py, schedules of
products product_schedules.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import given, seed, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

Case = Callable[[int], None]


def programs(number: int) -> None:
    """Programs of StableHLO, without regions and with them."""
    module: Any = import_module("passes.stablehlo_to_ascend.test_random_programs")
    for steps in (module.STEPS, (*module.STEPS, *3 * module.REGION_STEPS)):
        module.test_random_program(number, steps)


def chains(number: int) -> None:
    """A product, and chains of operators around it."""
    import_module("passes.ascend_to_cce.test_product_group").test_random_chains(number)


def places(number: int) -> None:
    """Kernels in the smallest UB that holds them."""
    module = import_module("passes.cce.test_plan_memory")
    with tempfile.TemporaryDirectory() as folder:
        module.test_shared_places_change_no_result(number, Path(folder))


def pools(number: int) -> None:
    """Windows that are reduced."""
    module = import_module("passes.ascend_to_cce.test_pool")

    @seed(number)
    @settings(max_examples=10, deadline=None, database=None)
    @given(case=module.windows(), cores=st.sampled_from([1, 2, 32]))
    def search(case: Any, cores: int) -> None:
        module.check(case, cores=cores)

    search()


CASES: dict[str, Case] = {case.__name__: case for case in (programs, chains, places, pools)}


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}")
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--count", type=int, default=50, help="seeds of each")
    options = parser.parse_args()
    failed = 0
    for name in options.names or CASES:
        for number in range(options.first, options.first + options.count):
            try:
                CASES[name](number)
            except Exception:
                failed += 1
                print(f"{name} {number}:")
                traceback.print_exc()
        print(f"{name}: {options.count} draws")
    print(f"{failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
