"""Device files: unlike processing units, the links between them, and what power they take."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import pydantic

from davinci import machine as machines
from davinci.errors import InputError, did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIG = pydantic.ConfigDict(extra="forbid", frozen=True)

Rate = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=True)]
"""Bytes a second; `inf` where both devices read the same memory."""

NotNegative = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]


class Power(pydantic.BaseModel):
    """The power that a device takes from its supply.

    Attributes:
        idle_watts: while it waits.
        active_watts: while it computes.
        source: where the numbers come from.
    """

    model_config = CONFIG
    idle_watts: NotNegative
    active_watts: NotNegative
    source: str

    @property
    def watts(self) -> float:
        """The power that computing adds to waiting: a layer's energy is this times its time."""
        return self.active_watts - self.idle_watts


class PlacementDevice(pydantic.BaseModel):
    """A unit that runs one layer at a time.

    Attributes:
        name: by which links, tables and reports call it.
        kind: "simulated" on a machine of this package, "host" for this machine's own processor
            (onnxruntime), or "table" for latencies that were measured elsewhere.
        machine: of a simulated device, a machine's name or file; with `:vector` behind it, the
            vector cores beside its AI cores.
        cores: of a simulated device, 0 for all of the machine.
        precision: of a simulated device, as `davinci.compile` takes it.
        threads: of the host.
        table: the path of a CSV file, from the folder of the device file.
        power: None where nothing is known; there is no energy then.
    """

    model_config = CONFIG
    name: str = pydantic.Field(min_length=1)
    kind: Literal["simulated", "host", "table"]
    machine: str = ""
    cores: Annotated[int, pydantic.Field(ge=0)] = 0
    precision: str = "mixed"
    threads: Annotated[int, pydantic.Field(ge=1)] = 1
    table: str = ""
    power: Power | None = None


class DeviceLink(pydantic.BaseModel):
    """A way between two devices, the same in both directions.

    Attributes:
        between: names of both.
        latency_us: from the begin of a move to its first byte.
        bytes_per_second: of the link itself; `inf` where both devices read the same memory.
        convert_bytes_per_second: of what changes the layout of a tensor on its way; 0 where none is
            changed.
        watts: that a move takes, for example of a radio.
        source: where the numbers come from.
    """

    model_config = CONFIG
    between: tuple[str, str]
    latency_us: NotNegative
    bytes_per_second: Rate
    convert_bytes_per_second: NotNegative = 0.0
    watts: NotNegative = 0.0
    source: str

    def seconds(self, count: int) -> float:
        """Seconds of a move of so many bytes."""
        converted = count / self.convert_bytes_per_second if self.convert_bytes_per_second else 0.0
        return self.latency_us * 1e-6 + count / self.bytes_per_second + converted

    def joules(self, count: int) -> float:
        """Energy of a move of so many bytes."""
        return self.watts * self.seconds(count)


class DeviceFile(pydantic.BaseModel):
    """Devices and links, as a TOML file has them."""

    model_config = CONFIG
    devices: Annotated[tuple[PlacementDevice, ...], pydantic.Field(min_length=1)]
    links: tuple[DeviceLink, ...] = ()

    def link(self, one: str, other: str) -> DeviceLink | None:
        """The link between two devices; None if there is none."""
        return next((link for link in self.links if {*link.between} == {one, other}), None)


SOURCE = "Xia, dissertation (2022), section 3.3"
UPLOAD_BYTES = 224 * 224 * 3 * 4
"""Bytes of the image that the source uploads: 224 x 224 x 3 floats."""

CUT_BYTES = 28 * 28 * 32 * 4
"""Bytes of the second transfer that the source times: the result of its bottleneck_3_3."""


def _radio(uploaded: float, watts: float, of_cut: float | None = None) -> DeviceLink:
    """A radio by the seconds of the image's upload, and of `CUT_BYTES` if those are known: two
    times determine latency and rate, one alone is taken for a rate."""
    rate, latency, more = UPLOAD_BYTES / uploaded, 0.0, ""
    if of_cut is not None:
        rate = (UPLOAD_BYTES - CUT_BYTES) / (uploaded - of_cut)
        latency = uploaded - UPLOAD_BYTES / rate
        more = f", of 28 x 28 x 32 in {of_cut * 1e3:g} ms"
    return DeviceLink(
        between=("device", "cloud"),
        latency_us=round(latency * 1e6, 3),
        bytes_per_second=round(rate, 3),
        watts=watts,
        source=f"{SOURCE}: upload of 224 x 224 x 3 floats in {uploaded * 1e3:g} ms{more}; radio of "
        f"{watts:g} W",
    )


