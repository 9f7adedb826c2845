//! The effects of single arguments of a command line.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::mem;

use crate::specs::argv_parser::ArgvParser;
use crate::specs::embedded;
use crate::specs::{
    ArgKind, Effect, EffectSpec, Effects, MatchedEffect, PathUse, argument_paths, path_use,
};

impl ArgvParser {
    /// What an option is given. What it names to be loaded is started by a program that else starts
    /// nothing.
    pub(super) fn value(&mut self, kind: ArgKind, value: &str) {
        self.parsed.scripts.extend((kind == ArgKind::Script).then(|| value.to_string()));
        for added in self.read_argument(argument_paths::ArgPosition::Option, kind, value) {
            let added = if kind == ArgKind::Script { self.as_program_start(added) } else { added };
            self.parsed.argument_effects.push(added);
        }
    }

    /// Notes what is added for a word, with the places that change without being named.
    pub(super) fn match_effect(&mut self, adds: &EffectSpec, word: &str) -> MatchedEffect {
        for place in &adds.touches {
            self.parsed.paths.push(PathUse::touched(place));
        }
        adds.matched(word)
    }

    /// A program that starts none by its nature does something else with an option that does.
    pub(super) fn as_program_start(&mut self, added: MatchedEffect) -> MatchedEffect {
        let is_start = added.effects.contains(Effect::Runs) && !self.starts_others;
        let effects = added.effects.without(Effect::Runs).with(Effect::Starts);
        if is_start { MatchedEffect { effects, ..added } } else { added }
    }

    /// An operand that was taken for a first one and is not: a text that does nothing is what stands behind
    /// one after all, as whoever wrote it means it.
    pub(super) fn reread_operand(&mut self, operand: &str, behind_text: Option<ArgKind>) {
        match behind_text {
            Some(ArgKind::Path) => {
                let added = self.read_argument(
                    argument_paths::ArgPosition::of(false),
                    ArgKind::Path,
                    operand,
                );
                self.parsed.argument_effects.extend(added);
            }
            _ => self.parsed.unclear_argument = Some(operand.to_string()),
        }
    }

    /// The effects that an argument of some kind adds; the paths that it names are noted.
    pub(super) fn read_argument(
        &mut self,
        place: argument_paths::ArgPosition,
        kind: ArgKind,
        text: &str,
    ) -> Vec<MatchedEffect> {
        let mut added = Vec::new();
        let effects = effects_of(kind, text);
        if !effects.is_empty() || kind == ArgKind::Carried {
            added.push(EffectSpec { effects, ..EffectSpec::default() }.matched(text));
        }
        for (effect, why) in embedded::effects_of_text(kind, text) {
            let (effects, why) = (Effects::of(effect), Some(why.to_string()));
            let effect = EffectSpec { effects, why, ..EffectSpec::default() }.matched(text);
            added.push(MatchedEffect { guessed: kind == ArgKind::Code, ..effect });
        }
        if matches!(kind, ArgKind::Setting | ArgKind::Define) {
            self.parsed.modules.extend(embedded::setting_program(text));
        }
        match argument_paths::argument_paths(place, kind, text) {
            Some(paths) => {
                let folder = self.base_directory.clone();
                self.parsed
                    .paths
                    .extend(paths.into_iter().map(|path| path.in_directory(folder.as_deref())));
            }
            None => self.parsed.unclear_argument = Some(text.to_string()),
        }
        if kind == ArgKind::Directory {
            let outer = mem::take(&mut self.base_directory);
            self.base_directory = Some(path_use::join_directory(outer.as_deref(), text));
        }
        added
    }
}

/// The effects of a command that is given such an argument. A lone dash is standard input: as a program it
/// is a text that nobody has seen. A program that stands at an address comes from elsewhere.
fn effects_of(kind: ArgKind, text: &str) -> Effects {
    match (kind, text) {
        (ArgKind::Script, "-") => Effects::of(Effect::Code),
        (_, "-") => Effects::NONE,
        (ArgKind::Script, text) if text.contains("://") => {
            Effects::of(Effect::Network).with(Effect::Starts)
        }
        // Many programs read from an address, and write to one, where a file is expected.
        (ArgKind::Path | ArgKind::MaybePath, text) if is_address(text) => {
            Effects::of(Effect::Network)
        }
        (ArgKind::WrittenPath, text) if is_address(text) => {
            Effects::of(Effect::Network).with(Effect::Publishes)
        }
        _ => kind.effects(),
    }
}

/// Whether a word is an address of another computer, and no file of this one.
fn is_address(text: &str) -> bool {
    let of_scheme = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(of_scheme) && !scheme.eq_ignore_ascii_case("file")
    })
}
