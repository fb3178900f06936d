// Hyperparameters against the objective: a chart for each hyperparameter, the most important first.

const SCATTERS_MAX = 6;

// By hyperparameter, each created when it is first shown.
const scatterCharts = new Map();
let scatters = [];
let scatterAll = false;

function initScatter() {
  byId("scatter-all").addEventListener("click", () => {
    scatterAll = !scatterAll;
    renderScatter();
  });
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
  return createChart(host, {
    label: () => `${model.head.metric} by ${model.head.parameters[index].name}`,
    height: () => 210,
    x: () => parameterScale(index),
    y: () => ({ ...scoreRange(), label: model.head.metric }),
    draw: (context, place) => drawScatter(context, place, index),
    overlay: (context, place, trial) => {
      const value = numeric(trial, index);
      if (value === null || trial.best === null) return;
      context.beginPath();
      context.arc(place.x(value), place.y(trial.best), 5.5 * place.ratio, 0, 7);
      context.fillStyle = colourOf(trial);
      context.fill();
      context.strokeStyle = palette.text;
      context.lineWidth = 1.5 * place.ratio;
      context.stroke();
    },
    nearest: (x, y, place) => {
      let [found, least] = [null, 18 * place.ratio];
      for (const trial of model.shown) {
        const value = numeric(trial, index);
        if (value === null || trial.best === null) continue;
        const distance = Math.hypot(place.x(value) - x, place.y(trial.best) - y);
        if (distance < least) [found, least] = [trial, distance];
      }
      return found && { trial: found, text: `${model.head.parameters[index].name} = ${setting(found.values[index])}` };
    },
    items: () => shownByRank().filter((trial) => trial.best !== null),
  });
}

// Returns the axis of a hyperparameter.
function parameterScale(index) {
  const parameter = model.head.parameters[index];
  const label = parameter.name;
  if (parameter.type === "categorical") {
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

// Returns the range of the best values. The worst few may lie outside.
function scoreEnds() {
  const values = model.ranked.map((trial) => trial.best);
  const [best, worst] = [values[0], values[Math.ceil((values.length - 1) * SHOWN_SHARE)]];
  return { min: Math.min(best, worst), max: Math.max(best, worst) };
}

function scoreRange() {
  const { min: low, max: high } = scoreEnds();
  const margin = (high - low || Math.abs(high) || 1) * 0.06;
  return { min: low - margin, max: high + margin };
}

function drawScatter(context, map, index) {
  const radius = (model.trials.length > 3000 ? 1.2 : model.trials.length > 500 ? 2 : 3) * map.ratio;
  const best = model.trials[model.head.best?.trial];
  context.globalAlpha = model.trials.length > 500 ? 0.55 : 0.8;
  for (const [outcome] of OUTCOMES) {
    context.fillStyle = palette[outcome];
    for (const trial of model.shown) {
      if (trial.outcome !== outcome || trial.best === null) continue;
      const value = numeric(trial, index);
      if (value === null) continue;
      context.beginPath();
      context.arc(map.x(value), map.y(trial.best), radius, 0, 7);
      context.fill();
    }
  }
  context.globalAlpha = 1;
  if (!best || best.best === null || !model.shown.includes(best)) return;
  context.beginPath();
  context.arc(map.x(numeric(best, index)), map.y(best.best), 4.5 * map.ratio, 0, 7);
  context.fillStyle = palette.accent;
  context.fill();
  context.strokeStyle = palette.bg;
  context.lineWidth = 1.5 * map.ratio;
  context.stroke();
}
