// A chart: uPlot draws axes and grid, scales and zooms. The chart draws its marks on uPlot's canvas, and the highlighted
// trial on a canvas above it.

const tooltip = {
  show(event, lines) {
    const box = byId("tooltip");
    put(box, lines);
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const [x, y] = [event.clientX + 14, event.clientY + 14];
    box.style.left = `${Math.max(4, x + width > innerWidth ? event.clientX - width - 14 : x)}px`;
    box.style.top = `${Math.max(4, y + height > innerHeight ? event.clientY - height - 14 : y)}px`;
  },
  hide() {
    byId("tooltip").hidden = true;
  },
};

// Returns the tooltip of a trial: state, values, configuration and verdicts.
function trialLines(trial, first) {
  const rows = settings(trial)
    .slice(0, 12)
    .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
  return [
    el("p", {}, el("b", {}, `trial ${trial.number}`), ` ${OUTCOME_WORDS[trial.outcome]}, bracket ${trial.bracket}`),
    first && el("p", {}, first),
    el(
      "p",
      {},
      `best ${number(trial.best)}` +
        (trial.bestEpoch ? ` at epoch ${trial.bestEpoch}` : "") +
        `, last ${number(trial.last)} at epoch ${trial.epochs}`,
    ),
    el("dl", {}, rows),
    ...(trial.judged ?? []).map((judged) => el("p", { class: "verdict" }, verdict(judged))),
    trial.why && !(trial.judged ?? []).length && el("p", { class: "verdict" }, trial.why),
  ].filter(Boolean);
}

// The share of the values at each end that may be far outliers.
const OUTLIERS_SHARE = 0.05;
// An outlier is far if its distance from the other values is more than this multiple of their range.
const FAR = 3;

// Returns the range of the values without far outliers, which would flatten the others. It includes `best`, and `clipped`
// is the number of values outside.
function robustRange(values, best = null) {
  const sorted = Float64Array.from(values).sort();
  const last = sorted.length - 1;
  const cut = Math.min(Math.ceil(last * OUTLIERS_SHARE), last >> 2);
  const [low, high] = [sorted[cut], sorted[last - cut]];
  const size = high - low;
  const isFar = (distance) => size > 0 && distance > FAR * size;
  const min = Math.min(isFar(low - sorted[0]) ? low - size / 4 : sorted[0], best ?? Infinity);
  const max = Math.max(isFar(sorted[last] - high) ? high + size / 4 : sorted[last], best ?? -Infinity);
  return { min, max, clipped: sorted.filter((value) => value < min || value > max).length };
}

function withMargin({ min, max, clipped }, share) {
  const margin = (max - min || Math.abs(max) || 1) * share;
  return { min: min - margin, max: max + margin, clipped };
}

function clippedText({ clipped }) {
  return clipped ? `${counted(clipped, "value")} outside the axis: clipped to its edge, with a triangle` : "";
}

// Adds a cross to the path.
function cross(context, x, y, size) {
  context.moveTo(x - size, y - size);
  context.lineTo(x + size, y + size);
  context.moveTo(x + size, y - size);
  context.lineTo(x - size, y + size);
}

// Draws a triangle at the edge for a value outside the axis.
function drawOutside(context, map, x, value) {
  const size = 3.5 * map.ratio;
  const [middle, edge] = [map.x(x), map.y(value)];
  const base = edge + 2 * size * map.outside(value);
  context.beginPath();
  context.moveTo(middle, edge);
  context.lineTo(middle - size, base);
  context.lineTo(middle + size, base);
  context.fill();
}

// Returns how values become pixels of the plot area whose corner is at (left, top). Values outside `ends` are at its edge.
function mapping(plot, ends, left, top) {
  const scale = (key, start, size, up) => {
    const { min, max, distr } = plot.scales[key];
    const [from, to] = distr === 3 ? [Math.log10(min), Math.log10(max)] : [min, max];
    const unit = size / (to - from || 1);
    const place = up ? (value) => start + size - (value - from) * unit : (value) => start + (value - from) * unit;
    return distr === 3 ? (value) => place(Math.log10(value)) : place;
  };
  const { width, height } = plot.bbox;
  const y = scale("y", top, height, true);
  return {
    x: scale("x", left, width, false),
    y: (value) => y(Math.max(ends.min, Math.min(ends.max, value))),
    // 1 above the axis, -1 below it.
    outside: (value) => Number(value > ends.max) - Number(value < ends.min),
    left,
    top,
    width,
    height,
    ratio: devicePixelRatio,
  };
}

