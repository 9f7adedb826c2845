//! Programs that another one runs by their names: `python -m pip install`, `node node_modules/.bin/tsc`.

use alloc::string::String;

use crate::programs::read::{Seen, Walk, level};
use crate::programs::{Command, Level, base_name, known};

impl Walk {
    /// Goes on with the words of the program that is run by its name, if something is known of it; gives back
    /// the level otherwise. What runs it can be what it likes, so that its effects come to those of whoever runs
    /// it.
    pub(super) fn module(&mut self, own: Level, seen: &mut Seen, rest: &[String]) -> Option<Level> {
        let named = seen.module.take().and_then(|name| Some((by_module(&name)?, name)));
        let Some((inner, name)) = named else { return Some(own) };
        self.reading.added.append(&mut seen.words);
        self.reading.levels.push(own);
        self.reading.names_script = false;
        self.level(level(&name, true), rest, Some(inner), false);
        self.reading.modules.push(name);
        None
    }
}

/// What is known of a program by the name of the module that it is in Python: `pip`, `pip_audit`,
/// `twine.__main__`.
fn by_module(name: &str) -> Option<&'static Command> {
    let first = name.split('.').next().unwrap_or_default();
    known(name)
        .or_else(|| known(&name.replace('_', "-")))
        .or_else(|| known(first).filter(|_| first != name))
        .or_else(|| known(&name.to_ascii_lowercase()))
        // A script of the folder: `python -m setup upload`.
        .or_else(|| known(&alloc::format!("{name}.py")))
}

/// The program that a script is by its name: one that was installed beside others, or is known by its whole
/// name (`setup.py`).
pub(super) fn installed(script: &str) -> Option<&str> {
    let name = base_name(script);
    let folder = script.strip_suffix(name)?.trim_end_matches('/');
    let is_installed = base_name(folder).ends_with("bin") || name.contains('.');
    (is_installed && known(name).is_some()).then_some(name)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use crate::programs::{CommandLine, Effect};

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
            let line = CommandLine::of(&argv, None, false);
            assert!(line.effects().has(Effect::Publishes), "{argv:?}");
        }
        for line in [
            "python -m pytest -q x",
            "python -m own.module --publish",
            "python tool.py upload",
            "node a.js publish",
        ] {
            let argv: Vec<_> = line.split(' ').map(Into::into).collect();
            let line = CommandLine::of(&argv, None, false);
            assert!(
                line.effects().has(Effect::Runs) && !line.effects().has(Effect::Unknown),
                "{argv:?}"
            );
            assert!(!line.effects().has(Effect::Publishes), "{argv:?}");
        }
    }
}
