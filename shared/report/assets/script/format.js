// Numbers, amounts and times as text.

// Returns a number with up to six significant digits, as the command line shows it.
function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  const size = Math.abs(value);
  if (value === 0 || !Number.isFinite(value)) return String(value);
  if (size < 1e-4 || size >= 1e9) return value.toExponential(4);
  const places = size < 1 ? 6 : Math.max(0, 5 - Math.floor(Math.log10(size)));
  const text = value.toFixed(places);
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

// Returns a number for an axis, with at most six digits.
function tick(value) {
  return value === null || value === undefined ? "" : number(Number(value.toPrecision(6)));
}

function count(value) {
  return value.toLocaleString("en-US");
}

// Returns "1 trial" or "2 trials".
function counted(value, word) {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}

// Returns micro-dollars as dollars: four decimals, and all six below a cent.
function dollars(micro) {
  if (micro === null || micro === undefined) return "-";
  const value = micro / 1e6;
  const places = micro > 0 && micro < 1e4 ? 6 : value >= 1000 ? 2 : 4;
  return "$" + value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
}

function dollarTick(value) {
  if (value === 0) return "$0";
  return "$" + (Math.abs(value) >= 1 ? count(Number(value.toPrecision(6))) : String(Number(value.toPrecision(3))));
}

function percent(share) {
  if (!Number.isFinite(share)) return "-";
  const value = share * 100;
  const size = Math.abs(value);
  if (size > 0 && size < 1) return `${Number(value.toPrecision(2))} %`;
  return `${size !== 0 && size < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

function duration(ms) {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  const [days, hours, minutes] = [
    Math.floor(seconds / 86400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  if (minutes > 0) return `${minutes} min ${seconds % 60} s`;
  return `${seconds} s`;
}

// Returns a time since the submission as m:ss or h:mm:ss.
function clock(ms) {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const two = (value) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

// Returns a time of an axis: with decimals of a second where the axis is shorter than a few seconds.
function clockTick(seconds) {
  const rest = Math.round((seconds % 1) * 100) / 100;
  return rest === 0 ? clock(seconds * 1000) : clock(seconds * 1000) + String(rest).slice(1);
}

function utc(ms) {
  return new Date(ms).toISOString().slice(0, 16).replace("T", " ") + " UTC";
}

// Returns the value of a hyperparameter: numbers with six digits.
function setting(text) {
  if (text === null || text === undefined) return "-";
  const value = Number(text);
  return text.trim() !== "" && Number.isFinite(value) ? number(value) : text;
}
