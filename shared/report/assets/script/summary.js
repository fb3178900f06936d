// The first screen: what happened, what is best and by how much, what it cost against the cap, and what runs now.

const WAITS = {
  Capacity: "No job gets instances.",
  Quota: "A quota of the account blocks the next job.",
  MonthlyCap: "The month's cap of the stack has no money left for the next job.",
  Starts: "Ordered starts wait for the rate of starts that all tunings share, or for SageMaker.",
  RunningTrials: "Too many trials failed. No new trial starts before a running one logs a value.",
  Bills: "All jobs have ended. The last bills are read once more.",
};
// More running trials are summed up.
const RUNNING_MAX = 8;

function renderSummary() {
  const { head } = model;
  document.title = `${head.name} - hyperband`;
  byId("name").textContent = head.name;
  const status = byId("status");
  status.textContent = head.interrupted ? "Interrupted" : head.status;
  status.className = `status ${head.interrupted ? "Interrupted" : head.status}`;
  put(byId("happened"), happened());
  put(byId("best-card"), best());
  put(byId("cost-card"), cost());
  put(byId("now-card"), now());
}

function happened() {
  const { head } = model;
  const whole = head.maxEpochs ? head.maxEpochs * model.trials.length : 0;
  const saved =
    head.ended !== null && whole > head.epochs && head.epochs > 0
      ? `, ${percent(1 - head.epochs / whole)} less than without early stopping`
      : "";
  const outcomes = OUTCOMES.map(([name, words]) => [
    model.trials.filter((trial) => trial.outcome === name).length,
    name,
    words,
  ]);
  return [
    el("p", { class: "lead" }, course()),
    head.interrupted && el("p", {}, "To continue it: ", el("code", {}, head.interrupted)),
    el(
      "div",
      { class: "shares", "aria-hidden": "true" },
      outcomes
        .filter(([n]) => n)
        .map(([n, name]) => el("i", { style: { "flex-grow": n, background: `var(--${name})` } })),
    ),
    el(
      "p",
      {},
      outcomes
        .filter(([n]) => n)
        .map(([n, , words]) => `${count(n)} ${words}`)
        .join(", ") || "No trial has started yet.",
    ),
    list([
      ["trials", count(model.trials.length)],
      ["jobs", `${count(head.jobsLaunched)} of at most ${count(head.maxJobs)}`],
      ["epochs", `${count(head.epochs)}${saved}`],
      ["time", `${duration(lastTime())}, submitted ${utc(head.created)}`],
      ["search", `${head.strategy}, ${head.objective === "Maximize" ? "maximizes" : "minimizes"} ${head.metric}`],
    ]),
    head.failures.map((cause) =>
      el("p", { class: "problem" }, `${counted(cause.Count, "job")} failed: ${cause.Reason}`),
    ),
  ];
}

// Returns why the tuning ended, or what it does, in a sentence.
function course() {
  const { head } = model;
  if (head.interrupted) return "The run was interrupted.";
  if (head.reason) return sentence(head.reason);
  if (model.trials.some((trial) => trial.outcome === "running")) return "Training jobs run.";
  if (head.jobsRunning > 0) return `Training jobs wait for ${head.startsNeed}.`;
  if (head.pausedSince) return "The user paused the tuning.";
  return head.waitingFor ? "The tuning waits." : "No job runs yet.";
}

