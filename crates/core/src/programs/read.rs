//! Reads a command line, word by word.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::programs::{
    ANY, Added, Adds, Command, Effect, Effects, Flag, Level, Opt, PathUse, Reading, Style, Word,
    module, word,
};

impl Reading {
    /// Reads a command line. With `knowledge` the arity of options is known; without it every word
    /// that begins with a dash is an option and may or may not take the next word.
    #[must_use]
    pub fn of(argv: &[String], knowledge: Option<&Command>, expect_subcommands: bool) -> Self {
        let (name, rest) = match argv.split_first() {
            Some((name, rest)) => (name.clone(), rest),
            None => (String::new(), argv),
        };
        let mut walk = Walk {
            reading: Self::default(),
            total: argv.len(),
            folder: None,
            runs: false,
            is_local: true,
        };
        if knowledge.is_none() {
            walk.reading.nature.push(does(Effect::Unknown, &name));
        }
        walk.level(level(&name, knowledge.is_some()), rest, knowledge, expect_subcommands);
        walk.reading
    }
}

pub(super) fn level(name: &str, known: bool) -> Level {
    Level { name: name.to_string(), known, flags: Vec::new(), operands: Vec::new() }
}

fn does(effect: Effect, word: &str) -> Added {
    Adds { effects: Effects::of(effect), ..Adds::default() }.by(word)
}

/// A walk over the words of a command line.
pub(super) struct Walk {
    pub(super) reading: Reading,
    /// How many words there are.
    total: usize,
    /// The folder that an option made the paths behind it start from.
    pub(super) folder: Option<String>,
    /// Whether the program or its subcommand starts others by its nature.
    pub(super) runs: bool,
    /// Whether it works here alone: what its words name is on this machine.
    is_local: bool,
}

/// The words that are left.
type Words<'w> = core::slice::Iter<'w, String>;

/// What was seen at one level.
#[derive(Default)]
pub(super) struct Seen {
    /// How many words counted as operands of some kind.
    kinds: usize,
    /// What the operand behind a first one means that is plain text.
    behind_text: Option<Word>,
    /// The paths of the last operand, where they stand among all.
    pub(super) last: Range<usize>,
    /// An option of unknown arity came before.
    uncertain: bool,
    /// All that the command does, whatever its nature.
    pub(super) only: Option<Effects>,
    /// The same by a letter which asks for help where nothing else stands, and may be the name of a
    /// computer elsewhere.
    pub(super) asked: Option<Effects>,
    /// An option says what is run.
    pub(super) given: bool,
    /// A program that is run by its name, whose words follow.
    pub(super) module: Option<String>,
    /// No option follows.
    ended: bool,
    /// An option said what the first operand says otherwise.
    first: bool,
    /// An option makes the command change what its operands name.
    pub(super) changes: bool,
    /// What the operands add.
    pub(super) words: Vec<Added>,
}

impl Walk {
    pub(super) fn level(
        &mut self,
        mut own: Level,
        words: &[String],
        knowledge: Option<&Command>,
        mut subcommand_next: bool,
    ) {
        if let Some(command) = knowledge {
            subcommand_next = !command.subcommands.is_empty();
            self.enter(command);
        }
        let mut seen = Seen::default();
        let mut options_end = false;
        let mut rest = words.iter();
        if let Some(command) = knowledge.filter(|own| own.style == Style::Bundle) {
            self.bundle(&mut own, &mut rest, command, &mut seen);
        }
        while let Some(word) = rest.next() {
            if !options_end && word == "--" {
                options_end = true;
                // To some programs it says what the words behind it are.
                if let Some(option) = knowledge.and_then(|command| command.option("--")) {
                    self.understood(&mut own, option, word, None, &mut seen);
                }
                continue;
            }
            let is_option = word.len() > 1
                && word.starts_with('-')
                && !knowledge.is_some_and(|own| is_text(own, word));
            if is_option && (!options_end || knowledge.is_none()) {
                seen.uncertain |= self.option(&mut own, word, &mut rest, knowledge, &mut seen);
                options_end |= seen.ended;
            } else if !options_end && self.keyed(&mut own, word, knowledge, &mut seen) {
                continue;
            } else if subcommand_next && !options_end {
                let prefix = knowledge.and_then(|own| own.prefix.as_ref());
                if prefix.is_some_and(|own| word.starts_with(own.as_str())) {
                    continue;
                }
                self.reading.ambiguous |= seen.uncertain;
                self.reading.levels.push(own);
                return self.subcommand(word, rest.as_slice(), knowledge);
            } else {
                if self.operand(&mut own, word, &rest, knowledge, (&mut seen, options_end)) {
                    break;
                }
                options_end |= knowledge.is_some_and(|command| command.ends);
            }
            own = match self.module(own, &mut seen, rest.as_slice()) {
                Some(own) => own,
                None => return,
            };
        }
        self.end(own, knowledge, seen);
    }

