//! Asks for the settings that the command line lacks, one question at a time.

use std::fmt::Write;
use std::io::{self, BufRead, IsTerminal};

use crate::failure::Failure;
use crate::output::print_err;

#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    /// The option that answers it, for example `--metric NAME`.
    pub(super) option: &'a str,
    pub(super) text: &'a str,
    /// The answer of an empty line.
    pub(super) default: Option<&'a str>,
}

/// The terminal, if there is one.
#[derive(Debug)]
pub(super) struct Questions<R> {
    pub(super) input: Option<R>,
}

pub(super) fn of_terminal() -> Questions<impl BufRead> {
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    Questions { input: is_terminal.then(|| io::stdin().lock()) }
}

impl<R: BufRead> Questions<R> {
    pub(super) fn is_terminal(&self) -> bool {
        self.input.is_some()
    }

    /// Asks until the answer is valid. Without a terminal, returns the default, else an error with the option.
    pub(super) fn ask<T>(
        &mut self,
        question: Question<'_>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let missing = |why: &str| {
            Failure::usage(format!("missing {}: {why}", question.option))
                .hint("`hyperband init --help` shows every option, with examples")
        };
        let Some(input) = &mut self.input else {
            let default = question.default.ok_or_else(|| missing("there is no terminal to ask for it"))?;
            return parse(default).map_err(|why| missing(&why));
        };
        loop {
            let mut prompt = question.text.to_owned();
            if let Some(default) = question.default {
                // Writing to a string cannot fail.
                let _ = write!(prompt, " [{default}]");
            }
            print_err(&format!("{prompt}: "));
            let mut line = String::new();
            if input.read_line(&mut line).map_err(Failure::endpoint)? == 0 {
                return Err(missing("the input ended before an answer"));
            }
            let answer = match line.trim() {
                "" => question.default.unwrap_or_default(),
                given => given,
            };
            match parse(answer) {
                Ok(value) => return Ok(value),
                Err(why) => print_err(&format!("{why}\n")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: Question<'_> = Question { option: "--jobs N", text: "Jobs", default: Some("7") };

    fn number(text: &str) -> Result<u32, String> {
        text.parse().map_err(|_| "expected a whole number".to_owned())
    }

    fn answer(input: &str, question: Question<'_>) -> Option<u32> {
        Questions { input: Some(input.as_bytes()) }.ask(question, number).ok()
    }

    #[test]
    fn an_invalid_answer_is_asked_again_and_an_empty_one_is_the_default() {
        assert_eq!(answer("x\n\u{1b}\n 3 \n", QUESTION), Some(3));
        assert_eq!(answer("\n", QUESTION), Some(7));
        assert_eq!(answer("\n4\n", Question { default: None, ..QUESTION }), Some(4));
        assert_eq!(answer("x\n", QUESTION), None, "the input ended");
    }

    #[test]
    fn without_a_terminal_only_a_default_answers() {
        let mut none = Questions::<&[u8]> { input: None };
        assert_eq!(none.ask(QUESTION, number).ok(), Some(7));
        assert!(none.ask(Question { default: None, ..QUESTION }, number).is_err());
    }
}
