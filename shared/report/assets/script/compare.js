// The comparison of a live page with other tunings of the same origin, in the chart of the best value so far.

const OTHERS_MAX = 4;
// A colour of the style and the dashes of each other tuning.
const OTHER_LINES = [
  ["complete", [8, 4]],
  ["waiting", [2, 3]],
  ["cut", [12, 3, 3, 3]],
  ["failed", [5, 2]],
];

// The chosen tunings: name, line and, once it is loaded, the document without its trials.
const others = [];
let compare = null;

// `all` is the address of the tunings in the API.
function initCompare(all) {
  const choices = el("div", { class: "choices", role: "group", "aria-label": "Tunings to compare with" });
  const note = el("p", { class: "note", role: "status" });
  const body = el("div");
  const opened = (event) => event.target.open && listOthers();
  const details = el("details", { ontoggle: opened }, el("summary", {}, "Compare with"), choices, note);
  byId("progress-body").append(el("div", { id: "compare" }, details, body));
  compare = { all, choices, note, body };
  subscribe("data", renderCompare);
}

async function listOthers() {
  const { all, choices, note } = compare;
  try {
    const answer = await fetch(`${all}?SortBy=CreationTime&SortOrder=Descending&MaxResults=100`);
    const data = await answer.json();
    if (!answer.ok) throw new Error(data.message);
    const names = data.HyperParameterTuningJobSummaries.map((tuning) => tuning.HyperParameterTuningJobName);
    const found = names.filter((name) => name !== model.head?.name);
    note.textContent = found.length
      ? `Up to ${OTHERS_MAX} tunings, as they are when you select them.`
      : "There is no other tuning.";
    put(choices, found.map(otherChoice));
    limitChoices();
  } catch (error) {
    note.textContent = `The tunings cannot be listed: ${error.message}`;
  }
}

function otherChoice(name) {
  const checked = others.some((other) => other.name === name);
  const changes = (event) => (event.target.checked ? addOther(name) : dropOther(name));
  const box = el("input", { type: "checkbox", value: name, checked, "data-key": name, onchange: changes });
  return el("label", {}, box, name);
}

function limitChoices() {
  const isFull = others.length >= OTHERS_MAX;
  for (const box of compare.choices.querySelectorAll("input")) box.disabled = isFull && !box.checked;
}

// Reads the document of a tuning once: the first event of its stream.
function addOther(name) {
  const line = OTHER_LINES.find((free) => !others.some((other) => other.line === free));
  const other = { name, line, head: null };
  others.push(other);
  limitChoices();
  compare.note.textContent = `Loads ${name}.`;
  const url = `${compare.all}/${name}/events`;
  const source = new EventSource(url);
  source.addEventListener("document", (event) => {
    source.close();
    if (!others.includes(other)) return;
    const { head, trials, money } = JSON.parse(event.data);
    const end = lastTime({ head, money });
    const points = { time: improvements(trials, "time", head, end), trials: improvements(trials, "trials", head, end) };
    const best = head.bestSeen?.value ?? head.best?.value ?? null;
    Object.assign(other, { head, best, points, ends: { time: end / 1000, trials: trials.length - 0.5 } });
    compare.note.textContent = `${name} is in the chart and the table.`;
    redrawCompared();
  });
  source.addEventListener("error", async () => {
    source.close();
    const why = await reason(url);
    dropOther(name);
    compare.note.textContent = `${name} cannot be loaded: ${why ?? "the connection is lost"}`;
  });
}

function dropOther(name) {
  const index = others.findIndex((other) => other.name === name);
  if (index >= 0) others.splice(index, 1);
  const box = [...compare.choices.querySelectorAll("input")].find((input) => input.value === name);
  if (box) box.checked = false;
  limitChoices();
  redrawCompared();
}

function redrawCompared() {
  renderProgress();
  renderCompare();
}

// Returns the other tunings that are loaded.
function loadedOthers() {
  return others.filter((other) => other.head);
}

function renderCompare() {
  const loaded = loadedOthers();
  const { head } = model;
  const own = { name: head.name, head, best: head.bestSeen?.value ?? head.best?.value ?? null, line: ["accent", []] };
  const differ = loaded.filter((other) => other.head.metric !== head.metric || other.head.objective !== head.objective);
  const goal = ({ objective, metric }) => `${objective === "Maximize" ? "maximizes" : "minimizes"} ${metric}`;
  const titles = ["tuning", "status", "best value", "training jobs", "cost", "wall time"].map((title, i) =>
    el("th", { scope: "col", class: i > 1 ? "n" : null }, title),
  );
  const rows = [comparedRow(own, lastTime()), ...loaded.map((other) => comparedRow(other, other.ends.time * 1000))];
  put(
    compare.body,
    differ.map((other) =>
      el(
        "p",
        { class: "problem" },
        `The values are not comparable: ${other.name} ${goal(other.head)}, this tuning ${goal(head)}.`,
      ),
    ),
    loaded.length > 0 &&
      el(
        "div",
        { class: "wide", "data-key": "compared", tabindex: "0", role: "region", "aria-label": "Compared tunings" },
        el("table", { class: "small" }, el("thead", {}, el("tr", {}, titles)), el("tbody", {}, rows)),
      ),
  );
}

function comparedRow({ name, head, best, line: [colour, dashes] }, time) {
  const sample = svg(
    "svg",
    { class: "sample", viewBox: "0 0 30 4", "aria-hidden": "true" },
    svg("path", { d: "M0 2h30", style: { stroke: `var(--${colour})` }, "stroke-dasharray": dashes.join(" ") }),
  );
  const link = el("a", { href: `${compare.all}/${name}/page`, "data-key": `compared-${name}` }, name);
  const spent = head.priceUnknown ? "unknown" : dollars(head.spent);
  const cells = [number(best), count(head.jobsLaunched), spent, duration(time)];
  return el(
    "tr",
    {},
    el("td", {}, sample, head === model.head ? `${name} (this)` : link),
    el("td", {}, head.status),
    cells.map((text) => el("td", { class: "n" }, text)),
  );
}

function drawOthers(context, map) {
  for (const { points, ends, line } of loadedOthers()) {
    const [colour, dashes] = line;
    context.strokeStyle = palette[colour];
    context.setLineDash(dashes.map((dash) => dash * map.ratio));
    drawSteps(context, map, points[progressBy], ends[progressBy]);
  }
  context.setLineDash([]);
}