function best() {
  const { head } = model;
  if (!head.best) {
    const seen = head.bestSeen;
    return el(
      "p",
      { class: "lead" },
      seen
        ? `No job counts yet. Best seen: ${number(seen.value)} (trial ${seen.trial}, epoch ${seen.epoch}).`
        : "No value yet.",
    );
  }
  const trial = model.trials[head.best.trial];
  const at = head.bestSeen?.trial === head.best.trial ? head.bestSeen.epoch : trial?.bestEpoch;
  const last =
    head.best.last !== null && head.best.last !== head.best.value ? ` (${number(head.best.last)} at the end)` : "";
  const early = head.bestSeen && head.bestSeen.trial !== head.best.trial ? head.bestSeen : null;
  return [
    el(
      "p",
      { class: "figure" },
      el("span", { id: "best-value" }, number(head.best.value)),
      el("small", {}, ` ${head.metric}`),
    ),
    el("p", {}, trialLink(head.best.trial, null, "best"), at ? ` at epoch ${at}${last}` : last),
    margins(),
    early &&
      el(
        "p",
        { class: "note" },
        `Trial ${early.trial} had ${number(early.value)} at epoch ${early.epoch}. ${counting(early)}`,
      ),
    list(head.parameters.slice(0, 8).map((parameter, index) => [parameter.name, setting(head.best.values[index])])),
    head.parameters.length > 8 && el("p", { class: "note" }, `and ${head.parameters.length - 8} more hyperparameters`),
    head.model && el("p", { class: "path" }, "model ", el("code", {}, head.model)),
    head.modelNotes.map((note) => el("p", { class: "note" }, sentence(note))),
  ];
}

// Returns why the best value seen does not make its trial the best job: jobs are compared when they end, by their last value.
function counting(seen) {
  const trial = model.trials[seen.trial];
  if (trial.outcome === "failed") return "It failed.";
  return isLive(trial) ? "It still runs." : `Its last value is ${number(trial.last)}.`;
}

// Returns by how much the best job is better than the next and than the median. The last values choose the best job, so
// they are compared.
function margins() {
  const { trial: number_, last } = model.head.best;
  const others = model.ranked.filter((trial) => trial.number !== number_ && trial.last !== null && !isLive(trial));
  if (others.length === 0 || last === null) return null;
  others.sort((a, b) => gain(b.last, a.last) || a.number - b.number);
  const line = (label, trial) => {
    // Without the digits that only the subtraction of binary numbers adds.
    const margin = Number(gain(last, trial.last).toPrecision(5));
    const share = trial.last ? ` (${percent(Math.abs(margin / trial.last))})` : "";
    return margin === 0
      ? `equal to ${label}`
      : `${number(Math.abs(margin))}${share} ${margin > 0 ? "better" : "worse"} than ${label}`;
  };
  // Stopped trials trained less, so they are no measure.
  const whole = others.filter((trial) => trial.outcome === "complete");
  const texts = [line(`the next, trial ${others[0].number}`, others[0])];
  if (whole.length > 2) texts.push(line("the median of the complete trials", whole[Math.floor(whole.length / 2)]));
  return el("p", {}, sentence(texts.join("; ")));
}

function cost() {
  const { head } = model;
  if (head.priceUnknown) {
    return [
      el("p", { class: "lead" }, "The price of the instances is unknown."),
      list([["billed", `${count(head.billedSeconds)} s`]]),
    ];
  }
  const cap = head.cap;
  const share = (amount) => `${Math.min(100, (100 * amount) / cap).toFixed(2)}%`;
  return [
    el(
      "p",
      { class: "figure" },
      el("span", { id: "spent" }, dollars(head.spent)),
      el("small", {}, cap === null ? " spent, no cap" : ` of ${dollars(cap)}`),
    ),
    cap !== null &&
      el(
        "div",
        { class: "bar", role: "img", "aria-label": costText() },
        el("i", { style: { width: share(head.spent), background: "var(--spent)" } }),
        el("i", { style: { width: share(head.reserved), background: "var(--reserved)" } }),
      ),
    list(
      [
        cap !== null && ["spent", `${percent(head.spent / cap)} of the cap`],
        ["reserved", head.reserved ? `${dollars(head.reserved)} for running jobs` : "nothing"],
        cap !== null && ["left", dollars(Math.max(0, cap - head.spent - head.reserved))],
        ["billed", `${count(head.billedSeconds)} s`],
        head.spent > 0 && ["a trial", `${dollars(Math.round(head.spent / model.trials.length))} on average`],
      ].filter(Boolean),
    ),
  ];
}

