//! The training command: found before anything is started, and the command line to type again.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::text::quoted;

/// The command with its program as an absolute path, so that no training job is spent on a mistyped name.
pub(crate) fn resolve(command: &[OsString]) -> Result<Vec<OsString>, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("the training command is empty"));
    };
    let shown = program.display();
    let name = Path::new(program);
    let found = if name.components().count() > 1 || program.as_encoded_bytes().contains(&b'/') {
        std::path::absolute(name).ok().filter(|path| is_program(path))
    } else {
        let folders: Vec<PathBuf> =
            env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
        folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path))
    };
    let found = found.ok_or_else(|| {
        let failure =
            Failure::usage(format!("the training command '{shown}' is not a program that can be started"));
        if name.is_file() {
            failure.hint(format!("make it executable (chmod +x), or name its interpreter: -- sh {shown}"))
        } else {
            failure.hint("give a program in $PATH or the path of one, then its arguments, after --")
        }
    })?;
    Ok(std::iter::once(found.into_os_string()).chain(arguments.iter().cloned()).collect())
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// This program as the shim of the training processes' hosts.
pub(crate) fn shim() -> Result<Vec<OsString>, Failure> {
    let program =
        env::current_exe().map_err(|error| Failure::endpoint(error).context("cannot find this program"))?;
    Ok(vec![program.into_os_string(), "__host".into()])
}

/// The command line of this process, as it can be pasted into a shell.
pub(super) fn line() -> String {
    env::args().map(|argument| quoted(&argument)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_the_path_or_by_its_own() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let found = resolve(&words(&["sh", "-c", "true"])).unwrap();
        assert!(Path::new(&found[0]).is_absolute());
        assert_eq!(found[1..], words(&["-c", "true"]));
        assert!(resolve(&words(&["no-such-program-anywhere"])).is_err());
        assert!(resolve(&words(&["/etc/passwd"])).is_err());
        assert!(resolve(&[]).is_err());
    }
}
