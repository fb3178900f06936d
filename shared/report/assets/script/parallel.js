// Parallel coordinates: a line for each trial over one axis per hyperparameter and the objective. A brush on an axis, or
// a range in the form, filters all charts.

const AXES_MAX = 12;
// More trials outside the filter only darken the background.
const DIM_MAX = 500;
const MARGIN = { top: 34, bottom: 22, side: 46 };

const parallel = { canvas: null, over: null, brush: null };

function initParallel() {
  const host = byId("parallel-chart");
  parallel.canvas = el("canvas", { "aria-hidden": "true" });
  parallel.over = el("canvas", { class: "over", "aria-hidden": "true" });
  host.append(parallel.canvas, parallel.over);
  fill(host, { role: "application", tabindex: "0", "aria-describedby": "chart-help" }, []);
  new ResizeObserver(atNextFrame(() => model.head && host.clientWidth > 0 && renderParallel())).observe(host);
  host.addEventListener("pointerdown", beginBrush);
  host.addEventListener("pointermove", moveBrush);
  host.addEventListener("pointerup", endBrush);
  host.addEventListener("pointercancel", dropBrush);
  host.addEventListener("pointerleave", () => (setHovered(null), tooltip.hide()));
  const chart = { options: { items: () => shownByRank().filter((trial) => trial.best !== null) } };
  host.addEventListener("keydown", (event) => stepByKey(chart, event));
  subscribe("hover", drawParallelOver);
  byId("clear-ranges").addEventListener("click", () => setFilter({ ranges: new Map() }));
}

// Returns the axes: the most important hyperparameters, then the objective.
function parallelAxes() {
  const indices = parameterOrder().slice(0, AXES_MAX);
  const axes = indices.map((index) => {
    const parameter = model.head.parameters[index];
    if (parameter.values)
      return {
        index,
        name: parameter.name,
        names: parameter.values,
        min: 0,
        max: Math.max(1, parameter.values.length - 1),
      };
    const log = parameter.scaling === "logarithmic" && parameter.min > 0;
    return { index, name: parameter.name, min: parameter.min, max: parameter.max, log };
  });
  return [...axes, { index: model.head.parameters.length, name: model.head.metric, ...scoreEnds() }];
}

function axisValue(axis, trial) {
  return axis.index === model.head.parameters.length ? trial.best : numeric(trial, axis.index);
}

function layout() {
  const host = byId("parallel-chart");
  const [width, height] = [host.clientWidth, 320];
  const axes = parallelAxes();
  const step = (width - 2 * MARGIN.side) / Math.max(1, axes.length - 1);
  const bottom = height - MARGIN.bottom;
  axes.forEach((axis, i) => {
    axis.x = MARGIN.side + i * step;
    const [from, to] = axis.log ? [Math.log(axis.min), Math.log(axis.max)] : [axis.min, axis.max];
    const share = (value) => ((axis.log ? Math.log(value) : value) - from) / (to - from || 1);
    axis.y = (value) => bottom - Math.max(-0.02, Math.min(1.02, share(value))) * (bottom - MARGIN.top);
    axis.value = (y) => {
      const inner = from + Math.max(0, Math.min(1, (bottom - y) / (bottom - MARGIN.top))) * (to - from);
      return axis.log ? Math.exp(inner) : inner;
    };
  });
  return { width, height, axes, bottom, step };
}

function renderParallel() {
  const any = model.ranked.length > 0;
  byId("parallel-body").hidden = !any;
  if (!any) return;
  const place = layout();
  parallel.place = place;
  const context = sized(parallel.canvas, place);
  const byRank = shownByRank()
    .filter((trial) => trial.best !== null)
    .reverse();
  const best = model.trials[model.head.best?.trial];
  context.lineWidth = 1;
  const shown = new Set(byRank);
  const dim = model.ranked.filter((trial) => !shown.has(trial)).slice(0, DIM_MAX);
  strokeTrials(context, place, dim, palette.line, 0.5);
  context.globalAlpha = Math.max(0.1, Math.min(0.7, 10 / Math.sqrt(byRank.length || 1)));
  for (const trial of byRank) strokeTrials(context, place, [trial], colourOf(trial));
  if (best && shown.has(best)) {
    context.lineWidth = 2.5;
    strokeTrials(context, place, [best], palette.accent, 1);
  }
  context.globalAlpha = 1;
  drawAxes(context, place);
  byId("parallel-chart").setAttribute(
    "aria-label",
    `Parallel coordinates of ${counted(byRank.length, "trial")}: ${place.axes.map((axis) => axis.name).join(", ")}`,
  );
  drawParallelOver();
  renderRanges();
}

