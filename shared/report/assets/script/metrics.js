// The curves of a trial's other metrics, on a live page of this machine. They are in the logs of its jobs.

let metricCurves = { of: "", node: null };

// Returns the part of the dialog, which loads its curves when it is opened. Further drawings of the trial keep it.
function metricsPart(trial) {
  if (!trial.metrics || document.querySelector("meta[name=event-stream]") === null) return null;
  const jobs = trial.jobs.filter((job) => job.state !== "Refused" && job.state !== "NotStarted");
  const of = jobs.map((job) => `${model.head.id}-${job.key}`).join();
  if (metricCurves.of !== of) {
    const body = el("div", { class: "curves" });
    const node = el("details", {}, el("summary", {}, "Curves of other metrics"), body);
    node.addEventListener("toggle", () => node.open && loadMetrics(of, body));
    metricCurves = { of, node };
  }
  return metricCurves.node;
}

async function loadMetrics(jobs, body) {
  let [curves, problem] = [{}, ""];
  try {
    const answer = await fetch(`metrics/${jobs}`);
    const found = await answer.json();
    if (answer.ok) curves = found;
    else problem = found.message;
  } catch {
    problem = "The server does not answer: start it again, then open this part again.";
  }
  const charts = Object.entries(curves).map(([name, points]) => metricChart(name, points));
  const none = problem || "The log does not show the epochs of their values.";
  put(body, charts, charts.length === 0 && el("p", { class: "note" }, none));
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
