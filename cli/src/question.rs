//! Asks the user for confirmation. Only `y` and `yes` confirm.

use std::io::{self, IsTerminal};

use crate::failure::Failure;
use crate::output::print_err;

/// Asks `question` and returns whether the user confirmed. Without a terminal, fails with a message that begins with
/// `plan`.
pub(crate) fn confirmed(plan: &str, question: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage(format!("{plan}, and there is no terminal to ask for confirmation"))
            .hint("add --yes to confirm"));
    }
    print_err(&format!("{question} [y/N] "));
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
    fn only_y_and_yes_confirm() {
        for (answer, expected) in
            [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("no\n", false), ("yeah\n", false)]
        {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
