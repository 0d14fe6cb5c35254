"""While a model is compiled, Python does not look for garbage in cycles, and in commands rarely;
before and after it does what it did."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

import davinci
from davinci import compiler
from davinci.garbage import FEW, no_search, rare_search

MODEL = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"


@pytest.mark.parametrize("searches", [True, False])
def test_restored(searches: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if searches else gc.disable)()
        with no_search():
            assert not gc.isenabled()
            with no_search():
                pass
            assert not gc.isenabled()
        assert gc.isenabled() == searches
        with pytest.raises(KeyError), no_search():
            raise KeyError
        assert gc.isenabled() == searches
    finally:
        (gc.enable if before else gc.disable)()


def test_what_was_made_meanwhile_is_old() -> None:
    """Unless somebody has frozen objects."""
    program = (
        "import gc\n"
        "from davinci.garbage import no_search\n"
        "gc.collect()\n"
        "with no_search():\n"
        "    made = [[] for _ in range(100_000)]\n"
        "old = len(gc.get_objects(generation=2))\n"
        "print(gc.get_count()[0] < 1000, old >= 100_000, gc.get_freeze_count())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True True 0\n"
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        assert frozen
        with no_search():
            pass
        # Other threads may let go of some of them meanwhile.
        assert abs(gc.get_freeze_count() - frozen) < 1000
    finally:
        gc.unfreeze()


def test_garbage_of_many_compilations_is_found() -> None:
    """A search before the third of three that leave 300,000 objects each."""
    program = (
        "import gc, weakref\n"
        "from davinci.garbage import no_search\n"
        "class Node: pass\n"
        "found = []\n"
        "for _ in range(3):\n"
        "    with no_search():\n"
        "        found.append(sum(each() is not None for each in found[0])) if found else None\n"
        "        made = [Node() for _ in range(300_000)]\n"
        "        for node in made:\n"
        "            node.self = node\n"
        "        found = found or [[weakref.ref(node) for node in made[:10]]]\n"
        "        del made, node\n"
        "print(*found[1:])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("10 0\n", "")


@pytest.mark.parametrize("first", [700, 2 * FEW])
def test_rarely_and_as_before(first: int) -> None:
    """No more often than before, either."""
    given = gc.get_threshold()
    before = first, *given[1:]
    gc.set_threshold(*before)
    try:
        with pytest.raises(KeyError), rare_search():
            assert gc.get_threshold() == (max(first, FEW), *before[1:])
            raise KeyError
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*given)


def test_compile() -> None:
    searching: list[bool] = []
    compiler.compile(MODEL, timing_only=True, progress=lambda _: searching.append(gc.isenabled()))
    assert len(searching) > 2
    assert not any(searching)
    assert gc.isenabled()


@pytest.mark.parametrize("machine", ["ascend910", "ascend910b"])
def test_memories_go_with_their_executable(machine: str) -> None:
    """Also those of cores that met, without a search: each core has dozens of mappings of the host,
    of which a process may have 65,530."""
    types = "(tensor<16x16384xf16>, tensor<16384x16xf16>) -> tensor<16x16xf32>"
    text = f"""func.func @main(%a: tensor<16x16384xf16>, %b: tensor<16384x16xf16>)
                -> tensor<16x16xf32> {{
      %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : {types}
      return %r : tensor<16x16xf32> }}"""
    executable = davinci.compile(text, machine=machine)
    memories = weakref.ref(executable._host.device.cores)
    gc.collect()
    with no_search():
        executable.run({spec.name: np.zeros(spec.shape, spec.dtype) for spec in executable.inputs})
        assert memories() is not None
        del executable
        assert memories() is None