    /// What holds for all words of a level.
    fn enter(&mut self, command: &Command) {
        self.runs = command.starts_others();
        self.is_local = !command.nature.effects.meets(ELSEWHERE);
        self.reading.walks_all = command.walks;
        self.reading.is_plain = command.plain;
    }

    fn subcommand(&mut self, name: &str, words: &[String], knowledge: Option<&Command>) {
        let inner = knowledge.and_then(|command| command.subcommand(name)).filter(|_| name != ANY);
        let other = knowledge.and_then(Command::any_other);
        match (knowledge, inner, other) {
            (Some(_), None, Some(other)) => {
                // The word itself is the first operand of what it names.
                let mut all = alloc::vec![name.to_string()];
                all.extend_from_slice(words);
                self.level(level(name, true), &all, Some(other), false);
            }
            // An unknown subcommand of a known program could do anything.
            (Some(_), None, None) => {
                self.level(level(name, false), words, Some(&Command::unknown()), false);
            }
            _ => self.level(level(name, inner.is_some()), words, inner, false),
        }
    }

    /// Reads one option; says whether its arity is unknown.
    fn option(
        &mut self,
        own: &mut Level,
        word: &str,
        rest: &mut Words<'_>,
        knowledge: Option<&Command>,
        seen: &mut Seen,
    ) -> bool {
        let words = knowledge.is_some_and(|command| command.style == Style::Words);
        let (spelled, attached) = match word.split_once('=') {
            Some((spelled, value)) if words || word.starts_with("--") => (spelled, Some(value)),
            // `-fplugin=x`, where the program has such an option.
            Some((spelled, value))
                if spelled.len() > 2
                    && knowledge.is_some_and(|own| own.option(spelled).is_some()) =>
            {
                (spelled, Some(value))
            }
            _ => (word, None),
        };
        let is_number = word.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        let exact = knowledge.and_then(|command| match is_number {
            true => command.option(word).or_else(|| command.option("-NUM")),
            false => command.option(spelled).or_else(|| command.abbreviated(spelled)),
        });
        if let (None, Some(command), false) = (exact, knowledge, words || word.starts_with("--")) {
            return self.cluster(own, word, rest, command, seen);
        }
        let Some(option) = exact else {
            if attached.is_none() && knowledge.is_some_and(|command| command.takes_back(spelled)) {
                own.flags.push(Flag::taken_back(spelled));
                return false;
            }
            self.unknown(own, spelled, attached, knowledge);
            return attached.is_none();
        };
        if option.value == Some(Word::Command) && attached.is_none() {
            self.inner(rest, &option.until);
        }
        let value = match (attached, option.value) {
            (Some(value), _) => Some(value.to_string()),
            (None, Some(Word::Command)) => None,
            (None, Some(_)) if !option.attached => rest.next().cloned(),
            _ => None,
        };
        self.answered(own, option, (spelled, value), knowledge, seen);
        for kind in &option.more {
            let Some(value) = rest.next() else { break };
            self.value(*kind, value);
        }
        false
    }

    /// An option that is known, with what stands behind it.
    fn answered(
        &mut self,
        own: &mut Level,
        option: &Opt,
        (spelled, value): (&str, Option<String>),
        knowledge: Option<&Command>,
        seen: &mut Seen,
    ) {
        let only = seen.only;
        let answer = value.clone().filter(|_| option.value.is_none());
        self.understood(own, option, spelled, value, seen);
        let Some(answer) = answer else { return };
        // `--dry-run=false` says the opposite.
        seen.only = only;
        if !is_answer(&answer) {
            self.unknown(own, spelled, Some(&answer), knowledge);
        }
    }

