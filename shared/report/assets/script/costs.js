// What a training costs: in the trials with the best values for their costs, and on each cluster size.

const trainingTime = (seconds) => (seconds === undefined ? "-" : `${number(seconds)} s`);
const trainingPrice = (amount) => (amount === undefined ? "-" : dollars(amount * 1e6));

// The front of value against cost, the best value first. With a tolerance it names the best buy.
function renderFront() {
  const { Front: front = [], BestBuy: buy } = model.head.costs;
  byId("front").hidden = front.length === 0;
  const best = front[0]?.SecondsPerTraining * front[0]?.InstanceCount;
  const share = (trial) => (trial.SecondsPerTraining * trial.InstanceCount) / best;
  const percent = (trial) => (Number.isFinite(share(trial)) ? `${Math.round(100 * share(trial))} %` : "-");
  const note = (trial) =>
    [
      trial.Trial === buy?.Trial ? "best buy" : "",
      trial.SecondsPerTraining === undefined ? "" : trial.Measured ? "measured" : "predicted",
    ]
      .filter(Boolean)
      .join(", ");
  const cells = (trial) =>
    [
      count(trial.Trial),
      number(trial.Value),
      count(trial.InstanceCount),
      trainingTime(trial.SecondsPerTraining),
      trainingPrice(trial.UsdPerTraining),
      percent(trial),
    ].map((text) => el("td", { class: "n" }, text));
  put(
    byId("front-table"),
    front.map((trial) => el("tr", {}, cells(trial), el("td", {}, note(trial)))),
  );
}

function renderSizes() {
  const sizes = model.head.costs.ClusterSizes ?? [];
  byId("sizes").hidden = sizes.length === 0;
  const named = sizes.some((size) => size.TrainingJobDefinitionName !== undefined);
  byId("sizes-title").textContent = named ? "Training job definitions" : "Cluster sizes";
  byId("sizes-definition").hidden = !named;
  put(
    byId("sizes-table"),
    sizes.map((size) =>
      el(
        "tr",
        {},
        named ? el("td", {}, size.TrainingJobDefinitionName) : "",
        [
          count(size.InstanceCount),
          count(size.Trials),
          number(size.BestValue),
          trainingTime(size.SecondsPerEpoch),
          trainingPrice(size.UsdPerEpoch),
          trainingTime(size.SecondsPerTraining),
          trainingPrice(size.UsdPerTraining),
          size.SpeedUp === undefined ? "-" : `${size.SpeedUp.toFixed(2)} x`,
        ].map((text) => el("td", { class: "n" }, text)),
      ),
    ),
  );
}
