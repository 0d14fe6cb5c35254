"""Networks on devices: layers and costs, where networks are cut, parts that give the whole."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("scipy")

from davinci.errors import InputError
from davinci.placement import ALGORITHMS, faults, place, play
from davinci.placement import devices as device_files
from davinci.placement.costs import LayerCosts, likeness, measured, read_table
from davinci.placement.devices import LINKS, DeviceLink, PlacementDevice
from davinci.placement.layers import LayeredNetwork, random_inputs_of
from davinci.placement.parts import PlacedParts
from davinci.placement.priced import price
from davinci.placement.split import crossing, splits
from davinci.tools import npu_profile, npu_run, npu_split

CHANNELS, SIDE = 16, 8


def branches() -> onnx.ModelProto:
    """A convolution, two branches of one each, and their sum: four layers and a shape."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(
            rng.standard_normal((CHANNELS, CHANNELS, 1, 1)).astype(np.float32) / 4, f"w{i}"
        )
        for i in range(3)
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], name="stem"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["c"], name="left"),
        helper.make_node("Conv", ["b", "w2"], ["d"], name="right"),
        helper.make_node("Sigmoid", ["d"], ["e"]),
        helper.make_node("Add", ["c", "e"], ["f"], name="sum"),
        helper.make_node("Identity", ["shape"], ["same"]),
        helper.make_node("Reshape", ["f", "same"], ["y"]),
    ]
    weights.append(numpy_helper.from_array(np.array([1, -1], np.int64), "shape"))
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, CHANNELS, SIDE, SIDE))
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "branches", [image], [result], weights)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


@pytest.fixture(scope="module")
def network() -> LayeredNetwork:
    model = branches()
    return LayeredNetwork(model, random_inputs_of(model, 0, "model"), "model")


@pytest.fixture
def saved(tmp_path: Path) -> str:
    path = tmp_path / "net.onnx"
    onnx.save(branches(), path)
    return str(path)


TABLE = """layer,device,seconds,joules
stem,phone,0.010,0.1
left,phone,0.020,0.2
right,phone,0.030,0.3
sum,phone,0.001,0.01
stem,cloud,0.001,
left,cloud,0.002,
right,cloud,0.003,
sum,cloud,0.0001,
"""


def test_layers_hold_what_goes_with_a_product(network: LayeredNetwork) -> None:
    found = {layer.name: layer.operators for layer in network.layers}
    assert found == {
        "stem": ("Conv", "Relu"),
        "left": ("Conv",),
        "right": ("Conv", "Sigmoid"),
        "sum": ("Add", "Reshape"),
    }
    stem = network.layers[0]
    image = CHANNELS * SIDE * SIDE
    assert stem.flops == 2 * image * CHANNELS
    assert stem.read_bytes == 4 * (image + CHANNELS * CHANNELS)
    assert stem.write_bytes == 4 * image
    assert network.readers["b"] == (1, 2)


def test_what_crosses_a_cut(network: LayeredNetwork) -> None:
    assert [crossing(network, here) for here in range(5)] == [
        ["x"],
        ["b"],
        ["b", "c"],
        ["c", "e"],
        [],
    ]


@pytest.mark.parametrize("layers", [[0], [1, 2], [0, 1, 2, 3], [3]])
def test_parts_compute_what_the_whole_does(network: LayeredNetwork, layers: list[int]) -> None:
    part = network.part(layers)
    onnx.checker.check_model(part, full_check=True)
    others = [i for i in range(4) if i not in layers]
    before = [i for i in others if i < min(layers)]
    host = PlacementDevice(name="host", kind="host")
    after = [i for i in others if i > min(layers)]
    parts = [(before, host), (layers, host), (after, host)]
    found = PlacedParts(network, parts).run({"x": network.values["x"]})
    np.testing.assert_allclose(found["y"], network.values["y"], rtol=1e-5, atol=1e-6)


