// A live page: the events of its tuning. The browser connects again by itself, and a new document replaces everything.

function follow(url) {
  const note = byId("connection");
  const show = (text, state) => {
    if (note.textContent !== text) note.textContent = text;
    note.hidden = false;
    note.className = `connection ${state}`;
  };
  show("connecting", "waits");
  let source = null;
  const connect = () => {
    source?.close();
    source = new EventSource(url);
    source.addEventListener("document", (event) => {
      show("live", "live");
      loadDocument(JSON.parse(event.data));
      publish("data");
    });
    source.addEventListener("delta", (event) => {
      show("live", "live");
      const before = model.head?.step;
      if (extendDocument(JSON.parse(event.data))) changed();
      // An event was lost: a new connection begins with the whole document.
      else if (before !== undefined) connect();
    });
    source.addEventListener("open", () => show("live", "live"));
    source.addEventListener("error", () => {
      if (model.head && model.head.ended !== null) {
        source.close();
        show("ended", "ended");
        return;
      }
      show("connection lost, reconnecting", "lost");
      // The browser gives up after an error response.
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
    });
  };
  connect();
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