function now() {
  const { head } = model;
  const all = model.trials.filter(isLive);
  // A trial counts as running until its job is settled.
  const running = all.filter((trial) => trial.jobs[trial.jobs.length - 1]?.ended === undefined);
  const waiting = head.waitingFor;
  const lines = [];
  if (head.ended !== null)
    lines.push(
      el("p", { class: "lead" }, "Nothing runs."),
      el(
        "p",
        {},
        `The tuning ended at ${utc(head.ended)}, ${duration(head.ended - head.created)} after its submission.`,
      ),
    );
  else if (head.interrupted)
    lines.push(
      el("p", { class: "lead" }, "Nothing runs."),
      el("p", {}, `${counted(all.length, "trial")} continue${all.length === 1 ? "s" : ""} when the run does.`),
    );
  else if (running.length)
    lines.push(
      el("p", { class: "lead" }, `${counted(running.length, "trial")}, at most ${count(head.maxParallel)} at a time`),
    );
  else if (!waiting) lines.push(el("p", { class: "lead" }, head.pausedSince ? "Nothing runs." : "No job runs yet."));
  const queued = running.filter((trial) => trial.outcome === "queued").length;
  if (queued && head.ended === null && !head.interrupted)
    lines.push(el("p", {}, `${count(queued)} of them ${queued === 1 ? "waits" : "wait"} for ${head.startsNeed}.`));
  if (head.pausedSince) lines.push(el("p", {}, `Paused by the user since ${utc(head.pausedSince)}.`));
  if (waiting) {
    lines.push(
      el(
        "p",
        { class: "problem" },
        WAITS[waiting.Reason] ?? waiting.Reason,
        ` Since ${utc(waiting.Since * 1000)}.`,
        waiting.NextAttempt ? ` Next attempt ${utc(waiting.NextAttempt * 1000)}.` : "",
        waiting.Message ? ` ${waiting.Message}` : "",
      ),
    );
  }
  if (running.length && head.ended === null && !head.interrupted) lines.push(runningTable(running));
  if (all.length > running.length && head.ended === null)
    lines.push(
      el(
        "p",
        {},
        `${counted(all.length - running.length, "job")} ended and ${all.length - running.length === 1 ? "waits" : "wait"} for the bill.`,
      ),
    );
  const waits = model.trials.filter((trial) => trial.outcome === "waiting" || trial.outcome === "retrying");
  if (waits.length && head.ended === null)
    lines.push(
      el(
        "p",
        {},
        `${counted(waits.length, "trial")} ${waits.length === 1 ? "waits" : "wait"} for a promotion or a retry.`,
      ),
    );
  return lines;
}

function runningTable(running) {
  const row = (trial) => {
    const job = trial.jobs[trial.jobs.length - 1];
    const goal = job?.level ?? model.head.maxEpochs;
    return el(
      "tr",
      {},
      el("td", {}, trialLink(trial.number, null, "now")),
      el("td", { class: "n" }, goal ? `${trial.epochs}/${goal}` : trial.epochs),
      el("td", { class: "n" }, number(trial.last)),
      el("td", {}, job ? stateText(job) : ""),
    );
  };
  const head = ["trial", "epoch", "last", "phase"].map((title, i) =>
    el("th", { scope: "col", class: i === 1 || i === 2 ? "n" : null }, title),
  );
  return [
    el(
      "table",
      { class: "small" },
      el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, running.slice(0, RUNNING_MAX).map(row)),
    ),
    running.length > RUNNING_MAX &&
      el("p", { class: "note" }, `and ${counted(running.length - RUNNING_MAX, "more trial")}`),
  ];
}

function list(pairs) {
  return el(
    "dl",
    {},
    pairs.map(([term, text]) => [el("dt", {}, term), el("dd", {}, text)]),
  );
}

function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