def test_a_cut_is_priced_by_its_bytes_and_its_link(network: LayeredNetwork, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    devices = device_files.parse(f"phone={path},cloud={path}")
    costs = LayerCosts(network, devices).all()
    link = DeviceLink(
        between=("a", "b"), latency_us=1000, bytes_per_second=4.096e6, watts=2, source=""
    )
    found = splits([row[0] for row in costs], [row[1] for row in costs], network, link)
    image = 4 * CHANNELS * SIDE * SIDE  # 1 ms each
    assert [s.moved_bytes for s in found] == [image, image, 2 * image, 2 * image, 0]
    assert [round(s.seconds, 6) for s in found] == [0.0081, 0.0171, 0.0361, 0.0631, 0.061]
    assert [s.joules for s in found] == pytest.approx([0.004, 0.104, 0.306, 0.606, 0.61])


def test_energy_is_unknown_without_power(network: LayeredNetwork, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    devices = device_files.parse(f"cloud={path},phone={path}")
    costs = LayerCosts(network, devices).all()
    found = splits([r[0] for r in costs], [r[1] for r in costs], network, LINKS["wifi"])
    assert all(split.joules is None for split in found)


def test_short_layers_are_repeated_until_the_interval_is_full(network: LayeredNetwork) -> None:
    ticks = iter(range(1000))
    part = network.part([0])
    cost = measured(part, {"x": network.values["x"]}, 1, clock=lambda: next(ticks) * 0.004)
    assert cost.seconds == pytest.approx(0.004)
    assert next(ticks) == 2 * 13  # a begin and an end each, 0.052 s in all


def test_layers_that_differ_in_names_and_weights_alone_are_alike(network: LayeredNetwork) -> None:
    assert likeness(network.part([0])) != likeness(network.part([1]))
    assert likeness(network.part([1])) == likeness(_renamed(network.part([1])))


def _renamed(part: onnx.ModelProto) -> onnx.ModelProto:
    for node in part.graph.node:
        node.name = "other"
        node.input[:] = ["q" if name == "b" else name for name in node.input]
    part.graph.input[0].name = "q"
    return part


def test_a_device_file_has_its_own_folder(tmp_path: Path) -> None:
    path = tmp_path / "d.toml"
    path.write_text(
        '[[devices]]\nname = "a"\nkind = "table"\ntable = "t.csv"\n'
        "power = { idle_watts = 1, active_watts = 3, source = 'a meter' }\n"
        '[[devices]]\nname = "b"\nkind = "simulated"\nmachine = "ascend310"\ncores = 2\n'
        '[[links]]\nbetween = ["b", "a"]\nlatency_us = 5\nbytes_per_second = 1e9\nsource = "x"\n'
    )
    found = device_files.load(str(path))
    assert found.devices[0].table == str(tmp_path / "t.csv")
    assert found.devices[0].power is not None and found.devices[0].power.watts == 2
    link = found.link("a", "b")
    assert link is not None and link.seconds(1_000_000) == pytest.approx(0.001005)


def test_a_link_prices_latency_bytes_layout_and_radio() -> None:
    changed = DeviceLink(
        between=("a", "b"),
        latency_us=100,
        bytes_per_second=1e6,
        convert_bytes_per_second=2e6,
        watts=3,
        source="",
    )
    assert changed.seconds(1000) == pytest.approx(100e-6 + 1e-3 + 0.5e-3)
    assert changed.joules(1000) == pytest.approx(3 * changed.seconds(1000))
    memory = DeviceLink(between=("a", "b"), latency_us=1, bytes_per_second=float("inf"), source="")
    assert memory.seconds(10**9) == pytest.approx(1e-6)


IMAGE = 224 * 224 * 3 * 4


@pytest.mark.parametrize(
    ("name", "count", "seconds", "joules"),
    [
        ("3g", IMAGE, 0.850, 0.68),
        ("4g", IMAGE, 0.180, 0.45),
        ("wifi", IMAGE, 0.1007, 0.121),
        ("wifi", 28 * 28 * 32 * 4, 0.0203, 0.0244),
        ("pcie3x4", 3_940_000, 0.00101, 0.0),
    ],
)
def test_named_links_are_those_of_their_sources(
    name: str, count: int, seconds: float, joules: float
) -> None:
    assert LINKS[name].seconds(count) == pytest.approx(seconds, rel=1e-6)
    assert LINKS[name].joules(count) == pytest.approx(joules, rel=2e-3)
    assert LINKS[name].source


def test_energy_is_time_times_what_computing_adds(network: LayeredNetwork, tmp_path: Path) -> None:
    """E = T (p_active - p_idle), on a simulated device and for a table without joules."""
    (tmp_path / "t.csv").write_text(TABLE)
    path = tmp_path / "d.toml"
    path.write_text(
        '[[devices]]\nname = "npu"\nkind = "simulated"\nmachine = "ascend310"\ncores = 1\n'
        "power = { idle_watts = 1, active_watts = 8, source = 'a meter' }\n"
        '[[devices]]\nname = "cloud"\nkind = "table"\ntable = "t.csv"\n'
        "power = { idle_watts = 20, active_watts = 50, source = 'a meter' }\n"
    )
    for row in LayerCosts(network, device_files.load(str(path))).all():
        assert row[0].joules == pytest.approx(7 * row[0].seconds)
        assert row[1].joules == pytest.approx(30 * row[1].seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("devices = []", "bad value of 'devices'"),
        ("x = 1\n[[devices]]\nname='a'\nkind='host'", "unknown key; found 'x'; known are devices"),
        (
            "[[devices]]\nname='a'\nkind='host'\nthread=2",
            "unknown key; found 'devices.0.thread'; did you mean 'threads'",
        ),
        (
            "[[devices]]\nname='a'\nkind='host'\npower={idle_watt=1,active_watts=2,source=''}",
            "unknown key; found 'devices.0.power.idle_watt'; did you mean 'idle_watts'",
        ),
        (
            "[[devices]]\nname='a'\nkind='hots'",
            "bad value of 'devices.0.kind'.*did you mean 'host'",
        ),
        ("[[devices]]\nkind='host'", "missing key; expected 'devices.0.name'"),
        ("[[devices]]\nname='a'\nkind='host'\nthreads=0", "bad value of 'devices.0.threads'"),
        (
            "[[devices]]\nname='a'\nkind='simulated'\nmachine='ascend310'\ncores=3",
            "no such number of cores; found 3; expected 1 to 2",
        ),
        (
            "[[devices]]\nname='a'\nkind='simulated'\nmachine='ascend310:vector'",
            "ascend310 has no vector cores",
        ),
        ("[[devices]]\nname='a'\nkind='table'\ntable='none.csv'", "cannot read the table"),
        ("[[devices]]\nname='a'\nkind='simulated'", "without a machine"),
        ("[[devices]]\nname='a'\nkind='simulated'\nmachine='ascend99'", "no such machine"),
        ("[[devices]]\nname='a'\nkind='host'\n[[devices]]\nname='a'\nkind='host'", "one name"),
        (
            "[[devices]]\nname='a'\nkind='host'\n[[links]]\nbetween=['a','b']\nlatency_us=1\n"
            "bytes_per_second=1\nsource=''",
            "a link of no device",
        ),
        (
            "[[devices]]\nname='a'\nkind='host'\n[[links]]\nbetween=['a','a']\nlatency_us=1\n"
            "bytes_per_second=0\nsource=''",
            "bytes_per_second",
        ),
        ("[[", "not a TOML file"),
    ],
)
def test_bad_device_files_are_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "d.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        for device in device_files.parse(str(path)).devices:
            if device.kind == "table":
                read_table(device.table)
    assert re.search(message, str(error.value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layer,device\n", "no column seconds"),
        ("layer,device,seconds\nstem,a,fast\n", "not a time"),
        ("layer,device,seconds\nstem,a,-1\n", "not a time"),
    ],
)
def test_bad_tables_are_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(str(path))


def test_a_missing_row_is_named(network: LayeredNetwork, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("layer,device,seconds\nstem,a,1\n")
    with pytest.raises(InputError, match="no row for layer 'left' on a"):
        LayerCosts(network, device_files.parse(f"a={path}"))


def test_a_table_without_the_device_names_those_it_has(
    network: LayeredNetwork, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("layer,device,seconds\nstem,b,1\n")
    with pytest.raises(InputError, match=r"no rows of a device 'a'.* devices b; name .* b="):
        LayerCosts(network, device_files.parse(f"a={path}"))


def test_a_cycle_is_named() -> None:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="second"),
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in ("x", "b")]
    model = helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:]))
    with pytest.raises(InputError, match="first -> second"):
        LayeredNetwork(model, {"x": np.zeros(4, np.float32)}, "cycle.onnx")


