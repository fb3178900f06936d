// Cluster sizes: what the trials of each size have shown, and what a training costs on each.

function renderSizes() {
  const sizes = model.head.clusterSizes ?? [];
  byId("sizes").hidden = sizes.length === 0;
  const seconds = (value) => (value === undefined ? "-" : `${number(value)} s`);
  const price = (value) => (value === undefined ? "-" : dollars(value * 1e6));
  put(
    byId("sizes-table"),
    sizes.map((size) =>
      el(
        "tr",
        {},
        [
          count(size.InstanceCount),
          count(size.Trials),
          number(size.BestValue),
          seconds(size.SecondsPerEpoch),
          price(size.UsdPerEpoch),
          seconds(size.SecondsPerTraining),
          price(size.UsdPerTraining),
          size.SpeedUp === undefined ? "-" : `${size.SpeedUp.toFixed(2)} x`,
        ].map((text) => el("td", { class: "n" }, text)),
      ),
    ),
  );
}
