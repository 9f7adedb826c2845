//! Reads a command line, word by word.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::specs::command_spec::matches_setting;
use crate::specs::parsed_argv::new_level;
use crate::specs::{
    ANY_SUBCOMMAND, ArgKind, CommandLevel, CommandSpec, Effect, Effects, MatchedEffect, OptionSpec,
    OptionStyle, ParsedArgv, ParsedFlag, PathUse, argument_paths, effect,
    effect::{effect_of_verb, matched_effect},
    module,
};

impl ParsedArgv {
    /// Reads a command line. With `knowledge` the arity of options is known; without it every word
    /// that begins with a dash is an option and may or may not take the next word.
    #[must_use]
    pub fn parse(
        argv: &[String],
        knowledge: Option<&CommandSpec>,
        expect_subcommands: bool,
    ) -> Self {
        let (name, rest) = match argv.split_first() {
            Some((name, rest)) => (name.clone(), rest),
            None => (String::new(), argv),
        };
        let mut walk = ArgvParser {
            parsed: Self::default(),
            argument_count: argv.len(),
            base_directory: None,
            starts_others: false,
            is_local: true,
            offline: false,
        };
        if knowledge.is_none() {
            walk.parsed.base_effects.push(matched_effect(Effect::Unknown, &name));
            let operands = rest.iter().filter(|word| !word.starts_with('-'));
            walk.parsed
                .base_effects
                .extend(operands.take(2).filter_map(|word| effect_of_verb(word)));
        }
        walk.read_level(new_level(&name, knowledge.is_some()), rest, knowledge, expect_subcommands);
        walk.parsed
    }
}

/// A walk over the words of a command line.
pub(super) struct ArgvParser {
    pub(super) parsed: ParsedArgv,
    /// How many words there are.
    argument_count: usize,
    /// The folder that an option made the paths behind it start from.
    pub(super) base_directory: Option<String>,
    /// Whether the program or its subcommand starts others by its nature.
    pub(super) starts_others: bool,
    /// Whether it works here alone: what its words name is on this machine.
    is_local: bool,
    /// An option keeps it from contacting another computer by itself.
    pub(super) offline: bool,
}

/// The words that are left.
type ArgumentIter<'w> = core::slice::Iter<'w, String>;

/// What was seen at one level.
#[derive(Default)]
pub(super) struct LevelState {
    /// How many words counted as operands of some kind.
    operand_kinds: usize,
    /// What the operand behind a first one means that is plain text.
    behind_text: Option<ArgKind>,
    /// The paths of the last operand, where they stand among all.
    pub(super) last: Range<usize>,
    /// An option of unknown arity came before.
    uncertain: bool,
    /// All that the command does, whatever its nature.
    pub(super) only: Option<Effects>,
    /// The same by a letter which asks for help where nothing else stands, and may be the name of a
    /// computer elsewhere.
    pub(super) help_effects: Option<Effects>,
    /// An option says what is run.
    pub(super) runs_given_program: bool,
    /// A program that is run by its name, whose words follow.
    pub(super) module: Option<String>,
    /// No option follows.
    ended: bool,
    /// An option said what the first operand says otherwise.
    first_replaced: bool,
    /// An option makes the command change what its operands name.
    pub(super) changes: bool,
    /// What the operands add.
    pub(super) operand_effects: Vec<MatchedEffect>,
}

