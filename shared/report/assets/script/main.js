// Starts the page.

const SECTIONS = [
  renderProgress,
  renderCurves,
  renderBrackets,
  renderFront,
  renderSizes,
  renderTimeline,
  renderMoney,
  renderScatter,
  renderParallel,
  renderImportance,
  renderBest,
  renderTable,
  renderLog,
];
// After a change of the filter.
const FILTERED = [renderProgress, renderCurves, renderTimeline, renderScatter, renderParallel, renderTable];

function renderFilter() {
  const { outcomes, bracket } = model.filter;
  const some = OUTCOMES.map(([name, words]) => [
    name,
    words,
    model.trials.filter((trial) => trial.outcome === name).length,
  ]).filter(([, , n]) => n > 0);
  const host = byId("outcomes");
  put(
    host,
    some.map(([name, words, n]) =>
      el(
        "button",
        {
          type: "button",
          class: "chip",
          "data-key": name,
          "aria-pressed": String(outcomes.has(name)),
          onclick: () => toggle(name),
        },
        el("i", { class: `dot ${name}`, "aria-hidden": "true" }),
        `${words} ${count(n)}`,
      ),
    ),
  );
  const choice = byId("bracket");
  const all = model.head.brackets.length;
  choice.parentElement.hidden = all < 2;
  if (choice.options.length !== all + 1) {
    put(
      choice,
      el("option", { value: "" }, "all"),
      model.head.brackets.map((_, i) => el("option", { value: i }, String(i))),
    );
    choice.value = bracket === null ? "" : String(bracket);
  }
  const text = `${count(model.shown.length)} of ${counted(model.trials.length, "trial")} shown`;
  byId("filter-count").textContent = text;
  byId("filter-clear").hidden = model.shown.length === model.trials.length;
}

function toggle(name) {
  const outcomes = new Set(model.filter.outcomes);
  if (!outcomes.delete(name)) outcomes.add(name);
  setFilter({ outcomes });
  announce(byId("filter-count").textContent);
}

function initFilter() {
  byId("bracket").addEventListener("change", (event) =>
    setFilter({ bracket: event.target.value === "" ? null : Number(event.target.value) }),
  );
  const typed = atNextFrame(() => setFilter({ text: byId("search").value }));
  byId("search").addEventListener("input", typed);
  byId("filter-clear").addEventListener("click", () => {
    byId("search").value = "";
    byId("bracket").value = "";
    setFilter({ outcomes: new Set(OUTCOMES.map(([name]) => name)), bracket: null, text: "", ranges: new Map() });
  });
}

function render() {
  byId("waiting").hidden = true;
  byId("content").hidden = false;
  renderSummary();
  renderFilter();
  for (const section of SECTIONS) section();
  if (byId("detail").open) renderDetail();
  document.documentElement.dataset.ready = String(model.head.step);
}

function start() {
  initTheme();
  for (const init of [
    initFilter,
    initProgress,
    initCurves,
    initTimeline,
    initMoney,
    initScatter,
    initParallel,
    initTable,
    initBest,
    initDetail,
    initJobLog,
  ])
    init();
  subscribe("data", render);
  subscribe("filter", () => {
    renderFilter();
    for (const section of FILTERED) section();
  });
  const data = byId("document");
  const stream = document.querySelector("meta[name=event-stream]");
  if (data) {
    loadDocument(JSON.parse(data.textContent));
    publish("data");
  } else if (stream) {
    follow(stream.content);
  }
}

start();