LINKS = {
    "3g": _radio(0.850, 0.8),
    "4g": _radio(0.180, 2.5),
    "wifi": _radio(0.1007, 1.2, of_cut=0.0203),
    "pcie3x4": DeviceLink(
        between=("host", "npu"),
        latency_us=10.0,
        bytes_per_second=3.94e9,
        source="PCI Express 3.0: 8 GT/s, 128b/130b, 4 lanes; latency assumed",
    ),
}
"""Links by the names that `--link` takes."""


def load(path: str) -> DeviceFile:
    """The devices of a TOML file.

    Raises:
        InputError: no such file, malformed TOML, an unknown, missing or mistyped key, two devices
            of one name, a link of a device that is not there, or a machine or table that is not.
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text in UTF-8"
        raise InputError(f"cannot read the devices: {reason}", where=path) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not a TOML file: {error}", where=path) from None
    try:
        found = DeviceFile.model_validate(data)
    except pydantic.ValidationError as error:
        raise _schema_error(error, path) from None
    return _checked(found, path)


def _schema_error(error: pydantic.ValidationError, path: str) -> InputError:
    """The first thing that the schema says of a file; a misspelt key before the one it leaves
    missing."""
    first = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        known = KEYS[next((n for n in ("power", "links", "devices") if n in first["loc"][:-1]), "")]
        hint = did_you_mean(str(first["loc"][-1]), known) or f"known are {', '.join(known)}"
        return InputError("unknown key", where=path, found=repr(key), hint=hint)
    if first["type"] == "missing":
        return InputError("missing key", where=path, expected=repr(key))
    return InputError(
        f"bad value of {key!r}",
        where=path,
        found=repr(first["input"]),
        expected=first["msg"].removeprefix("Input should be "),
        hint=did_you_mean(str(first["input"]), KINDS) if first["loc"][-1] == "kind" else "",
    )


KINDS = ("simulated", "host", "table")

KEYS = {
    "": sorted(DeviceFile.model_fields),
    "devices": sorted(PlacementDevice.model_fields),
    "links": sorted(DeviceLink.model_fields),
    "power": sorted(Power.model_fields),
}
"""Keys of a file's tables."""


def _checked(found: DeviceFile, path: str) -> DeviceFile:
    names = [device.name for device in found.devices]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError("two devices have one name", where=path, found=twice[0])
    for link in found.links:
        for name in link.between:
            if name not in names:
                hint = did_you_mean(name, names)
                raise InputError("a link of no device", where=path, found=repr(name), hint=hint)
    folder = Path(path).parent
    devices = []
    for device in found.devices:
        changed = {}
        if device.kind == "table":
            changed["table"] = str(folder / device.table)
        if device.kind == "simulated":
            if device.machine.removesuffix(machines.VECTOR_SUFFIX).endswith(".toml"):
                changed["machine"] = str(folder / device.machine)
            check_simulated(device.model_copy(update=changed), path)
        devices.append(device.model_copy(update=changed))
    return found.model_copy(update={"devices": tuple(devices)})


def check_simulated(device: PlacementDevice, where: str) -> None:
    """Raises an `InputError` unless a simulated device's machine exists and has its cores."""
    if not device.machine:
        raise InputError(
            "a simulated device without a machine",
            where=where,
            found=device.name,
            expected=f"machine = one of {', '.join(machines.names())}, or a .toml file",
        )
    machines.check_cores(machines.load(device.machine), device.cores)


def parse(text: str) -> DeviceFile:
    """Devices as a command names them.

    Args:
        text: the path of a `.toml` file, or names with commas between: `host`, `host:4` (threads),
            a machine, or `NAME=latencies.csv`.

    Raises:
        InputError: see `load`; an empty or unknown name.
    """
    if text.endswith(".toml") and "," not in text and text[: -len(".toml")] not in machines.names():
        return load(text)
    devices = tuple(_device(item.strip()) for item in text.split(","))
    return _checked(DeviceFile(devices=devices), "--devices")


def _device(item: str) -> PlacementDevice:
    name, _, rest = item.partition(":")
    if name == "host":
        if rest and not (rest.isdigit() and int(rest)):
            raise InputError(
                "bad number of threads", where="--devices", found=item, expected="host:4"
            )
        return PlacementDevice(name=item, kind="host", threads=int(rest or 1))
    if "=" in item:
        own, _, path = item.partition("=")
        return PlacementDevice(name=own or path, kind="table", table=str(Path(path).absolute()))
    chip = item.removesuffix(machines.VECTOR_SUFFIX)
    if chip in machines.names():
        return PlacementDevice(name=item, kind="simulated", machine=item)
    raise InputError(
        "no such device",
        where="--devices",
        found=repr(item),
        expected=f"host, host:THREADS, NAME=TABLE.csv, {', '.join(machines.names())}, or F.toml",
        hint=did_you_mean(item, ["host", *machines.names()]),
    )
