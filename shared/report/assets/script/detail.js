// One trial in a dialog: configuration, comparisons, jobs and decisions. And the log of the tuning.

const LOG_STEP = 100;

let shownTrial = null;
let logLines = LOG_STEP;

function initDetail() {
  byId("detail-close").addEventListener("click", () => byId("detail").close());
  byId("detail").addEventListener("close", () => {
    shownTrial = null;
    metricCurves = { of: "", node: null };
  });
  byId("detail").addEventListener("click", (event) => event.target === byId("detail") && byId("detail").close());
  byId("log-more").addEventListener("click", () => {
    logLines += LOG_STEP;
    renderLog();
  });
  byId("log-all").addEventListener("change", renderLog);
}

function showTrial(number_) {
  tooltip.hide();
  shownTrial = number_;
  renderDetail();
  if (!byId("detail").open) byId("detail").showModal();
}

function renderDetail() {
  const trial = model.trials[shownTrial];
  if (!trial) return;
  byId("detail-title").textContent = `Trial ${trial.number}`;
  const rank = trial.rank ? `, rank ${trial.rank} of ${model.ranked.length}` : "";
  const lines = model.events.filter((event) => event.trial === trial.number);
  put(
    byId("detail-facts"),
    el(
      "p",
      {},
      el("i", { class: `dot ${trial.outcome}` }),
      `${OUTCOME_WORDS[trial.outcome]}${trial.why ? `: ${trial.why}` : ""}`,
    ),
    list(
      [
        ["best", `${number(trial.best)}${trial.bestEpoch ? ` at epoch ${trial.bestEpoch}` : ""}${rank}`],
        ["last", `${number(trial.last)} at epoch ${trial.epochs}`],
        ["bracket", String(trial.bracket)],
        ["cost", `${dollars(trial.cost)}, ${count(trial.billed)} s billed`],
        trial.chosen && ["chosen", trial.chosen],
      ].filter(Boolean),
    ),
    trial.metrics && [
      el("h3", {}, "Last values of other metrics"),
      list(Object.entries(trial.metrics).map(([name, value]) => [name, number(value)])),
      metricsPart(trial),
    ],
    el("h3", {}, "Hyperparameters"),
    list(model.head.parameters.map((parameter, index) => [parameter.name, trial.values[index] ?? "-"])),
    (trial.judged ?? []).length > 0 && [
      el("h3", {}, "Comparisons"),
      el(
        "ol",
        {},
        trial.judged.map((judged) => el("li", {}, verdict(judged))),
      ),
    ],
    el("h3", {}, "Jobs"),
    el(
      "ul",
      {},
      trial.jobs.map((job) => el("li", {}, jobText(job))),
    ),
  );
  renderJobLog(trial);
  put(
    byId("detail-decisions"),
    el("h3", {}, "Decisions"),
    el(
      "ol",
      { class: "log" },
      lines.map((line) => el("li", {}, el("b", {}, clock(line.at)), el("span", {}, line.text))),
    ),
  );
}

// Shows the newest events first.
function renderLog() {
  const all = byId("log-all").checked ? model.events : model.events.filter((event) => event.trial === undefined);
  const newest = all.slice(-logLines).reverse();
  const line = (event) =>
    el(
      "li",
      {},
      el("b", {}, clock(event.at)),
      el("span", {}, event.trial !== undefined && trialLink(event.trial, null, `log${event.at}`), ` ${event.text}`),
    );
  put(byId("log"), newest.map(line));
  byId("log-empty").hidden = all.length > 0;
  byId("log-more").hidden = all.length <= logLines;
}
