//! What a level of a command line does, once all of its words are read.

use alloc::vec::Vec;

use crate::programs::read::{Seen, Walk};
use crate::programs::{Added, Adds, Command, Effect, Effects, Level, Use, word};

impl Walk {
    /// The end of the last level: what depends on all of its words.
    pub(super) fn end(&mut self, own: Level, knowledge: Option<&Command>, mut seen: Seen) {
        if let (Some(kind), Some(word)) = (knowledge.and_then(|own| own.last), own.operands.last())
            && own.operands.len() > 1
        {
            self.reading.paths.drain(seen.last.clone());
            let added = self.word(word::Place::Before, kind, word);
            seen.words.extend(added);
        }
        if own.operands.is_empty() {
            let help = own.asks_for_help().then_some(Effects::of(Effect::Reads));
            seen.only = seen.only.or(help).or(seen.asked);
        }
        if seen.only.is_none() {
            self.reading.added.append(&mut seen.words);
            if seen.changes {
                let read = self.reading.paths.iter_mut().filter(|own| !own.of_option);
                read.for_each(|own| own.usage = Use::Write);
            }
        } else {
            // Nothing is done to what the operands name but to look at it.
            let own = self.reading.paths.iter_mut().filter(|own| !own.of_option);
            own.for_each(|own| own.usage = Use::Read);
        }
        self.nature(&own, knowledge, &seen);
        self.reading.levels.push(own);
        self.touched();
    }

    /// What a command that changes files is given to work in, it may change.
    fn touched(&mut self) {
        let changes = Effects::of(Effect::Writes).with(Effect::Deletes);
        let deletes = self
            .reading
            .added
            .iter()
            .any(|own| own.effects.has(Effect::Deletes) && own.word.starts_with('-'));
        let changes = self.reading.effects().meets(changes);
        for path in &mut self.reading.paths {
            let named = deletes && !path.of_option || changes && path.is_folder;
            if named && matches!(path.usage, Use::Read | Use::ReadTree) {
                path.usage = Use::Change;
            }
        }
    }

    /// What the command does by its nature and by how many operands and which it has.
    fn nature(&mut self, own: &Level, knowledge: Option<&Command>, seen: &Seen) {
        let Some(command) = knowledge else { return };
        let name = own.name.as_str();
        let only = seen.only.map(|effects| Adds { effects, ..Adds::default() });
        let mut found = alloc::vec![(only.as_ref().unwrap_or(&command.nature), name)];
        if only.is_none() {
            let count = own.operands.len();
            let is_bare = count == 0 && self.reading.inner.is_empty() && !seen.given;
            found.extend(command.bare.iter().filter(|_| is_bare).map(|adds| (adds, name)));
            let beyond = command.beyond.iter().filter(|(most, _)| count > *most);
            found.extend(beyond.map(|(_, adds)| (adds, name)));
        }
        // Looking at what starts something starts it.
        let counts = |adds: &Adds| only.is_none() || adds.effects.has(Effect::Starts);
        for word in &own.operands {
            let named = command.targets.iter().filter(|target| target.names(word));
            let named = named.map(|target| (&target.adds, word.as_str()));
            found.extend(named.filter(|(adds, _)| counts(adds)));
        }
        let found: Vec<Added> =
            found.into_iter().map(|(adds, word)| self.adds(adds, word)).collect();
        self.reading.nature.extend(found);
    }
}
