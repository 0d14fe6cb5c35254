"use strict";
const kernels = JSON.parse(document.getElementById("data").textContent);
const about = JSON.parse(document.getElementById("about-data").textContent);
const nodesOf = JSON.parse(document.getElementById("nodes-data").textContent);
const network = JSON.parse(document.getElementById("network-data").textContent);
const [LANE, START, FREE, END, NAME, SOURCE, INDEX, CRITICAL, END_AFTER, ISSUED] = Array(10).keys();
const KINDS = {
  run: "at work", memory: "GM bandwidth shared", flag: "waits for a flag", barrier: "barrier", queue: "issue held up: full queue",
  scalar: "issue held up: scalar unit waits", issue: "scalar unit issues", done: "nothing left to do",
};
const WAITS = new Set(["wait_flag", "wait_flag_dev", "pipe_barrier"]);
const LANE_HEIGHT = 30, LEVEL_HEIGHT = 34, LABELS = 76, AXIS = 24;
const canvas = document.getElementById("timeline");
const byId = (id) => document.getElementById(id);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name);
const count = (value) => value.toLocaleString("en");
const percent = (part, whole) => (100 * part / Math.max(1, whole)).toFixed(1) + " %";
let chosen = null, view = [0, 1], drawing = false;

function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

// Of a place in a file, the file without its folders; names of operators stay as they are.
const short = (source) => source.replace(/^.*\/(?=[^/]+:\d+:\d+$)/, "");

function cellOf(value) {
  if (typeof value === "number") return element("td", count(value), "number");
  const cell = element("td", short(value), value.endsWith(" %") ? "number" : "");
  if (cell.textContent !== value) cell.title = value;
  return cell;
}

function fill(table, lines) {
  const body = byId(table).tBodies[0];
  body.replaceChildren(...lines.map((cells) => {
    const row = element("tr");
    row.append(...cells.map(cellOf));
    return row;
  }));
  return body;
}

function sortBy(column, heading) {
  const body = byId("kernels").tBodies[0];
  const numeric = body.rows.length && body.rows[0].cells[column].classList.contains("number");
  const down = heading.ariaSort === "none" ? numeric : heading.ariaSort === "ascending";
  const key = (row) => numeric ? Number(row.cells[column].dataset.key) : row.cells[column].dataset.key;
  const order = [...body.rows].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
  body.append(...(down ? order.reverse() : order));
  for (const other of byId("kernels").tHead.rows[0].cells) other.ariaSort = "none";
  heading.ariaSort = down ? "descending" : "ascending";
}

// Of several cores the one that ends last, unless one is asked for.
const last = (cores) => cores.reduce((best, one, i) => one.cycles > cores[best].cycles ? i : best, 0);

function choose(name, core) {
  const cores = kernels[name];
  core ??= cores && last(cores);
  chosen = cores && cores[core];
  for (const marked of document.querySelectorAll("[data-kernel]"))
    marked.classList.toggle("chosen", marked.dataset.kernel === name);
  if (!chosen) return;
  byId("about").replaceChildren(...about[name].flatMap(([term, text]) => [element("dt", term), element("dd", text)]));
  byId("choice").value = name;
  byId("core").replaceChildren(...cores.map((one, i) => new Option(one.core, i, false, i === core)));
  byId("core").hidden = cores.length === 1;
  const shown = chosen.rows.length, of = chosen.instructions;
  byId("drawn").textContent = `Block 0 of the first launch, on ${chosen.core}: `
    + `${count(chosen.cycles)} cycles, ${count(of)} instructions` + (shown < of ? `; the first ${count(shown)} are drawn.` : ".");
  chosen.at = new Map(chosen.rows.map((row) => [row[INDEX], row]));
  show(0, chosen.cycles);
  showNodes(nodesOf[name]);
  showWaits();
  const shares = [...chosen.shares, ["all", chosen.shares.reduce((sum, [, cycles]) => sum + cycles, 0)]];
  fill("shares", shares.map(([what, cycles]) => [what, cycles, percent(cycles, chosen.cycles)]))
    .lastChild.className = "sum";
  const body = fill("path", chosen.path.map(([start, end, what, source, times]) =>
    [start, end - start, percent(end - start, chosen.cycles), what + (times > 1 ? ` \u00d7 ${times}` : ""), source]));
  [...body.rows].forEach((row, i) => row.addEventListener("click", () => {
    const [start, end] = chosen.path[i], margin = Math.max(20, end - start);
    show(start - margin, end + margin);
    canvas.scrollIntoView({block: "center", behavior: "smooth"});
  }));
}

