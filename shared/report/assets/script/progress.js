// The best value so far over the trials or over time: a step line over a dot for each trial.

let progress = null;
let progressBy = "trials";

function initProgress() {
  progress = createDots(byId("progress-chart"), {
    label: () =>
      `Best value so far by ${progressBy}: ${number(model.ranked[0].best)} after ${counted(model.trials.length, "trial")}`,
    height: () => 240,
    x: () => {
      const max = Math.max(progressEnd(), ...loadedOthers().map((other) => other.ends[progressBy]));
      return progressBy === "trials"
        ? { min: -0.5, max, label: "trial", steps: WHOLE_STEPS }
        : { min: 0, max, label: "time since the submission", format: clockTick, steps: TIME_STEPS };
    },
    note: "progress-clipped",
    y: () => ({ ...progressRange(), label: model.head.metric }),
    place: (trial) => placed(progressAt(trial, progressBy, lastTime()), trial.best),
    text: (trial) => (progressBy === "trials" ? null : `at ${clock(progressAt(trial, "time", lastTime()) * 1000)}`),
    draw: drawProgress,
  });
  for (const button of byId("progress-by").querySelectorAll("button")) {
    button.addEventListener("click", () => {
      progressBy = button.dataset.by;
      renderProgress();
    });
  }
  byId("progress-home").addEventListener("click", () => home(progress));
}

function renderProgress() {
  const any = model.ranked.length > 0;
  byId("progress-empty").hidden = any;
  byId("progress-body").hidden = !any;
  byId("progress-tools").hidden = !any;
  if (!any) return;
  for (const button of byId("progress-by").querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(button.dataset.by === progressBy));
  refresh(progress);
}

// Returns the number of a trial, or the end of its last job in seconds since the submission. `end` is the time of the
// last change in milliseconds.
function progressAt(trial, by, end) {
  return by === "trials" ? trial.number : (trial.jobs.at(-1)?.ended ?? end) / 1000;
}

// Returns the end of the line on the horizontal axis.
function progressEnd() {
  return progressBy === "trials" ? Math.max(1, model.trials.length) - 0.5 : lastTime() / 1000;
}

// Returns the range of the best values, with the best ones of compared tunings.
function progressRange() {
  const { min, max, clipped } = scoreEnds();
  const bests = loadedOthers().flatMap((other) => other.points.trials.slice(-1).map(([, best]) => best));
  return withMargin({ min: Math.min(min, ...bests), max: Math.max(max, ...bests), clipped }, 0.06);
}

// Returns the points of the line of a tuning: each trial that is better than all before, in order.
function improvements(trials, by, { objective }, end) {
  const inOrder = trials.filter(counts).map((trial) => [progressAt(trial, by, end), trial.best]);
  let best = objective === "Maximize" ? -Infinity : Infinity;
  return inOrder
    .sort(([a], [b]) => a - b)
    .filter(([, value]) => {
      const isBetter = objective === "Maximize" ? value > best : value < best;
      if (isBetter) best = value;
      return isBetter;
    });
}

function drawProgress(context, map) {
  context.lineWidth = 2 * map.ratio;
  drawOthers(context, map);
  context.strokeStyle = palette.accent;
  drawSteps(context, map, improvements(model.ranked, progressBy, model.head, lastTime()), progressEnd());
}

function drawSteps(context, map, points, end) {
  context.beginPath();
  let before = null;
  for (const [x, value] of points) {
    if (before !== null) context.lineTo(map.x(x), before);
    before = map.y(value);
    context.lineTo(map.x(x), before);
  }
  if (before !== null) context.lineTo(map.x(end), before);
  context.stroke();
}
