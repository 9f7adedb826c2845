//! What flows from one part of a command into another.

use alloc::string::String;
use alloc::vec::Vec;

use crate::action::{PathTarget, beneath};
use crate::language::{Redirect, Stage, Word};
use crate::path::WorkspacePath;
use crate::programs::{CommandLine, Effect, Effects, Use};

/// What came from where, up to some part of a command.
#[derive(Default)]
pub(super) struct Flow {
    /// What the programs before it in its pipeline do.
    pub fed: Effects,
    /// The files that were fetched by parts before it.
    fetched: Vec<WorkspacePath>,
    /// What parts before it make or change.
    written: Vec<WorkspacePath>,
}

impl Flow {
    /// What a program is fed with: through its pipe, or by a file that was fetched and that it runs.
    pub(super) fn reaching(&self, line: &CommandLine<'_>, folder: &PathTarget) -> Effects {
        let runs = used(line, folder, &[Use::Read]).iter().any(|own| self.fetched.contains(own));
        let code = line.effects().meets(Effects::of(Effect::Code).with(Effect::Runs));
        if runs && code { self.fed.with(Effect::Network) } else { self.fed }
    }

    /// What comes behind a program.
    pub(super) fn behind(&mut self, line: &CommandLine<'_>, folder: &PathTarget) {
        self.fed = self.fed.and(line.effects());
        let written = used(line, folder, &[Use::Write]);
        if line.effects().has(Effect::Network) {
            self.fetched.extend(written.iter().cloned());
        }
        self.written.extend(written);
    }

    /// Whether a part before it makes a folder, or something in it.
    pub(super) fn makes(&self, folder: &WorkspacePath) -> bool {
        self.written.iter().any(|own| own.upwards().any(|own| own == *folder))
    }
}

/// The paths that a command line names for some use.
fn used(line: &CommandLine<'_>, folder: &PathTarget, uses: &[Use]) -> Vec<WorkspacePath> {
    let all = line.all();
    let paths = all.iter().flat_map(|line| line.readings()).flat_map(|own| &own.paths);
    let own = paths.filter(|own| uses.contains(&own.usage));
    own.filter_map(|own| beneath(folder, &own.path).inside().cloned()).collect()
}

/// Stands for the names of all that is in a folder.
pub(super) const EVERYTHING: &str = "*";

/// The text that a stage reads, where the command itself has it: a here-document, or what `echo` and
/// `printf` before it print.
pub(super) fn input(stages: &[Stage], stage: &Stage) -> Option<String> {
    let here = stage.redirects.iter().find_map(|redirect| match redirect {
        Redirect::Here { text } => Some(text.clone()),
        _ => None,
    });
    let at = stages.iter().position(|own| core::ptr::eq(own, stage))?;
    let before = || {
        let words = &stages.get(at.checked_sub(1)?)?.words;
        let name = words.first().and_then(Word::plain);
        let text: Vec<String> = words.iter().skip(1).map(Word::typed).collect();
        // Names alone: with a folder, or a pattern, `ls` lists less than all.
        if name == Some("ls") && text.iter().all(|word| word.starts_with('-') || word == ".") {
            return Some(EVERYTHING.into());
        }
        matches!(name, Some("echo" | "printf")).then(|| text.join(" "))
    };
    here.or_else(before)
}