impl ArgvParser {
    pub(super) fn read_level(
        &mut self,
        mut own: CommandLevel,
        words: &[String],
        knowledge: Option<&CommandSpec>,
        mut subcommand_next: bool,
    ) {
        if let Some(command) = knowledge {
            subcommand_next = !command.subcommands.is_empty();
            self.enter(command);
        }
        let mut seen = LevelState::default();
        let mut options_end = false;
        let mut rest = words.iter();
        if let Some(command) = knowledge.filter(|spec| spec.style == OptionStyle::Bundle) {
            self.read_bundle(&mut own, &mut rest, command, &mut seen);
        }
        while let Some(word) = rest.next() {
            if !options_end && word == "--" {
                options_end = true;
                // To some programs it says what the words behind it are.
                if let Some(option) = knowledge.and_then(|command| command.option("--")) {
                    self.record_option(&mut own, option, word, None, &mut seen);
                }
                continue;
            }
            let is_option = word.len() > 1
                && word.starts_with('-')
                && !knowledge.is_some_and(|spec| is_text(spec, word));
            if is_option && (!options_end || knowledge.is_none()) {
                seen.uncertain |= self.read_option(&mut own, word, &mut rest, knowledge, &mut seen);
                options_end |= seen.ended;
            } else if !options_end && self.read_key_value(&mut own, word, knowledge, &mut seen) {
                continue;
            } else if subcommand_next && !options_end {
                let prefix = knowledge.and_then(|spec| spec.prefix.as_ref());
                if prefix.is_some_and(|prefix| word.starts_with(prefix.as_str())) {
                    continue;
                }
                self.parsed.ambiguous |= seen.uncertain;
                self.parsed.levels.push(own);
                return self.read_subcommand(word, rest.as_slice(), knowledge);
            } else {
                if self.read_operand(&mut own, word, &rest, knowledge, (&mut seen, options_end)) {
                    break;
                }
                options_end |= knowledge.is_some_and(|command| command.options_end_at_operand);
            }
            own = match self.enter_module(own, &mut seen, rest.as_slice()) {
                Some(level) => level,
                None => return,
            };
        }
        self.finish_level(own, knowledge, seen);
    }

    /// What holds for all words of a level.
    fn enter(&mut self, command: &CommandSpec) {
        self.starts_others = command.starts_others();
        self.is_local = !command.base_effect.effects.intersects(effect::REMOTE_EFFECTS);
        self.parsed.walks_all = command.is_recursive;
        self.parsed.opens_named_only = command.opens_named_only;
    }

    fn read_subcommand(&mut self, name: &str, words: &[String], knowledge: Option<&CommandSpec>) {
        let inner = knowledge
            .and_then(|command| command.subcommand(name))
            .filter(|_| name != ANY_SUBCOMMAND);
        let other = knowledge.and_then(CommandSpec::fallback_subcommand);
        match (knowledge, inner, other) {
            (Some(_), None, Some(other)) => {
                // The word itself is the first operand of what it names.
                let mut all = alloc::vec![name.to_string()];
                all.extend_from_slice(words);
                self.read_level(new_level(name, true), &all, Some(other), false);
            }
            // An unknown subcommand of a known program could do anything.
            (Some(_), None, None) => {
                self.read_level(
                    new_level(name, false),
                    words,
                    Some(&CommandSpec::unknown()),
                    false,
                );
            }
            _ => self.read_level(new_level(name, inner.is_some()), words, inner, false),
        }
    }

    /// Reads one option; says whether its arity is unknown.
    fn read_option(
        &mut self,
        level: &mut CommandLevel,
        word: &str,
        rest: &mut ArgumentIter<'_>,
        knowledge: Option<&CommandSpec>,
        seen: &mut LevelState,
    ) -> bool {
        let words = knowledge.is_some_and(|command| command.style == OptionStyle::SingleDash);
        let (spelled, attached) = match word.split_once('=') {
            Some((spelled, value)) if words || word.starts_with("--") => (spelled, Some(value)),
            // `-fplugin=x`, where the program has such an option.
            Some((spelled, value))
                if spelled.len() > 2
                    && knowledge.is_some_and(|spec| spec.option(spelled).is_some()) =>
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
            return self.read_cluster(level, word, rest, command, seen);
        }
        let Some(option) = exact else {
            if attached.is_none() && knowledge.is_some_and(|command| command.is_negation(spelled)) {
                level.flags.push(ParsedFlag::taken_back(spelled));
                return false;
            }
            self.record_unknown_option(level, spelled, attached, knowledge);
            return attached.is_none();
        };
        if option.value == Some(ArgKind::Command) && attached.is_none() {
            self.record_nested(rest, &option.until);
        }
        let value = match (attached, option.value) {
            (Some(value), _) => Some(value.to_string()),
            (None, Some(ArgKind::Command)) => None,
            (None, Some(_)) if !option.attached => rest.next().cloned(),
            _ => None,
        };
        self.read_known_option(level, option, (spelled, value), knowledge, seen);
        for kind in &option.more_values {
            let Some(value) = rest.next() else { break };
            self.value(*kind, value);
        }
        false
    }

