// The end of the log of a trial's job, on a live page. A report has no server, so it only names the command.

// The trial, its jobs, and the job whose log was requested last.
let jobLog = { trial: null, jobs: [], asked: null };

function initJobLog() {
  byId("job-log-refresh").addEventListener("click", loadJobLog);
  byId("job-log-choice").addEventListener("change", loadJobLog);
  byId("job-log").addEventListener("toggle", () => {
    if (byId("job-log").open && !jobLog.asked) loadJobLog();
  });
  byId("detail").addEventListener("close", () => (jobLog = { trial: null, jobs: [], asked: null }));
}

// A live page draws again with each change of the tuning. That must neither load the log again nor move it.
function renderJobLog(trial) {
  const jobs = trial.jobs.filter((job) => job.state !== "Refused" && job.state !== "NotStarted").map((job) => job.key);
  const isLive = document.querySelector("meta[name=event-stream]") !== null;
  const part = byId("job-log");
  part.hidden = !isLive || jobs.length === 0;
  byId("job-log-command").hidden = jobs.length === 0;
  if (jobLog.trial !== trial.number) {
    jobLog = { trial: trial.number, jobs: [], asked: null };
    put(byId("job-log-command"), el("code", {}, `hyperband logs ${model.head.name} ${trial.number}`), " prints the log.");
    put(byId("job-log-choice"));
    showJobLog("", "");
    part.open = !part.hidden && trial.outcome === "failed";
  }
  if (jobs.join() === jobLog.jobs.join()) return;
  const choice = byId("job-log-choice");
  const chosen = jobs.includes(choice.value) ? choice.value : jobs.at(-1);
  jobLog.jobs = jobs;
  put(
    choice,
    jobs.map((key) => el("option", { value: key }, key)),
  );
  choice.value = chosen;
  choice.parentElement.hidden = jobs.length < 2;
  if (part.open && !jobLog.asked) loadJobLog();
}

async function loadJobLog() {
  const asked = { job: `${model.head.id}-${byId("job-log-choice").value}` };
  jobLog.asked = asked;
  byId("job-log-text").setAttribute("aria-busy", "true");
  let [lines, problem] = ["", ""];
  try {
    const answer = await fetch(`logs/${asked.job}`);
    if (answer.ok) lines = await answer.text();
    else problem = (await answer.json()).message;
  } catch {
    problem = "The server does not answer: start it again, then press Refresh.";
  }
  // A later request has its own answer.
  if (jobLog.asked === asked) showJobLog(lines, problem);
}

// Shows the log from its end, or the problem in its place.
function showJobLog(lines, problem) {
  const text = byId("job-log-text");
  text.removeAttribute("aria-busy");
  text.textContent = lines;
  text.hidden = lines === "";
  byId("job-log-problem").textContent = problem;
  text.scrollTop = text.scrollHeight;
}
