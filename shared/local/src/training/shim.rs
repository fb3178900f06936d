//! The process between the controller and a training command. It ends all processes of the command when the command or
//! the controller ends.
//!
//! The program has two stages:
//!
//! - The host stage takes the host's lock and starts the guard stage in its own process group. It sends the signals
//!   that the controller orders through standard input. When standard input closes, the controller has ended, even by
//!   SIGKILL, and the host stage kills everything. As a subreaper, the host stage inherits orphans of the command.
//! - The guard stage asks the kernel to kill it together with the host stage, then becomes the command.
//!
//! The shim outlives the controller only for the time that a kill takes. It exits after its descendants.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, getppid, kill_process_group,
    set_child_subreaper, set_parent_process_death_signal, wait, waitid,
};

use super::processes;

/// Order on standard input: send SIGTERM to the command's process group.
pub(crate) const TERMINATE: u8 = b'T';
/// Order on standard input: send SIGKILL to all descendants.
pub(crate) const KILL: u8 = b'K';
/// The exit code when the shim itself fails.
pub(crate) const EXIT_SHIM: u8 = 125;
/// The exit code when the command exists but cannot be started, as in shells.
const EXIT_NOT_STARTED: u8 = 126;
/// The exit code when the command does not exist, as in shells.
const EXIT_NOT_FOUND: u8 = 127;

/// The entry point of the hidden subcommand. `args` are the arguments after its name, up to the end of the process's
/// arguments. The shim restarts itself with the arguments before them.
///
/// The controller passes `--lock FILE --parent PID -- COMMAND ARG…`, the shim itself `--guard PID -- COMMAND ARG…`.
///
/// Returns the command's exit code, 128 + signal when a signal ended it, 127 or 126 when it could not be started, and
/// 125 when the shim failed.
pub fn shim_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let code = match parse(&args) {
        Some(Stage::Host { lock, parent, command }) => {
            host(&lock, parent, command, &leading_arguments(args.len())).unwrap_or_else(|error| {
                report_error(&format!("the host shim failed: {error}"));
                EXIT_SHIM
            })
        }
        Some(Stage::Guard { parent, command }) => guard(parent, command),
        None => {
            report_error("invalid arguments: only the controller starts the host shim");
            EXIT_SHIM
        }
    };
    ExitCode::from(code)
}

enum Stage<'a> {
    Host { lock: PathBuf, parent: i32, command: &'a [OsString] },
    Guard { parent: i32, command: &'a [OsString] },
}

fn parse(args: &[OsString]) -> Option<Stage<'_>> {
    let split = args.iter().position(|arg| arg == "--")?;
    let (options, command) = (args.get(..split)?, args.get(split.checked_add(1)?..)?);
    if command.is_empty() {
        return None;
    }
    let number = |text: &OsStr| text.to_str().and_then(|text| text.parse().ok());
    match options {
        [first, lock, second, parent] if first == "--lock" && second == "--parent" => {
            Some(Stage::Host { lock: lock.into(), parent: number(parent)?, command })
        }
        [first, parent] if first == "--guard" => Some(Stage::Guard { parent: number(parent)?, command }),
        _ => None,
    }
}

/// Returns the program's arguments before the shim's, such as `__host`.
fn leading_arguments(trailing: usize) -> Vec<OsString> {
    let all: Vec<OsString> = env::args_os().skip(1).collect();
    let leading = all.len().saturating_sub(trailing);
    all.into_iter().take(leading).collect()
}

/// The command's process group. It must not be signaled after its leader was reaped, because the ID can be reused.
struct Group {
    leader: Pid,
    reaped: bool,
}

