//! Finds processes by ancestry or by a mark in their environment, and kills them.
//!
//! Needs Linux's /proc. Kills only descendants of the caller and processes marked with an attempt ID of this service.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process};

/// The maximum number of search-and-kill rounds, in case processes fork faster than they are killed.
const ROUNDS_MAX: u32 = 100;

/// Returns the living descendants of `ancestor`, including orphans that it inherited as a subreaper.
pub(crate) fn descendants(ancestor: Pid) -> Vec<Pid> {
    let table: Vec<(i32, i32)> = living().filter_map(|pid| Some((pid, parent_if_alive(pid)?))).collect();
    let mut family = BTreeSet::from([ancestor.as_raw_nonzero().get()]);
    loop {
        let before = family.len();
        for (pid, parent) in &table {
            if family.contains(parent) {
                family.insert(*pid);
            }
        }
        if family.len() == before {
            break;
        }
    }
    family.remove(&ancestor.as_raw_nonzero().get());
    family.into_iter().filter_map(Pid::from_raw).collect()
}

/// Kills every process whose environment has one of `marks` (`NAME=value`), until none is left. Returns their number.
pub(crate) fn kill_marked(marks: &BTreeSet<String>) -> usize {
    let mut killed = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        let found: Vec<Pid> =
            living().filter(|pid| is_marked(*pid, marks)).filter_map(Pid::from_raw).collect();
        if found.is_empty() {
            break;
        }
        kill(&found);
        killed.extend(found.iter().map(|pid| pid.as_raw_nonzero().get()));
    }
    killed.len()
}

/// Sends SIGKILL to each process. Returns how many calls succeeded.
pub(crate) fn kill(found: &[Pid]) -> usize {
    found.iter().filter(|pid| kill_process(**pid, Signal::KILL).is_ok()).count()
}

/// Returns the process IDs in /proc.
fn living() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

/// Returns the parent of a process, or `None` for a zombie.
fn parent_if_alive(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets can contain brackets and spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X" | "x")).then_some(parent)
}

/// Returns whether the process has a mark in its environment. The environment of a zombie is empty, and that of another
/// user's process is unreadable.
fn is_marked(pid: i32, marks: &BTreeSet<String>) -> bool {
    if pid == getpid().as_raw_nonzero().get() {
        return false;
    }
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment
        .split(|byte| *byte == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok())
        .any(|entry| marks.contains(entry))
}
