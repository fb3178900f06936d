// The best configuration, to copy.

let form = "json";

function initBest() {
  for (const button of byId("best-forms").querySelectorAll("button")) {
    button.addEventListener("click", () => {
      form = button.dataset.form;
      renderBest();
    });
  }
  byId("copy-best").addEventListener("click", (event) => copy(byId("best-text").textContent, event.target));
}

function renderBest() {
  const { head } = model;
  byId("best-empty").hidden = Boolean(head.best);
  byId("best-body").hidden = !head.best;
  if (!head.best) return;
  for (const button of byId("best-forms").querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(button.dataset.form === form));
  const pairs = head.parameters
    .map((parameter, index) => [parameter, head.best.values[index]])
    .filter(([, value]) => value !== null);
  byId("best-text").textContent = { json: asJson, cli: asArguments, python: asPython }[form](pairs);
}

// The strings of `HyperParameters` in SageMaker's requests.
function asJson(pairs) {
  return JSON.stringify(Object.fromEntries(pairs.map(([parameter, value]) => [parameter.name, value])), null, 2);
}

function asArguments(pairs) {
  const quoted = (text) => (/^[\w./:=,@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  return pairs.map(([parameter, value]) => `${quoted(`--${parameter.name}`)} ${quoted(value)}`).join(" \\\n  ");
}

function asPython(pairs) {
  const lines = pairs.map(
    ([parameter, value]) =>
      `    ${JSON.stringify(parameter.name)}: ${parameter.type === "categorical" ? JSON.stringify(value) : value},`,
  );
  return `hyperparameters = {\n${lines.join("\n")}\n}`;
}