    /// An option that is known, with what stands behind it.
    fn read_known_option(
        &mut self,
        level: &mut CommandLevel,
        option: &OptionSpec,
        (spelled, value): (&str, Option<String>),
        knowledge: Option<&CommandSpec>,
        seen: &mut LevelState,
    ) {
        let (only, offline) = (seen.only, self.offline);
        let answer = value.clone().filter(|_| option.value.is_none());
        self.record_option(level, option, spelled, value, seen);
        let Some(answer) = answer else { return };
        // `--dry-run=false` says the opposite.
        (seen.only, self.offline) = (only, offline);
        if !is_boolean(&answer) {
            self.record_unknown_option(level, spelled, Some(&answer), knowledge);
        }
    }

    /// Reads `-xvf value`, `-n5` and their like.
    fn read_cluster(
        &mut self,
        level: &mut CommandLevel,
        word: &str,
        rest: &mut ArgumentIter<'_>,
        command: &CommandSpec,
        seen: &mut LevelState,
    ) -> bool {
        let mut letters = word.strip_prefix('-').unwrap_or(word).chars();
        while let Some(letter) = letters.next() {
            let name = alloc::format!("-{letter}");
            let digits = || command.option("-NUM").filter(|_| letter.is_ascii_digit());
            let Some(option) = command.option(&name).or_else(digits) else {
                self.record_unknown_option(level, word, None, Some(command));
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
            self.record_option(level, option, &name, value, seen);
            if takes_rest {
                break;
            }
        }
        false
    }

    /// Letters without a dash in the first place: `tar xzf`. Those that take a value take the words
    /// behind them, one by one.
    fn read_bundle(
        &mut self,
        level: &mut CommandLevel,
        rest: &mut ArgumentIter<'_>,
        command: &CommandSpec,
        seen: &mut LevelState,
    ) {
        let Some(first) = rest.as_slice().first().filter(|word| !word.starts_with('-')) else {
            return;
        };
        let options: Option<Vec<&OptionSpec>> =
            first.chars().map(|letter| command.option(&alloc::format!("-{letter}"))).collect();
        let Some(options) = options.filter(|options| !options.is_empty()) else { return };
        rest.next();
        for option in options {
            let takes = option.value.is_some() && !option.attached;
            let value = if takes { rest.next().cloned() } else { None };
            let spelled = option.names.first().cloned().unwrap_or_default();
            self.record_option(level, option, &spelled, value, seen);
        }
    }

    /// Reads an operand such as `if=file`, where the program has such.
    fn read_key_value(
        &mut self,
        level: &mut CommandLevel,
        word: &str,
        knowledge: Option<&CommandSpec>,
        seen: &mut LevelState,
    ) -> bool {
        let Some((key, value)) = word.split_once('=') else { return false };
        let name = alloc::format!("{key}=");
        let Some(option) = knowledge.and_then(|command| command.option(&name)) else {
            return false;
        };
        self.record_option(level, option, &name, Some(value.to_string()), seen);
        true
    }

    fn record_option(
        &mut self,
        level: &mut CommandLevel,
        option: &OptionSpec,
        spelled: &str,
        record_value: Option<String>,
        seen: &mut LevelState,
    ) {
        let before = self.parsed.argument_effects.len();
        if let (Some(kind), Some(value)) = (option.value, &record_value) {
            self.value(kind, value);
            for target in option.value_effects.iter().filter(|target| target.matches(value)) {
                let added = self.match_effect(&target.effect, value);
                self.parsed.argument_effects.push(added);
            }
        }
        let adds = &option.effect;
        let is_none = adds.effects.is_empty()
            || record_value
                .as_ref()
                .is_some_and(|value| option.except.iter().any(|name| matches_setting(name, value)));
        let added = (!is_none).then(|| self.match_effect(adds, spelled));
        let added = added.map(|added| self.as_program_start(added));
        self.parsed.argument_effects.extend(added.clone());
        let runs = matches!(
            option.value,
            Some(ArgKind::Script | ArgKind::Code | ArgKind::Command | ArgKind::Sql)
        );
        seen.runs_given_program |= runs || added.is_some();
        let only = if spelled == "-h" { &mut seen.help_effects } else { &mut seen.only };
        *only = only.or(option.replaces_effects);
        self.offline |= option.offline;
        seen.changes |= option.modifies_operands;
        seen.ended |= option.ends;
        if option.value == Some(ArgKind::Module) {
            seen.module.clone_from(&record_value);
        }
        self.parsed.walks_all &= !option.limits_walk;
        if option.replaces_first_operand && !seen.first_replaced {
            // What stands before it was taken for what it says, and is something else.
            if let Some(before) = level.operands.first() {
                self.reread_operand(before, seen.behind_text);
            }
            seen.first_replaced = true;
            seen.operand_kinds = seen.operand_kinds.max(1);
        }
        level.flags.push(ParsedFlag {
            spelled: spelled.to_string(),
            names: option.names.clone(),
            value: record_value,
            effect: added.or_else(|| self.parsed.argument_effects.get(before).cloned()),
        });
    }

    /// An option that a known program is not known to have could do anything the program can.
    fn record_unknown_option(
        &mut self,
        level: &mut CommandLevel,
        spelled: &str,
        value: Option<&str>,
        knowledge: Option<&CommandSpec>,
    ) {
        if knowledge.is_some() {
            self.parsed.argument_effects.push(matched_effect(Effect::Unknown, spelled));
        }
        self.parsed.paths.extend(value.and_then(PathUse::outside));
        let value = value.map(ToString::to_string);
        level.flags.push(ParsedFlag {
            spelled: spelled.to_string(),
            names: Vec::new(),
            value,
            effect: None,
        });
    }

    /// Reads an operand; says whether the words end with it.
    fn read_operand(
        &mut self,
        level: &mut CommandLevel,
        word: &str,
        rest: &ArgumentIter<'_>,
        knowledge: Option<&CommandSpec>,
        (seen, options_end): (&mut LevelState, bool),
    ) -> bool {
        let kinds = knowledge.map(|command| command.operands.as_slice()).unwrap_or_default();
        let kind = |at: usize| kinds.get(at).or(kinds.last()).copied();
        if kind(seen.operand_kinds) == Some(ArgKind::Assignments) {
            if let Some((name, value)) = word.split_once('=') {
                self.parsed.variables.push((name.to_string(), value.to_string()));
                return false;
            }
            // A lone dash empties the environment.
            if word == "-" {
                return false;
            }
            seen.operand_kinds += 1;
        }
        let own_kind = kind(seen.operand_kinds);
        if seen.operand_kinds == 0 && own_kind == Some(ArgKind::Text) {
            seen.behind_text = kind(1);
        }
        seen.operand_kinds += 1;
        if own_kind == Some(ArgKind::Command) {
            let from = self.argument_count.saturating_sub(rest.as_slice().len() + 1);
            self.parsed.nested.push(from..self.argument_count);
            return true;
        }
        let paths = self.parsed.paths.len();
        // A word of which the table does not say that it is none is a path where it leads away.
        let is_last = seen.operand_kinds >= kinds.len();
        match own_kind {
            None if knowledge.is_none() || self.is_local => {
                self.parsed.paths.extend(PathUse::outside(word));
            }
            Some(ArgKind::Text) if is_last && self.is_local => {
                self.parsed.paths.extend(PathUse::absolute(word));
            }
            _ => {}
        }
        // An option that nobody judges may still not lead away.
        let value = word.split_once('=').filter(|_| word.starts_with('-'));
        self.parsed.paths.extend(value.and_then(|(_, value)| PathUse::absolute(value)));
        if let Some(kind) = own_kind {
            let added =
                self.read_argument(argument_paths::ArgPosition::of(options_end), kind, word);
            seen.operand_effects.extend(added);
            self.parsed.names_script |= kind == ArgKind::Script;
            seen.module = module::named_by(kind, word);
        }
        seen.last = paths..self.parsed.paths.len();
        level.operands.push(word.to_string());
        false
    }

    /// The words from here to one of those that end it, or to the last.
    fn record_nested(&mut self, rest: &mut ArgumentIter<'_>, until: &[String]) {
        let from = self.argument_count.saturating_sub(rest.as_slice().len());
        let mut to = from;
        for word in rest.by_ref() {
            if until.contains(word) {
                break;
            }
            to += 1;
        }
        self.parsed.nested.push(from..to);
    }
}

/// Whether a word that looks like an option is text to a program that takes it so: one of its letters
/// is no option, and none before it takes the rest as its value.
fn is_text(command: &CommandSpec, word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or(word).chars();
    let mut options = letters.map(|letter| command.option(&alloc::format!("-{letter}")));
    let first = options.find(|option| option.is_none_or(|spec| spec.value.is_some()));
    command.lenient && command.option(word).is_none() && matches!(first, Some(None))
}

/// What stands behind an option that is there or not: `--dry-run=false`.
fn is_boolean(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0" | "always" | "never" | "auto"
    )
}
