// Spent and reserved amounts against the cap over time.

let money = null;
// Maximum number of rows of the table. More points are thinned out evenly.
const COST_ROWS_MAX = 40;

function initMoney() {
  const stepped = uPlot.paths.stepped({ align: 1 });
  money = createChart(byId("money-chart"), {
    label: () => `Cost over time: ${costText()}`,
    height: () => 240,
    x: () => ({
      min: 0,
      max: lastTime() / 1000,
      label: "time since the submission",
      format: clockTick,
      steps: TIME_STEPS,
    }),
    y: () => ({ min: 0, max: moneyTop() * 1.05 || 1, label: "US dollars", format: dollarTick }),
    series: () => [
      {
        stroke: () => palette.reserved,
        fill: () => faded(palette.reserved, 0.18),
        width: 1.5,
        paths: stepped,
        points: { show: false },
      },
      {
        stroke: () => palette.spent,
        fill: () => faded(palette.spent, 0.35),
        width: 2,
        paths: stepped,
        points: { show: false },
      },
      { stroke: () => palette.cap, width: 1.5, dash: [6, 4], paths: stepped, points: { show: false } },
    ],
    data: moneyData,
    draw: () => {},
    read: (x, map) => {
      const { min, max } = money.plot.scales.x;
      return moneyLines((min + ((x - map.left) / map.width) * (max - min)) * 1000);
    },
  });
  byId("money-home").addEventListener("click", () => home(money));
  byId("money-details").addEventListener("toggle", renderCosts);
}

function renderMoney() {
  const any = !model.head.priceUnknown && model.money.reserved.some((amount) => amount > 0);
  byId("money-empty").hidden = any;
  byId("money-empty").textContent = model.head.priceUnknown
    ? "The price of the instances is unknown, so there are no costs to show."
    : "Nothing was reserved or spent yet.";
  byId("money-body").hidden = !any;
  byId("money-tools").hidden = !any;
  if (!any) return;
  if (money.plot) money.plot.setData(moneyData(), false);
  refresh(money);
  const cap = model.head.cap;
  const hidden = cap !== null && cap / 1e6 > moneyTop();
  byId("money-note").textContent = hidden ? `The cap of ${dollars(cap)} is above the chart.` : "";
  renderCosts();
}

function renderCosts() {
  if (!byId("money-details").open) return;
  const { at, spent, reserved, cap } = model.money;
  const rows = Math.min(at.length, COST_ROWS_MAX);
  const indices = Array.from({ length: rows }, (_, row) =>
    rows === 1 ? 0 : Math.round((row * (at.length - 1)) / (rows - 1)),
  );
  const amount = (text) => el("td", { class: "n" }, text);
  put(
    byId("money-table"),
    indices.map((i) =>
      el(
        "tr",
        {},
        el("td", {}, clock(at[i])),
        amount(dollars(spent[i])),
        amount(dollars(reserved[i])),
        amount(cap[i] === null ? "none" : dollars(cap[i])),
      ),
    ),
  );
}

// Returns the top of the chart. A cap far above the costs would flatten them.
function moneyTop() {
  const { spent, reserved } = model.money;
  const highest = spent.reduce((most, amount, i) => Math.max(most, amount + reserved[i]), 0);
  const cap = model.head.cap ?? 0;
  return (cap / 4 <= highest ? Math.max(cap, highest) : highest) / 1e6;
}

function moneyData() {
  const { at, spent, reserved, cap } = model.money;
  const end = lastTime();
  const last = at.length - 1;
  const top = moneyTop();
  const column = (of) => [...at.map((_, i) => of(i)), of(last)];
  return [
    [...at, end].map((time) => time / 1000),
    column((i) => (spent[i] + reserved[i]) / 1e6),
    column((i) => spent[i] / 1e6),
    column((i) => (cap[i] === null || cap[i] / 1e6 > top ? null : cap[i] / 1e6)),
  ];
}

function moneyLines(time) {
  const { at, spent, reserved, cap } = model.money;
  let i = at.length - 1;
  while (i > 0 && at[i] > time) i--;
  return [
    el("p", {}, el("b", {}, clock(Math.max(0, time)))),
    el(
      "dl",
      {},
      el("dt", {}, "spent"),
      el("dd", {}, dollars(spent[i])),
      el("dt", {}, "reserved"),
      el("dd", {}, dollars(reserved[i])),
      el("dt", {}, "cap"),
      el("dd", {}, cap[i] === null ? "none" : dollars(cap[i])),
    ),
  ];
}

function costText() {
  const { spent, reserved, cap } = model.head;
  return `${dollars(spent)} spent, ${dollars(reserved)} reserved, ${cap === null ? "no cap" : `cap ${dollars(cap)}`}`;
}
