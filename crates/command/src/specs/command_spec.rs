//! The specification of a command: its options, its operands, its subcommands and what each of them does.

use alloc::string::String;
use alloc::vec::Vec;

use crate::specs::effect::{Effect, EffectSpec, Effects};

/// What a word on a command line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// Text, unless it leads out of the workspace.
    Text,
    /// Text that is never a path: what is printed, computed with or compared.
    Literal,
    /// A target of a build, or `NAME=VALUE`, which may say what a build runs.
    Setting,
    /// `NAME=VALUE` for a build that puts it into no line of a shell by itself, and may run it.
    Define,
    /// What is given to a program of the project: text, unless it leads somewhere else.
    Argument,
    /// A path that is read.
    Path,
    /// A path that is written.
    WrittenPath,
    /// A path that is removed.
    DeletedPath,
    /// A path or something else, such as a revision; or both, such as `HEAD:docs/a.md`.
    MaybePath,
    /// A folder from which the paths behind it are seen.
    Directory,
    /// A range of lines and a file, such as `1,20:docs/a.md`.
    LineRange,
    /// A file that is read and run as a program.
    Script,
    /// A module or a command by its name, which is run as a program; the words behind it are its own.
    Module,
    /// A program text.
    Code,
    /// This and all that follow are a command line of their own.
    Command,
    /// `NAME=VALUE`, for as long as words are of that form.
    Assignments,
    /// A script of `sed`.
    Sed,
    /// A program of `awk`.
    Awk,
    /// Statements in SQL.
    Sql,
    /// The address of another computer.
    Url,
    /// A name, or a pattern for names, that something is done with.
    Name,
    /// Text that a request carries to the host that the words name.
    Carried,
    /// A text, or `@FILE` for what is in the file.
    Sent,
    /// A text, or `@FILE`, or `NAME@FILE`.
    SentNamed,
    /// A field of a form: `NAME=@FILE,FILE`, `NAME=<FILE`, `NAME=TEXT;headers=@FILE`.
    SentForm,
    /// A file, or several in braces and brackets, which cannot be told.
    Upload,
}

impl ArgKind {
    /// What a command does that is given such a word.
    #[must_use]
    pub const fn effects(self) -> Effects {
        match self {
            Self::WrittenPath => Effects::of(Effect::Writes),
            Self::DeletedPath => Effects::of(Effect::Deletes),
            Self::Script => Effects::of(Effect::Runs),
            Self::Code => Effects::of(Effect::Code),
            Self::Url => Effects::of(Effect::Network),
            _ => Effects::NONE,
        }
    }
}

/// How the options of a program are spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptionStyle {
    /// `-abc` is `-a -b -c`; `--long=value`.
    #[default]
    Gnu,
    /// One dash and a whole word: `-name`.
    SingleDash,
    /// Like the first, and the first word may be letters without a dash: `tar xzf`.
    Bundle,
}

/// One option of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionSpec {
    /// Its names with their dashes, such as `-n` and `--lines`; `-NUM` stands for `-5`, and a name
    /// that ends with `=` for an operand of that form.
    pub names: Vec<String>,
    /// What its value stands for, if it takes one.
    pub value: Option<ArgKind>,
    /// What further values stand for, where it takes more than one word.
    pub more_values: Vec<ArgKind>,
    /// Whether the value can only be attached (`--color=always`) and may be left out.
    pub attached: bool,
    /// What ends its value, where that is a command line.
    pub until: Vec<String>,
    /// What it adds to the command's own effects.
    pub effect: EffectSpec,
    /// Values with which it adds nothing; `*` means any characters.
    pub except: Vec<String>,
    /// All that the command does with it, whatever it would do without.
    pub replaces_effects: Option<Effects>,
    /// Whether the command contacts no other computer with it, as it does by itself.
    pub offline: bool,
    /// What particular values add.
    pub value_effects: Vec<NamedEffect>,
    /// Whether it says what the first operand says without it, so that the operands are all of the
    /// kinds that follow: `sed -e SCRIPT FILE`.
    pub replaces_first_operand: bool,
    /// Whether the files that the operands name are changed with it: `sed -i`.
    pub modifies_operands: bool,
    /// Whether it makes the command mean fewer of the files that it finds.
    pub limits_walk: bool,
    /// Whether no option stands behind it.
    pub ends: bool,
}

/// What a word adds that is one of some names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEffect {
    /// The names; `*` stands for any characters.
    pub names: Vec<String>,
    /// What it adds.
    pub effect: EffectSpec,
}