function showNodes(lines) {
  byId("node-section").hidden = !lines.length;
  const all = lines.reduce((sum, [, , , cycles]) => sum + cycles, 0);
  const longest = Math.max(1, ...lines.map(([, , , , pipes]) => Object.values(pipes).reduce((sum, x) => sum + x, 0)));
  const body = fill("nodes", lines.map(([node, , operators, cycles]) => [node, operators, cycles, percent(cycles, all)]));
  lines.forEach(([, every, , , pipes], i) => {
    const track = element("div", undefined, "track"), cell = element("td", undefined, "pipes");
    for (const [lane, cycles] of Object.entries(pipes)) {
      const part = element("div", undefined, "fill");
      part.style.width = percent(cycles, longest).replace(" ", "");
      part.style.background = `var(--${lane})`;
      part.title = `${lane}: ${count(cycles)} cycles`;
      track.append(part);
    }
    cell.append(track);
    body.rows[i].append(cell);
    body.rows[i].cells[0].title = every;
  });
}

function showWaits() {
  const lines = [], first = [];
  byId("kinds").replaceChildren(...chosen.waits.flatMap(({lane, kinds, causes}) => {
    const track = element("div", undefined, "track");
    for (const kind of Object.keys(KINDS)) {
      if (!kinds[kind]) continue;
      const part = element("div", undefined, "fill");
      part.style.width = percent(kinds[kind], chosen.cycles).replace(" ", "");
      part.style.background = `var(--${kind})`;
      part.title = `${lane}: ${KINDS[kind]}, ${count(kinds[kind])} cycles`;
      track.append(part);
    }
    first.push(lines.length);
    const rest = [[KINDS.done, "", kinds.done || 0]].filter(([, , cycles]) => cycles);
    for (const [what, source, cycles] of [[KINDS.run, "", kinds.run || 0], ...causes, ...rest])
      lines.push([lane, what, cycles, percent(cycles, chosen.cycles), source]);
    return [element("span", lane), track,
      element("span", percent(kinds.run || 0, chosen.cycles) + " at work", "number")];
  }));
  const body = fill("waits", lines);
  for (const number of first) body.rows[number].className = "first";
}

function show(from, to) {
  const least = 20, most = chosen.cycles;
  const span = Math.min(most, Math.max(least, to - from));
  const start = Math.max(0, Math.min(from, most - span));
  view = [start, start + span];
  if (!drawing) requestAnimationFrame(draw);
  drawing = true;
}

// By a factor, around a point that lies `part` of the way from the left edge to the right one.
function draw() {
  drawing = false;
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth;
  const height = AXIS + chosen.lanes.length * LANE_HEIGHT + chosen.levels.length * LEVEL_HEIGHT + 8;
  canvas.style.height = height + "px";
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = "11px system-ui, sans-serif";
  const [from, to] = view, across = (width - LABELS) / (to - from);
  const x = (cycle) => LABELS + (cycle - from) * across;
  axis(pen, x, width, height);
  const text = colour("text"), critical = colour("critical");
  let drawn = 0;
  pen.save();
  pen.beginPath();
  pen.rect(LABELS, 0, width - LABELS, height);
  pen.clip();
  for (const row of chosen.rows) {
    if (Math.max(row[FREE], row[END]) < from || row[START] > to) continue;
    drawn += 1;
    const name = chosen.names[row[NAME]], top = AXIS + row[LANE] * LANE_HEIGHT + 4;
    const left = x(row[START]), long = Math.max(1, x(row[FREE]) - left), tall = LANE_HEIGHT - 8;
    if (name === "set_flag") {
      pen.fillStyle = text;
      pen.fillRect(x(row[END]) - 0.5, top + tall - 4, 2, 6);
      continue;
    }
    if (row[END] > row[FREE]) {
      pen.fillStyle = colour("tail");
      pen.fillRect(left, top + tall - 5, x(row[END]) - left, 5);
    }
    const waiting = WAITS.has(name);
    pen.fillStyle = colour(waiting ? "wait" : chosen.lanes[row[LANE]]);
    pen.fillRect(left, top, long, tall);
    if (row[CRITICAL] && name !== "wait_flag") {
      // Above and below, so that the colour of the pipe stays however narrow a box is.
      pen.fillStyle = critical;
      pen.fillRect(left, top - 2, long, 3);
      pen.fillRect(left, top + tall - 1, long, 3);
      if (long > 8) {
        pen.fillRect(left, top - 2, 1, tall + 4);
        pen.fillRect(left + long - 1, top - 2, 1, tall + 4);
      }
    } else if (long > 4) {
      pen.strokeStyle = colour("panel");
      pen.lineWidth = 1;
      pen.strokeRect(left + 0.5, top + 0.5, long - 1, tall - 1);
    }
    if (long > 46) label(pen, name, left, top, long, waiting ? text : colour("ink"));
  }
  arrows(pen, x, drawn);
  curves(pen, x, width);
  pen.restore();
  canvas.dataset.drawn = drawn;
}

