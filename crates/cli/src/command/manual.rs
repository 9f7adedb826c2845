//! `capsule completions` and `capsule man`, made of the same definition as the help.

use clap::CommandFactory;

use crate::args::{Arguments, CompletionsArgs};
use crate::failure::{Failure, stdout_failure};

/// `completions`.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut command = Arguments::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "capsule", &mut script);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &script).map_err(stdout_failure)?;
    Ok(0)
}

/// `man`.
pub(crate) fn man() -> Result<u8, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut page).map_err(stdout_failure)?;
    std::io::Write::write_all(&mut std::io::stdout().lock(), &page).map_err(stdout_failure)?;
    Ok(0)
}
