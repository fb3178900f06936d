//! The host processes of one run of a job: starts them under shims, stops them and waits for their ends.
//!
//! Uses the shim's protocol (`shim.rs`). Dropping [`Hosts`] ends every process, because the shims' pipes close. A stop
//! never waits until logs are read.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use wire::request::DEFINITION_VARIABLE;

use super::container::Container;
use super::job::Shared;
use super::log_stream::{LogStream, Outlets, pump};
use super::processes;
use super::record::Run;
use super::shim;
use super::stderr_tail::StderrTail;

/// How long a stop waits for a killed host to end.
const KILL_WAIT: Duration = Duration::from_secs(10);
/// How long the end of a run waits for the delivery of its last lines.
const LOG_WAIT: Duration = Duration::from_secs(5);

/// How a host ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostExit {
    /// The exit code of the command; 128 + signal when a signal ended it.
    Code(i32),
    /// The shim itself was killed. The text says how.
    Lost(String),
}

#[derive(Debug, Default)]
pub(crate) struct Hosts {
    attempt: String,
    inputs: Vec<ChildStdin>,
    shims: Vec<Pid>,
    exits: JoinSet<(usize, io::Result<ExitStatus>)>,
    /// In the order of the hosts.
    pumps: Vec<JoinHandle<StderrTail>>,
    /// A shim was killed or failed, so its processes must be searched for.
    lost: bool,
}

impl Hosts {
    /// Starts the shims of all hosts. On an error, the started shims end their hosts.
    pub(crate) fn start(
        shared: &Shared,
        job: &str,
        run: &Run,
        containers: Vec<Container>,
        errors: &mpsc::UnboundedSender<String>,
    ) -> Result<Self, String> {
        let mut hosts = Self { attempt: run.attempt.clone(), ..Self::default() };
        for (index, container) in containers.into_iter().enumerate() {
            let host = container.host.clone();
            let stream = LogStream::open(&shared.layout.logs(job), job, &host, run.stream)
                .map_err(|error| format!("cannot open the log of {host}: {error}"))?;
            let mut child = command(shared, &container)
                .spawn()
                .map_err(|error| format!("cannot start the host shim of {host}: {error}"))?;
            let (Some(input), Some(out), Some(err)) =
                (child.stdin.take(), child.stdout.take(), child.stderr.take())
            else {
                return Err(format!("the host shim of {host} has no pipes"));
            };
            let outlets = Outlets {
                owner: shared.owner.account.clone(),
                feed: shared.logs.clone(),
                closing: shared.closing.subscribe(),
                errors: errors.clone(),
            };
            hosts.pumps.push(tokio::spawn(pump(out, err, stream, outlets, container.notes)));
            hosts.inputs.push(input);
            hosts.shims.extend(pid(&child));
            hosts.exits.spawn(async move { (index, child.wait().await) });
        }
        Ok(hosts)
    }

    /// Waits for the next host to end; returns `None` when all have ended. Cancel safe.
    pub(crate) async fn next_exit(&mut self) -> Option<(usize, HostExit)> {
        let (index, exit) = match self.exits.join_next().await? {
            Ok((index, Ok(status))) => match (status.code(), status.signal()) {
                (Some(code), _) => (index, HostExit::Code(code)),
                (None, signal) => {
                    let signal =
                        signal.map_or_else(|| "an unknown signal".to_owned(), |s| format!("signal {s}"));
                    (index, HostExit::Lost(format!("its shim was ended by {signal}")))
                }
            },
            Ok((index, Err(error))) => (index, HostExit::Lost(format!("cannot wait for its shim: {error}"))),
            Err(error) => (0, HostExit::Lost(format!("cannot wait for its shim: {error}"))),
        };
        self.lost |= match exit {
            HostExit::Code(code) => code == i32::from(shim::EXIT_SHIM),
            HostExit::Lost(_) => true,
        };
        Some((index, exit))
    }

    /// Sends SIGTERM, waits up to `grace`, sends SIGKILL, and returns when every process has ended. Returns whether a
    /// process needed SIGKILL.
    pub(crate) async fn stop(&mut self, grace: Duration) -> bool {
        self.order(shim::TERMINATE).await;
        let ended = self.all_ended_by(Instant::now() + grace).await;
        if !ended {
            self.order(shim::KILL).await;
            if !self.all_ended_by(Instant::now() + KILL_WAIT).await {
                // SIGKILL does not end a process in uninterruptible I/O. Kill the shims, so that the job can end.
                self.lost = true;
                for shim in &self.shims {
                    let _ = kill_process(*shim, Signal::KILL);
                }
                self.all_ended_by(Instant::now() + KILL_WAIT).await;
            }
        }
        if self.lost {
            let marks = BTreeSet::from([mark(&self.attempt)]);
            let _ = spawn_blocking(move || processes::kill_marked(&marks)).await;
        }
        !ended
    }

    /// Waits up to [`LOG_WAIT`] until all lines are stored and delivered. Returns the last lines of each host's standard
    /// error, in the order of the hosts.
    pub(crate) async fn finish_logs(self) -> Vec<String> {
        let Self { pumps, .. } = self;
        let deadline = Instant::now() + LOG_WAIT;
        let mut tails = Vec::new();
        for pumped in pumps {
            // After the time-out, the pump continues in the background.
            let tail = timeout_at(deadline, pumped).await;
            tails.push(tail.ok().and_then(Result::ok).unwrap_or_default().text());
        }
        tails
    }

    async fn order(&mut self, order: u8) {
        for input in &mut self.inputs {
            // Fails for a host that has ended.
            let _ = input.write_all(&[order]).await;
        }
    }

    async fn all_ended_by(&mut self, deadline: Instant) -> bool {
        loop {
            match timeout_at(deadline, self.next_exit()).await {
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }
}

/// Returns the environment entry that marks every process of an attempt.
pub(crate) fn mark(attempt: &str) -> String {
    format!("SM_ATTEMPT_ID={attempt}")
}

fn command(shared: &Shared, container: &Container) -> Command {
    let config = &shared.config;
    let variables = &container.environment;
    let definition = variables.iter().find(|(name, _)| name == DEFINITION_VARIABLE);
    let own = definition.and_then(|(_, name)| config.commands.get(name)).unwrap_or(&config.command);
    let mut command = Command::new(config.shim.first().cloned().unwrap_or_default());
    command
        .args(config.shim.iter().skip(1))
        .arg("--lock")
        .arg(&container.lock)
        .arg("--parent")
        .arg(std::process::id().to_string())
        .arg("--")
        .args(container.hyperparameters.fill(own, config.pass_args))
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // In its own group, so that Ctrl-C on the terminal reaches only the controller.
        .process_group(0);
    command
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()?).ok()?)
}
