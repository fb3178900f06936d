// Learning curves: a line for each trial, rungs as guides, judged points as marks, the best trial on top.

// More marks hide the curves.
const MARKS_MAX = 3000;

let curves = null;
let epochsLog = false;

function initCurves() {
  curves = createChart(byId("curves-chart"), {
    label: () => {
      const rungs = rungLevels().length ? `, rungs at ${rungLevels().join(", ")}` : "";
      return `Learning curves: ${model.head.metric} by epoch of ${counted(model.shown.length, "trial")}${rungs}`;
    },
    height: () => (innerWidth < 600 ? 300 : 420),
    x: () => ({
      ...widened(epochRange()),
      log: epochsLog,
      label: "epoch",
      ticks: epochsLog ? [...new Set([1, ...rungLevels(), epochRange().max])] : null,
      steps: WHOLE_STEPS,
    }),
    y: () => ({ ...valueRange(model.trials), label: model.head.metric }),
    note: "curves-clipped",
    draw: drawCurves,
    overlay: (context, map, trial) => {
      drawCurve(context, map, trial, palette.bg, 6);
      drawCurve(context, map, trial, colourOf(trial), 3);
      drawMarks(context, map, trial, 4.5);
    },
    nearest: nearestCurve,
    items: () => shownByRank().filter((trial) => trial.curve.values.length > 0),
  });
  byId("epochs-log").addEventListener("change", (event) => {
    epochsLog = event.target.checked;
    refresh(curves);
  });
  byId("curves-home").addEventListener("click", () => home(curves));
}

function renderCurves() {
  const any = model.trials.some((trial) => trial.curve.values.length > 0);
  byId("curves-empty").hidden = any;
  byId("curves-body").hidden = !any;
  byId("curves-tools").hidden = !any;
  if (any) refresh(curves);
}

// Returns the levels at which trials are compared, in the brackets that have trials or can still get some.
function rungLevels() {
  const { brackets, ended } = model.head;
  const open = brackets.filter((bracket) => bracket.TrialsStarted > 0 || ended === null);
  const all = new Set(open.flatMap((bracket) => bracket.Rungs.slice(0, -1).map((rung) => rung.Resource)));
  return [...all].sort((a, b) => a - b);
}

// Leaves room for the marks at both ends.
function widened({ min, max }) {
  if (epochsLog) return { min: min * (max / min) ** -0.015, max: max * (max / min) ** 0.015 };
  const margin = (max - min) * 0.012;
  return { min: min - margin, max: max + margin };
}

function epochRange() {
  const reached = model.trials.reduce((most, trial) => Math.max(most, trial.epochs), 1);
  const max = Math.max(model.head.maxEpochs ?? 1, reached, 2);
  return { min: 1, max };
}

// Returns the range of nearly all values. It always includes the best.
function valueRange(trials) {
  const values = [];
  for (const trial of trials) for (const value of trial.curve.values) if (value !== null) values.push(value);
  if (values.length === 0) return { min: 0, max: 1 };
  const best = values.reduce((one, other) => (gain(other, one) > 0 ? other : one));
  return withMargin(robustRange(values, best), 0.04);
}

function drawCurves(context, map) {
  drawRungs(context, map);
  const best = model.trials[model.head.best?.trial];
  const shown = new Set(model.shown);
  const many = model.trials.length;
  context.lineWidth = (many > 2000 ? 0.6 : 1) * map.ratio;
  // Stopped trials first, since they are many and matter least.
  const order = ["stopped", "cut", "failed", "retrying", "waiting", "complete", "running"];
  const alpha = Math.max(0.04, Math.min(0.8, many > 1500 ? 250 / many : 12 / Math.sqrt(many)));
  for (const outcome of order) {
    context.strokeStyle = palette[outcome];
    context.globalAlpha = outcome === "stopped" ? alpha : Math.min(1, alpha * 1.6);
    for (const trial of model.shown) if (trial.outcome === outcome && trial !== best) strokeCurve(context, map, trial);
  }
  context.globalAlpha = 1;
  const marks = model.shown.reduce((sum, trial) => sum + (trial.judged?.length ?? 0), 0);
  if (marks <= MARKS_MAX) for (const trial of model.shown) drawMarks(context, map, trial, marks > 400 ? 1.6 : 2.5);
  if (best && shown.has(best)) {
    drawCurve(context, map, best, palette.bg, 5);
    drawCurve(context, map, best, palette.accent, 2.5);
    drawMarks(context, map, best, 4);
  }
}

