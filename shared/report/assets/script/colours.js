// Colours of charts, read from the style, so that the style has each theme once.

const palette = {};
const COLOURS = [
  "text",
  "muted",
  "line",
  "panel",
  "bg",
  "accent",
  "spent",
  "reserved",
  "cap",
  "waits",
  "startup",
  "train",
  "interrupted",
  "ending",
  ...OUTCOMES.map(([outcome]) => outcome),
];

function readPalette() {
  const probe = el("span", { class: "unseen" });
  document.body.append(probe);
  for (const name of COLOURS) {
    probe.style.color = `var(--${name})`;
    palette[name] = getComputedStyle(probe).color;
  }
  probe.remove();
}

const THEMES = ["system", "light", "dark"];

function readTheme() {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem("hyperband-theme")) ?? "system";
  } catch {
    // A sandboxed page has no storage.
    return "system";
  }
}

function setTheme(theme) {
  if (theme === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme);
  readPalette();
}

function initTheme() {
  const choice = byId("theme");
  choice.value = readTheme();
  setTheme(choice.value);
  const redraw = () => {
    setTheme(choice.value);
    if (model.head) publish("data");
  };
  choice.addEventListener("change", () => {
    try {
      localStorage.setItem("hyperband-theme", choice.value);
    } catch {
      // The choice then lasts as long as the page.
    }
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is light and narrow.
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    setTheme("light");
    if (model.head) publish("data");
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    redraw();
  });
}

// Returns the colour of a trial.
function colourOf(trial) {
  return palette[trial.outcome];
}

// Returns the dashes of the line of a trial: a failed trial differs from a stopped one by more than its grey.
function dashesOf(trial, ratio) {
  return trial.outcome === "failed" ? [5 * ratio, 3 * ratio] : [];
}

// Returns a computed colour, `rgb(r, g, b)`, with an opacity.
function faded(colour, opacity) {
  return colour.replace("rgb(", "rgba(").replace(")", `, ${opacity})`);
}
