// Elements. Text of a tuning becomes text nodes only, so it never becomes markup.

const SVG = "http" + "://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, entry] of Object.entries(value)) node.style.setProperty(key, entry);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Returns an element with attributes, listeners (`onclick`) and children.
function el(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function byId(id) {
  return document.getElementById(id);
}

// Replaces the children of an element. Keeps the focus, open details and scroll positions of elements with the same key.
function put(host, ...children) {
  const keyed = (selector) => [...host.querySelectorAll(selector)].filter((node) => node.dataset.key);
  const focused = host.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const open = new Set(keyed("details[open]").map((node) => node.dataset.key));
  const scrolled = new Map(keyed(".wide").map((node) => [node.dataset.key, node.scrollTop]));
  host.replaceChildren(...children.flat(Infinity).filter(Boolean));
  for (const node of keyed("details")) if (open.has(node.dataset.key)) node.open = true;
  for (const node of keyed(".wide")) node.scrollTop = scrolled.get(node.dataset.key) ?? 0;
  if (focused)
    keyed("[data-key]")
      .find((node) => node.dataset.key === focused)
      ?.focus();
}

// Returns a button that shows a trial. `where` makes its key unique in its list.
function trialLink(number_, label, where) {
  return el(
    "button",
    { class: "link", type: "button", "data-key": `${where}-${number_}`, onclick: () => showTrial(number_) },
    label ?? `trial ${number_}`,
  );
}

// Has a screen reader speak a text.
function announce(text) {
  byId("spoken").textContent = text;
}

// Runs a function once, before the next frame, however often it is called.
function atNextFrame(run) {
  let waits = false;
  return () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      run();
    });
  };
}

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

async function copy(text, button) {
  const label = button.textContent;
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page without permission copies the selection.
    const area = el("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  button.textContent = done ? "Copied" : "Not copied";
  announce(button.textContent);
  setTimeout(() => (button.textContent = label), 1500);
}
