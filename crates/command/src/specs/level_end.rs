//! What a level of a command line does, once all of its words are read.

use alloc::string::String;
use alloc::vec::Vec;

use crate::specs::argv_parser::{ArgvParser, LevelState};
use crate::specs::effect::take_network;
use crate::specs::module::find_module_spec;
use crate::specs::parsed_argv::new_level;
use crate::specs::{
    CommandLevel, CommandSpec, Effect, EffectSpec, Effects, MatchedEffect, PathAccess,
    argument_paths,
};

impl ArgvParser {
    /// Goes on with the words of the program that is run by its name, if something is known of it; gives back
    /// the level otherwise. What runs it can be what it likes, so that its effects come to those of whoever runs
    /// it.
    pub(super) fn enter_module(
        &mut self,
        level: CommandLevel,
        seen: &mut LevelState,
        rest: &[String],
    ) -> Option<CommandLevel> {
        let named = seen.module.take().and_then(|name| Some((find_module_spec(&name)?, name)));
        let Some((inner, name)) = named else { return Some(level) };
        self.parsed.argument_effects.append(&mut seen.operand_effects);
        self.parsed.levels.push(level);
        self.parsed.names_script = false;
        self.read_level(new_level(&name, true), rest, Some(inner), false);
        self.parsed.modules.push(name);
        None
    }

    /// The end of the last level: what depends on all of its words.
    pub(super) fn finish_level(
        &mut self,
        level: CommandLevel,
        knowledge: Option<&CommandSpec>,
        mut seen: LevelState,
    ) {
        if let (Some(kind), Some(word)) =
            (knowledge.and_then(|spec| spec.last), level.operands.last())
            && level.operands.len() > 1
        {
            self.parsed.paths.drain(seen.last.clone());
            let added = self.read_argument(argument_paths::ArgPosition::BeforeDashes, kind, word);
            seen.operand_effects.extend(added);
        }
        if level.operands.is_empty() {
            let help = level.asks_for_help().then_some(Effects::of(Effect::Reads));
            seen.only = seen.only.or(help).or(seen.help_effects);
        }
        if seen.only.is_none() {
            self.parsed.argument_effects.append(&mut seen.operand_effects);
            if seen.changes {
                let read = self.parsed.paths.iter_mut().filter(|path| !path.is_option_value);
                read.for_each(|item| item.access = PathAccess::Write);
            }
        } else {
            // Nothing is done to what the operands name but to look at it.
            let item = self.parsed.paths.iter_mut().filter(|path| !path.is_option_value);
            item.for_each(|item| item.access = PathAccess::Read);
        }
        self.add_base_effects(&level, knowledge, &seen);
        self.parsed.levels.push(level);
        self.widen_changes();
    }

    /// What a command that changes files is given to work in, it may change.
    fn widen_changes(&mut self) {
        let changes = Effects::of(Effect::Writes).with(Effect::Deletes);
        let deletes = self.parsed.argument_effects.iter().any(|effect| {
            effect.effects.contains(Effect::Deletes) && effect.argument.starts_with('-')
        });
        let changes = self.parsed.effects().intersects(changes);
        for path in &mut self.parsed.paths {
            let named = deletes && !path.is_option_value || changes && path.is_work_directory;
            if named && matches!(path.access, PathAccess::Read | PathAccess::ReadTree) {
                path.access = PathAccess::Change;
            }
        }
    }

    /// What the command does by its nature and by how many operands and which it has.
    fn add_base_effects(
        &mut self,
        level: &CommandLevel,
        knowledge: Option<&CommandSpec>,
        seen: &LevelState,
    ) {
        let Some(command) = knowledge else { return };
        let name = level.name.as_str();
        let only = seen.only.map(|effects| EffectSpec { effects, ..EffectSpec::default() });
        let mut found = alloc::vec![(only.as_ref().unwrap_or(&command.base_effect), name)];
        if only.is_none() {
            let count = level.operands.len();
            let is_bare = count == 0 && self.parsed.nested.is_empty() && !seen.runs_given_program;
            found.extend(
                command.without_operands.iter().filter(|_| is_bare).map(|adds| (adds, name)),
            );
            let beyond = command.many_operands.iter().filter(|(most, _)| count > *most);
            found.extend(beyond.map(|(_, adds)| (adds, name)));
        }
        // Looking at what starts something starts it.
        let counts = |adds: &EffectSpec| only.is_none() || adds.effects.contains(Effect::Starts);
        for word in &level.operands {
            let named = command.operand_effects.iter().filter(|target| target.matches(word));
            let named = named.map(|target| (&target.effect, word.as_str()));
            found.extend(named.filter(|(adds, _)| counts(adds)));
        }
        let mut found: Vec<MatchedEffect> =
            found.into_iter().map(|(adds, word)| self.match_effect(adds, word)).collect();
        if self.offline {
            found.iter_mut().for_each(take_network);
        }
        self.parsed.base_effects.extend(found);
    }
}