// Bytes in use of each memory and GM traffic, below the lanes of the pipes.
function curves(pen, x, width) {
  chosen.levels.forEach(({name, most, steps}, number) => {
    const bottom = AXIS + chosen.lanes.length * LANE_HEIGHT + (number + 1) * LEVEL_HEIGHT;
    const tall = (level) => (LEVEL_HEIGHT - 8) * level / Math.max(1, most);
    pen.fillStyle = colour(name === "GM" ? "traffic" : "accent");
    steps.forEach(([cycle, level], i) => {
      const end = i + 1 < steps.length ? steps[i + 1][0] : cycle;
      if (end < view[0] || cycle > view[1] || !level) return;
      pen.fillRect(x(cycle), bottom - tall(level), Math.max(0.5, x(end) - x(cycle)), tall(level));
    });
    pen.fillStyle = colour("rule");
    pen.fillRect(LABELS, bottom, width - LABELS, 1);
  });
}

function label(pen, name, left, top, long, ink) {
  pen.save();
  pen.beginPath();
  pen.rect(left + 3, top, long - 6, LANE_HEIGHT);
  pen.clip();
  pen.fillStyle = ink;
  pen.fillText(name, Math.max(left, LABELS) + 5, top + 15);
  pen.restore();
}

function axis(pen, x, width, height) {
  const rough = (view[1] - view[0]) / Math.max(2, width / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough));
  pen.strokeStyle = colour("rule");
  pen.fillStyle = colour("quiet");
  for (let cycle = Math.ceil(view[0] / step) * step; cycle <= view[1]; cycle += step) {
    pen.beginPath();
    pen.moveTo(x(cycle), AXIS - 4);
    pen.lineTo(x(cycle), height);
    pen.stroke();
    const wide = pen.measureText(count(cycle)).width + 6;
    pen.fillText(count(cycle), Math.min(x(cycle) + 3, width - wide), 13);
  }
  pen.fillStyle = colour("text");
  chosen.lanes.forEach((name, i) => pen.fillText(name, 8, AXIS + i * LANE_HEIGHT + 19));
  chosen.levels.forEach(({name}, i) => pen.fillText(name + (name === "GM" ? " traffic" : " in use"), 8,
    AXIS + chosen.lanes.length * LANE_HEIGHT + i * LEVEL_HEIGHT + 22));
}

function arrows(pen, x, drawn) {
  pen.lineWidth = 1.5;
  for (const row of chosen.rows) {
    const sender = row[END_AFTER] >= 0 && chosen.names[row[NAME]] === "wait_flag" && chosen.at.get(row[END_AFTER]);
    if (!sender || row[END] < view[0] || sender[END] > view[1]) continue;
    if (!row[CRITICAL] && drawn > 300) continue;
    const y = (lane) => AXIS + lane * LANE_HEIGHT + LANE_HEIGHT / 2;
    pen.strokeStyle = pen.fillStyle = colour(row[CRITICAL] ? "critical" : "quiet");
    const [x1, y1, x2, y2] = [x(sender[END]), y(sender[LANE]), x(row[END]), y(row[LANE])];
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
    pen.beginPath();
    pen.arc(x2, y2, 3, 0, 7);
    pen.fill();
  }
}

function rowUnder(event) {
  const lane = Math.floor((event.offsetY - AXIS) / LANE_HEIGHT);
  const cycle = view[0] + (event.offsetX - LABELS) / (canvas.clientWidth - LABELS) * (view[1] - view[0]);
  const near = 2 * (view[1] - view[0]) / canvas.clientWidth;
  let best = null, distance = near;
  for (const row of chosen.rows) {
    if (row[LANE] !== lane) continue;
    const free = chosen.names[row[NAME]] === "set_flag";
    const low = free ? row[END] : row[START], high = free ? row[END] : row[FREE];
    const away = cycle < low ? low - cycle : cycle > high ? cycle - high : -1;
    if (away < distance) [best, distance] = [row, away];
  }
  return best;
}

