// Timeline: each job is a bar in a lane, divided by its phases.

const PHASES = [
  // Before its start. The document says for what.
  ["waits"],
  ["startup", "downloads"],
  ["train", "trains"],
  ["interrupted", "interrupted"],
  ["ending", "stops or saves"],
];
const PHASE_OF = { w: "waits", s: "startup", t: "train", i: "interrupted", e: "ending" };
const LANE_HEIGHT = 18;
const LANES_HEIGHT_MAX = 460;

let timeline = null;
let bars = [];
let lanes = 1;

function initTimeline() {
  timeline = createChart(byId("timeline-chart"), {
    label: () => `Timeline of ${counted(bars.length, "job")} in ${counted(lanes, "lane")}`,
    height: () => Math.max(110, Math.min(LANES_HEIGHT_MAX, 60 + lanes * LANE_HEIGHT)),
    x: () => ({
      min: 0,
      max: lastTime() / 1000,
      label: "time since the submission",
      format: clockTick,
      steps: TIME_STEPS,
    }),
    y: () => ({ min: 0, max: lanes, label: "jobs", format: (value) => (Number.isInteger(value) ? String(value) : "") }),
    draw: drawTimeline,
    overlay: (context, map, trial) => {
      context.strokeStyle = palette.text;
      context.lineWidth = 2 * map.ratio;
      for (const bar of bars) {
        if (bar.trial !== trial) continue;
        const { left, top, width, height } = place(bar, map);
        context.strokeRect(left - 1, top - 1, width + 2, height + 2);
      }
    },
    nearest: (x, y, map) => {
      const lane = lanes - 1 - Math.floor((y / map.height) * lanes);
      const hit = bars.find(
        (bar) => bar.lane === lane && map.x(bar.from / 1000) - 2 <= x && x <= map.x(bar.to / 1000) + 2,
      );
      return hit && { trial: hit.trial, text: jobText(hit.job) };
    },
    items: () => model.shown,
  });
  byId("timeline-home").addEventListener("click", () => home(timeline));
}

function renderTimeline() {
  arrange();
  byId("timeline-empty").hidden = bars.length > 0;
  byId("timeline-body").hidden = bars.length === 0;
  byId("timeline-tools").hidden = bars.length === 0;
  if (!bars.length) return;
  refresh(timeline);
  put(
    byId("timeline-legend"),
    PHASES.map(([name, words]) =>
      el("span", {}, el("i", { class: `swatch ${name}` }), name === "waits" ? OUTCOME_WORDS.queued : words),
    ),
  );
}

// Gives each job the first lane that is free when the job is ordered.
function arrange() {
  const end = lastTime();
  const all = [];
  for (const trial of model.trials) {
    for (const job of trial?.jobs ?? []) {
      // A job that was cancelled before its start has no end.
      const lives = isLive(trial) && job === trial.jobs.at(-1);
      const over = job.ended ?? (lives ? end : (job.phases.at(-1)?.[0] ?? job.ordered));
      all.push({ trial, job, from: job.ordered, to: Math.max(over, job.ordered) });
    }
  }
  all.sort((a, b) => a.from - b.from || a.trial.number - b.trial.number);
  const free = [];
  for (const bar of all) {
    let lane = free.findIndex((time) => time <= bar.from);
    if (lane < 0) lane = free.length;
    free[lane] = bar.to;
    bar.lane = lane;
  }
  bars = all;
  lanes = Math.max(1, free.length);
}

function place(bar, map) {
  const unit = map.height / lanes;
  const gap = Math.min(2 * map.ratio, unit * 0.15);
  const left = map.x(bar.from / 1000);
  return {
    left,
    top: map.top + (lanes - 1 - bar.lane) * unit + gap,
    width: Math.max(1, map.x(bar.to / 1000) - left),
    height: unit - 2 * gap,
  };
}

// Returns the phases of a job as spans of time.
function spans(bar) {
  const found = [];
  let [from, phase] = [bar.from, "waits"];
  for (const [at, code] of bar.job.phases) {
    // A job that is ordered to stop can still report that it starts.
    if (phase === "ending") break;
    if (at > from) found.push([from, Math.min(at, bar.to), phase]);
    [from, phase] = [Math.max(at, from), PHASE_OF[code]];
  }
  if (bar.to > from) found.push([from, bar.to, phase]);
  return found;
}

function drawTimeline(context, map) {
  const shown = new Set(model.shown);
  const best = model.head.best?.trial;
  for (const bar of bars) {
    const { left, top, width, height } = place(bar, map);
    context.globalAlpha = shown.has(bar.trial) ? 1 : 0.2;
    let [widest, labelAt] = [0, left];
    for (const [from, to, phase] of spans(bar)) {
      context.fillStyle = palette[phase];
      const x = map.x(from / 1000);
      const size = Math.max(0.5, map.x(to / 1000) - x - (to === bar.to && width > 4 ? map.ratio : 0));
      context.fillRect(x, top, size, height);
      if (phase === "train" && size > widest) [widest, labelAt] = [size, x];
    }
    const label = String(bar.trial.number);
    if (height >= 10 * map.ratio && widest > (8 + 7 * label.length) * map.ratio) {
      context.font = `${bar.trial.number === best ? "bold " : ""}${10 * map.ratio}px system-ui, sans-serif`;
      context.fillStyle = palette.bg;
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillText(label, labelAt + 4 * map.ratio, top + height / 2);
    }
  }
  context.globalAlpha = 1;
}

function stateText(job) {
  return job.state === "Starting" ? OUTCOME_WORDS.queued : job.state;
}

function jobText(job) {
  const time = job.ended === undefined ? `since ${clock(job.ordered)}` : `${clock(job.ordered)} to ${clock(job.ended)}`;
  const cost = job.cost === undefined ? "" : `, ${dollars(job.cost)}`;
  return `job ${job.key}: ${stateText(job)}${job.why ? ` (${job.why})` : ""}, ${time}${cost}`;
}