function drawRungs(context, map) {
  context.save();
  context.strokeStyle = palette.muted;
  context.fillStyle = palette.muted;
  context.lineWidth = map.ratio;
  context.setLineDash([3 * map.ratio, 4 * map.ratio]);
  context.font = `${11 * map.ratio}px system-ui, sans-serif`;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  let free = -Infinity;
  for (const level of rungLevels()) {
    const x = Math.round(map.x(level)) + 0.5;
    context.beginPath();
    context.moveTo(x, map.top);
    context.lineTo(x, map.top + map.height);
    context.stroke();
    const text = `rung at ${level}`;
    if (x > free) {
      context.fillText(text, x + 4 * map.ratio, map.top + 12 * map.ratio);
      free = x + context.measureText(text).width + 10 * map.ratio;
    }
  }
  context.restore();
}

function strokeCurve(context, map, trial) {
  const { values } = trial.curve;
  context.beginPath();
  let pen = false;
  for (let i = 0; i < values.length; i++) {
    if (values[i] === null) {
      pen = false;
      continue;
    }
    const [x, y] = [map.x(epochAt(trial, i)), map.y(values[i])];
    if (pen) context.lineTo(x, y);
    else context.moveTo(x, y);
    pen = true;
  }
  // A single value is a dot.
  if (values.length === 1 && values[0] !== null)
    context.arc(map.x(epochAt(trial, 0)), map.y(values[0]), 1.5 * map.ratio, 0, 7);
  context.setLineDash(dashesOf(trial, map.ratio));
  context.stroke();
  context.setLineDash([]);
  context.fillStyle = context.strokeStyle;
  values.forEach((value, i) => {
    if (value !== null && map.outside(value)) drawOutside(context, map, epochAt(trial, i), value);
  });
}

function drawCurve(context, map, trial, colour, width) {
  context.strokeStyle = colour;
  context.lineWidth = width * map.ratio;
  context.lineJoin = "round";
  strokeCurve(context, map, trial);
}

// Draws the judged points: a disc where the trial continued, a cross where it was stopped, a ring where it waits.
function drawMarks(context, map, trial, radius) {
  const size = radius * map.ratio;
  context.strokeStyle = context.fillStyle = colourOf(trial);
  context.lineWidth = 1.4 * map.ratio;
  for (const judged of trial.judged ?? []) {
    if (judged.value === null) continue;
    const [x, y] = [map.x(judged.epoch), map.y(judged.value)];
    context.beginPath();
    if (judged.continues === false) {
      cross(context, x, y, size);
      context.stroke();
    } else {
      context.arc(x, y, size, 0, 7);
      if (judged.continues) context.fill();
      else context.stroke();
    }
  }
}

function nearestCurve(x, y, map) {
  const { min, max } = curves.plot.scales.x;
  const share = (x - map.left) / map.width;
  const epoch = epochsLog ? min * (max / min) ** share : min + share * (max - min);
  let [found, least, at] = [null, 24 * map.ratio, 0];
  for (const trial of model.shown) {
    if (trial.curve.values.length === 0) continue;
    const index = pointNear(trial, epoch);
    const value = trial.curve.values[index];
    if (value === null) continue;
    const distance = Math.hypot(map.x(epochAt(trial, index)) - x, map.y(value) - y);
    if (distance < least) [found, least, at] = [trial, distance, index];
  }
  return found && { trial: found, text: `${number(found.curve.values[at])} at epoch ${epochAt(found, at)}` };
}
