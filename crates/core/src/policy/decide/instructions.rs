//! Files by which builds and tests are told what to run, written by the words of a command.
//!
//! `python -c TEXT` is asked about because a program stands in its words. `echo TEXT > Makefile && make` is the
//! same with a detour, whether it is one list or two calls. What `fs.write` writes is another matter: it is
//! judged, shown and kept as a file (ADR 52).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::action::{Action, CommandStep, Facts, PathTarget, sub_actions, target_from};
use crate::policy::commands::EffectRule;
use crate::policy::decide::check::Finding;
use crate::policy::decide::data_flow::literal_stdin;
use crate::policy::decide::instruction_files::INSTRUCTIONS;
use crate::policy::usage::{UNNAMED, Usage};
use capsule_base::path::WorkspacePath;
use capsule_base::root_names::RootNames;
use capsule_command::specs::{CommandLine, Effect, PathAccess, base_name, matches_wildcard};

fn is_instruction(name: &str) -> bool {
    INSTRUCTIONS.split_ascii_whitespace().any(|text| matches_wildcard(text, name))
}

/// The files that a command writes by its words, as paths where those are known: those that a build reads by
/// itself, and any other one, which a later command may name to a build. The parts of a list are calls of their own.
#[must_use]
pub fn written_by_words(action: &Action, names: &RootNames) -> Vec<String> {
    match action {
        Action::Run { argv, cwd, stdin, .. } => {
            let line = CommandLine::parse(argv, None, false);
            let texts: &[String] = if stdin.is_some() { &[String::new()] } else { &[] };
            written(&line, texts, (cwd, names))
        }
        Action::Command { steps, .. } if steps.len() == 1 => {
            steps.iter().flat_map(|step| by_step(step, names)).collect()
        }
        _ => Vec::new(),
    }
}

fn by_step(step: &CommandStep, names: &RootNames) -> Vec<String> {
    let mut found = Vec::new();
    // What the words of the stages so far give to read.
    let mut texts: Vec<String> = Vec::new();
    let facts = Facts { root_names: names.clone(), ..Facts::default() };
    for part in sub_actions(step, None, &facts) {
        match &part.action {
            Action::Run { argv, .. } => {
                texts.extend(literal_stdin(&step.stages, part.stage));
                let line = CommandLine::parse(argv, None, false);
                found.extend(written(&line, &texts, (&step.cwd, names)));
            }
            Action::Write { path, .. } => found.extend(named(path)),
            _ => {}
        }
    }
    found
}

/// What a command line writes: what it names, and what it is told by texts that it reads: the names in a patch,
/// or something that nobody knows.
fn written(
    line: &CommandLine<'_>,
    texts: &[String],
    (cwd, names): (&PathTarget, &RootNames),
) -> Vec<String> {
    let all = line.with_nested();
    let paths = all.iter().flat_map(|line| line.parsed_argvs()).flat_map(|argv| &argv.paths);
    let paths: Vec<&str> = paths
        .filter(|path| path.access == PathAccess::Write)
        .map(|path| path.path.as_str())
        .collect();
    let mut found: Vec<String> =
        paths.iter().flat_map(|path| named(&target_from(cwd, path, names))).collect();
    if paths.is_empty() && line.effects().contains(Effect::Writes) {
        found.extend(all.iter().flat_map(|line| quoted(line.argv)).flat_map(|path| {
            named(&target_from(cwd, path, names)).filter(|_| is_instruction(base_name(path)))
        }));
    }
    if paths.is_empty() && !texts.is_empty() && line.effects().contains(Effect::Writes) {
        let lines = texts.iter().flat_map(|text| text.lines());
        let patched: Vec<&str> = lines.filter_map(|line| line.strip_prefix("+++ ")).collect();
        let path = |rest: &&str| rest.split('\t').next().unwrap_or_default().trim().to_string();
        match patched.is_empty() {
            true => found.push(UNNAMED.into()),
            false => found
                .extend(patched.iter().map(path).filter(|path| is_instruction(base_name(path)))),
        }
    }
    found
}

/// What stands between quotes in words that are program texts: `awk '{ print > "Makefile" }'`.
fn quoted(argv: &[String]) -> impl Iterator<Item = &str> {
    argv.iter().flat_map(|word| word.split(['"', '\'']).skip(1).step_by(2))
}

