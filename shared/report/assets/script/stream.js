// A live page: the events of its tuning. The browser connects again by itself, and a new document replaces everything.

function follow(url) {
  byId("all").hidden = false;
  const own = new URL(url, location).pathname.replace(/\/events$/, "");
  initControls(own);
  initCompare(own.replace(/\/[^/]*$/, ""));
  const listen = {
    document: (data) => {
      loadDocument(data);
      publish("data");
    },
    delta: (data) => {
      const before = model.head?.step;
      if (extendDocument(data)) changed();
      // An event was lost.
      else return before === undefined;
      return true;
    },
  };
  // Bills are booked after the end.
  keepConnected(url, listen, () => model.head !== null && model.head.ended !== null && !model.head.reserved);
}

// Draws at most twice a second.
let drawn = 0;
let planned = false;
function changed() {
  if (planned) return;
  planned = true;
  setTimeout(
    () => {
      planned = false;
      drawn = performance.now();
      publish("data");
    },
    Math.max(0, 500 - (performance.now() - drawn)),
  );
}