fn host(lock: &Path, parent: i32, command: &[OsString], leading: &[OsString]) -> io::Result<u8> {
    set_child_subreaper(Some(getpid()))?;
    let _lock = take_lock(lock)?;
    // Checked after the lock is taken: if the controller has died, its successor may have checked the lock already, so
    // the command must not start.
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        return Ok(EXIT_SHIM);
    }
    let child = Command::new("/proc/self/exe")
        .args(leading)
        .arg("--guard")
        .arg(getpid().as_raw_nonzero().to_string())
        .arg("--")
        .args(command)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()?;
    let ended = supervise(Pid::from_child(&child));
    // Also after an error.
    end_descendants();
    ended.map(exit_code)
}

/// Executes the controller's orders until the command has ended.
fn supervise(leader: Pid) -> io::Result<WaitStatus> {
    let group = Arc::new(Mutex::new(Group { leader, reaped: false }));
    let ordered = Arc::clone(&group);
    thread::Builder::new().stack_size(128 * 1024).spawn(move || execute_orders(&ordered))?;
    reap_until_leader_ends(&group)
}

/// Takes the host's lock and writes the process ID into it. The descriptor closes on exec, so the command does not
/// inherit the lock.
fn take_lock(lock: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(lock)?;
    flock(&file, FlockOperation::LockExclusive)?;
    file.set_len(0)?;
    writeln!(file, "{}", getpid().as_raw_nonzero())?;
    Ok(file)
}

/// Executes the orders on standard input until the controller has ended.
fn execute_orders(group: &Mutex<Group>) {
    let mut input = io::stdin().lock();
    let mut byte = [0_u8];
    loop {
        match input.read(&mut byte) {
            Ok(1) if byte == [TERMINATE] => signal_group(group, Signal::TERM),
            Ok(1) if byte == [KILL] => kill_everything(group),
            Ok(1) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return kill_everything(group),
        }
    }
}

fn signal_group(group: &Mutex<Group>, signal: Signal) {
    let group = group.lock().unwrap_or_else(PoisonError::into_inner);
    if !group.reaped {
        // Fails if the group has just ended.
        let _ = kill_process_group(group.leader, signal);
    }
}

fn kill_everything(group: &Mutex<Group>) {
    signal_group(group, Signal::KILL);
    processes::kill(&processes::descendants(getpid()));
}

/// Reaps children and inherited orphans until the command itself has ended.
fn reap_until_leader_ends(group: &Mutex<Group>) -> io::Result<WaitStatus> {
    loop {
        // Waits without reaping. Reaping happens under the lock, because a reaped ID must not be signaled.
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let mut group = group.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((pid, status)) = wait(WaitOptions::NOHANG)?
            && pid == group.leader
        {
            group.reaped = true;
            return Ok(status);
        }
    }
}

/// Kills and reaps until no descendant is left, except processes that the shim has no permission to kill.
fn end_descendants() {
    loop {
        let left = processes::descendants(getpid());
        if !left.is_empty() && processes::kill(&left) == 0 {
            return;
        }
        let options = if left.is_empty() { WaitOptions::NOHANG } else { WaitOptions::empty() };
        match wait(options) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => thread::yield_now(),
            Err(_) => return,
        }
    }
}

fn exit_code(status: WaitStatus) -> u8 {
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => signal.saturating_add(128),
        (None, None) => i32::from(EXIT_SHIM),
    };
    u8::try_from(code).unwrap_or(EXIT_SHIM)
}

/// Becomes the command. The kernel kills it when the host stage ends for any reason.
fn guard(parent: i32, command: &[OsString]) -> u8 {
    let is_tied = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    if !is_tied || getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        return EXIT_SHIM;
    }
    let Some((program, arguments)) = command.split_first() else { return EXIT_SHIM };
    let error = Command::new(program).args(arguments).exec();
    report_error(&format!("cannot start the command '{}': {error}", program.display()));
    if error.kind() == io::ErrorKind::NotFound { EXIT_NOT_FOUND } else { EXIT_NOT_STARTED }
}

/// Writes an error to the log, and to the host's failure file, from which it becomes the job's failure reason.
fn report_error(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
    if let Some(root) = env::var_os("SM_ROOT") {
        let _ = fs::write(Path::new(&root).join("output/failure"), text);
    }
}
