//! A question to the person at the terminal. Only a yes is a yes.

use std::io::{self, IsTerminal};

use crate::failure::Failure;
use crate::output::tell;

/// Asks `question`. Where there is no terminal to ask on, that is an error, which tells the `plan` that it is about.
pub(crate) fn agreed(plan: &str, question: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage(format!("{plan}, and there is no terminal to ask on"))
            .hint("add --yes if that is what you want"));
    }
    tell(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(Failure::endpoint)?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for (answer, expected) in
            [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("no\n", false), ("yeah\n", false)]
        {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
