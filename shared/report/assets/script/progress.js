// The best value so far over the trials or over time: a step line over a dot for each trial.

let progress = null;
let progressBy = "trials";

function initProgress() {
  progress = createDots(byId("progress-chart"), {
    label: () =>
      `Best value so far by ${progressBy}: ${number(model.ranked[0].best)} after ${counted(model.trials.length, "trial")}`,
    height: () => 240,
    x: () =>
      progressBy === "trials"
        ? { min: -0.5, max: Math.max(1, model.trials.length) - 0.5, label: "trial", steps: WHOLE_STEPS }
        : { min: 0, max: lastTime() / 1000, label: "time since the submission", format: clockTick, steps: TIME_STEPS },
    note: "progress-clipped",
    y: () => ({ ...scoreRange(), label: model.head.metric }),
    place: (trial) => placed(progressAt(trial), trial.best),
    text: (trial) => (progressBy === "trials" ? null : `at ${clock(progressAt(trial) * 1000)}`),
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

// Returns the number of a trial, or the end of its last job in seconds since the submission.
function progressAt(trial) {
  return progressBy === "trials" ? trial.number : (trial.jobs.at(-1)?.ended ?? lastTime()) / 1000;
}

function drawProgress(context, map) {
  const inOrder = model.ranked.map((trial) => [progressAt(trial), trial.best]).sort(([a], [b]) => a - b);
  context.strokeStyle = palette.accent;
  context.lineWidth = 2 * map.ratio;
  context.beginPath();
  let [, best] = inOrder[0];
  context.moveTo(map.x(inOrder[0][0]), map.y(best));
  for (const [x, value] of inOrder) {
    if (gain(value, best) <= 0) continue;
    context.lineTo(map.x(x), map.y(best));
    context.lineTo(map.x(x), map.y(value));
    best = value;
  }
  context.lineTo(map.left + map.width, map.y(best));
  context.stroke();
}
