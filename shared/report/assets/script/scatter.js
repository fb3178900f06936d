// Hyperparameters against the objective or another metric: a chart for each hyperparameter, the most important first.

const SCATTERS_MAX = 6;

// By hyperparameter, each created when it is first shown.
const scatterCharts = new Map();
let scatters = [];
let scatterAll = false;
// The metric of the vertical axis, or empty for the objective.
let scatterY = "";

function initScatter() {
  byId("scatter-all").addEventListener("click", () => {
    scatterAll = !scatterAll;
    renderScatter();
  });
  byId("scatter-y").addEventListener("change", (event) => {
    scatterY = event.target.value;
    renderScatter();
  });
}

// Shows the choice of the vertical axis if there are other metrics.
function renderScatterY() {
  const choice = byId("scatter-y");
  const names = metricNames();
  if (choice.dataset.key !== names.join("\n")) {
    choice.dataset.key = names.join("\n");
    if (!names.includes(scatterY)) scatterY = "";
    const entry = (value, text) => el("option", { value }, text);
    put(
      choice,
      entry("", `best ${model.head.metric}`),
      names.map((name) => entry(name, `last ${name}`)),
    );
    choice.value = scatterY;
  }
  choice.parentElement.hidden = names.length === 0;
  byId("scatter-title").textContent = scatterY ? `Last ${scatterY} by hyperparameter` : "Best value by hyperparameter";
}

// Returns the place of a trial on the axis of a hyperparameter. Trials of one category spread by their number, so that they
// do not cover each other: multiples of the golden ratio are far apart.
function scatterAt(trial, index) {
  const value = numeric(trial, index);
  if (value === null || !model.head.parameters[index].values) return value;
  return value + (((trial.number * 0.618034) % 1) - 0.5) * 0.6;
}

function scatterValue(trial) {
  return scatterY ? (trial.metrics?.[scatterY] ?? null) : trial.best;
}

// Returns the indices of the hyperparameters, by importance if it is known.
function parameterOrder() {
  const order = model.head.parameters.map((_, index) => index);
  const known = importance.result?.parameters;
  return known ? order.sort((a, b) => known[b] - known[a]) : order;
}

function renderScatter() {
  const any = model.ranked.length > 0;
  byId("scatter-empty").hidden = any;
  byId("scatter-part").hidden = !any;
  if (!any) return;
  renderScatterY();
  const order = parameterOrder();
  const few = scatterAll ? order : order.slice(0, SCATTERS_MAX);
  const button = byId("scatter-all");
  button.hidden = order.length <= SCATTERS_MAX;
  button.textContent = scatterAll ? `Show the first ${SCATTERS_MAX}` : `Show all ${order.length}`;
  const key = few.join();
  if (byId("scatter-body").dataset.key !== key) {
    byId("scatter-body").dataset.key = key;
    for (const index of few) {
      if (!scatterCharts.has(index)) scatterCharts.set(index, scatter(el("div"), index));
    }
    scatters = few.map((index) => scatterCharts.get(index));
    put(
      byId("scatter-body"),
      scatters.map((chart) => chart.host),
    );
  }
  scatters.forEach(refresh);
}

function scatter(host, index) {
  return createDots(host, {
    label: () => `${scatterY || model.head.metric} by ${model.head.parameters[index].name}`,
    height: () => 210,
    x: () => parameterScale(index),
    note: "scatter-clipped",
    y: () => ({ ...scatterRange(), label: scatterY || model.head.metric }),
    place: (trial) => placed(scatterAt(trial, index), scatterValue(trial)),
    text: (trial) =>
      `${model.head.parameters[index].name} = ${setting(trial.values[index])}` +
      (scatterY ? `, ${scatterY} = ${number(scatterValue(trial))}` : ""),
  });
}

// Returns the place of a dot, or null without a value.
function placed(x, y) {
  return x === null || y === null ? null : [x, y];
}