function sized(canvas, { width, height }) {
  const ratio = devicePixelRatio;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

function strokeTrials(context, { axes }, trials, colour, alpha) {
  context.strokeStyle = colour;
  if (alpha !== undefined) context.globalAlpha = alpha;
  for (const trial of trials) {
    context.beginPath();
    let pen = false;
    for (const axis of axes) {
      const value = axisValue(axis, trial);
      if (value === null) continue;
      if (pen) context.lineTo(axis.x, axis.y(value));
      else context.moveTo(axis.x, axis.y(value));
      pen = true;
    }
    context.setLineDash(dashesOf(trial, 1));
    context.stroke();
  }
  context.setLineDash([]);
}

function drawAxes(context, { axes, bottom, step }) {
  context.textAlign = "center";
  const letters = Math.max(5, Math.floor(step / 6.5));
  const cut = (text) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
  axes.forEach((axis, i) => {
    context.strokeStyle = palette.muted;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(axis.x, MARGIN.top);
    context.lineTo(axis.x, bottom);
    context.stroke();
    context.fillStyle = palette.text;
    context.font = "12px system-ui, sans-serif";
    // The outer names would leave the chart.
    const shift = i === 0 ? -1 : i === axes.length - 1 ? 1 : 0;
    context.textAlign = ["left", "center", "right"][shift + 1];
    context.fillText(cut(axis.name), axis.x + shift * MARGIN.side, 12);
    context.textAlign = "center";
    context.fillStyle = palette.muted;
    context.font = "11px system-ui, sans-serif";
    const text = (value) => (axis.names ? cut(axis.names[value] ?? "") : number(Number(value.toPrecision(4))));
    context.fillText(text(axis.max), axis.x, 27);
    context.fillText(text(axis.min), axis.x, bottom + 15);
    const range = model.filter.ranges.get(axis.index);
    if (range) {
      const [top, low] = [axis.y(range[1]), axis.y(range[0])];
      context.fillStyle = faded(palette.accent, 0.25);
      context.fillRect(axis.x - 8, top, 16, Math.max(2, low - top));
      context.strokeStyle = palette.accent;
      context.strokeRect(axis.x - 8, top, 16, Math.max(2, low - top));
    }
  });
  context.textAlign = "start";
}

function drawParallelOver() {
  if (!parallel.place || byId("parallel-body").hidden) return;
  const context = sized(parallel.over, parallel.place);
  if (!model.hovered || model.hovered.best === null) return;
  context.lineJoin = "round";
  context.lineWidth = 6;
  strokeTrials(context, parallel.place, [model.hovered], palette.bg, 1);
  context.lineWidth = 3;
  strokeTrials(context, parallel.place, [model.hovered], colourOf(model.hovered), 1);
}

function position(event) {
  const box = byId("parallel-chart").getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function axisAt(x) {
  return parallel.place.axes.find((axis) => Math.abs(axis.x - x) <= 14);
}

function beginBrush(event) {
  const [x, y] = position(event);
  const axis = axisAt(x);
  if (!axis) {
    if (model.hovered) showTrial(model.hovered.number);
    return;
  }
  parallel.brush = { axis, from: y };
  byId("parallel-chart").setPointerCapture(event.pointerId);
  event.preventDefault();
}

function moveBrush(event) {
  const [x, y] = position(event);
  if (!parallel.brush) {
    hoverParallel(event, x, y);
    return;
  }
  const { axis, from } = parallel.brush;
  if (Math.abs(y - from) < 4) return;
  const values = [axis.value(from), axis.value(y)].sort((a, b) => a - b);
  model.filter.ranges.set(axis.index, axis.names ? [values[0] - 0.3, values[1] + 0.3] : values);
  brushed();
}

const brushed = atNextFrame(() => {
  applyFilter();
  renderParallel();
});

// A click without a drag removes the brush of the axis.
function endBrush(event) {
  if (!parallel.brush) return;
  const { axis, from } = parallel.brush;
  parallel.brush = null;
  if (Math.abs(position(event)[1] - from) < 4) model.filter.ranges.delete(axis.index);
  setFilter({});
}

// The touch became a scroll of the page.
function dropBrush() {
  if (!parallel.brush) return;
  parallel.brush = null;
  setFilter({});
}

function hoverParallel(event, x, y) {
  const { axes } = parallel.place;
  const right = axes.findIndex((axis) => axis.x >= x);
  const [a, b] = right <= 0 ? [axes[0], axes[1] ?? axes[0]] : [axes[right - 1], axes[right]];
  let [found, least] = [null, 10];
  for (const trial of model.shown) {
    const [from, to] = [axisValue(a, trial), axisValue(b, trial)];
    if (from === null || to === null || trial.best === null) continue;
    const share = b.x === a.x ? 0 : (x - a.x) / (b.x - a.x);
    const distance = Math.abs(a.y(from) + share * (b.y(to) - a.y(from)) - y);
    if (distance < least) [found, least] = [trial, distance];
  }
  setHovered(found);
  if (found) tooltip.show(event, trialLines(found, null));
  else tooltip.hide();
}

// Shows the ranges as fields, for the keyboard and for exact values.
function renderRanges() {
  const body = byId("ranges");
  byId("clear-ranges").hidden = model.filter.ranges.size === 0;
  if (body.contains(document.activeElement)) return;
  const { axes } = parallel.place;
  const field = (axis, end, side) => {
    const range = model.filter.ranges.get(axis.index);
    const value = range ? range[side] : "";
    const change = (event) => {
      const [low, high] = model.filter.ranges.get(axis.index) ?? [-Infinity, Infinity];
      const text = event.target.value.trim();
      const entered = text === "" ? (side === 0 ? -Infinity : Infinity) : Number(text);
      const next = side === 0 ? [entered, high] : [low, entered];
      if (next[0] === -Infinity && next[1] === Infinity) model.filter.ranges.delete(axis.index);
      else model.filter.ranges.set(axis.index, next);
      setFilter({});
    };
    return el(
      "label",
      {},
      `${end} `,
      el("input", {
        type: "number",
        step: "any",
        value: Number.isFinite(value) ? Number(value.toPrecision(6)) : null,
        onchange: change,
        "aria-label": `${axis.name}, ${end}`,
      }),
    );
  };
  const fields = (axis) => (axis.names ? choice(axis) : [field(axis, "from", 0), field(axis, "to", 1)]);
  put(
    body,
    axes.map((axis) => el("div", {}, el("span", {}, axis.name), fields(axis))),
  );
}

// Returns a field with the categories of an axis. A brush over several of them shows as its own entry.
function choice(axis) {
  const range = model.filter.ranges.get(axis.index);
  const inside = range ? axis.names.filter((_, i) => i >= range[0] && i <= range[1]) : [];
  const entry = (value, text, selected) => el("option", { value, selected }, text);
  const change = ({ target }) => {
    const index = target.value === "" ? null : Number(target.value);
    if (index === null) model.filter.ranges.delete(axis.index);
    else model.filter.ranges.set(axis.index, [index - 0.3, index + 0.3]);
    setFilter({});
  };
  return el(
    "select",
    { "aria-label": axis.name, onchange: change },
    entry("", "all", !range),
    range && inside.length !== 1 && el("option", { selected: true, disabled: true }, inside.join(", ") || "none"),
    axis.names.map((name, index) => entry(index, name, inside.length === 1 && inside[0] === name)),
  );
}