// Creates a chart in `host`. `options`: `label`, `height`, `x` and `y` (functions that return `min`, `max`, `log`, `label`,
// `format`, `ticks`, `clipped`), `note` (the ID of a text about clipped values), `draw(context, map)`, `overlay(context, map, trial)`, `nearest(x, y, map)`, `items()`.
function createChart(host, options) {
  const chart = { host, options, plot: null, zoomed: false };
  host.classList.add("chart");
  // A chart of trials takes keys. Other charts are pictures with a label.
  const keys = { role: "application", tabindex: "0", "aria-describedby": "chart-help" };
  fill(host, options.items ? keys : { role: "img" }, []);
  new ResizeObserver(
    atNextFrame(() => {
      if (chart.plot && chart.host.clientWidth > 0 && chart.plot.width !== chart.host.clientWidth) resize(chart);
    }),
  ).observe(host);
  host.addEventListener("keydown", (event) => stepByKey(chart, event));
  host.addEventListener("blur", () => setHovered(null));
  subscribe("hover", () => drawOverlay(chart));
  return chart;
}

function resize(chart) {
  chart.plot.setSize({ width: chart.host.clientWidth, height: chart.options.height() });
}

// Draws a chart anew: after a change of data, filter or theme. Keeps the zoom.
function refresh(chart) {
  const [x, y] = [chart.options.x(), chart.options.y()];
  const clipped = clippedText(y);
  chart.ends = y;
  chart.host.setAttribute("aria-label", chart.options.label() + (clipped && `. ${clipped}`));
  if (chart.options.note) byId(chart.options.note).textContent = clipped && `${clipped}.`;
  const shape = JSON.stringify([x.log, y.log, x.label, y.label, x.ticks ?? null, y.ticks ?? null]);
  if (chart.plot && chart.shape !== shape) {
    chart.plot.destroy();
    chart.plot = null;
    chart.zoomed = false;
  }
  chart.shape = shape;
  if (!chart.plot) build(chart, x, y);
  if (chart.zoomed) chart.plot.redraw(false, true);
  else {
    if (chart.plot.height !== chart.options.height() || chart.plot.width !== chart.host.clientWidth) resize(chart);
    home(chart);
  }
  drawOverlay(chart);
}

// Shows all data.
function home(chart) {
  const [x, y] = [chart.options.x(), chart.options.y()];
  chart.zoomed = false;
  chart.plot.batch(() => {
    chart.plot.setScale("x", { min: x.min, max: x.max });
    chart.plot.setScale("y", { min: y.min, max: y.max });
    chart.plot.redraw(false, true);
  });
}

// Steps of an axis of time, in seconds.
const TIME_STEPS = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800,
  604800,
];
// Steps of an axis of whole numbers.
const WHOLE_STEPS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

function axis(side, { label, format, ticks, steps }) {
  return {
    side,
    label,
    labelSize: 18,
    labelFont: "12px system-ui, sans-serif",
    font: "11px system-ui, sans-serif",
    size: side === 3 ? 62 : 30,
    gap: 4,
    stroke: () => palette.muted,
    grid: { stroke: () => palette.line, width: 1 },
    ticks: { stroke: () => palette.line, width: 1, size: 4 },
    values: (_, splits) => splits.map((value) => (value === null ? "" : (format ?? tick)(value))),
    // uPlot labels only powers of ten on a logarithmic axis.
    ...(ticks ? { splits: () => ticks, filter: (_, splits) => splits } : {}),
    ...(steps ? { incrs: steps, space: 56 } : {}),
  };
}