// Creates a chart with a dot for each trial. `place(trial)` returns its values of both axes or null, `text(trial)` the
// first line of the tooltip. `draw` draws below the dots.
function createDots(host, { place, text, draw, ...options }) {
  return createChart(host, {
    ...options,
    draw: (context, map) => {
      draw?.(context, map);
      drawDots(context, map, place);
    },
    overlay: (context, map, trial) => {
      if (place(trial)) drawRing(context, map, place(trial), 5.5, colourOf(trial), palette.text);
    },
    nearest: (x, y, map) => {
      let [found, least] = [null, 18 * map.ratio];
      for (const trial of model.shown) {
        const at = place(trial);
        if (!at) continue;
        const distance = Math.hypot(map.x(at[0]) - x, map.y(at[1]) - y);
        if (distance < least) [found, least] = [trial, distance];
      }
      return found && { trial: found, text: text(found) };
    },
    items: () => shownByRank().filter(place),
  });
}

// Returns the axis of a hyperparameter.
function parameterScale(index) {
  const parameter = model.head.parameters[index];
  const label = parameter.name;
  if (parameter.values) {
    const names = parameter.values;
    return {
      min: -0.5,
      max: names.length - 0.5,
      label,
      ticks: names.map((_, i) => i),
      format: (i) => shortName(names[i] ?? ""),
    };
  }
  const log = parameter.scaling === "logarithmic" && parameter.min > 0;
  const margin = log ? (parameter.max / parameter.min) ** 0.03 : (parameter.max - parameter.min) * 0.03 || 0.5;
  const [min, max] = log
    ? [parameter.min / margin, parameter.max * margin]
    : [parameter.min - margin, parameter.max + margin];
  return {
    min,
    max,
    log,
    label,
    ticks: log ? powers(parameter.min, parameter.max) : null,
    steps: parameter.type === "integer" ? WHOLE_STEPS : null,
  };
}

function powers(min, max) {
  const found = [];
  const [from, to] = [Math.ceil(Math.log10(min) - 1e-9), Math.floor(Math.log10(max) + 1e-9)];
  const step = Math.max(1, Math.ceil((to - from) / 5));
  for (let power = from; power <= to; power += step) found.push(Number(`1e${power}`));
  return found.length > 1 ? found : [min, max];
}

function shortName(text) {
  return text.length > 10 ? `${text.slice(0, 9)}…` : text;
}

// Returns the range of the best values without far outliers.
function scoreEnds() {
  const values = model.trials.map((trial) => trial.best).filter((value) => value !== null);
  return robustRange(values, model.ranked[0].best);
}

function scoreRange() {
  return withMargin(scoreEnds(), 0.06);
}

function scatterRange() {
  if (!scatterY) return scoreRange();
  return withMargin(robustRange(model.trials.map(scatterValue).filter((value) => value !== null)), 0.06);
}

function drawDots(context, map, place) {
  const radius = (model.trials.length > 3000 ? 1.2 : model.trials.length > 500 ? 2 : 3) * map.ratio;
  const best = model.trials[model.head.best?.trial];
  context.globalAlpha = model.trials.length > 500 ? 0.55 : 0.8;
  for (const [outcome] of OUTCOMES) {
    context.fillStyle = context.strokeStyle = palette[outcome];
    context.lineWidth = 1.5 * map.ratio;
    for (const trial of model.shown) {
      const at = trial.outcome === outcome && place(trial);
      if (at) drawDot(context, map, at, radius, outcome === "failed");
    }
  }
  context.globalAlpha = 1;
  if (!best || !place(best) || !model.shown.includes(best)) return;
  drawRing(context, map, place(best), 4.5, palette.accent, palette.bg);
}

function drawDot(context, map, [x, y], radius, isCross) {
  if (map.outside(y)) {
    drawOutside(context, map, x, y);
    return;
  }
  context.beginPath();
  if (isCross) {
    cross(context, map.x(x), map.y(y), radius);
    context.stroke();
  } else {
    context.arc(map.x(x), map.y(y), radius, 0, 7);
    context.fill();
  }
}

function drawRing(context, map, [x, y], radius, colour, edge) {
  context.beginPath();
  context.arc(map.x(x), map.y(y), radius * map.ratio, 0, 7);
  context.fillStyle = colour;
  context.fill();
  context.strokeStyle = edge;
  context.lineWidth = 1.5 * map.ratio;
  context.stroke();
}
