//! The training command, and the command line of this process.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use local::training::Config;

use wire::request::Request;

use crate::arguments::{NamedCommand, Processes, Run};
use crate::failure::Failure;

use crate::text::{clean, quoted};

/// Resolves the program of the command to an absolute path. Finds a mistyped name before a training job starts.
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
        let failure = Failure::usage(format!("the training command '{shown}' is not an executable program"));
        if name.is_file() {
            failure.hint(format!("make it executable (chmod +x), or add its interpreter: -- sh {shown}"))
        } else {
            failure.hint("after --, give a program in $PATH or its path, then its arguments")
        }
    })?;
    Ok(std::iter::once(found.into_os_string()).chain(arguments.iter().cloned()).collect())
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Returns the settings of a training service in `root` that runs a resolved command.
pub(crate) fn training(
    root: PathBuf,
    command: Vec<OsString>,
    processes: &Processes,
    devices: Vec<String>,
) -> Result<Config, Failure> {
    let resolved = |one: &NamedCommand| {
        let name = clean(&one.definition);
        let about = |failure: Failure| {
            let hint = format!("give an executable program: --command {}='python3 train.py'", quoted(&name));
            failure.context(format!("definition '{name}'")).hint(hint)
        };
        Ok((one.definition.clone(), resolve(&one.os_words()).map_err(about)?))
    };
    Ok(Config {
        commands: processes.commands.iter().map(resolved).collect::<Result<_, Failure>>()?,
        grace: processes.grace_seconds,
        spot_interruptions_per_hour: processes.spot_interruptions,
        slots: processes.slots,
        devices,
        pass_args: processes.pass_args,
        ..Config::new(root, command, shim()?)
    })
}

/// Returns the command that starts this program as the shim of a training process.
fn shim() -> Result<Vec<OsString>, Failure> {
    let program =
        env::current_exe().map_err(|error| Failure::endpoint(error).context("cannot find this program"))?;
    Ok(vec![program.into_os_string(), "__host".into()])
}

/// Fails if a training job definition of the request has no command or two, or a command names no definition.
pub(super) fn check_names(
    request: &Request,
    command: &[OsString],
    commands: &[NamedCommand],
) -> Result<(), Failure> {
    let names: Vec<&str> = request.definition_names().collect();
    let has = |name: &str| commands.iter().any(|one| one.definition == name);
    if let Some(unknown) = commands.iter().find(|one| !names.contains(&one.definition.as_str())) {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Failure::usage(format!(
            "the request has no definition '{}'",
            clean(&unknown.definition)
        ))
        .hint(format!("give --command a DefinitionName of TrainingJobDefinitions: {}", clean(&known))));
    }
    let twice = |(index, one): (usize, &NamedCommand)| {
        let earlier = commands.iter().take(index).any(|other| other.definition == one.definition);
        earlier.then(|| clean(&one.definition))
    };
    if let Some(name) = commands.iter().enumerate().find_map(twice) {
        return Err(Failure::usage(format!("the definition '{name}' has two commands"))
            .hint("give --command once for each definition"));
    }
    match names.iter().find(|name| command.is_empty() && !has(name)) {
        Some(name) => {
            Err(Failure::usage(format!("the definition '{}' has no training command", clean(name))).hint(
                format!("add --command {}='python3 train.py', or a COMMAND for all after --", quoted(name)),
            ))
        }
        None => Ok(()),
    }
}

/// Fails if the command line has no training command after `--`, nor one for each definition.
pub(super) fn require(options: &Run) -> Result<(), Failure> {
    if options.command.is_empty() && options.processes.commands.is_empty() {
        let request = quoted(&options.request.to_string_lossy());
        return Err(Failure::usage("the training command is missing")
            .hint(format!("give it after --: hyperband run {request} -- python3 train.py")));
    }
    Ok(())
}

/// Returns the error for a `run` or `serve` whose training command has no `--` before it. `unexpected` is the first word
/// that the parser rejected.
pub(crate) fn without_dashes(arguments: &[OsString], unexpected: &str) -> Option<Failure> {
    let words = arguments.get(1..)?;
    let takes_command = words.first().is_some_and(|word| word == "run" || word == "serve")
        && !words.contains(&OsString::from("--"));
    let at = words
        .iter()
        .position(|word| word == unexpected)
        .filter(|_| takes_command && !unexpected.starts_with('-'))?;
    let (before, command) = words.split_at(at);
    let line = |words: &[OsString]| {
        words.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
    };
    Some(Failure::usage(format!("unexpected argument '{unexpected}'")).hint(format!(
        "give the training command after --: hyperband {} -- {}",
        line(before),
        line(command)
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_program_is_found_in_the_path_or_by_its_own_path() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let found = resolve(&words(&["sh", "-c", "true"])).unwrap();
        assert!(Path::new(&found[0]).is_absolute());
        assert_eq!(found[1..], words(&["-c", "true"]));
        assert!(resolve(&words(&["no-such-program-anywhere"])).is_err());
        assert!(resolve(&words(&["/etc/passwd"])).is_err());
        assert!(resolve(&[]).is_err());
    }

    #[test]
    fn a_definition_has_one_command() {
        let definitions = ["small", "large"].map(|name| json!({"DefinitionName": name}));
        let request = Request::from_stored(json!({"TrainingJobDefinitions": definitions}));
        let checked = |commands: &[&str]| {
            let commands: Vec<NamedCommand> = commands.iter().map(|one| one.parse().unwrap()).collect();
            check_names(&request, &[], &commands).map_err(|failure| failure.message())
        };
        assert_eq!(checked(&["small=a", "large=b"]), Ok(()));
        let message = |commands: &[&str]| checked(commands).unwrap_err();
        assert!(message(&["small=a"]).contains("the definition 'large' has no training command"));
        assert!(message(&["small=a", "tiny=b"]).contains("the request has no definition 'tiny'"));
        assert!(
            message(&["small=a", "large=b", "small=c"]).contains("the definition 'small' has two commands")
        );
    }
}