impl NamedEffect {
    pub(super) fn matches(&self, word: &str) -> bool {
        self.names.iter().any(|name| matches_wildcard(name, word))
    }
}

/// Whether a word is like a name in which `*` stands for any characters.
pub fn matches_wildcard(name: &str, word: &str) -> bool {
    let Some((before, rest)) = name.split_once('*') else { return name == word };
    let Some(mut word) = word.strip_prefix(before) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return word.ends_with(part);
        }
        let Some((_, behind)) = word.split_once(part) else { return false };
        word = behind;
    }
    true
}

/// Whether a word is a value of this form. A key before `=` may be written in either case, as those of git.
pub(super) fn matches_setting(name: &str, word: &str) -> bool {
    match (name.split_once('='), word.split_once('=')) {
        (Some((name, form)), Some((key, value))) => {
            matches_wildcard(&name.to_lowercase(), &key.to_lowercase())
                && matches_wildcard(form, value)
        }
        _ => matches_wildcard(name, word),
    }
}

/// Stands for any word that is no subcommand.
pub const ANY_SUBCOMMAND: &str = "*";

/// A program or one of its subcommands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandSpec {
    /// What it does by its nature.
    pub base_effect: EffectSpec,
    /// How its options are spelled.
    pub style: OptionStyle,
    /// What the words that are not options stand for; the last entry holds for all that follow.
    pub operands: Vec<ArgKind>,
    /// What the last of at least two operands stands for, where that is something else.
    pub last: Option<ArgKind>,
    /// Its options.
    pub options: Vec<OptionSpec>,
    /// Its subcommands, by name. With any, the first word that is no option is one.
    pub subcommands: Vec<(String, CommandSpec)>,
    /// Whether the beginning of a long option stands for it, where it is unique.
    pub abbreviates: bool,
    /// Whether `--no-x` takes back what `--x` says.
    pub negates: bool,
    /// With what a word before the subcommand begins that is none: the `+` of `cargo +nightly`.
    pub prefix: Option<String>,
    /// What it does in addition without any operand.
    pub without_operands: Option<EffectSpec>,
    /// What it does in addition with more operands than so many.
    pub many_operands: Vec<(usize, EffectSpec)>,
    /// What particular operands add.
    pub operand_effects: Vec<NamedEffect>,
    /// Whether no option stands behind the first operand: what follows belongs to what it names.
    pub options_end_at_operand: bool,
    /// Whether a word that looks like an option and is none is text.
    pub lenient: bool,
    /// Whether it does what it does to all that is beneath a folder.
    pub is_recursive: bool,
    /// Whether it opens nothing but what its words name, whatever stands in that.
    pub opens_named_only: bool,
    /// Whether it adds words to the command line that stands in it: those that it reads.
    pub appends_arguments: bool,
}

