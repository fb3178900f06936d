// The document with derived data, the filter, and the trial under the pointer. Charts subscribe to changes.

// The outcome of a trial whose job waits for its start. The document says for what.
const QUEUED = ["queued", "waits"];
// The outcomes, in the order of legends.
const OUTCOMES = [
  ["running", "running"],
  QUEUED,
  ["waiting", "waits for promotion"],
  ["retrying", "waits for a retry"],
  ["complete", "complete"],
  ["stopped", "stopped at a rung"],
  ["cut", "ended early"],
  ["failed", "failed"],
];
const OUTCOME_WORDS = Object.fromEntries(OUTCOMES);

const model = {
  head: null,
  trials: [],
  money: { at: [], spent: [], reserved: [], cap: [] },
  events: [],
  // Trials that pass the filter, by number.
  shown: [],
  // Trials with a value, best first.
  ranked: [],
  filter: { outcomes: new Set(OUTCOMES.map(([name]) => name)), bracket: null, text: "", ranges: new Map() },
  hovered: null,
};

const subscribers = { data: [], filter: [], hover: [] };

function subscribe(kind, run) {
  subscribers[kind].push(run);
}

function publish(kind) {
  for (const run of subscribers[kind]) run();
}

// Returns how much better `one` is than `other`, in the direction of the objective.
function gain(one, other) {
  return model.head.objective === "Maximize" ? one - other : other - one;
}

// Adds derived data to a trial.
function prepared(trial) {
  const values = trial.curve.values;
  trial.at = trial.curve.epochs ?? null;
  const known = !model.head.priceUnknown && trial.jobs.some((job) => job.cost !== undefined);
  trial.cost = known ? trial.jobs.reduce((sum, job) => sum + (job.cost ?? 0), 0) : null;
  trial.billed = trial.jobs.reduce((sum, job) => sum + (job.billedSeconds ?? 0), 0);
  // A thinned curve may lack the best value. Its points have seven digits.
  const isBest = (value) => value !== null && Math.abs(value - trial.best) <= 1e-6 * Math.abs(trial.best);
  const best = trial.best === null ? -1 : values.findIndex(isBest);
  trial.bestEpoch = best < 0 ? null : epochAt(trial, best);
  return trial;
}

// Returns the epoch of point `index` of a curve.
function epochAt(trial, index) {
  return trial.at ? trial.at[index] : index + 1;
}

// Returns the index of the point of a curve that is nearest to an epoch.
function pointNear(trial, epoch) {
  const last = trial.curve.values.length - 1;
  if (!trial.at) return Math.max(0, Math.min(last, Math.round(epoch) - 1));
  let [low, high] = [0, last];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (trial.at[middle] < epoch) low = middle + 1;
    else high = middle;
  }
  const before = low - 1;
  return before >= 0 && epoch - trial.at[before] < trial.at[low] - epoch ? before : low;
}

function loadDocument(data) {
  model.head = data.head;
  QUEUED[1] = OUTCOME_WORDS.queued = `waits for ${data.head.startsNeed}`;
  model.trials = [];
  for (const trial of data.trials) model.trials[trial.number] = prepared(trial);
  model.money = data.money;
  model.events = data.events;
  derive();
}

// Returns false if the delta does not follow the document.
function extendDocument(delta) {
  if (!model.head || delta.after !== model.head.step) return false;
  model.head = delta.head;
  for (const trial of delta.trials) model.trials[trial.number] = prepared(trial);
  for (const name of ["at", "spent", "reserved", "cap"]) {
    for (const entry of delta.money[name]) model.money[name].push(entry);
  }
  for (const event of delta.events) model.events.push(event);
  derive();
  return true;
}

// Returns whether the best value of a trial counts as a result.
function counts(trial) {
  return trial.best !== null && trial.outcome !== "failed" && !trial.refit;
}

function derive() {
  model.ranked = model.trials.filter(counts).sort((a, b) => gain(b.best, a.best) || a.number - b.number);
  model.ranked.forEach((trial, index) => (trial.rank = index + 1));
  if (model.hovered) model.hovered = model.trials[model.hovered.number] ?? null;
  applyFilter();
}

// Returns the names of the metrics beside the objective.
function metricNames() {
  return [...new Set(model.trials.flatMap((trial) => Object.keys(trial.metrics ?? {})))].sort();
}

// Returns the value of a hyperparameter as a number: of a listed value, its index.
function numeric(trial, index) {
  const [parameter, text] = [model.head.parameters[index], trial.values[index]];
  if (text === null || text === undefined) return null;
  if (parameter.values) return parameter.values.indexOf(text);
  return Number(text);
}

function applyFilter() {
  const { outcomes, bracket, text, ranges } = model.filter;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  model.shown = model.trials.filter((trial) => {
    if (!outcomes.has(trial.outcome) || (bracket !== null && trial.bracket !== bracket)) return false;
    for (const [index, [low, high]] of ranges) {
      const value = index === model.head.parameters.length ? trial.best : numeric(trial, index);
      if (value === null || value < low || value > high) return false;
    }
    return words.every((word) => searchText(trial).includes(word));
  });
}

// Returns whether a trial has a job that has not ended, or whose end is not settled.
function isLive(trial) {
  return trial.outcome === "running" || trial.outcome === "queued";
}

// Returns the text that the filter searches.
function searchText(trial) {
  if (!trial.text) {
    const settings = model.head.parameters.map((parameter, index) => `${parameter.name}=${trial.values[index]}`);
    trial.text = [`trial ${trial.number}`, OUTCOME_WORDS[trial.outcome], trial.why ?? "", ...settings]
      .join(" ")
      .toLowerCase();
  }
  return trial.text;
}

function setFilter(change) {
  Object.assign(model.filter, change);
  applyFilter();
  publish("filter");
}

function setHovered(trial) {
  if (model.hovered === trial) return;
  model.hovered = trial;
  publish("hover");
}

// Returns the verdict at a rung in words.
function verdict(judged) {
  const place = `rung ${judged.rung} (epoch ${judged.level}): ${number(judged.value)}`;
  if (judged.rank === undefined)
    return judged.continues === false ? `${place}, not promoted` : `${place}, waits for promotion`;
  const end = judged.continues ? "continued" : "stopped";
  // The median rule has no brackets and compares with running averages.
  if (!model.head.brackets.length)
    return `${place}, the averages of ${judged.rank - 1} of ${judged.of - 1} earlier trials are better: ${end}`;
  return `${place}, rank ${judged.rank} of ${judged.of}, the best ${judged.allowed} continue: ${end}`;
}

// Returns the hyperparameters of a trial as pairs of name and text.
function settings(trial) {
  return model.head.parameters.map((parameter, index) => [parameter.name, setting(trial.values[index])]);
}

// Returns the time of the last change of a document, in milliseconds since the submission.
function lastTime({ head, money } = model) {
  const end = (head.ended ?? head.modified) - head.created;
  return Math.max(end, money.at[money.at.length - 1] ?? 0, 1000);
}
