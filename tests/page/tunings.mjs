// Real tunings on this machine, and simulated ones.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const folder = mkdtempSync(join(tmpdir(), "hyperband-page-"));
const examples = fileURLToPath(new URL("../../examples/hello/", import.meta.url));
const TRAIN = join(examples, "train.sh");
const MARKUP = "</script><img src=x onerror=alert(1)>";
const MARKS = [MARKUP, "=1+1", 'a,"b'];

function hyperband(...args) {
  return execFileSync(process.env.HYPERBAND_BIN, args, {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

// Writes the request of an example with other members.
function request(name, file, change) {
  const body = JSON.parse(readFileSync(join(examples, file)));
  body.HyperParameterTuningJobName = name;
  change?.(body);
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(body));
}

function describe(name) {
  return JSON.parse(hyperband("describe", name, "--data-dir", name, "--output", "json"));
}

function report(name) {
  const file = join(folder, `${name}.html`);
  hyperband("report", name, "--data-dir", name, "-o", file);
  return { url: `file://${file}`, described: describe(name) };
}

// Runs a tuning to its end. A failed tuning ends the program with 1.
function run(name, file, change, command = [TRAIN]) {
  request(name, file, change);
  try {
    hyperband("run", `${name}.json`, "--data-dir", name, "--", ...command);
  } catch (error) {
    if (error.status !== 1) throw error;
  }
  return report(name);
}

export const real = {
  ended: () => run("ended", "request.json"),
  promoted: () => run("promoted", "promote.json"),
  capped: () => run("capped", "request.json", (body) => (body.Controller.MaxCostUsd = 0.012)),
  // Two cluster sizes, and a tolerance.
  sized: () => run("sized", "request.json", (body) => Object.assign(body.Controller, { InstanceCounts: [1, 2], ValueTolerance: 0.05 })),
  // Two training job definitions.
  several: () =>
    run("several", "request.json", (body) => {
      const config = body.HyperParameterTuningJobConfig;
      const one = { ...body.TrainingJobDefinition, TuningObjective: config.HyperParameterTuningJobObjective };
      const ranges = config.ParameterRanges;
      body.TrainingJobDefinitions = [
        { ...one, DefinitionName: "one", HyperParameterRanges: ranges },
        { ...one, DefinitionName: "two", HyperParameterRanges: ranges },
      ];
      config.ResourceLimits.MaxNumberOfTrainingJobs = 12;
      delete config.HyperParameterTuningJobObjective;
      delete config.ParameterRanges;
      delete body.TrainingJobDefinition;
      delete body.Controller.MaxCostUsd;
    }),
  failed: () => run("failed", "request.json", null, ["sh", "-c", "echo cannot read '<data>' >&2; exit 3"]),
  // The median rule, a metric to minimize, and no price.
  median: () =>
    run("median", "request.json", (body) => {
      const config = body.HyperParameterTuningJobConfig;
      config.Strategy = "Random";
      delete config.StrategyConfig;
      config.TrainingJobEarlyStoppingType = "Auto";
      config.HyperParameterTuningJobObjective.Type = "Minimize";
      config.ResourceLimits.MaxNumberOfTrainingJobs = 12;
      body.TrainingJobDefinition.StaticHyperParameters.epochs = "9";
      delete body.Controller.MaxCostUsd;
      delete body.Controller.InstancePricesUsdPerHour;
    }),
  // Instances that are kept after a job, and billed.
  pools: () =>
    run("pools", "promote.json", (body) => {
      const job = body.TrainingJobDefinition;
      delete job.EnableManagedSpotTraining;
      delete job.StoppingCondition.MaxWaitTimeInSeconds;
      job.ResourceConfig = { KeepAlivePeriodInSeconds: 60 };
    }),
  // Three trials of other epochs.
  short: (name, change) =>
    run(name, "request.json", (body) => {
      body.HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs = 3;
      change(body);
    }),
  // Values of a user that are markup, a formula, and text with quotes.
  hostile: () =>
    run("hostile", "request.json", (body) => {
      body.HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs = 3;
      body.HyperParameterTuningJobConfig.ParameterRanges.CategoricalParameterRanges = [
        { Name: "mark", Values: MARKS },
      ];
      body.Controller.InitialConfigurations = MARKS.map((mark, i) => ({ learning_rate: 0.1 ** (i + 1), mark }));
    }),
  MARKUP,
};

// Starts a tuning whose programs print nothing, and returns its report.
export async function empty() {
  request("empty", "request.json");
  const child = spawn(
    process.env.HYPERBAND_BIN,
    ["run", "empty.json", "--data-dir", "empty", "--", "sh", "-c", "exec sleep 600"],
    { cwd: folder, stdio: "ignore" },
  );
  const over = new Promise((done) => child.on("exit", done));
  try {
    for (;;) {
      try {
        const before = describe("empty");
        const found = report("empty");
        // A report and a description of the same step.
        const same = found.described.LastModifiedTime === before.LastModifiedTime;
        if (same && before.TrainingJobStatusCounters.InProgress > 0) return found;
      } catch (error) {
        // The data directory or its tuning is not there yet.
        if (child.exitCode !== null || error.status !== 2) throw error;
      }
      await new Promise((done) => setImmediate(done));
    }
  } finally {
    child.kill("SIGKILL");
    await over;
  }
}

// Writes a report of a tuning whose document `change` changes, and returns its address.
export function changed(name, { url }, change) {
  const file = join(folder, `${name}.html`);
  const data = /(<script type="application\/json" id="document">)(.*)(<\/script>)/;
  const replaced = (_, begin, json, end) => {
    const document = JSON.parse(json);
    change(document);
    return begin + JSON.stringify(document).replaceAll("<", "\\u003c") + end;
  };
  writeFileSync(file, readFileSync(fileURLToPath(url), "utf8").replace(data, replaced));
  return `file://${file}`;
}

const made = new Map();

// Returns the output of a simulated tuning.
export function simulate(...args) {
  const key = args.join(" ");
  if (!made.has(key))
    made.set(key, execFileSync(process.env.SIMULATED_PAGE, args.map(String), { encoding: "utf8", maxBuffer: 1 << 28 }));
  return made.get(key);
}

// Writes the page of a simulated tuning and returns its address.
export function simulated(...args) {
  const file = join(folder, `simulated-${args.join("-").replaceAll(/[^\w-]/g, "")}.html`);
  writeFileSync(file, simulate(...args));
  return `file://${file}`;
}
