// The controls of a live page: requests to the API of its own origin, which checks the caller's rights.

let controls = null;

// `path` is the address of the tuning in the API.
function initControls(path) {
  const field = (label, name, properties) => {
    const input = el("input", { type: "number", required: true, ...properties });
    const text = el("label", {}, label, " ", input);
    input.addEventListener("input", () => (input.dataset.edited = "yes"));
    const send = (event) => {
      event.preventDefault();
      request("PATCH", path, { [name]: Number(input.value) }, `${name} becomes ${input.value}.`);
    };
    const button = el("button", { "aria-label": `Change ${label}` }, "Change");
    return [input, el("form", { onsubmit: send }, text, button)];
  };
  const [cap, capForm] = field("Cap in USD", "MaxCostUsd", { min: "0", step: "any" });
  const [parallel, parallelForm] = field("Parallel jobs", "MaxParallelTrainingJobs", { min: "1", step: "1" });
  const pause = el("button", { type: "button" });
  const stop = el("button", { type: "button", class: "danger", "aria-haspopup": "dialog" }, "Stop");
  const note = el("p", { class: "answer", role: "status", tabindex: "-1" });
  const sure = el(
    "dialog",
    { "aria-labelledby": "stop-title" },
    el("h2", { id: "stop-title" }, "Stop this tuning?"),
    el("p", {}, "Running jobs stop, and no other job starts. A stopped tuning cannot continue."),
    el(
      "form",
      { method: "dialog", class: "tools" },
      el("button", { value: "" }, "Cancel"),
      el("button", { value: "stop", class: "danger" }, "Stop the tuning"),
    ),
  );
  pause.addEventListener("click", () => {
    const paused = !model.head.pausedSince;
    const done = paused ? "No further job starts. Running jobs continue." : "Jobs start again.";
    request("PATCH", path, { paused }, done);
  });
  stop.addEventListener("click", () => {
    sure.returnValue = "";
    sure.showModal();
  });
  sure.addEventListener("close", () => {
    if (sure.returnValue) request("POST", `${path}/stop`, null, "The tuning is stopping.");
  });
  const buttons = el("div", { class: "controls" }, pause, stop, capForm, parallelForm);
  const host = el("section", { id: "controls", "aria-label": "Controls" }, buttons, note, sure);
  byId("summary").before(host);
  controls = { host, buttons, pause, note, cap, capForm, parallel };
  subscribe("data", renderControls);
}

function renderControls() {
  const { head } = model;
  const { host, buttons, pause, note, cap, capForm, parallel } = controls;
  const isOpen = head.status === "InProgress";
  // A hidden button would lose the focus.
  if (!isOpen && buttons.contains(document.activeElement)) note.focus();
  buttons.hidden = !isOpen;
  host.hidden = head.ended !== null;
  pause.textContent = head.pausedSince ? "Resume starts" : "Pause starts";
  capForm.hidden = head.priceUnknown;
  showLimit(cap, head.cap === null ? "" : String(head.cap / 1e6));
  showLimit(parallel, String(head.maxParallel));
}

// Shows the present limit, unless the user has typed another one that is not in effect yet.
function showLimit(input, present) {
  if (input.value === present) delete input.dataset.edited;
  else if (!input.dataset.edited) input.value = present;
}

// Sends a request and shows its outcome beside the controls. The stream shows the effect.
async function request(method, path, body, done) {
  const { note } = controls;
  note.className = "answer";
  note.textContent = "Sending the request.";
  try {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
    if (answer.ok) {
      note.textContent = done;
      return;
    }
    const error = await answer.json().catch(() => ({}));
    note.textContent = `Not changed: ${error.message ?? `HTTP status ${answer.status}`}`;
  } catch {
    note.textContent = "No response from the server. Check whether the change took effect before you repeat it.";
  }
  note.className = "answer problem";
}
