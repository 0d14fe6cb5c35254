"""Networks built on the spot with `onnx.helper`: random weights from a fixed seed, no download.

model = davinci.zoo.build("bert,layers=2,hidden=768,heads=12,seq=128")
model.proto            # an onnx.ModelProto
model.inputs(seed=0)   # a dict of arrays that suit it
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import onnx

from davinci.errors import InputError, did_you_mean
from davinci.zoo.bert import Bert
from davinci.zoo.convnext import Convnext
from davinci.zoo.deeplab import DeeplabV3
from davinci.zoo.densenet import Densenet
from davinci.zoo.efficientnet import Efficientnet
from davinci.zoo.googlenet import Googlenet
from davinci.zoo.gpt2 import Gpt2
from davinci.zoo.graph import weights_left_out
from davinci.zoo.inception import InceptionV3, InceptionV4
from davinci.zoo.llama import Llama, Mixtral
from davinci.zoo.mlp import Mlp
from davinci.zoo.mmoe import Mmoe
from davinci.zoo.mobilenet import MobilenetV1, MobilenetV2, MobilenetV3
from davinci.zoo.nasnet import NasnetA, Pnasnet5
from davinci.zoo.randwire import Randwire
from davinci.zoo.recurrent import Gru, Lstm
from davinci.zoo.resnet import Resnet
from davinci.zoo.shufflenet import ShufflenetV2
from davinci.zoo.squeezenet import Squeezenet
from davinci.zoo.swin import Swin
from davinci.zoo.unet import Unet
from davinci.zoo.vgg import Vgg
from davinci.zoo.vit import Vit
from davinci.zoo.xception import Xception
from davinci.zoo.yolo import Yolo

Arrays = dict[str, npt.NDArray[Any]]


class Network(Protocol):
    """A frozen dataclass whose integer fields are the network's parameters."""

    def build(self) -> onnx.ModelProto:
        """The network as ONNX."""

    def inputs(self, rng: np.random.Generator) -> Arrays:
        """Inputs that suit it, by name."""


NETWORKS: dict[str, Callable[..., Any]] = {
    "mlp": Mlp,
    "bert": Bert,
    "bert-tiny": lambda **changes: Bert(
        **{"layers": 2, "hidden": 128, "heads": 2, "seq": 32, "vocab": 1000, **changes}
    ),
    "bert-base": lambda **changes: Bert(
        **{"layers": 12, "hidden": 768, "heads": 12, "seq": 128, "vocab": 30522, **changes}
    ),
    "resnet": Resnet,
    "resnet18": lambda **changes: Resnet(**{"depth": 18, **changes}),
    "resnet50": lambda **changes: Resnet(**{"depth": 50, **changes}),
    "resnext50": lambda **changes: Resnet(
        **{"depth": 50, "groups": 32, "group_width": 4, **changes}
    ),
    "resnext101": lambda **changes: Resnet(
        **{"depth": 101, "groups": 32, "group_width": 8, **changes}
    ),
    "vgg16": Vgg,
    "mobilenet-v1": MobilenetV1,
    "mobilenet-v2": MobilenetV2,
    "mobilenet-v3": MobilenetV3,
    "shufflenet-v2": ShufflenetV2,
    "squeezenet": Squeezenet,
    "googlenet": Googlenet,
    "inception-v3": InceptionV3,
    "inception-v4": InceptionV4,
    "nasnet-mobile": NasnetA,
    "nasnet-large": lambda **changes: NasnetA(
        **{"resolution": 331, "filters": 168, "stem": 96, "cells": 6, "skip": 1, **changes}
    ),
    "pnasnet-mobile": Pnasnet5,
    "pnasnet-large": lambda **changes: Pnasnet5(
        **{"resolution": 331, "filters": 216, "stem": 96, "cells": 4, **changes}
    ),
    "randwire": Randwire,
    "densenet": Densenet,
    "efficientnet": Efficientnet,
    "xception": Xception,
    "convnext": Convnext,
    "vit": Vit,
    "swin": Swin,
    "unet": Unet,
    "deeplab-v3": DeeplabV3,
    "yolo": Yolo,
    "gpt2": Gpt2,
    "gpt2-decode": lambda **changes: Gpt2(**{"seq": 1, "past": 127, **changes}),
    "llama": Llama,
    "mixtral": Mixtral,
    "mmoe": Mmoe,
    "lstm": Lstm,
    "gru": Gru,
}
"""Networks and ready-made choices of their parameters, by name."""


@dataclasses.dataclass(frozen=True)
class ZooModel:
    """A network of the zoo with its parameters chosen; it is built when it is first looked at."""

    spec: str
    network: Network

    @property
    def identity(self) -> str:
        """What decides all of the network, beside the version of this package."""
        return f"zoo:{self.network!r}"

    @functools.cached_property
    def proto(self) -> onnx.ModelProto:
        """The network as ONNX.

        Raises:
            InputError: parameters that make no network, or one that is too large.
        """
        return self._built()

    @property
    def sketch(self) -> onnx.ModelProto:
        """The network as ONNX, its large weights without values, for runs that find times only.

        Raises:
            InputError: as of `proto`.
        """
        with weights_left_out():
            return self._built()

    def _built(self) -> onnx.ModelProto:
        try:
            return self.network.build()
        except (MemoryError, OverflowError, ValueError) as error:
            # NumPy says the same of an array that is too large in three ways.
            where = f"zoo:{self.spec}"
            raise InputError(f"the network is too large: {error}", where=where) from None

    def inputs(self, seed: int = 0) -> Arrays:
        """Example inputs by name, the same for the same seed."""
        return self.network.inputs(np.random.default_rng(seed))


def build(spec: str) -> ZooModel:
    """Builds the network that `spec`, `NAME[,key=value...]`, describes.

    Raises:
        InputError: an unknown network or parameter, or a value that makes no network.
    """
    model = find(spec)
    assert model.proto is not None, "networks of the zoo are made as ONNX"
    return model


def find(spec: str) -> ZooModel:
    """The network that `spec`, `NAME[,key=value...]`, describes, not built yet.

    Raises:
        InputError: an unknown network or parameter, or a value that is no number.
    """
    name, *pairs = spec.split(",")
    if name not in NETWORKS:
        raise InputError(
            "no such network in the zoo",
            where=f"zoo:{spec}",
            found=repr(name),
            expected=f"one of {', '.join(NETWORKS)}",
            hint=did_you_mean(name, list(NETWORKS)),
        )
    known = [field.name for field in dataclasses.fields(NETWORKS[name]())]
    changes: dict[str, int] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key not in known:
            raise InputError(
                f"network '{name}' has no such parameter",
                where=f"zoo:{spec}",
                found=repr(key),
                expected=f"one of {', '.join(known)}",
                hint=did_you_mean(key, known),
            )
        if key in changes:
            raise InputError(f"parameter '{key}' is given twice", where=f"zoo:{spec}")
        if not (value.isascii() and value.isdecimal()):
            raise InputError(
                f"bad value of parameter '{key}'",
                where=f"zoo:{spec}",
                found=repr(value),
                expected="a whole number, as in seq=128",
            )
        changes[key] = int(value)
    return ZooModel(spec, NETWORKS[name](**changes))