    /// Reads `-xvf value`, `-n5` and their like.
    fn cluster(
        &mut self,
        own: &mut Level,
        word: &str,
        rest: &mut Words<'_>,
        command: &Command,
        seen: &mut Seen,
    ) -> bool {
        let mut letters = word.strip_prefix('-').unwrap_or(word).chars();
        while let Some(letter) = letters.next() {
            let name = alloc::format!("-{letter}");
            let digits = || command.option("-NUM").filter(|_| letter.is_ascii_digit());
            let Some(option) = command.option(&name).or_else(digits) else {
                self.unknown(own, word, None, Some(command));
                return true;
            };
            let behind = letters.as_str();
            let value = match option.value {
                None => None,
                Some(_) if !behind.is_empty() => Some(behind.to_string()),
                Some(_) if option.attached => None,
                Some(_) => rest.next().cloned(),
            };
            let takes_rest = option.value.is_some();
            self.understood(own, option, &name, value, seen);
            if takes_rest {
                break;
            }
        }
        false
    }

    /// Letters without a dash in the first place: `tar xzf`. Those that take a value take the words
    /// behind them, one by one.
    fn bundle(
        &mut self,
        own: &mut Level,
        rest: &mut Words<'_>,
        command: &Command,
        seen: &mut Seen,
    ) {
        let Some(first) = rest.as_slice().first().filter(|word| !word.starts_with('-')) else {
            return;
        };
        let options: Option<Vec<&Opt>> =
            first.chars().map(|letter| command.option(&alloc::format!("-{letter}"))).collect();
        let Some(options) = options.filter(|options| !options.is_empty()) else { return };
        rest.next();
        for option in options {
            let takes = option.value.is_some() && !option.attached;
            let value = if takes { rest.next().cloned() } else { None };
            let spelled = option.names.first().cloned().unwrap_or_default();
            self.understood(own, option, &spelled, value, seen);
        }
    }

    /// Reads an operand such as `if=file`, where the program has such.
    fn keyed(
        &mut self,
        own: &mut Level,
        word: &str,
        knowledge: Option<&Command>,
        seen: &mut Seen,
    ) -> bool {
        let Some((key, value)) = word.split_once('=') else { return false };
        let name = alloc::format!("{key}=");
        let Some(option) = knowledge.and_then(|command| command.option(&name)) else {
            return false;
        };
        self.understood(own, option, &name, Some(value.to_string()), seen);
        true
    }

    fn understood(
        &mut self,
        own: &mut Level,
        option: &Opt,
        spelled: &str,
        value: Option<String>,
        seen: &mut Seen,
    ) {
        let before = self.reading.added.len();
        if let (Some(kind), Some(value)) = (option.value, &value) {
            self.value(kind, value);
            for target in option.targets.iter().filter(|target| target.names(value)) {
                let added = self.adds(&target.adds, value);
                self.reading.added.push(added);
            }
        }
        let adds = &option.adds;
        let is_none = adds.effects.is_empty()
            || value.as_ref().is_some_and(|own| option.except.contains(own));
        let added = (!is_none).then(|| self.adds(adds, spelled));
        let added = added.map(|added| self.started(added));
        self.reading.added.extend(added.clone());
        let runs =
            matches!(option.value, Some(Word::Script | Word::Code | Word::Command | Word::Sql));
        seen.given |= runs || added.is_some();
        let only = if spelled == "-h" { &mut seen.asked } else { &mut seen.only };
        *only = only.or(option.only);
        seen.changes |= option.changes;
        seen.ended |= option.ends;
        if option.value == Some(Word::Module) {
            seen.module.clone_from(&value);
        }
        self.reading.walks_all &= !option.narrows;
        if option.first && !seen.first {
            // What stands before it was taken for what it says, and is something else.
            if let Some(before) = own.operands.first() {
                self.taken_otherwise(before, seen.behind_text);
            }
            seen.first = true;
            seen.kinds = seen.kinds.max(1);
        }
        own.flags.push(Flag {
            spelled: spelled.to_string(),
            names: option.names.clone(),
            value,
            added: added.or_else(|| self.reading.added.get(before).cloned()),
        });
    }

