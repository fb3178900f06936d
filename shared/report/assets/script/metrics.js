// The curves of a trial's other metrics, on a live page of this machine. They are in the logs of its jobs.

let metricCurves = { trial: null, node: null };

// Returns the part of the dialog, which loads its curves when it is opened. Further drawings of the trial keep it.
function metricsPart(trial) {
  if (!trial.metrics || document.querySelector("meta[name=event-stream]") === null) return null;
  if (metricCurves.trial !== trial.number) {
    const body = el("div", { class: "curves" });
    const node = el("details", {}, el("summary", {}, "Curves of other metrics"), body);
    node.addEventListener("toggle", () => node.open && loadMetrics(trial, body));
    metricCurves = { trial: trial.number, node };
  }
  return metricCurves.node;
}

async function loadMetrics(trial, body) {
  const all = new Map();
  let problem = "";
  try {
    // Where two jobs have the same epoch, the later job counts.
    for (const job of trial.jobs) {
      const answer = await fetch(`metrics/${model.head.id}-${job.key}`);
      if (!answer.ok) problem = (await answer.json()).message;
      for (const [name, points] of Object.entries(answer.ok ? await answer.json() : {})) {
        const known = all.get(name) ?? new Map();
        for (const [epoch, value] of points) known.set(epoch, value);
        all.set(name, known);
      }
    }
  } catch {
    problem = "The server does not answer: start it again, then open this part again.";
  }
  const charts = [...all].map(([name, points]) => metricChart(name, [...points].sort(([a], [b]) => a - b)));
  put(body, charts, charts.length === 0 && el("p", { class: "note" }, problem || "The log has no value of them."));
}

function metricChart(name, points) {
  const [wide, high] = [300, 70];
  const [epochs, values] = [points.map(([epoch]) => epoch), points.map(([, value]) => value)];
  const [first, last] = [epochs[0], epochs[epochs.length - 1]];
  const { min, max } = withMargin({ min: Math.min(...values), max: Math.max(...values) }, 0.05);
  const x = (epoch) => (last > first ? ((epoch - first) / (last - first)) * wide : wide / 2);
  const y = (value) => high - ((value - min) / (max - min)) * high;
  const words = `${name}: ${number(values[0])} at epoch ${first}, ${number(values[values.length - 1])} at epoch ${last}`;
  const line = points.map(([epoch, value]) => `${x(epoch).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return el(
    "figure",
    {},
    el("figcaption", {}, words),
    svg(
      "svg",
      { viewBox: `-2 -2 ${wide + 4} ${high + 4}`, role: "img", "aria-label": words },
      svg("polyline", { points: line }),
      points.length === 1 && svg("circle", { cx: x(first), cy: y(values[0]), r: 2.5 }),
    ),
  );
}