def test_a_device_that_runs_nothing_is_named(saved: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("layer,device,seconds\n" + "".join(f"{n},a,inf\n" for n in LAYERS))
    message = "device a can run no layer of the network; found the table says so; leave it out"
    with pytest.raises(InputError, match=message):
        price(saved, device_files.parse(f"host,a={path}"))


def test_vector_cores_take_what_needs_no_matrix_unit(network: LayeredNetwork) -> None:
    costs = LayerCosts(network, device_files.parse("ascend310p,ascend310p:vector")).all()
    reasons = {name: row[1].reason for name, row in zip(LAYERS, costs, strict=True)}
    assert not reasons["sum"] and costs[3][1].seconds > costs[3][0].seconds
    assert all("has no instruction" in reasons[name] for name in ("stem", "left", "right"))


LAYERS = ("stem", "left", "right", "sum")


def test_a_profile_is_a_table_that_can_be_read_again(saved: str, tmp_path: Path) -> None:
    table, record = tmp_path / "p.csv", tmp_path / "p.json"
    page = tmp_path / "p.html"
    arguments = [saved, "--devices", "host,ascend310", "--csv", str(table), "--json", str(record)]
    assert npu_profile.main([*arguments, "--report", str(page)]) == 0
    shown = page.read_text()
    assert all(f"<td>{name}</td>" in shown for name in LAYERS)
    assert "measured, 4 of 4 layers" in shown and "simulated, 4 of 4 layers" in shown
    rows = read_table(str(table))
    data = json.loads(record.read_text())
    for layer in data["layers"]:
        for name, cost in layer["devices"].items():
            seconds, _ = rows[layer["name"], name]
            assert cost["milliseconds"] == pytest.approx(seconds * 1e3) and seconds > 0


@pytest.mark.parametrize("cut", [None, "left"])
def test_a_split_network_equals_the_whole(
    cut: str | None, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "s.json"
    arguments = [saved, "--devices", "host,ascend310", "--link", "pcie3x4", "--check"]
    if cut is not None:
        arguments += ["--cut", cut]
    assert npu_split.main([*arguments, "--json", str(record)]) == 0
    data = json.loads(record.read_text())
    assert [row["layers"] for row in data["cuts"]] == [0, 1, 2, 3, 4]
    least = min(row["milliseconds"] for row in data["cuts"])
    assert data["best"]["milliseconds"] == least
    assert data["chosen"]["behind"] == (cut or data["best"]["behind"])
    assert data["check"]["cosine"] > 0.9999
    assert "best by latency" in capsys.readouterr().out


def test_a_placed_network_equals_the_unplaced(saved: str, tmp_path: Path) -> None:
    devices = tmp_path / "d.toml"
    devices.write_text(
        '[[devices]]\nname = "npu"\nkind = "simulated"\nmachine = "ascend310"\n'
        '[[devices]]\nname = "other"\nkind = "simulated"\nmachine = "ascend310"\ncores = 1\n'
        '[[links]]\nbetween = ["npu", "other"]\nlatency_us = 0\nbytes_per_second = 1e12\n'
        'source = "assumed"\n'
    )
    record, trace = tmp_path / "r.json", tmp_path / "t.json"
    arguments = [saved, "--devices", str(devices), "--check", "--json", str(record)]
    page = tmp_path / "p.html"
    assert npu_run.main([*arguments, "--trace", str(trace), "--report", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert all(f'title="{name}: ' in text for name in LAYERS)
    data = json.loads(record.read_text())
    assert data["check"]["cosine"] > 0.9999
    assert {layer["device"] for layer in data["layers"]} == {"npu", "other"}
    assert data["milliseconds"] < data["single_milliseconds"]
    lanes = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    assert {"left", "right"} <= {event["name"] for event in lanes}


def test_every_plan_gives_the_outputs_of_the_whole(saved: str, tmp_path: Path) -> None:
    """AI cores and vector cores of a 310P, which take the sum, and the host as a third device."""
    devices = tmp_path / "d.toml"
    links = "".join(
        f"[[links]]\nbetween = {pair}\nlatency_us = 1\nbytes_per_second = inf\nsource = 'x'\n"
        for pair in (["ai", "vector"], ["ai", "host"], ["vector", "host"])
    )
    devices.write_text(
        '[[devices]]\nname = "ai"\nkind = "simulated"\nmachine = "ascend310p"\ncores = 4\n'
        '[[devices]]\nname = "vector"\nkind = "simulated"\nmachine = "ascend310p:vector"\n'
        '[[devices]]\nname = "host"\nkind = "host"\n' + links
    )
    priced = price(saved, device_files.load(str(devices)))
    plans = [place(priced.problem, name) for name in ALGORITHMS]
    by_hand = play(priced.problem, (0, 2, 0, 1), ((0, 2), (3,), (1,)), "by hand").plan
    for chosen in {plan.devices: plan for plan in (*plans, by_hand)}.values():
        assert faults(chosen) == []
        priced.require_close(priced.compared(priced.run_plan(chosen)))


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        (npu_profile, ["--devices", "gpu"], "no such device"),
        (npu_profile, ["--devices", "host:0"], "bad number of threads"),
        (npu_profile, ["--devices", "host", "--objective", "energy"], "power of a device"),
        (npu_profile, [], "--devices is missing"),
        (npu_split, ["--devices", "host"], "between two devices"),
        (npu_split, ["--devices", "host,host:2"], "not linked"),
        (npu_split, ["--devices", "host,host:2", "--link", "5g"], "no such link"),
        (
            npu_split,
            ["--devices", "host,host:2", "--link", "wifi", "--cut", "lefd"],
            "did you mean 'left'",
        ),
        (npu_run, ["--devices", "host,ascend310", "--timing-only"], "two devices are not linked"),
        (npu_run, ["--devices", "host", "--cores", "2"], "not together with --devices"),
        (npu_run, ["--devices", "host", "--place", "best!"], "no such algorithm"),
        (npu_run, ["--place", "heft"], "--place needs --devices"),
    ],
)
def test_bad_usage_is_named(
    command: object,
    arguments: list[str],
    message: str,
    saved: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main([saved, *arguments]) == 2  # type: ignore[attr-defined]
    assert message in capsys.readouterr().err
