// Tests of the live pages of a real `hyperband serve` in Chromium.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { contextOf, launch, ready, seriousFindings, text } from "./browser.mjs";
import { serving } from "./serve.mjs";

const SLEEP = ["/bin/sleep", "600"];
const PROMOTE = JSON.parse(readFileSync(new URL("../../examples/hello/promote.json", import.meta.url)));
const TRAIN = fileURLToPath(new URL("../../examples/hello/train.sh", import.meta.url));

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

// Opens the live page of a tuning.
async function live(tuning, options = {}) {
  const context = await contextOf(browser, { viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  page.problems = [];
  page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
  page.on("pageerror", (error) => page.problems.push(String(error)));
  await page.goto(`${tuning}/page`);
  await ready(page);
  return page;
}

// Counts the pixels of a chart that have colours of the style.
function pixels(page, id, names) {
  return page.locator(`#${id} canvas:not(.over)`).evaluate((canvas, names) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const probe = document.body.appendChild(document.createElement("i"));
    const counts = names.map((name) => {
      probe.style.color = `var(--${name})`;
      const wanted = getComputedStyle(probe).color.match(/\d+/g).map(Number);
      let found = 0;
      for (let i = 0; i < data.length; i += 4) found += wanted.every((part, place) => data[i + place] === part);
      return found;
    });
    probe.remove();
    return counts;
  }, names);
}

async function described(tuning) {
  return (await fetch(tuning)).json();
}

test("the list of tunings follows them, and the page of an unknown one has the reason", async () => {
  await serving(SLEEP, [], async (url, submit) => {
    const context = await contextOf(browser);
    const page = await context.newPage();
    await page.goto(url);
    await page.getByText("There are no tunings yet").waitFor();
    await submit("a-b");
    await page.getByRole("link", { name: "a-b" }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.getByRole("link", { name: "a-b" }).click();
    await page.waitForFunction(() => document.getElementById("connection").textContent === "live");
    await page.getByRole("link", { name: "All tunings" }).waitFor();
    const unknown = await context.newPage();
    await unknown.goto(`${url}/tuning-jobs/unknown/page`);
    await unknown.getByText("no hyperparameter tuning job is named unknown").waitFor();
    await context.close();
  });
});

test("the controls of a live page change limits, pause, resume and stop, by keyboard", async () => {
  await serving(SLEEP, [], async (_, submit) => {
    const tuning = await submit("controls");
    // A report of the same tuning has no controls.
    const report = await (await contextOf(browser)).newPage();
    await report.goto(`${tuning}/report`);
    await ready(report);
    assert.equal(await report.locator("#controls, dialog form").count(), 0);
    await report.close();
    const page = await live(tuning);
    const answer = page.locator("#controls .answer");
    const parallel = page.getByRole("spinbutton", { name: "Parallel jobs" });
    assert.equal(await parallel.inputValue(), "4");
    await parallel.focus();
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type("2");
    await page.keyboard.press("Enter");
    await page.locator("#now-card, #controls .answer").getByText("MaxParallelTrainingJobs becomes 2.").waitFor();
    await page.locator("#now-card").getByText("at most 2 at a time").waitFor();
    assert.equal((await described(tuning)).Controller.MaxParallelTrainingJobs, 2);
    const cap = page.getByRole("spinbutton", { name: "Cap in USD" });
    assert.equal(await cap.inputValue(), "0.5");
    await cap.fill("0.75");
    await page.keyboard.press("Enter");
    await page.locator("#cost-card").getByText("of $0.7500").waitFor();
    // A text of the user stays while data arrives, also if it is refused.
    await parallel.fill("5000");
    await page.keyboard.press("Enter");
    await answer.getByText(/^Not changed: .*Invalid MaxParallelTrainingJobs 5000/).waitFor();
    page.problems.length = 0;
    await page.getByRole("button", { name: "Pause starts" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("Paused by the user since").waitFor();
    assert.equal(await parallel.inputValue(), "5000");
    await page.keyboard.press("Enter");
    await answer.getByText("Jobs start again.").waitFor();
    await page.getByRole("button", { name: "Pause starts" }).waitFor();

    // A stop needs a confirmation.
    const stop = page.getByRole("button", { name: "Stop", exact: true });
    await stop.focus();
    await page.keyboard.press("Enter");
    assert.deepEqual(await seriousFindings(page), []);
    await page.keyboard.press("Enter");
    await page.getByText("Stop this tuning?").waitFor({ state: "hidden" });
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    assert.equal((await described(tuning)).HyperParameterTuningJobStatus, "InProgress");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Stop the tuning" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.getElementById("status").textContent === "Stopped");
    assert.equal(await page.locator("#controls").isVisible(), false);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
});

test("controls show why the server refuses a request", async () => {
  await serving(SLEEP, [], async (url, submit) => {
    await submit("refused");
    // A gate before the server has another origin, and the server accepts requests of its own pages only.
    const gate = createServer((request, response) => {
      const headers = { ...request.headers, host: new URL(url).host };
      const forwarded = httpRequest(url + request.url, { method: request.method, headers });
      forwarded.on("response", (answer) => answer.pipe(response.writeHead(answer.statusCode, answer.headers)));
      request.pipe(forwarded);
    });
    await new Promise((done) => gate.listen(0, "127.0.0.1", done));
    const tuning = `http://127.0.0.1:${gate.address().port}/tuning-jobs/refused`;
    const page = await live(tuning);
    const answer = page.locator("#controls .answer");
    const pause = page.getByRole("button", { name: "Pause starts" });
    await pause.click();
    await answer.getByText(/^Not changed: requests of pages of http:.* are not allowed$/).waitFor();
    assert.equal((await described(tuning)).Controller.PausedSince, undefined);
    // Another client has ended the tuning.
    await page.route(tuning, (route) => route.fulfill({ status: 409, json: { message: "the tuning has ended" } }));
    await pause.click();
    await answer.getByText("Not changed: the tuning has ended").waitFor();
    await page.unroute(tuning);
    await page.route(tuning, (route) => route.abort());
    await pause.click();
    await answer.getByText("No response from the server.").waitFor();
    await page.context().close();
    gate.closeAllConnections();
    gate.close();
  });
});

test("controls are accessible in light, in dark and on a phone, and nothing moves", async () => {
  await serving(SLEEP, [], async (_, submit) => {
    const tuning = await submit("looks");
    for (const options of [{}, { colorScheme: "dark" }, { viewport: { width: 360, height: 740 } }]) {
      const page = await live(tuning, options);
      assert.deepEqual(await seriousFindings(page), [], JSON.stringify(options));
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= room, `${wide} wide at ${room}`);
      const top = () => page.locator("#summary").evaluate((host) => host.getBoundingClientRect().top);
      const before = await top();
      const pause = page.getByRole("button", { name: /starts$/ });
      await pause.click();
      await page.locator("#controls .answer").getByText(/\S/).waitFor();
      assert.equal(await top(), before);
      await page.context().close();
    }
  });
});

// Waits until a tuning has ended.
async function ended(tuning) {
  while ((await described(tuning)).HyperParameterTuningEndTime === undefined)
    await new Promise((done) => setTimeout(done, 200));
}

test("a live page compares up to four other tunings, in the chart and in a table", async () => {
  await serving([TRAIN], ["--slots", "12"], async (url, submit) => {
    const jobs = { one: 3, two: 4, three: 8, four: 12, five: 5, loss: 3 };
    const tunings = Object.entries(jobs).map(([name, count]) =>
      submit(name, ({ HyperParameterTuningJobConfig: config }) => {
        config.ResourceLimits.MaxNumberOfTrainingJobs = count;
        if (name === "loss") config.HyperParameterTuningJobObjective.Type = "Minimize";
      }),
    );
    for (const tuning of tunings) await ended(await tuning);
    const page = await live(`${url}/tuning-jobs/one`);
    const rows = page.locator("#compare tbody tr");
    // Whether the chart has the colours of the lines of "three" and "four".
    const lines = async () => (await pixels(page, "progress-chart", ["waiting", "cut"])).map((count) => count > 20);
    assert.deepEqual(await lines(), [false, false]);
    await page.getByText("Compare with").focus();
    await page.keyboard.press("Enter");
    const group = page.getByRole("group", { name: "Tunings to compare with" });
    await group.getByLabel("two").waitFor();
    assert.equal(await group.getByLabel("one").count(), 0);
    for (const [index, name] of ["two", "three", "four", "five"].entries()) {
      await group.getByLabel(name).focus();
      await page.keyboard.press("Space");
      await rows.nth(index + 1).waitFor();
      assert.match(await page.locator("#compare [role=status]").textContent(), new RegExp(`^${name} is in`));
    }
    assert.equal((await lines())[1], true);
    // The axis has grown: a new chart has the same.
    const picture = () => page.locator("#progress-chart canvas:not(.over)").evaluate((canvas) => canvas.toDataURL());
    const grown = await picture();
    const by = (name) => page.getByRole("button", { name, exact: true }).click();
    await by("time");
    assert.deepEqual(await lines(), [true, true]);
    await by("trials");
    assert.ok(grown === (await picture()));
    assert.equal(await group.getByLabel("loss").isDisabled(), true);
    const cells = async (row) => (await rows.nth(row).locator("td").allTextContents()).map((cell) => cell.trim());
    const other = await described(`${url}/tuning-jobs/three`);
    const [name, status, best, launched, cost, time] = await cells(2);
    assert.deepEqual([name, status, Number(launched)], ["three", "Completed", other.Controller.TrainingJobsLaunched]);
    assert.ok(Math.abs(Number(best) - other.Controller.BestSeen.Value) < 1e-5, best);
    assert.ok(Math.abs(Number(cost.slice(1)) - other.Controller.SpentUsd) < 1e-6, cost);
    assert.match(time, /^\d+ s$/);
    assert.deepEqual(await seriousFindings(page), []);
    assert.equal(await page.getByText("not comparable").count(), 0);
    await group.getByLabel("three").uncheck();
    await group.getByLabel("loss").check();
    await page.getByText("not comparable: loss minimizes accuracy, this tuning maximizes accuracy.").waitFor();
    assert.deepEqual(page.problems, []);
    // A deleted tuning has no document.
    await group.getByLabel("two").uncheck();
    // The server refuses that until the next sweep has settled the tuning.
    while (!(await fetch(`${url}/tuning-jobs/two`, { method: "DELETE" })).ok)
      await new Promise((done) => setTimeout(done, 200));
    // `check` also expects a checked box, which the answer can clear before.
    await group.getByLabel("two").click();
    await page.getByText("two cannot be loaded: no hyperparameter tuning job is named two").waitFor();
    assert.equal(await group.getByLabel("two").isChecked(), false);
    await page.setViewportSize({ width: 360, height: 740 });
    await page.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth);
    const report = await (await contextOf(browser)).newPage();
    await report.goto(`${url}/tuning-jobs/one/report`);
    await ready(report);
    assert.equal(await report.locator("#compare").count(), 0);
    await report.close();
    await page.context().close();
  });
});

test("a job that waits for a slot is shown as waiting", async () => {
  await serving(SLEEP, ["--slots", "1"], async (_, submit) => {
    const page = await live(await submit("slots"));
    await page.locator("#now-card").getByText("3 of them wait for a slot.").waitFor();
    const phases = page.locator("#now-card tbody td:last-child");
    await page.locator("#now-card").getByText("Training", { exact: true }).waitFor();
    const counted = async (cells) =>
      (await cells.allTextContents()).filter((text) => text === "waits for a slot").length;
    assert.equal(await counted(phases), 3);
    assert.equal(await page.locator("#outcomes").textContent(), "running 1waits for a slot 3");
    assert.equal(await counted(page.locator("#table-body td")), 3);
    assert.match(await text(page, "timeline-legend"), /^waits for a slot/);
    // The waiting jobs are the bars with another colour than that of training.
    const colours = await pixels(page, "timeline-chart", ["waits", "train"]);
    assert.ok(colours[0] > 2 * colours[1] && colours[1] > 0, String(colours));
    await page.locator("#table-body tr", { hasText: "waits for a slot" }).first().getByRole("button").click();
    assert.match(await text(page, "detail-body"), /^waits for a slot/);
    assert.match(await text(page, "detail-body"), /job \d+-0-1: waits for a slot, since/);
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme });
      assert.deepEqual(await seriousFindings(page), [], scheme);
    }
    await page.context().close();
  });
});

// Trial 0 fails after 300 lines, the others train. All lines are in one stream, so their order is certain.
const FAILING = `case $TRAINING_JOB_NAME in *-0-0-1) exec python3 -c '
for line in range(300): print("line", line)
raise ValueError("no <data>")
' 2>&1 ;; esac
SM_HP_SECONDS_PER_EPOCH=0 exec "$0"`;

test("a failed trial shows its traceback, others their log on demand", async () => {
  await serving(["sh", "-c", FAILING, TRAIN], [], async (url, submit, end) => {
    await submit("a", (body) => Object.assign(body, PROMOTE, { HyperParameterTuningJobName: "a" }));
    for (const options of [{ width: 360, height: 740 }, { width: 1400, height: 900, dark: true }]) {
      const { dark, ...viewport } = options;
      const context = await contextOf(browser, { viewport, colorScheme: dark ? "dark" : "light" });
      const page = await context.newPage();
      await page.goto(`${url}/tuning-jobs/a/page`);
      await page.waitForFunction(() => document.getElementById("connection").textContent === "ended");
      const [log, choice] = [page.locator("#job-log-text"), page.locator("#job-log-choice")];
      const show = (trial) => page.locator(`#table-body tr[data-trial="${trial}"] button`).first().click();
      await show(0);
      await log.getByText("ValueError: no <data>").waitFor();
      const lines = (await log.textContent()).trimEnd().split("\n");
      assert.equal(lines.length, 200);
      assert.equal(lines.at(-1), "ValueError: no <data>");
      assert.ok(lines.includes("Traceback (most recent call last):"));
      const [seen, whole] = await log.evaluate((pre) => [pre.scrollTop + pre.clientHeight, pre.scrollHeight]);
      assert.ok(whole > seen / 2 && Math.abs(whole - seen) <= 1, `${seen} of ${whole}`);
      assert.equal(await choice.isVisible(), false);
      assert.match(await text(page, "job-log-command"), /^hyperband logs a 0 /);
      assert.deepEqual(await seriousFindings(page), []);
      const [wide, room] = await page.locator("#detail").evaluate((node) => [node.scrollWidth, node.clientWidth]);
      assert.ok(wide <= room, `${wide} wide at ${room}`);
      await page.keyboard.press("Escape");

      // A trial that was promoted has several jobs. The last one has the last epoch.
      const listed = await fetch(`${url}/tuning-jobs/a/training-jobs?MaxResults=100`);
      const jobs = (await listed.json()).TrainingJobSummaries;
      const last = jobs.reduce((last, job) => (job.Controller.Attempt > last.Controller.Attempt ? job : last));
      assert.ok(last.Controller.Attempt > 1);
      await show(last.Controller.Trial);
      assert.equal(await log.isVisible(), false);
      await page.getByText("End of the log", { exact: true }).focus();
      await page.keyboard.press("Enter");
      await log.getByText(`epoch ${last.Controller.Resource} accuracy=`).waitFor();
      assert.ok(last.TrainingJobName.endsWith(`-${await choice.inputValue()}`));
      await choice.selectOption({ index: 0 });
      await log.getByText("epoch 1 accuracy=").waitFor();
      if (dark) {
        await end();
        await page.getByRole("button", { name: "Refresh" }).click();
        await page.getByText("The server does not answer").waitFor();
        assert.equal(await log.isVisible(), false);
      }
      await context.close();
    }
  });
});

test("the curves of other metrics are in the dialog of a trial", async () => {
  const train = "for epoch in 0 1 2; do echo epoch $epoch accuracy=0.$epoch loss=1.$epoch; done";
  await serving(["sh", "-c", train], [], async (url, submit) => {
    const tuning = await submit("curves", (body) => {
      const { AlgorithmSpecification: algorithm } = body.TrainingJobDefinition;
      algorithm.MetricDefinitions = [...(algorithm.MetricDefinitions ?? []), { Name: "loss", Regex: "loss=([-+.\\w]*\\w)" }];
    });
    const page = await live(tuning);
    await page.waitForFunction(() => document.getElementById("connection").textContent === "ended");
    await page.locator('#table-body tr[data-trial="0"] button').first().click();
    await page.getByText("Curves of other metrics").click();
    await page.getByRole("img", { name: "loss: 1 at epoch 1, 1.2 at epoch 3" }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(page.problems, []);
    const [{ TrainingJobName: job }] = (await described(`${tuning}/training-jobs`)).TrainingJobSummaries;
    assert.deepEqual(await described(`${tuning}/metrics/${job}`), { loss: [[1, 1], [2, 1.1], [3, 1.2]] });
    assert.equal((await fetch(`${tuning}/metrics/other-abc123-0-0-1`)).status, 404);
    await page.context().close();
  });
});