/// A path as it is remembered.
fn named(path: &PathTarget) -> Option<String> {
    let text = path.inside().map_or(path.asked.as_str(), WorkspacePath::as_str);
    // No program looks into `/tmp` by itself, and no option names it a file there.
    let is_temporary = path.inside().is_some_and(|path| path.as_temporary().is_some());
    (!is_temporary && !base_name(text).is_empty()).then(|| text.to_string())
}

/// Whether a command line follows a file that was written: one that it reads by itself, or that an option names.
fn is_followed(line: &CommandLine<'_>, path: &str) -> bool {
    let text = base_name(path);
    let by_option =
        || line.parsed_argvs().flat_map(|argv| &argv.scripts).any(|name| base_name(name) == text);
    path == UNNAMED || is_instruction(text) || by_option()
}

/// What is found about a command that runs what such files say, where commands before it wrote one. A command
/// that names its program runs that.
pub(super) fn check(words: &EffectRule, line: &CommandLine<'_>, usage: &Usage) -> Option<Finding> {
    let name = usage.written().find(|path| is_followed(line, path))?;
    let follows =
        line.parsed_argvs().any(|argv| argv.effects().contains(Effect::Runs) && !argv.names_script);
    let (verdict, source) = words.verdict(Effect::Code);
    let name = if name == UNNAMED { UNNAMED.into() } else { format!("`{name}`") };
    let reason = format!("`{}` may follow {name}, which a command wrote", line.display_name());
    let finding = Finding::with_verdict(verdict, reason);
    let finding = finding.under_rule(format!("shell.run/effects.{}", Effect::Code.name()), source);
    follows.then(|| {
        finding.with_suggestion(Some("write what a build is told with `fs.write`, then run it"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{CommandStep, PathTarget, StepContext};
    use capsule_command::shell_syntax::parse;

    fn written_by(text: &str) -> Vec<String> {
        let cwd = PathTarget::parse(".");
        let (names, is_file) = (RootNames::default(), |_: &WorkspacePath| false);
        let context = StepContext { names: &names, is_file: &is_file };
        let steps = CommandStep::of(&parse(text).unwrap(), &cwd, &context).unwrap();
        let item = |step: CommandStep| {
            let (text, cwd) = (text.into(), cwd.clone());
            Action::Command { steps: alloc::vec![step], text, cwd, stdin: None, timeout_ms: None }
        };
        steps
            .into_iter()
            .flat_map(|step| written_by_words(&item(step), &RootNames::default()))
            .collect()
    }

    #[test]
    fn what_a_command_writes_by_its_words_is_found() {
        for (text, name) in [
            ("echo x > Makefile", "Makefile"),
            ("printf x | tee -a sub/package.json", "sub/package.json"),
            ("cat > build.rs <<'E'\nfn main() {}\nE", "build.rs"),
            ("cp t/x Makefile", "Makefile"),
            ("mv x conftest.py", "conftest.py"),
            ("sed -i s/a/b/ pyproject.toml", "pyproject.toml"),
            ("dd of=Makefile", "Makefile"),
            ("patch -p1 <<'E'\n--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-a\n+b\nE", "Makefile"),
            (
                "git apply <<'E'\n--- a/x/package.json\n+++ b/x/package.json\n@@ -1 +1 @@\n-a\n+b\nE",
                "package.json",
            ),
            ("cd sub && echo x > Rakefile", "sub/Rakefile"),
            ("npm pkg set scripts.test=id", "package.json"),
            ("awk 'BEGIN { print \"all:\" > \"Makefile\" }'", "Makefile"),
            ("echo x > rules", "rules"),
        ] {
            assert!(
                written_by(text).iter().any(|own| own.ends_with(name)),
                "{text}: {:?}",
                written_by(text)
            );
        }
        for text in [
            "echo x > a.c",
            "cat Makefile",
            "sed -n p package.json",
            "sed -i s/a/b/ src/a.c",
            "touch test.py",
        ] {
            let written = written_by(text);
            assert!(
                !written.iter().any(|own| is_instruction(base_name(own))),
                "{text}: {written:?}"
            );
        }
    }
}
