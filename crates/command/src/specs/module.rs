//! Programs that another one runs by their names: `python -m pip install`, `node node_modules/.bin/tsc`.

use alloc::string::{String, ToString};

use crate::specs::command_line::base_name;
use crate::specs::command_spec::{ArgKind, CommandSpec};
use crate::specs::registry::find_spec;

/// What is known of a program by the name of the module that it is in Python: `pip`, `pip_audit`,
/// `twine.__main__`.
pub(super) fn find_module_spec(name: &str) -> Option<&'static CommandSpec> {
    let first = name.split('.').next().unwrap_or_default();
    find_spec(name)
        .or_else(|| find_spec(&name.replace('_', "-")))
        // `http.server` of the standard library is no part of the program `http`.
        .or_else(|| find_spec(first).filter(|_| first != name && first != "http"))
        .or_else(|| find_spec(&name.to_ascii_lowercase()))
        // A script of the folder: `python -m setup upload`.
        .or_else(|| find_spec(&alloc::format!("{name}.py")))
}

/// The program that a script is by its name: one that was installed beside others, or is known by its whole
/// name (`setup.py`).
fn installed(script: &str) -> Option<&str> {
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

    use crate::specs::{CommandLine, Effect, Effects};

    /// W8: a server of the standard library is no client that sends.
    #[test]
    fn a_module_is_not_judged_by_a_program_of_its_first_name() {
        for line in
            ["python3 -m http.server --bind 127.0.0.1 8123", "python -m http.server -d dist 8123"]
        {
            let argv: Vec<_> = line.split(' ').map(Into::into).collect();
            let effects = CommandLine::parse(&argv, None, false).effects();
            assert!(effects.contains(Effect::Code) && !effects.contains(Effect::Publishes));
            assert!(
                !effects.intersects(Effects::of(Effect::Sends).with(Effect::Network)),
                "{line}"
            );
        }
    }

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
