//! A command of a host, as the command line that runs it confined: `capsule exec ... --command -- TEXT`.
//!
//! The host gives that line to a shell. Each word of it is quoted so that every shell of the POSIX family reads it
//! back byte by byte, and fish does; the text itself is read by the command language of the policy, and by no shell.

use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;

use crate::args::{Globals, PolicyArg};

/// What the line says beside the text.
#[derive(Debug)]
pub(crate) struct ConfinedCommand<'c> {
    /// The name of the session.
    pub(crate) session: &'c str,
    /// The workspace.
    pub(crate) workspace: &'c Path,
    /// The policy of the hook.
    pub(crate) policy: &'c PolicyArg,
    /// The global options of the hook.
    pub(crate) globals: &'c Globals,
}

impl ConfinedCommand<'_> {
    /// The line that runs a command, in a directory of the workspace if one is given, for so many milliseconds at most.
    ///
    /// # Errors
    /// When no shell can be given it.
    pub(crate) fn text(
        &self,
        text: &str,
        directory: Option<&str>,
        timeout: Option<u64>,
    ) -> Result<String, CodedError> {
        let binary = std::env::current_exe().map_err(|error| {
            CodedError::new(
                Code::EngineFault,
                format!("the path of `capsule` cannot be told: {error}"),
            )
        })?;
        let mut words = vec![path_text(&binary)?, "exec".into(), "--agent".into()];
        let mut option = |name: &str, value: String| words.push(format!("--{name}={value}"));
        option("session", self.session.to_owned());
        option("workspace", path_text(self.workspace)?);
        if let Some(store) = &self.globals.store {
            option("store", path_text(&absolute(store)?)?);
        }
        if let Some(policy) = &self.policy.policy {
            let is_builtin = policy.starts_with("builtin:");
            option(
                "policy",
                match is_builtin {
                    true => policy.clone(),
                    false => path_text(&absolute(Path::new(policy))?)?,
                },
            );
        }
        if let Some(profile) = &self.policy.profile {
            option("profile", profile.clone());
        }
        if let Some(directory) = directory {
            option("cwd", directory.to_owned());
        }
        if let Some(timeout) = timeout {
            option("timeout", format!("{timeout}ms"));
        }
        words.extend(["--command".to_owned(), "--".to_owned(), text.to_owned()]);
        let line = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
        if text.contains('\0') || line.len() > limits::HOOK_COMMAND_BYTES {
            let most = limits::HOOK_COMMAND_BYTES;
            let message = format!(
                "no shell can be given this command: it holds a zero byte, or is longer than {most} bytes with its quotes"
            );
            return Err(CodedError::new(Code::ArgsInvalid, message).with_suggestion(
                "write what is long into a file of the workspace first, and name that",
            ));
        }
        Ok(line)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, CodedError> {
    std::path::absolute(path).map_err(|error| {
        CodedError::new(Code::EngineFault, format!("the current directory cannot be told: {error}"))
    })
}

fn path_text(path: &Path) -> Result<String, CodedError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        CodedError::new(Code::ArgsInvalid, format!("the path `{}` is not UTF-8", path.display()))
    })
}

/// A word as a shell reads it: plain where nothing in it means anything to a shell, else in single quotes.
pub(crate) fn quote(word: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_=/.:,@+".contains(sign);
    // A word of zsh that begins with `=` is the path of a program.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut quoted = String::from("'");
    for sign in word.chars() {
        match sign {
            // In single quotes, fish reads a backslash before one of these as no part of the word.
            '\'' => quoted.push_str(r#"'"'"'"#),
            '\\' => quoted.push_str(r#"'"\\"'"#),
            sign => quoted.push(sign),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Whatever a model writes, the shell of the host reads it back as the one word that it is.
    #[test]
    fn a_shell_reads_back_every_word() {
        let words = [
            "",
            "ls",
            "it's",
            "''",
            "'",
            "\\",
            "\\'",
            "a\nb",
            "\n",
            "$(id)",
            "`id`",
            "${x}",
            "-rf",
            "--",
            "~",
            "*",
            "!x",
            "#x",
            "a;b|c&d<e>f",
            "\"",
            "\r",
            "\t",
            "é",
            "\u{2028}",
            "%s",
            "=ls",
            "{a,b}",
            "\u{7f}",
            "'\\''",
            "%self",
            "\\\\",
            "\\n",
            "a\\\nb",
            "\\'; exit 9; '\\",
        ];
        for word in words {
            let line = format!("printf %s {}", quote(word));
            let output = Command::new("sh").args(["-c", &line]).output().unwrap().stdout;
            assert_eq!(String::from_utf8(output).unwrap(), word, "{line}");
        }
        let line = words.map(quote).join(" ");
        let expected: String = words.iter().map(|word| format!("[{word}]\n")).collect();
        for shell in ["sh", "bash", "dash", "zsh", "fish"] {
            let line = format!(r"printf '[%s]\n' {line}");
            let output = Command::new(shell).args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{shell}");
        }
    }
}
