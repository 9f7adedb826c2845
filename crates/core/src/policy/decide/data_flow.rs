//! What flows from one part of a command into another.

use alloc::string::String;
use alloc::vec::Vec;

use crate::action::{PathTarget, target_from};
use capsule_base::path::WorkspacePath;
use capsule_base::root_names::RootNames;
use capsule_command::shell_syntax::{PipelineStage, Redirection, ShellWord};
use capsule_command::specs::{CommandLine, Effect, Effects, PathAccess};

/// What came from where, up to some part of a command.
#[derive(Default)]
pub(super) struct DataFlow {
    /// What the programs before it in its pipeline do.
    pub input_effects: Effects,
    /// The files that were fetched by parts before it.
    fetched: Vec<WorkspacePath>,
    /// What parts before it make or change.
    written: Vec<WorkspacePath>,
}

impl DataFlow {
    /// What a program is fed with: through its pipe, or by a file that was fetched and that it runs.
    pub(super) fn effects_into(
        &self,
        line: &CommandLine<'_>,
        from: (&PathTarget, &RootNames),
    ) -> Effects {
        let used = used_paths(line, from, &[PathAccess::Read]);
        let runs = used.iter().any(|path| self.fetched.contains(path));
        let code = line.effects().intersects(Effects::of(Effect::Code).with(Effect::Runs));
        if runs && code { self.input_effects.with(Effect::Network) } else { self.input_effects }
    }

    /// What comes behind a program.
    pub(super) fn record_output(
        &mut self,
        line: &CommandLine<'_>,
        from: (&PathTarget, &RootNames),
    ) {
        self.input_effects = self.input_effects.union(line.effects());
        let written = used_paths(line, from, &[PathAccess::Write]);
        if line.effects().contains(Effect::Network) {
            self.fetched.extend(written.iter().cloned());
        }
        self.written.extend(written);
    }

    /// Whether a part before it makes a folder, or something in it.
    pub(super) fn makes(&self, folder: &WorkspacePath) -> bool {
        self.written.iter().any(|path| path.ancestors().any(|ancestor| ancestor == *folder))
    }
}

/// The paths that a command line names for some use.
fn used_paths(
    line: &CommandLine<'_>,
    (folder, names): (&PathTarget, &RootNames),
    uses: &[PathAccess],
) -> Vec<WorkspacePath> {
    let all = line.with_nested();
    let paths = all.iter().flat_map(|line| line.parsed_argvs()).flat_map(|argv| &argv.paths);
    let item = paths.filter(|path| uses.contains(&path.access));
    item.filter_map(|item| target_from(folder, &item.path, names).inside().cloned()).collect()
}

/// Stands for the names of all that is in a folder.
pub(super) const ANY_NAME: &str = "*";

/// The text that a stage reads, where the command itself has it: a here-document, or what `echo` and
/// `printf` before it print.
pub(super) fn literal_stdin(stages: &[PipelineStage], stage: &PipelineStage) -> Option<String> {
    let redirected = stage.redirects.iter().rev().find_map(|redirect| match redirect {
        Redirection::Here { text } => Some(Some(text.clone())),
        Redirection::Input { .. } => Some(None),
        _ => None,
    });
    let at = stages.iter().position(|item| core::ptr::eq(item, stage))?;
    let before = || {
        let words = &stages.get(at.checked_sub(1)?)?.words;
        let name = words.first().and_then(ShellWord::literal);
        let text: Vec<String> = words.iter().skip(1).map(ShellWord::unexpanded).collect();
        // Names alone: with a folder, or a pattern, `ls` lists less than all.
        if name == Some("ls") && text.iter().all(|word| word.starts_with('-') || word == ".") {
            return Some(ANY_NAME.into());
        }
        matches!(name, Some("echo" | "printf")).then(|| text.join(" "))
    };
    redirected.unwrap_or_else(before)
}
