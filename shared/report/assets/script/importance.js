// The importance of hyperparameters as bars. The forest grows between other work, so the page stays responsive.

// Fewer trials say nothing about importance.
const TRIALS_MIN = 12;
// The forest of a running tuning grows again after so many new trials.
const TRIALS_NEW = 10;

const importance = { result: null, trials: 0, run: 0 };

function renderImportance() {
  const enough = model.ranked.length >= TRIALS_MIN && model.head.parameters.length > 1;
  byId("importance-part").hidden = model.head.parameters.length < 2 || model.ranked.length === 0;
  byId("importance-empty").hidden = enough;
  byId("importance-empty").textContent = `Importance needs ${TRIALS_MIN} trials with a value.`;
  byId("importance-body").hidden = !enough;
  if (!enough) return;
  const ended = model.head.ended !== null && importance.trials !== model.ranked.length;
  const replaced = model.ranked.length < importance.trials;
  if (importance.trials === 0 || ended || replaced || model.ranked.length >= importance.trials + TRIALS_NEW)
    growForest();
}

function growForest() {
  const run = ++importance.run;
  importance.trials = model.ranked.length;
  const forest = createForest();
  const more = () => {
    if (run !== importance.run) return;
    const end = performance.now() + 12;
    let goesOn = true;
    while (goesOn && performance.now() < end) goesOn = forest.next();
    if (goesOn) {
      setTimeout(more, 0);
      return;
    }
    importance.result = forest.result();
    showImportance();
    // Both put the most important hyperparameters first.
    renderScatter();
    renderParallel();
  };
  setTimeout(more, 0);
}

function showImportance() {
  const { parameters, explained, size, epochs } = importance.result;
  const rows = parameterOrder().map((index) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, model.head.parameters[index].name),
      el(
        "td",
        { class: "meter" },
        el(
          "div",
          { class: "bar" },
          el("i", { style: { width: `${(100 * parameters[index]).toFixed(1)}%`, background: "var(--accent)" } }),
        ),
      ),
      el("td", { class: "n" }, percent(parameters[index])),
    ),
  );
  put(
    byId("importance-body"),
    el(
      "table",
      { class: "small importance" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, "hyperparameter"),
          el("th", { scope: "col" }, el("span", { class: "unseen" }, "share as a bar")),
          el("th", { scope: "col", class: "n" }, "share"),
        ),
      ),
      el("tbody", {}, rows),
    ),
    el(
      "p",
      { class: "note" },
      `Permutation importance of a random forest over ${counted(size, "trial")}. It explains ${percent(explained)} of the variance ` +
        `(out of bag)${explained < 0.2 ? ", so the shares are a weak hint" : ""}.${epochs ? " The trained epochs matter more than all hyperparameters together." : ""}`,
    ),
  );
}