function levelUnder(event) {
  const number = Math.floor((event.offsetY - AXIS - chosen.lanes.length * LANE_HEIGHT) / LEVEL_HEIGHT);
  const found = chosen.levels[number];
  if (!found) return "";
  const cycle = view[0] + (event.offsetX - LABELS) / (canvas.clientWidth - LABELS) * (view[1] - view[0]);
  const [, level] = found.steps.filter(([at]) => at <= cycle).at(-1) || [0, 0];
  return `${found.name} at cycle ${count(Math.round(cycle))}: ${count(level)} of ${count(found.most)} ${found.unit}`;
}

function explain(row) {
  const cause = chosen.at.get(row[END_AFTER]);
  let text = `#${row[INDEX]} ${chosen.names[row[NAME]]} at ${chosen.sources[row[SOURCE]] || "unknown"}\n`
    + `issued ${count(row[ISSUED])}, starts ${count(row[START])}, keeps ${chosen.lanes[row[LANE]]} `
    + `until ${count(row[FREE])}, complete ${count(row[END])}`;
  if (cause) text += `\nwaits for #${cause[INDEX]} ${chosen.names[cause[NAME]]} of `
    + `${chosen.lanes[cause[LANE]]} at ${chosen.sources[cause[SOURCE]] || "unknown"}`;
  return text + (row[CRITICAL] ? "\non the critical path" : "");
}

// Wheel and keys move and magnify what a canvas shows of an axis from 0 to `whole()`.
function steer(canvas, margin, range, whole, look) {
  const magnify = (factor, part) => {
    const [low, high] = range(), from = low + part * (high - low) * (1 - factor);
    look(from, from + (high - low) * factor);
  };
  canvas.addEventListener("wheel", (event) => {
    const [low, high] = range();
    // All is shown: the page may scroll on.
    if (event.deltaY > 0 && high - low >= whole()) return;
    event.preventDefault();
    const part = Math.max(0, (event.offsetX - margin) / (canvas.clientWidth - margin));
    magnify(event.deltaY > 0 ? 1.25 : 0.8, part);
  }, {passive: false});
  canvas.addEventListener("keydown", (event) => {
    const [low, high] = range(), step = (high - low) / 5;
    const keys = {
      "+": () => magnify(0.8, 0.5), "=": () => magnify(0.8, 0.5), "-": () => magnify(1.25, 0.5),
      ArrowLeft: () => look(low - step, high - step),
      ArrowRight: () => look(low + step, high + step),
      Home: () => look(0, whole()),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
}

function listen() {
  steer(canvas, LABELS, () => view, () => chosen.cycles, show);
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) {
      const moved = event.movementX * (view[1] - view[0]) / (canvas.clientWidth - LABELS);
      show(view[0] - moved, view[1] - moved);
      return;
    }
    const row = rowUnder(event);
    byId("hint").textContent = row ? explain(row) : levelUnder(event);
  });
  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
  byId("all").addEventListener("click", () => show(0, chosen.cycles));
  byId("choice").addEventListener("change", (event) => choose(event.target.value));
  byId("core").addEventListener("change", (event) => choose(byId("choice").value, Number(event.target.value)));
  [...byId("kernels").tHead.rows[0].cells].forEach((heading, column) => {
    heading.addEventListener("click", () => sortBy(column, heading));
    heading.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sortBy(column, heading);
    });
  });
  for (const box of document.querySelectorAll("[data-hint]"))
    for (const kind of ["pointerenter", "click"])
      box.addEventListener(kind, () => { byId("value").textContent = box.dataset.hint; });
  for (const marked of document.querySelectorAll("[data-kernel]"))
    marked.addEventListener("click", () => choose(marked.dataset.kernel));
  window.addEventListener("resize", () => chosen && show(...view));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chosen && show(...view));
}

const labels = new Map(network.kernels.map(([name, label]) => [name, label === name ? name : `${label} \u2013 ${name}`]));
byId("choice").append(...Object.keys(kernels).map((name) => new Option(labels.get(name), name)));
byId("legend").append(...Object.entries(KINDS).map(([kind, words]) => {
  const key = element("span", words, "key");
  key.style.setProperty("--colour", `var(--${kind})`);
  return key;
}));
listen();
if (Object.keys(kernels).length) choose(Object.keys(kernels)[0]);
else byId("kernel").hidden = true;
if (chosen) draw();
