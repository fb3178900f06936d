// The list of tunings. Text of a tuning becomes text nodes only.

const part = (id) => document.getElementById(id);

function showList({ rows, note }) {
  const cell = (text) => {
    const made = document.createElement("td");
    made.textContent = text;
    return made;
  };
  const made = rows.map(([address, first, others]) => {
    const link = document.createElement("a");
    link.href = address;
    link.textContent = first;
    const row = document.createElement("tr");
    const head = document.createElement("td");
    head.append(link);
    row.append(head, ...others.map(cell));
    return row;
  });
  const focused = document.activeElement?.getAttribute("href");
  part("rows").replaceChildren(...made);
  if (focused) [...part("rows").querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  part("table").hidden = rows.length === 0;
  part("empty").hidden = rows.length > 0;
  part("note").textContent = note;
}

keepConnected(document.querySelector("meta[name=event-stream]").content, { list: showList }, () => false);
