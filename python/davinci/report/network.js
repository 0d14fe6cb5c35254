// The whole run on one axis: layers, launches by unit, what it takes to start them, cores at work.
{
  const [START, LENGTH, KERNEL, LAYER, NODES, RATE, PLACE, SHARING] = Array(8).keys();
  const [KERNEL_NAME, LABEL, UNIT, CORES] = Array(4).keys();
  const UNITS = ["cube", "vector", "scalar"], COLOURS = {cube: "CUBE", vector: "VECTOR", scalar: "SCALAR"};
  const LEFT = 84, AXIS_HEIGHT = 20, LAYER_HEIGHT = 20, UNIT_HEIGHT = 26, START_HEIGHT = 14, CORES_HEIGHT = 46, TRAFFIC_HEIGHT = 40, GAP = 4;
  const run = network;
  const HELP = "Point at a launch: what it computes, for which nodes of the model, and how long.";
  const canvas = byId("run"), layered = run.layers.length > 1;
  const tops = {};
  let height = AXIS_HEIGHT;
  for (const [lane, tall] of [
    ...(layered ? [["layer", LAYER_HEIGHT]] : []), ...UNITS.map((unit) => [unit, UNIT_HEIGHT]),
    ["launching", START_HEIGHT], ["cores", CORES_HEIGHT], ["GM traffic", TRAFFIC_HEIGHT]]) {
    tops[lane] = height;
    height += tall + GAP;
  }
  let together = 0, fastest = 0.1;
  for (const launch of run.launches) {
    together = launch[RATE] + (launch[PLACE] ? together : 0);
    fastest = Math.max(fastest, together);
  }
  let shown = [0, run.total_us], waiting = false;

  const time = (us) => us >= 1000 ? `${(us / 1000).toLocaleString("en", {maximumFractionDigits: 3})} ms`
    : `${us.toLocaleString("en", {maximumFractionDigits: 3})} us`;
  const across = () => (canvas.clientWidth - LEFT) / (shown[1] - shown[0]);
  const place = (us) => LEFT + (us - shown[0]) * across();

  function paint() {
    waiting = false;
    const scale = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.style.height = height + "px";
    canvas.width = width * scale;
    canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "11px system-ui, sans-serif";
    ruler(pen, width);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT, height);
    pen.clip();
    const fills = Object.fromEntries(UNITS.map((unit) => [unit, colour(COLOURS[unit])]));
    const idle = colour("done"), launching = colour("launching"), accent = colour("accent");
    let begin = 0, before = 0, count = 0, stacked = 0, moving = 0;
    for (const launch of run.launches) {
      const end = launch[START] + launch[LENGTH], first = !launch[PLACE];
      if (first) [begin, stacked, moving] = [before, 0, 0];
      before = Math.max(before, end);
      if (end < shown[0] || begin > shown[1]) continue;
      count += 1;
      const [, , unit, cores] = run.kernels[launch[KERNEL]];
      const left = place(launch[START]), wide = Math.max(0.35, launch[LENGTH] * across());
      pen.fillStyle = launching;
      if (first) pen.fillRect(place(begin), tops.launching, left - place(begin), START_HEIGHT);
      // Kernels that share a launch lie below each other, on cores of their own.
      const band = UNIT_HEIGHT / launch[SHARING], top = tops[unit] + launch[PLACE] * band;
      pen.fillStyle = fills[unit];
      pen.fillRect(left, top, wide, band);
      const tall = CORES_HEIGHT * cores / run.cores;
      pen.fillStyle = idle;
      pen.fillRect(left, tops.cores, wide, CORES_HEIGHT - stacked);
      pen.fillStyle = accent;
      pen.fillRect(left, tops.cores + CORES_HEIGHT - stacked - tall, wide, tall);
      stacked += tall;
      pen.fillStyle = colour("traffic");
      const moved = TRAFFIC_HEIGHT * launch[RATE] / fastest;
      pen.fillRect(left, tops["GM traffic"] + TRAFFIC_HEIGHT - moving - moved, wide, moved);
      moving += moved;
      if (wide > 60 && band > 10) words(pen, run.kernels[launch[KERNEL]][LABEL], left, top + band / 2 + 4, wide, colour("ink"));
    }
    if (layered) strip(pen);
    pen.restore();
    canvas.dataset.drawn = count;
  }

  // Neighbours of one layer are one box.
  function strip(pen) {
    const draw = (layer, begin, end) => {
      const left = place(begin), wide = place(end) - left;
      pen.fillStyle = colour(layer % 2 ? "layer-odd" : "layer-even");
      pen.fillRect(left, tops.layer, Math.max(0.6, wide - 1), LAYER_HEIGHT);
      const name = run.layers[layer];
      const fits = [name, name.split("/").slice(1).join("/"), name.split("/").at(-1)]
        .find((text) => text && pen.measureText(text).width < wide - 8);
      if (fits) words(pen, fits, left, tops.layer + 14, wide, colour("text"));
    };
    let layer = -1, begin = 0, end = 0;
    for (const launch of run.launches) {
      if (!launch[PLACE] && launch[LAYER] !== layer) {
        if (layer >= 0) draw(layer, begin, end);
        [layer, begin] = [launch[LAYER], end];
      }
      end = Math.max(end, launch[START] + launch[LENGTH]);
    }
    if (layer >= 0) draw(layer, begin, end);
  }

  function words(pen, text, left, baseline, wide, ink) {
    pen.save();
    pen.beginPath();
    pen.rect(left + 3, 0, wide - 6, height);
    pen.clip();
    pen.fillStyle = ink;
    pen.fillText(text, Math.max(left, LEFT) + 4, baseline);
    pen.restore();
  }

  function ruler(pen, width) {
    const rough = (shown[1] - shown[0]) / Math.max(2, width / 120);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    pen.strokeStyle = colour("rule");
    pen.fillStyle = colour("quiet");
    for (let n = Math.ceil(shown[0] / step); n * step <= shown[1]; n += 1) {
      const us = n * step, text = time(us);
      pen.beginPath();
      pen.moveTo(place(us), AXIS_HEIGHT - 5);
      pen.lineTo(place(us), height);
      pen.stroke();
      pen.fillText(text, Math.min(place(us) + 3, width - pen.measureText(text).width - 4), 12);
    }
    pen.fillStyle = colour("text");
    const middles = {layer: LAYER_HEIGHT, launching: START_HEIGHT, cores: CORES_HEIGHT, "GM traffic": TRAFFIC_HEIGHT};
    for (const [lane, top] of Object.entries(tops))
      pen.fillText(lane === "cores" ? `${run.cores} core${run.cores > 1 ? "s" : ""}` : lane, 8, top + (middles[lane] || UNIT_HEIGHT) / 2 + 4);
  }

  function look(from, to) {
    const span = Math.min(run.total_us, Math.max(0.05, to - from));
    const start = Math.max(0, Math.min(from, run.total_us - span));
    shown = [start, start + span];
    if (!waiting) requestAnimationFrame(paint);
    waiting = true;
  }

  // The kernel under a place, or the nearest one of those a few pixels away.
  function under(x, y) {
    const us = shown[0] + (x - LEFT) / across(), near = 6 / across();
    const away = (launch) => Math.max(launch[START] - us, us - launch[START] - launch[LENGTH], 0);
    const below = (launch) => {
      const band = UNIT_HEIGHT / launch[SHARING], unit = run.kernels[launch[KERNEL]][UNIT];
      return Math.abs(tops[unit] + (launch[PLACE] + 0.5) * band - y);
    };
    return run.launches.filter((launch) => away(launch) <= near)
      .sort((a, b) => away(a) - away(b) || below(a) - below(b))[0];
  }

  function tell(launch) {
    const [name, label, unit, cores] = run.kernels[launch[KERNEL]];
    const cycles = Math.round(launch[LENGTH] * run.clock_mhz), nodes = run.nodes[launch[NODES]];
    return `${label}${nodes ? " for " + nodes : ""}\n${count(cycles)} cycles on the ${unit} unit from ${time(launch[START])}, `
      + `${count(cores)} of ${run.cores} cores at work on average, ${count(launch[RATE])} GB/s from and to GM, kernel ${name}`;
  }

  steer(canvas, LEFT, () => shown, () => run.total_us, look);
  let dragged = false;
  canvas.addEventListener("pointerdown", (event) => {
    dragged = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) {
      dragged ||= event.movementX !== 0;
      look(shown[0] - event.movementX / across(), shown[1] - event.movementX / across());
      return;
    }
    const launch = under(event.offsetX, event.offsetY);
    byId("launch").textContent = launch ? tell(launch) : HELP;
  });
  canvas.addEventListener("click", (event) => {
    const launch = !dragged && under(event.offsetX, event.offsetY);
    if (launch) choose(run.kernels[launch[KERNEL]][KERNEL_NAME]);
  });
  byId("whole").addEventListener("click", () => look(0, run.total_us));
  window.addEventListener("resize", () => look(...shown));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => look(...shown));
  byId("launch").textContent = HELP;
  if (run.launches.length) paint();
  else byId("network").hidden = true;
}
document.documentElement.dataset.ready = "yes";
