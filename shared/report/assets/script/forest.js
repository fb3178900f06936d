// Importance of hyperparameters by a random forest: L. Breiman, "Random Forests", Machine Learning 45 (2001), 5-32. Trees
// of section 3.1 with regression splits (section 11), and the permutation importance of section 10 with out-of-bag cases.
//
// The objective of a stopped trial is lower because it trained less. So the trained epochs are one more input of the
// forest, and each hyperparameter counts by its effect beside them.

const TREES = 60;
const DEPTH_MAX = 10;
const LEAF_MIN = 3;
// More trials are sampled evenly, so that the time is bounded.
const CASES_MAX = 800;
const SPLITS_TRIED = 12;

// A small generator with a fixed seed (mulberry32), so that the same trials give the same importance.
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

// Returns the inputs and the objective of at most `CASES_MAX` trials.
function cases() {
  const trials = model.ranked.slice().sort((a, b) => a.number - b.number);
  const step = Math.max(1, trials.length / CASES_MAX);
  const inputs = [];
  const targets = [];
  for (let i = 0; i < trials.length; i += step) {
    const trial = trials[Math.floor(i)];
    const row = model.head.parameters.map((parameter, index) => {
      const value = numeric(trial, index);
      return parameter.scaling === "logarithmic" && value > 0 ? Math.log(value) : (value ?? 0);
    });
    row.push(Math.log(Math.max(1, trial.epochs)));
    inputs.push(row);
    targets.push(trial.best);
  }
  return { inputs, targets };
}

function mean(rows, targets) {
  let sum = 0;
  for (const row of rows) sum += targets[row];
  return sum / rows.length;
}

// Returns the split of `rows` at `feature` that leaves the least squared error, among some random thresholds.
function split(rows, feature, inputs, targets, random) {
  let found = null;
  let total = 0;
  for (const row of rows) total += targets[row];
  for (let i = 0; i < SPLITS_TRIED; i++) {
    const one = inputs[rows[Math.floor(random() * rows.length)]][feature];
    const other = inputs[rows[Math.floor(random() * rows.length)]][feature];
    if (one === other) continue;
    const threshold = (one + other) / 2;
    let [n, sum] = [0, 0];
    for (const row of rows) {
      if (inputs[row][feature] <= threshold) {
        n++;
        sum += targets[row];
      }
    }
    if (n < LEAF_MIN || rows.length - n < LEAF_MIN) continue;
    // The squared error falls by as much as this sum grows.
    const score = (sum * sum) / n + (total - sum) ** 2 / (rows.length - n);
    if (!found || score > found.score) found = { feature, threshold, score };
  }
  return found;
}

function grow(rows, depth, inputs, targets, random) {
  const leaf = { value: mean(rows, targets) };
  if (depth === 0 || rows.length < 2 * LEAF_MIN) return leaf;
  const features = inputs[0].length;
  const tried = Math.max(1, Math.ceil(features / 2));
  let best = null;
  for (let i = 0; i < tried; i++) {
    const found = split(rows, Math.floor(random() * features), inputs, targets, random);
    if (found && (!best || found.score > best.score)) best = found;
  }
  if (!best) return leaf;
  const isLow = (row) => inputs[row][best.feature] <= best.threshold;
  return {
    feature: best.feature,
    threshold: best.threshold,
    low: grow(rows.filter(isLow), depth - 1, inputs, targets, random),
    high: grow(
      rows.filter((row) => !isLow(row)),
      depth - 1,
      inputs,
      targets,
      random,
    ),
  };
}

// Predicts a case, with the value of one feature replaced.
function predict(tree, input, feature, replaced) {
  let node = tree;
  while (node.feature !== undefined) {
    const value = node.feature === feature ? replaced : input[node.feature];
    node = value <= node.threshold ? node.low : node.high;
  }
  return node.value;
}

// Grows the forest tree by tree. Each call of `next` adds one tree and returns whether more follow.
function createForest() {
  const { inputs, targets } = cases();
  const random = generator(1);
  const size = inputs.length;
  const features = size ? inputs[0].length : 0;
  const rise = new Array(features).fill(0);
  const sums = new Float64Array(size);
  const votes = new Uint32Array(size);
  let trees = 0;
  return {
    size,
    next() {
      const chosen = Array.from({ length: size }, () => Math.floor(random() * size));
      const inBag = new Uint8Array(size);
      for (const row of chosen) inBag[row] = 1;
      const tree = grow(chosen, DEPTH_MAX, inputs, targets, random);
      const outside = [...inputs.keys()].filter((row) => !inBag[row]);
      if (outside.length > 1) {
        let error = 0;
        for (const row of outside) {
          const value = predict(tree, inputs[row]);
          sums[row] += value;
          votes[row]++;
          error += (value - targets[row]) ** 2;
        }
        for (let feature = 0; feature < features; feature++) {
          const order = outside.slice();
          for (let i = order.length - 1; i > 0; i--) {
            const j = Math.floor(random() * (i + 1));
            [order[i], order[j]] = [order[j], order[i]];
          }
          let permuted = 0;
          outside.forEach((row, i) => {
            permuted += (predict(tree, inputs[row], feature, inputs[order[i]][feature]) - targets[row]) ** 2;
          });
          rise[feature] += (permuted - error) / outside.length;
        }
      }
      return ++trees < TREES;
    },
    // Returns the shares of importance, and how much of the variance the forest explains.
    result() {
      const positive = rise.map((value) => Math.max(0, value));
      const sum = positive.slice(0, -1).reduce((all, value) => all + value, 0);
      const average = targets.reduce((all, value) => all + value, 0) / size;
      let [error, variance] = [0, 0];
      for (let row = 0; row < size; row++) {
        if (!votes[row]) continue;
        error += (sums[row] / votes[row] - targets[row]) ** 2;
        variance += (targets[row] - average) ** 2;
      }
      return {
        parameters: positive.slice(0, -1).map((value) => (sum > 0 ? value / sum : 0)),
        epochs: positive[features - 1] > sum,
        explained: variance > 0 ? Math.max(0, 1 - error / variance) : 0,
        size,
      };
    },
  };
}