    /// What an option is given. What it names to be loaded is started by a program that else starts
    /// nothing.
    fn value(&mut self, kind: Word, value: &str) {
        self.reading.scripts.extend((kind == Word::Script).then(|| value.to_string()));
        for added in self.word(word::Place::Option, kind, value) {
            let added = if kind == Word::Script { self.started(added) } else { added };
            self.reading.added.push(added);
        }
    }

    /// An option that a known program is not known to have could do anything the program can.
    fn unknown(
        &mut self,
        own: &mut Level,
        spelled: &str,
        value: Option<&str>,
        knowledge: Option<&Command>,
    ) {
        if knowledge.is_some() {
            self.reading.added.push(does(Effect::Unknown, spelled));
        }
        self.reading.paths.extend(value.and_then(PathUse::stray));
        let value = value.map(ToString::to_string);
        own.flags.push(Flag {
            spelled: spelled.to_string(),
            names: Vec::new(),
            value,
            added: None,
        });
    }

    /// Reads an operand; says whether the words end with it.
    fn operand(
        &mut self,
        own: &mut Level,
        word: &str,
        rest: &Words<'_>,
        knowledge: Option<&Command>,
        (seen, options_end): (&mut Seen, bool),
    ) -> bool {
        let kinds = knowledge.map(|command| command.operands.as_slice()).unwrap_or_default();
        let kind = |at: usize| kinds.get(at).or(kinds.last()).copied();
        if kind(seen.kinds) == Some(Word::Assignments) {
            if let Some((name, value)) = word.split_once('=') {
                self.reading.variables.push((name.to_string(), value.to_string()));
                return false;
            }
            // A lone dash empties the environment.
            if word == "-" {
                return false;
            }
            seen.kinds += 1;
        }
        let own_kind = kind(seen.kinds);
        if seen.kinds == 0 && own_kind == Some(Word::Text) {
            seen.behind_text = kind(1);
        }
        seen.kinds += 1;
        if own_kind == Some(Word::Command) {
            let from = self.total.saturating_sub(rest.as_slice().len() + 1);
            self.reading.inner.push(from..self.total);
            return true;
        }
        let paths = self.reading.paths.len();
        // A word of which the table does not say that it is none is a path where it leads away.
        let is_last = seen.kinds >= kinds.len();
        match own_kind {
            None if knowledge.is_none() || self.is_local => {
                self.reading.paths.extend(PathUse::stray(word));
            }
            Some(Word::Text) if is_last && self.is_local => {
                self.reading.paths.extend(PathUse::of_machine(word));
            }
            _ => {}
        }
        // An option that nobody judges may still not lead away.
        let value = word.split_once('=').filter(|_| word.starts_with('-'));
        self.reading.paths.extend(value.and_then(|(_, value)| PathUse::of_machine(value)));
        if let Some(kind) = own_kind {
            let added = self.word(word::Place::of(options_end), kind, word);
            seen.words.extend(added);
            self.reading.names_script |= kind == Word::Script;
            seen.module = match kind {
                Word::Module => Some(word.to_string()),
                Word::Script => module::installed(word).map(ToString::to_string),
                _ => None,
            };
        }
        seen.last = paths..self.reading.paths.len();
        own.operands.push(word.to_string());
        false
    }

    /// The words from here to one of those that end it, or to the last.
    fn inner(&mut self, rest: &mut Words<'_>, until: &[String]) {
        let from = self.total.saturating_sub(rest.as_slice().len());
        let mut to = from;
        for word in rest.by_ref() {
            if until.contains(word) {
                break;
            }
            to += 1;
        }
        self.reading.inner.push(from..to);
    }
}

/// What a command does that may be about files of other computers.
const ELSEWHERE: Effects = Effects::of(Effect::Network)
    .with(Effect::Publishes)
    .with(Effect::System)
    .with(Effect::Shell)
    .with(Effect::Secrets)
    .with(Effect::Destroys);

/// Whether a word that looks like an option is text to a program that takes it so: one of its letters
/// is no option, and none before it takes the rest as its value.
fn is_text(command: &Command, word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or(word).chars();
    let mut options = letters.map(|letter| command.option(&alloc::format!("-{letter}")));
    let first = options.find(|option| option.is_none_or(|own| own.value.is_some()));
    command.lenient && command.option(word).is_none() && matches!(first, Some(None))
}

/// What stands behind an option that is there or not: `--dry-run=false`.
fn is_answer(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0" | "always" | "never" | "auto"
    )
}
