// Brackets and rungs: who arrived at each rung, who continued, and why.

// More arrivals of a rung are drawn without a list.
const LISTED_MAX = 200;

function renderBrackets() {
  const { head } = model;
  byId("brackets").hidden = head.brackets.length === 0;
  if (head.brackets.length === 0) return;
  byId("brackets-note").textContent = head.promotes
    ? "A trial trains to the level of a rung and waits. The best are promoted to the next rung."
    : "A trial is compared at each rung with all trials that arrived before. The worst are stopped.";
  const arrivals = arrivalsByRung();
  put(
    byId("brackets-body"),
    head.brackets.map((bracket, number_) =>
      el(
        "section",
        { class: "bracket", "aria-label": `Bracket ${number_}` },
        el("h3", {}, `Bracket ${number_}`, el("small", {}, ` ${counted(bracket.TrialsStarted, "trial")}`)),
        el(
          "ol",
          { class: "rungs" },
          bracket.Rungs.map((rung, index) => rungCard(bracket, number_, rung, index, arrivals)),
        ),
      ),
    ),
  );
}

// Returns the judged trials of each rung, best first, by `bracket/rung`.
function arrivalsByRung() {
  const found = new Map();
  for (const trial of model.trials) {
    for (const judged of trial.judged ?? []) {
      const key = `${trial.bracket}/${judged.rung}`;
      if (!found.has(key)) found.set(key, []);
      found.get(key).push([trial, judged]);
    }
  }
  for (const all of found.values()) {
    all.sort(([, a], [, b]) => (a.value === null) - (b.value === null) || gain(b.value, a.value));
  }
  return found;
}

function rungCard(bracket, number_, rung, index, arrivals) {
  const last = index === bracket.Rungs.length - 1;
  if (last) {
    const done = model.trials.filter(
      (trial) => trial.bracket === number_ && trial.epochs >= rung.Resource && !trial.refit,
    );
    return el(
      "li",
      { class: "rung last" },
      el("h4", {}, `epoch ${rung.Resource}`),
      el("p", {}, `${counted(done.length, "trial")} trained to the end`),
      strip(done.map((trial) => [trial, { value: trial.best, continues: true }])),
    );
  }
  const all = arrivals.get(`${number_}/${index}`) ?? [];
  const waiting = rung.Waiting ? `, ${count(rung.Waiting)} wait` : "";
  return el(
    "li",
    { class: "rung" },
    el("h4", {}, `rung ${index}`, el("small", {}, ` epoch ${rung.Resource}`)),
    el(
      "p",
      {},
      el("b", {}, count(rung.Arrived)),
      " arrived, ",
      el("b", {}, count(rung.WentOn)),
      ` continued${waiting}`,
    ),
    el(
      "div",
      { class: "bar", "aria-hidden": "true" },
      el("i", {
        style: { width: `${(100 * rung.WentOn) / Math.max(1, rung.Arrived)}%`, background: "var(--complete)" },
      }),
    ),
    strip(all),
    all.length > 0 && verdicts(all, number_, index),
  );
}

// Draws the compared values of a rung as a strip: a line for each trial, long where it continued.
function strip(all) {
  const values = all.map(([, judged]) => judged.value).filter((value) => value !== null);
  if (values.length < 2) return null;
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  const place = (value) => 2 + (236 * (value - low)) / (high - low || 1);
  const path = (entries, top, height) =>
    entries.map(([, judged]) => `M${place(judged.value).toFixed(1)} ${top}v${height}`).join("");
  const known = all.filter(([, judged]) => judged.value !== null);
  const [on, off] = [known.filter(([, judged]) => judged.continues), known.filter(([, judged]) => !judged.continues)];
  return [
    svg(
      "svg",
      { class: "strip", viewBox: "0 0 240 20", "aria-hidden": "true", preserveAspectRatio: "none" },
      svg("path", { class: "off", d: path(off, 8, 8) }),
      svg("path", { class: "on", d: path(on, 1, 15) }),
    ),
    el("p", { class: "ends", "aria-hidden": "true" }, el("span", {}, number(low)), el("span", {}, number(high))),
  ];
}

// Returns the comparisons of a rung as a table that is filled when it is opened.
function verdicts(all, number_, rung) {
  const body = el("tbody");
  const row = ([trial, judged]) =>
    el(
      "tr",
      {},
      el("td", {}, trialLink(trial.number, null, "rung")),
      el("td", { class: "n" }, number(judged.value)),
      el("td", {}, judged.rank === undefined ? "" : `${judged.rank} of ${judged.of}, best ${judged.allowed}`),
      el(
        "td",
        {},
        judged.continues === undefined
          ? "waits"
          : judged.continues
            ? "continued"
            : model.head.promotes
              ? "not promoted"
              : "stopped",
      ),
    );
  const key = `${number_}-${rung}`;
  // A rung of thousands of trials is listed only when it is read.
  const fillTable = (event) => {
    if (event.target.open && !body.childElementCount) body.append(...all.slice(0, LISTED_MAX).map(row));
  };
  const titles = ["trial", "value", "rank on arrival, continue", "verdict"];
  return el(
    "details",
    { ontoggle: fillTable, "data-key": key },
    el("summary", {}, "who continued"),
    el(
      "div",
      {
        class: "wide",
        "data-key": key,
        tabindex: "0",
        role: "region",
        "aria-label": `Comparisons of bracket ${number_}, rung ${rung}`,
      },
      el(
        "table",
        { class: "small" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            titles.map((title, i) => el("th", { scope: "col", class: i === 1 ? "n" : null }, title)),
          ),
        ),
        body,
      ),
    ),
    all.length > LISTED_MAX &&
      el("p", { class: "note" }, `The best ${LISTED_MAX} of ${count(all.length)}. The table of trials has all.`),
  );
}
