"""What a model is, known without importing it: the key under which a cache keeps what it became.

A file is its bytes and those of the files that hold its weights, a network of the zoo its name and
parameters. To compare them takes a fraction of the time that importing takes.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from davinci.frontends import is_recipe

if TYPE_CHECKING:
    import onnx

PIECE_BYTES = 1 << 20
"""Bytes of a file that are read at a time."""

LOCATION = b"location"
"""The key of the name of a file with weights; a model without this word has all of its own."""


def identity_of(model: Any) -> list[str] | None:
    """Texts that two models share only if they are imported as the same module.

    Returns:
        None for a model that is not known before it is imported: an object of PyTorch or JAX, a
        `ModelProto`, or a file that cannot be read.
    """
    if is_recipe(model):
        return [str(model.identity)]
    if isinstance(model, bytes):
        return ["bytes", hashlib.sha256(model).hexdigest()]
    if isinstance(model, str) and ("\n" in model or "func.func" in model):
        return ["text", hashlib.sha256(model.encode()).hexdigest()]
    if not isinstance(model, (str, os.PathLike)):
        return None
    path = Path(model)
    try:
        if path.suffix == ".onnx":
            return ["onnx", digest(path), *map(digest, weight_files(path))]
        # The operations of a text have the name of its file as their place.
        return ["mlir", str(path), digest(path)]
    except (OSError, ValueError):
        return None


def digest(path: Path) -> str:
    """SHA-256 of the bytes of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            found.update(piece)
    return found.hexdigest()


def weight_files(path: Path) -> list[Path]:
    """The files beside an ONNX model that hold its weights, sorted.

    Raises:
        ValueError: not an ONNX model.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data.find(LOCATION) < 0:
            return []
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    tensors = tensors_of(model.graph)
    names = {entry.value for t in tensors for entry in t.external_data if entry.key == "location"}
    return [path.parent / name for name in sorted(names)]


def tensors_of(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The tensors that a graph, and the graphs inside of it, hold."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        yield from tensors_of_attributes(node.attribute)


def tensors_of_attributes(attributes: Iterable[onnx.AttributeProto]) -> Iterator[onnx.TensorProto]:
    """The tensors in the attributes of a node."""
    for attribute in attributes:
        yield from (attribute.t, *attribute.tensors)
        for graph in (attribute.g, *attribute.graphs):
            yield from tensors_of(graph)
