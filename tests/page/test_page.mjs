// Tests of the page in Chromium. Times are printed and never asserted.

import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { canvasColours, documentOf, launch, open, ready, saved, seriousFindings, text } from "./browser.mjs";
import { changed, empty, folder, real, simulate, simulated } from "./tunings.mjs";

let browser;
const states = {};

before(async () => {
  browser = await launch();
  const names = ["ended", "promoted", "capped", "sized", "several", "failed", "median", "pools", "hostile"];
  for (const name of names) states[name] = real[name]();
  states.empty = await empty();
  states.running = {
    url: simulated(120, 27, "--until", 600),
    described: JSON.parse(simulate(120, 27, "--until", 600, "--describe")),
  };
  const outage = [60, 27, "--outage", 300, "--until", 1500];
  states.waiting = { url: simulated(...outage), described: JSON.parse(simulate(...outage, "--describe")) };
  states.large = { url: simulated(1000, 81), described: JSON.parse(simulate(1000, 81, "--describe")) };
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

// Returns the open page of a state. Only tests that leave a page as it was share it.
async function shared(name) {
  return (states[name].page ??= await open(browser, states[name].url));
}

const digits = (shown) => Number(shown.replaceAll(/[$,]/g, ""));
const shownTrials = (page) => text(page, "filter-count").then((count) => Number(count.split(" ")[0].replace(",", "")));

test("the values of the page are those of describe", async () => {
  for (const [name, { described }] of Object.entries(states)) {
    const page = await shared(name);
    const own = described.Controller;
    assert.equal(await text(page, "name"), described.HyperParameterTuningJobName, name);
    const status = own.Interrupted ? "Interrupted" : described.HyperParameterTuningJobStatus;
    assert.equal(await text(page, "status"), status, name);
    if (own.PriceUnknown) assert.match(await text(page, "cost-card"), /price of the instances is unknown/, name);
    else
      assert.equal(digits(await text(page, "spent")), Number(own.SpentUsd.toFixed(own.SpentUsd < 0.01 ? 6 : 4)), name);
    const best = described.BestTrainingJob;
    if (best) {
      const value = own.BestSeen.Trial === best.Controller.Trial ? own.BestSeen.Value : best.Controller.BestValue;
      assert.ok(Math.abs(digits(await text(page, "best-value")) - value) <= 5e-7 * Math.max(1, Math.abs(value)), name);
      assert.match(await text(page, "best-card"), new RegExp(`trial ${best.Controller.Trial}\\b`), name);
      // The table begins with the best value at any epoch.
      assert.equal(
        await page.locator("#table-body tr").first().getAttribute("data-trial"),
        String(own.BestSeen.Trial),
        name,
      );
    } else {
      assert.match(await text(page, "best-card"), /No value yet|No job counts yet/, name);
    }
    assert.match(
      await text(page, "happened"),
      new RegExp(
        `trials${own.TrialsStarted.toLocaleString("en-US")}jobs${own.TrainingJobsLaunched.toLocaleString("en-US")} of`,
      ),
      name,
    );
    const rungs = own.Brackets.flatMap((bracket) => bracket.Rungs).filter((rung) => rung.Arrived !== undefined);
    const shown = await page.locator(".rung:not(.last) > p:first-of-type").allTextContents();
    assert.deepEqual(
      shown.map((line) =>
        line
          .match(/\d[\d,]*/g)
          .slice(0, 2)
          .map(digits),
      ),
      rungs.map((rung) => [rung.Arrived, rung.WentOn]),
      name,
    );
    assert.deepEqual(page.problems, [], name);
  }
});

test("the first screen shows what a tuning waits for, and why it ended", async () => {
  const expected = {
    waiting: ["now-card", /No job gets instances\. Since 1970-01-01/],
    capped: ["happened", /No other job fits the cost cap\./],
    failed: ["happened", /jobs? failed: exit code 3, cannot read <data>/],
    running: ["now-card", /at most 8 at a time/],
    empty: ["now-card", /4 trials, at most 4 at a time/],
  };
  for (const [name, [card, words]] of Object.entries(expected)) {
    assert.match(await text(await shared(name), card), words, name);
  }
});

test("the front of value against cost has a row for each of its trials, and names the best buy", async () => {
  const page = await shared("sized");
  const rows = await page.locator("#front:visible tbody tr").allTextContents();
  const { Front: front, BestBuy: buy } = states.sized.described.Controller;
  assert.equal(rows.length, front.length);
  const marked = rows.flatMap((row, index) => (row.includes("best buy, ") ? [front[index].Trial] : []));
  assert.deepEqual(marked, [buy.Trial]);
  assert.ok(rows[0].includes("100 %"), rows[0]);
});

test("a search over cluster sizes has a table of them, others have none", async () => {
  const rows = async (name) => (await shared(name)).locator("#sizes:visible tbody tr td").allTextContents();
  assert.deepEqual(await rows("ended"), []);
  const cells = await rows("sized");
  assert.equal(cells.length, 16);
  assert.deepEqual([cells[0], cells[8], cells[7]], ["1", "2", "1.00 x"]);
  const sizes = states.sized.described.Controller.ClusterSizes;
  assert.deepEqual([cells[1], cells[9]], sizes.map((size) => String(size.Trials)));
});

test("a tuning with several definitions has a table of them, and the definition of each trial", async () => {
  const page = await shared("several");
  assert.equal(await page.locator("#sizes-title").textContent(), "Training job definitions");
  const names = await page.locator("#sizes-table tr td:first-child").allTextContents();
  assert.deepEqual(names, ["one", "two"]);
  const head = await page.locator("#table-head th").allTextContents();
  assert.ok(head.some((title) => title.includes("TrainingJobDefinition")), head.join());
});

test("the chart of curves shows the rungs that trials can reach", async () => {
  const levels = async (url) => {
    const page = await open(browser, url);
    const label = await page.locator("#curves-chart").getAttribute("aria-label");
    await page.context().close();
    return label.match(/, rungs at (.*)$/)?.[1] ?? "none";
  };
  // A bracket of these 30 jobs begins at epoch 3, none at epoch 1.
  assert.equal(await levels(states.ended.url), "3, 6, 13");
  assert.equal(await levels(states.median.url), "none");
  for (const [min, max] of [
    [7, 19],
    [1, 2],
  ]) {
    const { url } = real.short(`short-${max}`, (body) => {
      const resource = { MinResource: min, MaxResource: max };
      body.HyperParameterTuningJobConfig.StrategyConfig.HyperbandStrategyConfig = resource;
      body.Controller.ReductionFactor = 3;
      body.TrainingJobDefinition.StaticHyperParameters.epochs = String(max);
    });
    assert.equal(await levels(url), "none", `${min} to ${max}`);
  }
  // A bracket without trials has no lines after the end.
  const unused = changed("unused", states.ended, ({ head }) => (head.brackets[0].TrialsStarted = 0));
  assert.equal(await levels(unused), "none");
});

test("every chart draws, and an empty tuning has none", async () => {
  for (const [name, { described }] of Object.entries(states)) {
    const page = await shared(name);
    const colours = await canvasColours(page);
    const parameters = (await documentOf(page)).head.parameters.length;
    const hasValues = described.Controller.BestSeen !== undefined;
    // Timeline and costs; with values, curves, progress, parallel coordinates and a scatter for each hyperparameter too.
    const expected = (hasValues ? 5 + parameters : 2) - (described.Controller.PriceUnknown ? 1 : 0);
    assert.equal(colours.length, expected, name);
    assert.ok(
      colours.every((count) => count > 3),
      `${name}: ${colours}`,
    );
    assert.equal(await page.locator("#curves-empty").isVisible(), !hasValues, name);
  }
});

test("no state has serious findings of axe-core, in light and dark, and at the width of a phone", async () => {
  for (const name of Object.keys(states)) {
    const page = await shared(name);
    for (const [colorScheme, width, height] of [
      ["light", 1400, 900],
      ["dark", 1400, 900],
      ["light", 360, 740],
    ]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height });
      await ready(page);
      assert.deepEqual(await seriousFindings(page), [], `${name}, ${colorScheme}, ${width}`);
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= room, `${name} is ${wide} wide at ${room}`);
    }
    assert.deepEqual(page.problems, [], name);
    await page.context().close();
    delete states[name].page;
  }
  // A page that is opened there draws first at that size and in these colours.
  const page = await open(browser, states.promoted.url, { dark: true, width: 360, height: 740 });
  assert.deepEqual(await seriousFindings(page), []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a document with every epoch opens", async () => {
  const page = await open(browser, simulated(120, 27, "--all-epochs"));
  assert.equal(await shownTrials(page), 120);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("hovering shows the configuration and the verdicts of a trial in all charts", async () => {
  const page = await open(browser, states.ended.url);
  const { head, trials } = await documentOf(page);
  const best = trials[head.best.trial];
  const area = await page.locator("#curves-chart .u-over").boundingBox();
  // The best trial has the last value of all, at the right edge.
  let shown = "";
  const x = area.x + area.width * 0.98;
  for (let y = area.y + 2; y < area.y + area.height && !shown; y += 4) {
    await page.mouse.move(x, y);
    if (await page.locator("#tooltip").isVisible()) shown = await page.locator("#tooltip").textContent();
  }
  assert.match(shown, new RegExp(`^trial ${best.number} complete, bracket ${best.bracket}`));
  assert.ok(shown.includes("learning_rate") && shown.includes(`at epoch ${best.epochs}`), shown);
  assert.match(shown, /rung 0 \(epoch \d+\): [\d.]+, rank \d+ of \d+, the best \d+ continue: continued/);
  const overlays = await page.evaluate(() =>
    [...document.querySelectorAll("canvas.over")].map((canvas) =>
      new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer).some(
        (pixel) => pixel !== 0,
      ),
    ),
  );
  // Curves, progress, timeline, one scatter and parallel coordinates; the chart of costs has no trials.
  assert.equal(overlays.filter(Boolean).length, 5, String(overlays));
  await page.mouse.down();
  await page.mouse.up();
  assert.equal(await text(page, "detail-title"), `Trial ${best.number}`);
  await page.context().close();
});

// Returns the tooltips of a chart over a column of pixels, at a share of its width.
async function tooltips(page, chart, share) {
  const area = await page.locator(`${chart} .u-over`).boundingBox();
  const found = new Set();
  for (let y = area.y + 2; y < area.y + area.height; y += 4) {
    await page.mouse.move(area.x + area.width * share, y);
    if (await page.locator("#tooltip").isVisible()) found.add(await page.locator("#tooltip").textContent());
  }
  return [...found];
}

test("the best value so far is shown over the trials and over time", async () => {
  const page = await open(browser, states.promoted.url);
  const { head, trials, money } = await documentOf(page);
  const chart = page.locator("#progress-chart");
  await chart.scrollIntoViewIfNeeded();
  const best = trials[head.bestSeen.trial];
  const finds = async (share, words) => {
    const found = await tooltips(page, "#progress-chart", share);
    assert.ok(
      found.some((shown) => shown.startsWith(`trial ${best.number} `) && shown.includes(words)),
      found.join("\n"),
    );
  };
  assert.match(await chart.getAttribute("aria-label"), /^Best value so far by trials: [\d.]+ after \d+ trials$/);
  await finds((best.number + 0.5) / trials.length, `best ${await text(page, "best-value")}`);
  await page.getByRole("button", { name: "time", exact: true }).click();
  assert.equal(await page.locator("#progress-by [data-by=time]").getAttribute("aria-pressed"), "true");
  assert.match(await chart.getAttribute("aria-label"), /^Best value so far by time: /);
  const end = Math.max(head.ended - head.created, money.at.at(-1), 1000);
  await finds(best.jobs.at(-1).ended / end, "at 0:");
  await page.context().close();
});

test("other metrics are a vertical axis, columns and a part of a trial", async () => {
  const withMetrics = (names) =>
    changed(`metrics-${names.length}`, states.promoted, ({ trials }) => {
      for (const trial of trials.slice(1))
        trial.metrics = Object.fromEntries(names.map((name, i) => [name, trial.number + i / 10]));
    });
  const page = await open(browser, withMetrics(["loss", "recall"]));
  const { head, trials } = await documentOf(page);
  const chart = page.locator("#scatter-body .chart").first();
  const label = (metric) => chart.getAttribute("aria-label").then((text) => text.startsWith(`${metric} by `));
  assert.ok(await label(head.metric));
  const picture = () => page.evaluate(() => document.querySelector("#scatter-body canvas").toDataURL());
  const first = await picture();
  await page.getByLabel("Vertical axis").selectOption("recall");
  assert.ok(await label("recall"));
  assert.notEqual(await picture(), first);
  assert.deepEqual(await seriousFindings(page), []);
  await page.getByLabel("Vertical axis").selectOption({ index: 0 });
  assert.equal(await picture(), first);

  await page.locator("#table-head").getByRole("button", { name: "recall" }).click();
  // Trials without a metric come last.
  const row = (place) => page.locator("#table-body tr").nth(place).getAttribute("data-trial");
  assert.deepEqual([await row(0), await row(-1)], ["1", "0"]);
  const rows = JSON.parse(await saved(page, "JSON"));
  assert.deepEqual(rows[0].metrics, { loss: 1, recall: 1.1 });
  assert.match(await saved(page, "CSV"), /^trial,bracket,outcome,epochs,best,best_epoch,last,loss,recall,/);
  await page.locator("#table-body tr").first().getByRole("button", { name: "1", exact: true }).click();
  assert.match(await text(page, "detail-body"), /Last values of other metricsloss1recall1\.1Hyperparameters/);
  assert.deepEqual(page.problems, []);
  await page.context().close();

  // Many metrics would make the table too wide, and a long name the choice.
  const many = await open(browser, withMetrics(["a1", "a2", "a3", "a".repeat(64)]), { width: 360, height: 740 });
  assert.ok(await many.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  assert.equal(await many.locator("#table-head").getByRole("button", { name: "a1" }).count(), 0);
  assert.equal(await many.locator("#scatter-y option").count(), 5);
  assert.equal(trials.length, await many.locator("#table-body tr").count());
  await many.context().close();
});

test("a far outlier flattens no chart, and is marked at the edge", async () => {
  const range = async (bad) => {
    const url = changed(`outlier-${bad}`, states.promoted, ({ trials, head }) => {
      const worst = trials.find((trial) => trial.number !== head.best.trial && trial.curve.values.length > 0);
      const far = head.objective === "Maximize" ? -bad : bad;
      [worst.curve.values[0], worst.best, worst.metrics] = [far, far, { loss: bad }];
      for (const trial of trials) trial.metrics ??= { loss: trial.number };
    });
    const page = await open(browser, url);
    await page.getByLabel("Vertical axis").selectOption("loss");
    const notes = [];
    for (const chart of ["curves", "progress", "scatter"]) notes.push(await text(page, `${chart}-clipped`));
    const picture = await page.evaluate(() => document.querySelector("#curves-chart canvas").toDataURL());
    assert.deepEqual(page.problems, []);
    await page.context().close();
    return [notes, picture];
  };
  // The same picture for each distance, so the outlier has no part in the range.
  const [notes, picture] = await range(1e9);
  assert.deepEqual(notes, Array(3).fill("1 value outside the axis: clipped to its edge, with a triangle."));
  assert.deepEqual(await range(1e6), [notes, picture]);
});

test("trials with one category do not cover each other", async () => {
  const url = changed("jitter", states.promoted, ({ trials, head }) => {
    head.parameters.push({ name: "optimizer", type: "categorical", values: ["adam", "sgd"] });
    for (const trial of trials) {
      trial.values.push("sgd");
      trial.best = 0.5;
    }
  });
  const read = async () => {
    const page = await open(browser, url);
    const { trials } = await documentOf(page);
    const plot = page.locator("#scatter-body .chart[aria-label$=' by optimizer'] .u-over");
    await plot.scrollIntoViewIfNeeded();
    // All trials have the same value, so they are in one row.
    const area = await plot.boundingBox();
    const places = new Map();
    // The second of two categories has the right half.
    for (let x = Math.ceil(area.width / 2); x < area.width; x++) {
      await page.mouse.move(area.x + x, area.y + area.height / 2);
      if (!(await page.locator("#tooltip").isVisible())) continue;
      const shown = await page.locator("#tooltip").textContent();
      assert.match(shown, /optimizer = sgd/);
      const number = shown.match(/^trial (\d+)/)[1];
      if (!places.has(number)) places.set(number, x);
    }
    assert.equal(places.size, trials.length);
    await page.context().close();
    return [...places];
  };
  assert.deepEqual(await read(), await read());
});

test("dragging zooms a chart, and a button shows all again", async () => {
  const page = await open(browser, states.ended.url);
  const picture = () => page.evaluate(() => document.querySelector("#curves-chart canvas").toDataURL());
  const first = await picture();
  const area = await page.locator("#curves-chart .u-over").boundingBox();
  // Both axes, and the horizontal one alone.
  for (const height of [150, 0]) {
    await page.mouse.move(area.x + 50, area.y + 50);
    await page.mouse.down();
    await page.mouse.move(area.x + 300, area.y + 50 + height, { steps: 4 });
    await page.mouse.up();
    assert.ok((await picture()) !== first, `${height}`);
    await page.locator("#curves-home").click();
    assert.ok((await picture()) === first, `${height}`);
  }
  await page.context().close();
});

test("the filter, the brush, sorting and pages change charts and table", async () => {
  const page = await open(browser, states.large.url);
  const { trials, head } = await documentOf(page);
  const counts = (outcome) => trials.filter((trial) => trial.outcome === outcome).length;
  assert.equal(await shownTrials(page), trials.length);
  await page.getByRole("button", { name: /^stopped at a rung/ }).click();
  assert.equal(await shownTrials(page), trials.length - counts("stopped"));
  await page.getByRole("button", { name: "Show all" }).click();
  assert.equal(await shownTrials(page), trials.length);
  await page.selectOption("#bracket", "1");
  assert.equal(await shownTrials(page), trials.filter((trial) => trial.bracket === 1).length);
  await page.getByRole("button", { name: "Show all" }).click();
  await page.fill("#search", "batch_size=16 complete");
  const index = head.parameters.findIndex((parameter) => parameter.name === "batch_size");
  const some = trials.filter((trial) => trial.values[index] === "16" && trial.outcome === "complete").length;
  await page.waitForFunction(
    (some) => document.getElementById("filter-count").textContent.startsWith(`${some} of`),
    some,
  );
  await page.getByRole("button", { name: "Show all" }).click();

  await page.locator("#parallel-chart").scrollIntoViewIfNeeded();
  const host = await page.locator("#parallel-chart").boundingBox();
  // The last axis is the objective. A brush over its upper half keeps the better trials.
  const x = host.x + host.width - 46;
  await page.mouse.move(x, host.y + 30);
  await page.mouse.down();
  await page.mouse.move(x, host.y + 160, { steps: 5 });
  await page.mouse.up();
  const brushed = await shownTrials(page);
  assert.ok(brushed > 0 && brushed < trials.length, String(brushed));
  const values = await page.locator("#table-body td:nth-child(2)").allTextContents();
  assert.ok(
    values.every((value) => Number(value) > 0.3),
    String(values),
  );
  await page.getByRole("button", { name: "Clear ranges" }).click();
  assert.equal(await shownTrials(page), trials.length);
  await page.getByText("Ranges as fields", { exact: true }).click();
  await page.getByLabel("learning_rate, from").fill("0.1");
  await page.getByLabel("learning_rate, from").press("Enter");
  const rate = head.parameters.findIndex((parameter) => parameter.name === "learning_rate");
  assert.equal(await shownTrials(page), trials.filter((trial) => Number(trial.values[rate]) >= 0.1).length);
  await page.getByRole("button", { name: "Clear ranges" }).click();
  const kind = head.parameters.findIndex((parameter) => parameter.type === "categorical");
  const [name, value] = [head.parameters[kind].name, head.parameters[kind].values[1]];
  await page.getByLabel(name, { exact: true }).selectOption({ label: value });
  assert.equal(await shownTrials(page), trials.filter((trial) => trial.values[kind] === value).length);
  await page.getByLabel(name, { exact: true }).selectOption({ label: "all" });
  assert.equal(await shownTrials(page), trials.length);

  await page.locator("#table-head").getByRole("button", { name: "epochs" }).click();
  assert.equal(await page.locator("#table-head th[aria-sort]").getAttribute("aria-sort"), "ascending");
  const first = Number(await page.locator("#table-body tr:first-child td:nth-child(4)").textContent());
  assert.equal(first, Math.min(...trials.map((trial) => trial.epochs)));
  await page.getByRole("button", { name: "Next" }).click();
  assert.equal(await text(page, "page-text"), "51 to 100 of 1,000");
  await page.context().close();
});

test("downloads have the shown trials with whole values", async () => {
  const page = await open(browser, states.ended.url);
  const { trials, head } = await documentOf(page);
  const rows = JSON.parse(await saved(page, "JSON"));
  assert.equal(rows.length, trials.length);
  for (const row of rows) {
    const trial = trials[row.trial];
    assert.deepEqual(
      [row.best, row.last, row.epochs, row.hyperparameters.learning_rate],
      [trial.best, trial.last, trial.epochs, trial.values[0]],
    );
  }
  const cost = rows.reduce((sum, row) => sum + row.cost_usd * 1e6, 0);
  assert.equal(Math.round(cost), head.spent);
  const lines = (await saved(page, "CSV")).trim().split("\r\n");
  assert.equal(lines.length, trials.length + 1);
  assert.equal(
    lines[0],
    "trial,bracket,outcome,epochs,best,best_epoch,last,learning_rate,jobs,billed_seconds,cost_usd,why",
  );
  await page.context().close();
});

test("the keyboard moves between trials, opens one and closes it", async () => {
  const page = await open(browser, states.promoted.url);
  await page.locator("#curves-chart").focus();
  await page.keyboard.press("ArrowDown");
  assert.match(await text(page, "spoken"), /^trial \d+, .* rank 1 of \d+/);
  await page.keyboard.press("ArrowDown");
  assert.match(await text(page, "spoken"), /rank 2 of \d+/);
  const trial = (await text(page, "spoken")).match(/^trial (\d+)/)[1];
  await page.keyboard.press("Enter");
  assert.equal(await text(page, "detail-title"), `Trial ${trial}`);
  assert.match(await text(page, "detail-body"), /Hyperparameters.*Jobs.*Decisions/s);
  assert.deepEqual(await seriousFindings(page), []);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#detail").isVisible(), false);
  await page.context().close();
});

test("the costs are a table too, whose last row is that of the end", async () => {
  const page = await open(browser, states.capped.url);
  const { head, money } = await documentOf(page);
  await page.getByText("Costs as a table").focus();
  await page.keyboard.press("Enter");
  await page.locator("#money-table tr").first().waitFor();
  const cells = (row) => page.locator("#money-table tr").nth(row).locator("td").allTextContents();
  assert.ok((await page.locator("#money-table tr").count()) <= Math.min(money.at.length, 40));
  assert.equal(digits((await cells(0))[1]), 0);
  const last = (await cells(-1)).slice(1).map(digits);
  assert.deepEqual(
    last.map((dollars) => dollars.toFixed(4)),
    [head.spent, head.reserved, head.cap].map((micros) => (micros / 1e6).toFixed(4)),
  );
  assert.deepEqual(await seriousFindings(page), []);
  await page.context().close();
});

test("the best configuration is shown as JSON, arguments and Python", async () => {
  const page = await open(browser, states.ended.url);
  const { described } = states.ended;
  const rate = described.BestTrainingJob.TunedHyperParameters.learning_rate;
  assert.deepEqual(JSON.parse(await text(page, "best-text")), described.BestTrainingJob.TunedHyperParameters);
  await page.getByRole("button", { name: "CLI" }).click();
  assert.equal(await text(page, "best-text"), `--learning_rate ${rate}`);
  await page.getByRole("button", { name: "Python" }).click();
  assert.equal(await text(page, "best-text"), `hyperparameters = {\n    "learning_rate": ${rate},\n}`);
  await page.context().close();
});

test("importance is the same at each opening, and finds what the objective depends on", async () => {
  const read = async () => {
    const page = await open(browser, states.large.url);
    await page.locator("#importance-body tbody tr").first().waitFor();
    const rows = await page.locator("#importance-body tbody tr").allTextContents();
    await page.context().close();
    return rows;
  };
  const rows = await read();
  assert.match(rows[0], /^learning_rate[\d.]+ %$/);
  assert.deepEqual(await read(), rows);
});

test("the epoch of a best value is shown only where the curve has the value", async () => {
  // These curves are thinned, so some best values are not on them.
  const page = await open(browser, simulated(24, 400));
  const { trials } = await documentOf(page);
  const rows = JSON.parse(await saved(page, "JSON"));
  let omitted = 0;
  for (const { trial, best, best_epoch: epoch } of rows) {
    const { epochs, values } = trials[trial].curve;
    assert.ok(!epochs || epochs.length <= 202);
    if (epoch === null) omitted++;
    else assert.ok(Math.abs(values[epochs ? epochs.indexOf(epoch) : epoch - 1] - best) <= 1e-6 * Math.abs(best));
  }
  assert.ok(omitted > 0 && omitted < rows.length, `${omitted} of ${rows.length}`);
  await page.context().close();
});

test("the costs of the trials add up to the spent amount, with kept instances too", async () => {
  const page = await open(browser, states.pools.url);
  const { trials, head } = await documentOf(page);
  const costs = trials.flatMap((trial) => trial.jobs.map((job) => job.cost ?? 0));
  assert.equal(
    costs.reduce((sum, cost) => sum + cost, 0),
    head.spent,
  );
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("text of a user is never markup", async () => {
  const page = await open(browser, states.hostile.url);
  assert.ok((await page.locator("#table-body").textContent()).includes(real.MARKUP));
  assert.equal(await page.locator("img").count(), 0);
  // A spreadsheet must not take a value for a formula.
  const csv = await saved(page, "CSV");
  for (const value of ["'=1+1", '"a,""b"', real.MARKUP]) assert.ok(csv.includes(`,${value},`), csv);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("print shows the content without controls", async () => {
  const page = await open(browser, states.ended.url, { dark: true });
  // The printer lays the page out again at the width of the paper.
  await page.evaluate(() =>
    addEventListener("beforeprint", () => {
      window.printed = [...document.querySelectorAll(".chart, .parallel")]
        .filter((host) => host.offsetParent)
        .map((host) => [
          host.querySelector("canvas").getBoundingClientRect().right,
          getComputedStyle(document.body).backgroundColor,
        ]);
    }),
  );
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("#filter").isVisible(), false);
  assert.equal(await page.locator("#curves-home").isVisible(), false);
  const paper = await page.pdf({ format: "A4", printBackground: true });
  assert.ok(paper.length > 20_000);
  const printed = await page.evaluate(() => window.printed);
  assert.ok(
    printed.length > 4 && printed.every(([right, colour]) => right <= 700 && colour === "rgb(255, 255, 255)"),
    JSON.stringify(printed),
  );
  await page.context().close();
});

test("a live page follows its stream, shows a lost connection, and starts again with a document", async () => {
  const events = simulate(120, 27, "--events", 4)
    .split("\n\n")
    .filter(Boolean)
    .map((event) => `${event}\n\n`);
  const clients = [];
  let [accepts, answers] = [true, true];
  const server = createServer((request, response) => {
    if (request.url !== "/events") {
      response.writeHead(200, { "content-type": "text/html" }).end(simulate(120, 27, "--live", "/events"));
    } else if (request.headers.accept === "application/json") {
      response.writeHead(accepts ? 204 : 503).end(accepts ? "" : '{"message":"16 pages are open"}');
    } else if (accepts) {
      // `retry` is the time until the browser connects again, in milliseconds.
      response.writeHead(200, { "content-type": "text/event-stream" }).write(`retry: 50\n\n${events[0]}`);
      clients.push(response);
    } else if (answers) {
      response.writeHead(503).end();
    } else {
      request.socket.destroy();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${server.address().port}/`;
  try {
    const page = await open(browser, url);
    page.problems.length = 0;
    const steps = events.map((event) => JSON.parse(event.slice(event.indexOf("data: ") + 6)).head.step);
    const at = (step) => page.waitForFunction((step) => document.documentElement.dataset.ready === String(step), step);
    await at(steps[0]);
    assert.equal(await text(page, "connection"), "live");
    // A reader keeps the place: the focus and an open list of a rung.
    await page.locator("#brackets summary").first().click();
    await page.locator("#table-body tr").nth(3).getByRole("button").focus();
    const focused = await page.evaluate(() => document.activeElement.dataset.key);
    assert.match(focused, /^row-\d+$/);
    clients[0].write(events[1]);
    await at(steps[1]);
    assert.equal(await page.evaluate(() => document.activeElement.dataset.key), focused);
    assert.equal((await page.locator("#brackets details[open] tbody tr").count()) > 0, true);
    // A lost event: the page asks for the whole document.
    clients[0].write(events[3]);
    while (clients.length < 2) await page.evaluate(() => new Promise(requestAnimationFrame));
    await at(steps[0]);
    // The browser connects again after a lost connection, but not after an error response. Then the page does.
    for (const [client, responds] of [
      [1, false],
      [2, true],
    ]) {
      [accepts, answers] = [false, responds];
      clients[client].destroy();
      await page.getByText(responds ? "16 pages are open" : "connection lost, reconnecting").waitFor();
      accepts = true;
      while (clients.length < client + 2) await page.evaluate(() => new Promise(requestAnimationFrame));
      await page.waitForFunction(() => document.getElementById("connection").textContent === "live");
    }
    for (const event of events.slice(1, -1)) clients[3].write(event);
    const booking = JSON.parse(events.at(-1).slice(events.at(-1).indexOf("data: ") + 6));
    booking.head.reserved = 1;
    clients[3].write(`event: delta\ndata: ${JSON.stringify(booking)}\n\n`);
    await at(steps.at(-1));
    await page.waitForFunction(() => document.getElementById("connection").textContent === "live");
    const described = JSON.parse(simulate(120, 27, "--describe"));
    assert.equal(await text(page, "status"), described.HyperParameterTuningJobStatus);
    assert.equal(digits(await text(page, "spent")), Number(described.Controller.SpentUsd.toFixed(4)));
    assert.ok((await canvasColours(page)).every((count) => count > 3));
    // Bills are booked after the end, so the page connects again.
    clients[3].end();
    while (clients.length < 5) await page.evaluate(() => new Promise(requestAnimationFrame));
    await at(steps[0]);
    for (const event of events.slice(1)) clients[4].write(event);
    await at(steps.at(-1));
    // A tuning that has ended needs no connection any more.
    const closed = once(clients[4], "close");
    clients[4].end();
    await closed;
    await page.waitForFunction(() => document.getElementById("connection").textContent === "ended");
    await page.context().close();
    const running = await open(browser, url);
    await running.waitForFunction(() => document.getElementById("connection").textContent === "live");
    // A browser has six connections to one server. Pages in the background leave them to others.
    const hide = (hidden) =>
      running.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    const left = once(clients[5], "close");
    await hide(true);
    await left;
    await hide(false);
    while (clients.length < 7) await running.evaluate(() => new Promise(requestAnimationFrame));
    await running.context().close();
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("a report names the command that prints the log of a trial", async () => {
  const report = await open(browser, states.failed.url);
  await report.locator("#table-body tr").first().getByRole("button").first().click();
  assert.match(await text(report, "job-log-command"), /^hyperband logs failed \d+ prints the log\.$/);
  assert.equal(await report.locator("#job-log").isVisible(), false);
  assert.deepEqual(report.problems, []);
  await report.context().close();
});

// A benchmark: the longest of these documents takes the simulation ten seconds.
const skip = !process.env.PAGE_TIMES && "PAGE_TIMES=1 prints the times";
test("times to open large tunings", { skip }, async (context) => {
  for (const args of [
    [1000, 81],
    [1000, 81, "--all-epochs"],
    [10000, 81],
    [10000, 81, "--all-epochs"],
  ]) {
    const url = simulated(...args);
    const times = [];
    for (let run = 0; run < 3; run++) {
      const page = await open(browser, url);
      times.push(Math.round(await page.evaluate(() => performance.now())));
      assert.deepEqual(page.problems, []);
      await page.context().close();
    }
    const megabytes = (simulate(...args).length / 1e6).toFixed(1);
    context.diagnostic(
      `${args.join(" ")}: ${megabytes} MB, opened and drawn in ${times.sort((a, b) => a - b)[1]} ms (median of 3)`,
    );
  }
});