function build(chart, x, y) {
  // uPlot passes each new range of the horizontal axis through `range`, so a constant would prevent zooms and growth.
  const range = (_, from, to) => [from, to];
  const scale = ({ min, max, log }) => ({ time: false, auto: false, distr: log ? 3 : 1, min, max, range });
  const { options, host } = chart;
  chart.plot = new uPlot(
    {
      width: Math.max(host.clientWidth, 200),
      height: options.height(),
      legend: { show: false },
      padding: [10, 12, 0, 0],
      scales: { x: scale(x), y: scale(y) },
      axes: [axis(2, x), axis(3, y)],
      series: [{}, ...(options.series?.() ?? [{ show: false }])],
      cursor: {
        points: { show: false },
        x: Boolean(options.series),
        y: false,
        drag: { x: true, y: !options.series, uni: 30, setScale: true },
        bind: { dblclick: () => () => (home(chart), null) },
      },
      hooks: {
        setSelect: [(plot) => (chart.zoomed = chart.zoomed || plot.select.width > 0)],
        drawAxes: options.series ? [(plot) => inside(plot, chart)] : [],
        draw: options.series ? [] : [(plot) => inside(plot, chart)],
      },
    },
    options.data?.() ?? [
      [x.min, x.max],
      [null, null],
    ],
    host,
  );
  chart.over = el("canvas", { class: "over", "aria-hidden": "true" });
  chart.plot.over.append(chart.over);
  for (const canvas of host.querySelectorAll("canvas")) canvas.setAttribute("aria-hidden", "true");
  const move = (event) => point(chart, event);
  chart.plot.over.addEventListener("pointermove", move);
  chart.plot.over.addEventListener("pointerdown", move);
  chart.plot.over.addEventListener("pointerleave", () => (setHovered(null), tooltip.hide()));
  let down = null;
  chart.plot.over.addEventListener("mousedown", (event) => (down = [event.clientX, event.clientY]));
  chart.plot.over.addEventListener("click", (event) => {
    const moved = down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 4;
    if (!moved && model.hovered) showTrial(model.hovered.number);
  });
}

function inside(plot, { options, ends }) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  options.draw(ctx, mapping(plot, ends, bbox.left, bbox.top), plot);
  ctx.restore();
}

function drawOverlay(chart) {
  if (!chart.plot || !chart.options.overlay) return;
  const { over, plot } = chart;
  const { width, height } = plot.bbox;
  if (over.width !== width || over.height !== height) [over.width, over.height] = [width, height];
  const context = over.getContext("2d");
  context.clearRect(0, 0, width, height);
  if (model.hovered) chart.options.overlay(context, mapping(plot, chart.ends, 0, 0), model.hovered);
}

function point(chart, event) {
  const box = chart.plot.over.getBoundingClientRect();
  const map = mapping(chart.plot, chart.ends, 0, 0);
  const [x, y] = [(event.clientX - box.left) * map.ratio, (event.clientY - box.top) * map.ratio];
  if (chart.options.read) {
    tooltip.show(event, chart.options.read(x, map));
    return;
  }
  const found = chart.options.nearest(x, y, map);
  setHovered(found?.trial ?? null);
  if (found) tooltip.show(event, trialLines(found.trial, found.text));
  else tooltip.hide();
}

// Moves between the trials of a chart with the arrow keys. Enter shows the trial.
function stepByKey(chart, event) {
  if (event.key === "Enter" && model.hovered) return showTrial(model.hovered.number);
  if (event.key === "Escape" && model.hovered) return setHovered(null);
  if (event.key === "0" && chart.plot) return home(chart);
  const steps = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };
  const items = chart.options.items?.() ?? [];
  if (!(event.key in steps) || items.length === 0) return undefined;
  event.preventDefault();
  const now = items.indexOf(model.hovered);
  const next = now < 0 ? 0 : (now + steps[event.key] + items.length) % items.length;
  setHovered(items[next]);
  return announce(spoken(items[next]));
}

function spoken(trial) {
  const settingsText = settings(trial)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
  const rank = trial.rank ? `, rank ${trial.rank} of ${model.ranked.length}` : "";
  return `trial ${trial.number}, ${OUTCOME_WORDS[trial.outcome]}, best ${number(trial.best)}${rank}, ${trial.epochs} epochs; ${settingsText}`;
}

// Returns the shown trials, best first, then those without a value.
function shownByRank() {
  return model.shown.slice().sort((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity) || a.number - b.number);
}
