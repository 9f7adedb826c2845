//! What single words of a command line mean for what the command does.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::mem;

use crate::programs::embedded;
use crate::programs::read::Walk;
use crate::programs::{Added, Adds, Effect, Effects, PathUse, Word, word};

impl Walk {
    /// Notes what is added for a word, with the places that change without being named.
    pub(super) fn adds(&mut self, adds: &Adds, word: &str) -> Added {
        for place in &adds.touches {
            self.reading.paths.push(PathUse::touched(place));
        }
        adds.by(word)
    }

    /// A program that starts none by its nature does something else with an option that does.
    pub(super) fn started(&mut self, added: Added) -> Added {
        let is_start = added.effects.has(Effect::Runs) && !self.runs;
        let effects = added.effects.without(Effect::Runs).with(Effect::Starts);
        if is_start { Added { effects, ..added } } else { added }
    }

    /// An operand that was taken for a first one and is not: a text that does nothing is what stands behind
    /// one after all, as whoever wrote it means it.
    pub(super) fn taken_otherwise(&mut self, operand: &str, behind_text: Option<Word>) {
        match behind_text {
            Some(Word::Path) => {
                let added = self.word(word::Place::of(false), Word::Path, operand);
                self.reading.added.extend(added);
            }
            _ => self.reading.unclear = Some(operand.to_string()),
        }
    }

    /// What a word adds that is of some kind; the paths that it names are noted.
    pub(super) fn word(&mut self, place: word::Place, kind: Word, text: &str) -> Vec<Added> {
        let mut added = Vec::new();
        let effects = effects_of(kind, text);
        if !effects.is_empty() {
            added.push(Adds { effects, ..Adds::default() }.by(text));
        }
        for (effect, why) in embedded::effects(kind, text) {
            let (effects, why) = (Effects::of(effect), Some(why.to_string()));
            let own = Adds { effects, why, ..Adds::default() }.by(text);
            added.push(Added { guessed: kind == Word::Code, ..own });
        }
        match word::paths(place, kind, text) {
            Some(paths) => {
                let folder = self.folder.clone();
                self.reading
                    .paths
                    .extend(paths.into_iter().map(|own| own.within(folder.as_deref())));
            }
            None => self.reading.unclear = Some(text.to_string()),
        }
        if kind == Word::Folder {
            let outer = mem::take(&mut self.folder);
            self.folder = Some(word::joined(outer.as_deref(), text));
        }
        added
    }
}

/// What a command does that is given such a word. A lone dash is standard input: as a program it
/// is a text that nobody has seen. A program that stands at an address comes from elsewhere.
fn effects_of(kind: Word, text: &str) -> Effects {
    match (kind, text) {
        (Word::Script, "-") => Effects::of(Effect::Code),
        (_, "-") => Effects::NONE,
        (Word::Script, text) if text.contains("://") => {
            Effects::of(Effect::Network).with(Effect::Starts)
        }
        // Many programs read from an address, and write to one, where a file is expected.
        (Word::Path | Word::MaybePath, text) if is_address(text) => Effects::of(Effect::Network),
        (Word::Written, text) if is_address(text) => {
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