impl CommandSpec {
    /// What is known of a command that is not: any word may be a path, any option anything.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            base_effect: EffectSpec {
                effects: Effects::of(Effect::Unknown),
                ..EffectSpec::default()
            },
            operands: alloc::vec![ArgKind::MaybePath],
            ..Self::default()
        }
    }

    /// Whether it starts other programs by its nature.
    #[must_use]
    pub fn starts_others(&self) -> bool {
        let effects = Effects::of(Effect::Runs).with(Effect::Code).with(Effect::Unknown);
        self.base_effect.effects.intersects(effects)
            || self.without_operands.as_ref().is_some_and(|adds| adds.effects.intersects(effects))
    }

    /// Whether this takes back an option that is known. It does no more than leaving that out.
    #[must_use]
    pub fn is_negation(&self, name: &str) -> bool {
        let plain = name.strip_prefix("--no-").filter(|_| self.negates);
        plain.is_some_and(|plain| {
            let positive = alloc::format!("--{plain}");
            self.option(&positive).or_else(|| self.abbreviated(&positive)).is_some()
        })
    }

    /// The option with exactly this name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&OptionSpec> {
        self.options.iter().find(|option| option.names.iter().any(|text| text == name))
    }

    /// The option that this beginning of a long name stands for.
    #[must_use]
    pub fn abbreviated(&self, name: &str) -> Option<&OptionSpec> {
        if !self.abbreviates || name.len() < 3 {
            return None;
        }
        let mut found = self
            .options
            .iter()
            .filter(|option| option.names.iter().any(|text| text.starts_with(name)));
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// The subcommand of that name.
    #[must_use]
    pub fn subcommand(&self, name: &str) -> Option<&Self> {
        self.subcommands.iter().find(|(text, _)| text == name).map(|(_, command)| command)
    }

    /// What a text on its standard input is to it, if it is more than data.
    #[must_use]
    pub fn stdin_kind(&self) -> Option<ArgKind> {
        let takes = |kind| {
            self.operands.contains(&kind)
                || self.options.iter().any(|option| option.value == Some(kind))
        };
        if takes(ArgKind::Sql) {
            return Some(ArgKind::Sql);
        }
        let code =
            self.without_operands.as_ref().is_some_and(|adds| adds.effects.contains(Effect::Code));
        (code || takes(ArgKind::Code) && takes(ArgKind::Script)).then_some(ArgKind::Code)
    }

    /// What any other word in its place means, where that is known: the name of a script.
    #[must_use]
    pub fn fallback_subcommand(&self) -> Option<&Self> {
        self.subcommand(ANY_SUBCOMMAND)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::specs::{ParsedArgv, find_spec, program_names};

    #[test]
    fn no_name_stands_for_two_programs() {
        let mut names: Vec<&str> = program_names().collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn every_effect_has_its_reason() {
        fn adds(path: &str, adds: &EffectSpec, wrong: &mut Vec<String>) {
            if !adds.effects.is_subset_of(Effects::of(Effect::Reads)) && adds.why.is_none() {
                wrong.push(alloc::format!("{path} does {:?} and has no reason", adds.effects));
            }
        }
        fn check(path: &str, command: &CommandSpec, wrong: &mut Vec<String>) {
            adds(path, &command.base_effect, wrong);
            let item = command
                .without_operands
                .iter()
                .chain(command.many_operands.iter().map(|(_, adds)| adds));
            item.chain(command.operand_effects.iter().map(|effect| &effect.effect))
                .for_each(|spec| adds(path, spec, wrong));
            for option in &command.options {
                adds(&alloc::format!("{path} {:?}", option.names), &option.effect, wrong);
            }
            for (name, inner) in &command.subcommands {
                check(&alloc::format!("{path} {name}"), inner, wrong);
            }
        }
        let mut wrong = Vec::new();
        for name in program_names() {
            check(name, find_spec(name).unwrap(), &mut wrong);
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// S5: an operand that leads out of the workspace is judged, whatever the table says of it, but where it says
    /// that it is no path.
    #[test]
    fn operands_that_lead_away_are_judged() {
        fn check(
            argv: &[String],
            command: &CommandSpec,
            literal: &mut Vec<String>,
            wrong: &mut Vec<String>,
        ) {
            for (name, inner) in
                command.subcommands.iter().filter(|(name, _)| !name.starts_with(['*', '-']))
            {
                check(&[argv, core::slice::from_ref(name)].concat(), inner, literal, wrong);
            }
            let last = command.operands.last();
            if last == Some(&ArgKind::Literal) {
                literal.push(argv.join(" "));
            }
            let is_told = !matches!(
                last,
                None | Some(ArgKind::Text | ArgKind::Path | ArgKind::Argument | ArgKind::Setting)
            );
            let away = Effects::of(Effect::Network).with(Effect::Publishes).with(Effect::System);
            let away = away.with(Effect::Shell).with(Effect::Secrets).with(Effect::Destroys);
            if is_told
                || command.base_effect.effects.intersects(away)
                || !command.subcommands.is_empty()
            {
                return;
            }
            for path in ["/etc/shadow", "~/x", "../../x"] {
                let words = core::iter::repeat_n(path.to_string(), command.operands.len().max(1));
                let argv: Vec<String> = argv.iter().cloned().chain(words).collect();
                let reading = ParsedArgv::parse(&argv, find_spec(&argv[0]), true);
                if !reading.paths.iter().any(|item| item.path == path) {
                    wrong.push(argv.join(" "));
                }
            }
        }
        let (mut literal, mut wrong) = (Vec::new(), Vec::new());
        for name in program_names() {
            check(&[name.to_string()], find_spec(name).unwrap(), &mut literal, &mut wrong);
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        // Each prints, compares or computes with its words; one more is a line here for a reviewer.
        literal.sort();
        let expected = "[ basename dirname echo envsubst expr factor getopt gettext ngettext numfmt pathchk printf seq test tr";
        assert_eq!(literal, expected.split(' ').collect::<Vec<_>>());
    }

    #[test]
    fn stars_in_names_stand_for_any_characters() {
        for (name, word, is) in [
            ("deploy", "deploy", true),
            ("deploy", "deployed", false),
            ("deploy*", "deploy:prod", true),
            ("*:deploy", "web:deploy", true),
            ("*publish*", "prepublishOnly", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxc", false),
            ("*", "", true),
        ] {
            assert_eq!(matches_wildcard(name, word), is, "{name} {word}");
        }
    }
}
