// A connection to a stream of events, while the page is visible. A browser has few connections to one server.

// `listen` maps names of events to their listeners. `over` returns whether nothing follows when the stream ends.
function keepConnected(url, listen, over) {
  const note = document.getElementById("connection");
  const show = (text, state) => {
    if (note.textContent !== text) note.textContent = text;
    note.hidden = false;
    note.className = `connection ${state}`;
  };
  let source = null;
  let retry = null;
  const close = () => {
    clearTimeout(retry);
    source?.close();
    source = null;
  };
  const connect = () => {
    close();
    source = new EventSource(url);
    for (const [name, run] of Object.entries(listen)) {
      source.addEventListener(name, (event) => {
        show("live", "live");
        // The listener could not follow: a new connection begins with everything.
        if (run(JSON.parse(event.data)) === false) connect();
      });
    }
    source.addEventListener("open", () => show("live", "live"));
    source.addEventListener("error", () => {
      if (over()) {
        close();
        show("ended", "ended");
        return;
      }
      // The browser connects again by itself, but not after an error response.
      if (source.readyState !== EventSource.CLOSED) {
        show("connection lost, reconnecting", "lost");
        return;
      }
      const refused = source;
      retry = setTimeout(connect, 3000);
      // A later connection has its own state.
      reason(url).then((why) => source === refused && show(why ?? "connection lost, reconnecting", "lost"));
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else if (!over()) connect();
  });
  show("connecting", "waits");
  if (!document.hidden) connect();
}

// Returns why the server refuses the stream, `null` if it does not.
async function reason(url) {
  try {
    const answer = await fetch(url, { headers: { accept: "application/json" } });
    return answer.ok ? null : (await answer.json()).message;
  } catch {
    return null;
  }
}
