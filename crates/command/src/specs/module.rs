//! Programs that another one runs by their names: `python -m pip install`, `node node_modules/.bin/tsc`.

use alloc::string::{String, ToString};

use crate::specs::argv_parser::{ArgvParser, LevelState};
use crate::specs::parsed_argv::new_level;
use crate::specs::{ArgKind, CommandLevel, CommandSpec, base_name, find_spec};

impl ArgvParser {
    /// Goes on with the words of the program that is run by its name, if something is known of it; gives back
    /// the level otherwise. What runs it can be what it likes, so that its effects come to those of whoever runs
    /// it.
    pub(super) fn module(
        &mut self,
        level: CommandLevel,
        seen: &mut LevelState,
        rest: &[String],
    ) -> Option<CommandLevel> {
        let named = seen.module.take().and_then(|name| Some((by_module(&name)?, name)));
        let Some((inner, name)) = named else { return Some(level) };
        self.parsed.argument_effects.append(&mut seen.operand_effects);
        self.parsed.levels.push(level);
        self.parsed.names_script = false;
        self.read_level(new_level(&name, true), rest, Some(inner), false);
        self.parsed.modules.push(name);
        None
    }
}

/// What is known of a program by the name of the module that it is in Python: `pip`, `pip_audit`,
/// `twine.__main__`.
fn by_module(name: &str) -> Option<&'static CommandSpec> {
    let first = name.split('.').next().unwrap_or_default();
    find_spec(name)
        .or_else(|| find_spec(&name.replace('_', "-")))
        .or_else(|| find_spec(first).filter(|_| first != name))
        .or_else(|| find_spec(&name.to_ascii_lowercase()))
        // A script of the folder: `python -m setup upload`.
        .or_else(|| find_spec(&alloc::format!("{name}.py")))
}

/// The program that a script is by its name: one that was installed beside others, or is known by its whole
/// name (`setup.py`).
pub(super) fn installed(script: &str) -> Option<&str> {
    let name = base_name(script);
    let folder = script.strip_suffix(name)?.trim_end_matches('/');
    let is_installed = base_name(folder).ends_with("bin") || name.contains('.');
    (is_installed && find_spec(name).is_some()).then_some(name)
}

/// The module that an operand of this kind names.
pub(super) fn named_by(kind: ArgKind, operand: &str) -> Option<String> {
    match kind {
        ArgKind::Module => Some(operand.to_string()),
        ArgKind::Script => installed(operand).map(ToString::to_string),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use crate::specs::{CommandLine, Effect};

    /// L5: a program is what it is, whoever runs it.
    #[test]
    fn a_program_that_is_run_by_its_name_does_what_it_does() {
        for line in [
            "python -m flit publish",
            "python3 -Bm twine upload x",
            "python -mtwine upload x",
            "python -m twine.__main__ upload x",
            "python -m cProfile -o out -m twine upload x",
            "python -m runpy twine upload x",
            "python -m coverage run -m twine upload x",
            "coverage run --source=src -m twine upload x",
            "ipython -m twine upload x",
            "python .venv/bin/twine upload x",
            "python setup.py sdist upload",
            "python -m setup sdist upload",
            "python -m trace --count --module twine upload x",
            "uv run -m twine upload x",
            "hatch run twine upload x",
            "ruby -S gem push x",
            "node node_modules/.bin/vsce publish",
            "npx npm publish",
            "pnpm dlx npm publish",
            "bunx npm publish",
            "uvx twine upload x",
            "pipx run twine upload x",
        ] {
            let argv: Vec<_> = line.split(' ').map(Into::into).collect();
            let line = CommandLine::parse(&argv, None, false);
            assert!(line.effects().contains(Effect::Publishes), "{argv:?}");
        }
        for line in [
            "python -m pytest -q x",
            "python -m own.module --publish",
            "python tool.py upload",
            "node a.js publish",
        ] {
            let argv: Vec<_> = line.split(' ').map(Into::into).collect();
            let line = CommandLine::parse(&argv, None, false);
            assert!(
                line.effects().contains(Effect::Runs) && !line.effects().contains(Effect::Unknown),
                "{argv:?}"
            );
            assert!(!line.effects().contains(Effect::Publishes), "{argv:?}");
        }
    }
}
