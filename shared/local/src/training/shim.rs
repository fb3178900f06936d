//! The process between the controller and a training command: it ends with whatever it started, whoever dies first.
//!
//! Two stages of one program. The host stage holds the host's lock, starts the guard stage in a process group of its
//! own, passes on signals that the controller asks for through its standard input, and when that closes (the
//! controller is gone, even by SIGKILL) kills everything. As subreaper it inherits what the command leaves behind. The
//! guard stage asks the kernel to be killed with the host stage, then becomes the command.
//!
//! Must never outlive the controller for longer than a kill takes, nor exit before its descendants.

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

/// Through standard input: send SIGTERM to the command's process group.
pub(crate) const TERMINATE: u8 = b'T';
/// Through standard input: send SIGKILL to everything.
pub(crate) const KILL: u8 = b'K';
/// Exit code when the shim itself could not do its work.
pub(crate) const EXIT_SHIM: u8 = 125;
/// Exit code when the command was found but could not be started, as shells use it.
const EXIT_NOT_STARTED: u8 = 126;
/// Exit code when there is no such command, as shells use it.
const EXIT_NOT_FOUND: u8 = 127;

/// Entry of the hidden subcommand; `args` is everything after its name, and must be the end of the process's own
/// arguments (the shim starts itself again with what stands before).
///
/// `--lock FILE --parent PID -- COMMAND ARG…` from the controller, `--guard PID -- COMMAND ARG…` from itself. Returns
/// the command's exit code, 128 + signal when one ended it, 127 or 126 when it could not be started, 125 for an error
/// of the shim's own.
pub fn shim_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let code = match parse(&args) {
        Some(Stage::Host { lock, parent, command }) => {
            host(&lock, parent, command, &leading_arguments(args.len())).unwrap_or_else(|error| {
                report(&format!("the host shim failed: {error}"));
                EXIT_SHIM
            })
        }
        Some(Stage::Guard { parent, command }) => guard(parent, command),
        None => {
            report("the host shim is started by the controller only");
            EXIT_SHIM
        }
    };
    ExitCode::from(code)
}

/// Which part this process plays.
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

/// The program's own arguments before the shim's, such as `__host`.
fn leading_arguments(trailing: usize) -> Vec<OsString> {
    let all: Vec<OsString> = env::args_os().skip(1).collect();
    let leading = all.len().saturating_sub(trailing);
    all.into_iter().take(leading).collect()
}

/// The command's process group, which may be signalled until its leader has been reaped.
struct Group {
    leader: Pid,
    reaped: bool,
}

fn host(lock: &Path, parent: i32, command: &[OsString], leading: &[OsString]) -> io::Result<u8> {
    set_child_subreaper(Some(getpid()))?;
    let _held = hold(lock)?;
    // With the lock held: a controller that died before this point has been replaced, perhaps, by one that has already
    // looked at the lock, so nothing may start any more.
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
    let ended = watch(Pid::from_child(&child));
    // Whatever went wrong, nothing stays behind.
    end_descendants();
    ended.map(exit_code)
}

/// Obeys the controller until the command has ended.
fn watch(leader: Pid) -> io::Result<WaitStatus> {
    let group = Arc::new(Mutex::new(Group { leader, reaped: false }));
    let listened = Arc::clone(&group);
    thread::Builder::new().stack_size(128 * 1024).spawn(move || listen(&listened))?;
    reap_until_leader_ends(&group)
}

/// Takes the host's lock and writes who has it. The descriptor is closed on exec, so the command never holds it.
fn hold(lock: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(lock)?;
    flock(&file, FlockOperation::LockExclusive)?;
    file.set_len(0)?;
    writeln!(file, "{}", getpid().as_raw_nonzero())?;
    Ok(file)
}

/// Does what the controller writes, until it is gone.
fn listen(group: &Mutex<Group>) {
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
        // It may have ended by itself in this moment; then there is nothing to do.
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
        // Sleeps without reaping, so that reaping happens under the lock: a process id must not be signalled after it.
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

/// Kills and reaps until no descendant is left, or only such as may not be killed.
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

/// Becomes the command, to be killed with the host stage whatever kills that.
fn guard(parent: i32, command: &[OsString]) -> u8 {
    let tied = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    if !tied || getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        return EXIT_SHIM;
    }
    let Some((program, arguments)) = command.split_first() else { return EXIT_SHIM };
    let error = Command::new(program).args(arguments).exec();
    report(&format!("cannot start the command '{}': {error}", program.display()));
    if error.kind() == io::ErrorKind::NotFound { EXIT_NOT_FOUND } else { EXIT_NOT_STARTED }
}

/// Tells the log, and the failure file of the host so that it becomes the job's failure reason.
fn report(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
    if let Some(root) = env::var_os("SM_ROOT") {
        let _ = fs::write(Path::new(&root).join("output/failure"), text);
    }
}
