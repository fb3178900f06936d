// A server of this machine with tunings.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

// Runs `use(url, submit, end)` with a `hyperband serve` that trains with `command`.
export async function serving(command, options, use) {
  const home = mkdtempSync(join(tmpdir(), "hyperband-serve-"));
  const words = ["serve", "--listen", "127.0.0.1:0", "--output", "json", ...options, "--", ...command];
  const server = spawn(process.env.HYPERBAND_BIN, words, { cwd: home, stdio: ["ignore", "pipe", "ignore"] });
  const end = async () => {
    const ended = server.exitCode === null && server.signalCode === null && once(server, "exit");
    server.kill("SIGKILL");
    await ended;
  };
  try {
    const [line] = await once(createInterface({ input: server.stdout }), "line");
    const url = JSON.parse(line).Endpoint;
    const submit = async (name, change) => {
      const body = JSON.parse(readFileSync(new URL("../../examples/hello/request.json", import.meta.url)));
      body.HyperParameterTuningJobName = name;
      change?.(body);
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${url}/tuning-jobs`, { method: "POST", headers, body: JSON.stringify(body) });
      if (answer.status !== 201) throw new Error(await answer.text());
      return `${url}/tuning-jobs/${name}`;
    };
    await use(url, submit, end);
  } finally {
    await end();
    rmSync(home, { recursive: true, force: true });
  }
}
