// The table of trials: sorted, filtered, in pages, and its downloads.

const ROWS = 50;
const PARAMETER_COLUMNS_MAX = 12;
// More metrics beside the objective are shown with their trial only.
const METRIC_COLUMNS_MAX = 3;

// `down` is null until the direction of the objective is known: the best trial comes first.
const table = { sort: "best", down: null, page: 0 };

// Returns the columns: key, title, whether it is a number, the value for sorting and downloads, and the text.
function columns() {
  const plain = (key, title, get, text) => ({
    key,
    title,
    right: true,
    get,
    text: text ?? ((trial) => (get(trial) === null ? "-" : String(get(trial)))),
  });
  const words = (key, title, get) => ({ key, title, right: false, get, text: get });
  const parameters = model.head.parameters.map((parameter, index) => ({
    key: `p${index}`,
    title: parameter.name,
    right: parameter.type !== "categorical",
    get: (trial) => (parameter.type === "categorical" ? trial.values[index] : numeric(trial, index)),
    text: (trial) => setting(trial.values[index]),
  }));
  const names = metricNames();
  const metrics = names.map((name) => {
    const get = (trial) => trial.metrics?.[name] ?? null;
    return plain(`m-${name}`, name, get, (trial) => number(get(trial)));
  });
  return [
    plain("number", "trial", (trial) => trial.number),
    plain(
      "best",
      "best",
      (trial) => trial.best,
      (trial) => number(trial.best),
    ),
    plain(
      "last",
      "last",
      (trial) => trial.last,
      (trial) => number(trial.last),
    ),
    plain("epochs", "epochs", (trial) => trial.epochs),
    words("outcome", "outcome", (trial) => OUTCOME_WORDS[trial.outcome]),
    ...(names.length > METRIC_COLUMNS_MAX ? [] : metrics),
    ...parameters.slice(0, PARAMETER_COLUMNS_MAX),
    plain("bracket", "bracket", (trial) => trial.bracket),
    plain("jobs", "jobs", (trial) => trial.jobs.length),
    plain("billed", "billed\u00a0s", (trial) => trial.billed || null),
    plain(
      "cost",
      "cost",
      (trial) => trial.cost,
      (trial) => dollars(trial.cost),
    ),
    words("why", "why", (trial) => trial.why ?? ""),
  ];
}

function initTable() {
  byId("csv").addEventListener("click", () => download(`${model.head.name}.csv`, "text/csv", csv()));
  byId("json").addEventListener("click", () =>
    download(`${model.head.name}.json`, "application/json", JSON.stringify(records(), null, 2)),
  );
  byId("page-before").addEventListener("click", () => turn(-1));
  byId("page-after").addEventListener("click", () => turn(1));
  subscribe("filter", () => (table.page = 0));
}

function turn(by) {
  table.page += by;
  renderTable();
  announce(byId("page-text").textContent);
}

// Returns the shown trials in the order of the table. Trials without a value come last.
function sorted() {
  const column = columns().find(({ key }) => key === table.sort) ?? columns()[0];
  const keyed = model.shown.map((trial) => [column.get(trial), trial]);
  const none = (value) => value === null || value === undefined || value === "";
  keyed.sort(([a, one], [b, other]) => {
    if (none(a) || none(b)) return none(a) - none(b) || one.number - other.number;
    const order = typeof a === "string" ? a.localeCompare(b) : a - b;
    return (table.down ? -order : order) || one.number - other.number;
  });
  return keyed.map(([, trial]) => trial);
}

function renderTable() {
  table.down ??= model.head.objective === "Maximize";
  const all = sorted();
  const pages = Math.max(1, Math.ceil(all.length / ROWS));
  table.page = Math.max(0, Math.min(pages - 1, table.page));
  const from = table.page * ROWS;
  const shown = columns();
  put(
    byId("table-head"),
    shown.map(({ key, title, right }) => {
      const state = table.sort === key ? (table.down ? "descending" : "ascending") : null;
      return el(
        "th",
        { scope: "col", class: right ? "n" : null, "aria-sort": state },
        el("button", { type: "button", "data-key": key, onclick: () => sortBy(key, right) }, title),
      );
    }),
  );
  const best = model.head.best?.trial;
  put(
    byId("table-body"),
    all.slice(from, from + ROWS).map((trial) =>
      el(
        "tr",
        {
          class: trial.number === best ? "best" : null,
          "data-trial": trial.number,
          onmouseenter: () => setHovered(trial),
          onmouseleave: () => setHovered(null),
        },
        shown.map(({ key, right, text }) =>
          el(
            "td",
            { class: right ? "n" : null },
            key === "number"
              ? trialLink(trial.number, String(trial.number), "row")
              : key === "outcome"
                ? [el("i", { class: `dot ${trial.outcome}` }), text(trial)]
                : text(trial),
          ),
        ),
      ),
    ),
  );
  byId("table-count").textContent = `${count(all.length)} of ${counted(model.trials.length, "trial")}`;
  byId("page-text").textContent = all.length
    ? `${count(from + 1)} to ${count(Math.min(all.length, from + ROWS))} of ${count(all.length)}`
    : "no trial matches";
  byId("page-before").disabled = table.page === 0;
  byId("page-after").disabled = table.page >= pages - 1;
}

// Numbers begin with the best: the objective in its direction, others with the least.
function sortBy(key, right) {
  const first = key === "best" || key === "last" ? model.head.objective === "Maximize" : false;
  table.down = table.sort === key ? !table.down : right && first;
  table.sort = key;
  table.page = 0;
  renderTable();
}

// Returns the shown trials for a download: whole values, costs in dollars.
function records() {
  return sorted().map((trial) => ({
    trial: trial.number,
    bracket: trial.bracket,
    outcome: trial.outcome,
    epochs: trial.epochs,
    best: trial.best,
    best_epoch: trial.bestEpoch,
    last: trial.last,
    metrics: trial.metrics ?? {},
    hyperparameters: Object.fromEntries(
      model.head.parameters.map((parameter, index) => [parameter.name, trial.values[index]]),
    ),
    jobs: trial.jobs.map((job) => job.key),
    billed_seconds: trial.billed,
    cost_usd: trial.cost === null ? null : trial.cost / 1e6,
    why: trial.why ?? null,
  }));
}

function csv() {
  const names = model.head.parameters.map((parameter) => parameter.name);
  const metrics = metricNames();
  const head = [
    "trial",
    "bracket",
    "outcome",
    "epochs",
    "best",
    "best_epoch",
    "last",
    ...metrics,
    ...names,
    "jobs",
    "billed_seconds",
    "cost_usd",
    "why",
  ];
  const rows = records().map((record) => [
    record.trial,
    record.bracket,
    record.outcome,
    record.epochs,
    record.best,
    record.best_epoch,
    record.last,
    ...metrics.map((name) => record.metrics[name]),
    ...names.map((name) => record.hyperparameters[name]),
    record.jobs.join(" "),
    record.billed_seconds,
    record.cost_usd,
    record.why,
  ]);
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

// A spreadsheet takes a text that begins with these characters as a formula.
function cell(value) {
  if (value === null || value === undefined) return "";
  const text =
    typeof value === "string" && /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value))
      ? `'${value}`
      : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
