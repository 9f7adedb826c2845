//! Where a group, a loop or a condition has its streams lead: `{ LIST; } > FILE`, `2>&1`, and a pipe behind it.
//!
//! A file is opened once, before anything runs, and each program of the group goes on at its end. What is piped is
//! kept, and read by the programs behind.

use alloc::string::String;
use alloc::vec::Vec;

use super::ast::{
    ElementKind, GroupScope, ListOperator, PipelineStage, Redirection, ScriptElement, ShellWord,
    Span, StdStream, TextPlace, enter,
};
use super::parser::Parser;
use super::refusal::SyntaxRefusal;
use super::statements::changes_directory;
use super::tokens::{Token, Unit};
use super::unsupported::UnsupportedSyntax;
use super::wildcards;
use crate::specs::{CommandLine, Effect, Effects};
use crate::steps::DEV_NULL;

/// What a program may do that takes what a group prints.
const FILTER_EFFECTS: Effects = Effects::of(Effect::Reads).with(Effect::Opens).with(Effect::Writes);

/// Whether a stage does nothing but look at text, and write it.
fn filters(stage: &PipelineStage) -> bool {
    let argv: Vec<String> = stage.words.iter().map(ShellWord::unexpanded).collect();
    let line = CommandLine::parse(&argv, None, false);
    line.nested.is_empty() && line.effects().is_subset_of(FILTER_EFFECTS)
}

/// A redirection for each program of a group, and the word of its path where that is a value.
type Led = (Redirection, Option<ShellWord>);

/// The redirections of a group.
#[derive(Default)]
struct GroupStreams {
    led: Vec<Led>,
    /// What opens the files.
    opening: PipelineStage,
    /// Their paths, by the names of values.
    paths: Vec<(String, ShellWord)>,
}

impl GroupStreams {
    /// Where a program complains to whose output something else takes. None where that is where the group prints.
    fn complaints(&self) -> Option<Vec<Led>> {
        let last = |led: &[Led], stream| {
            led.iter().rposition(|(redirect, _)| redirect.stream() == Some(stream))
        };
        let Some(mut at) = last(&self.led, StdStream::Err) else { return Some(Vec::new()) };
        if let Some((Redirection::Duplicate { .. }, _)) = self.led.get(at) {
            at = last(self.led.get(..at)?, StdStream::Out)?;
        }
        match self.led.get(at)?.clone() {
            (Redirection::File { path, append, .. }, value) => {
                Some([(Redirection::File { stream: StdStream::Err, path, append }, value)].into())
            }
            _ => None,
        }
    }
}

impl Parser {
    /// Leads the streams of a statement where its redirections and its pipe say. What comes before its body only makes
    /// what it reads.
    pub(super) fn lead_streams(
        &mut self,
        (start, body): (usize, usize),
        place: &Span,
    ) -> Result<(), SyntaxRefusal> {
        let streams = self.take_streams(start, place)?;
        let is_piped = self.tokens.next_if(|(token, _)| matches!(token, Token::Pipe)).is_some();
        let has_output =
            streams.led.iter().any(|(redirect, _)| redirect.stream() == Some(StdStream::Out));
        let is_lost = is_piped && (has_output || !self.is_pipeable(start));
        if is_lost || !self.lead(body, &streams) {
            return Err(SyntaxRefusal::of(UnsupportedSyntax::Group, place.clone()));
        }
        if !streams.paths.is_empty() {
            self.open_first(start, streams, place)?;
        }
        if !is_piped {
            return Ok(());
        }
        let name = alloc::format!("|{}", self.number());
        let behind = self.emit(enter(true, GroupScope::Subshell), place.clone())?;
        self.move_to_front(start, behind);
        self.emit(ElementKind::Leave(Some(name.clone())), place.clone())?;
        self.skip_lines();
        self.uncheck_since(start);
        self.filter_output(ShellWord::value_of(&name), place)
    }

    /// The redirections that come next, for the elements since one.
    fn take_streams(&mut self, start: usize, place: &Span) -> Result<GroupStreams, SyntaxRefusal> {
        let opening = PipelineStage::of(["true"], place);
        let mut streams = GroupStreams { opening, ..GroupStreams::default() };
        while let Some((Token::Redirect(redirect, units), span)) =
            self.tokens.next_if(|(token, _)| matches!(token, Token::Redirect(..)))
        {
            let (mut led, mut value) = (redirect.clone(), None);
            match &mut led {
                input if input.is_input() => {
                    return Err(SyntaxRefusal::of(UnsupportedSyntax::Group, span));
                }
                Redirection::File { path, append, .. } if path != DEV_NULL => {
                    let word = self.group_path(start, path, (&units, &span))?;
                    let name = alloc::format!("|{}", self.number());
                    let place = TextPlace::Redirect(streams.opening.redirects.len());
                    streams.opening.templates.push((place, word.clone()));
                    (*path, *append) = (String::new(), true);
                    value = Some(ShellWord::value_of(&name));
                    streams.paths.push((name, word));
                }
                _ => {}
            }
            streams.opening.redirects.push(redirect);
            streams.led.push((led, value));
        }
        Ok(streams)
    }

    /// The path of a file of a group, which is the same wherever the group goes.
    fn group_path(
        &self,
        start: usize,
        path: &str,
        (units, span): (&[Unit], &Span),
    ) -> Result<ShellWord, SyntaxRefusal> {
        self.check_names(units)?;
        let mut word = match units {
            [] => ShellWord::text(path),
            units => wildcards::parse_template(units, span.clone())?,
        };
        let group = self.elements.get(start..).unwrap_or_default();
        let moves =
            group.iter().flat_map(|element| &element.pipeline.stages).any(changes_directory);
        let is_printed = word.variables().any(|name| name.starts_with('('));
        if is_printed || moves && !units.is_empty() {
            return Err(SyntaxRefusal::of(UnsupportedSyntax::Group, span.clone()));
        }
        if moves && !path.starts_with('/') {
            let directory = ShellWord::value_of("PWD").pieces;
            word.pieces = [directory, ShellWord::text(&alloc::format!("/{path}")).pieces].concat();
        }
        Ok(word)
    }

    /// Leads the streams of the programs since one; false where there is no way to say so.
    fn lead(&mut self, start: usize, streams: &GroupStreams) -> bool {
        let complaints = streams.complaints();
        let mut taken: Vec<bool> = Vec::new();
        for element in self.elements.iter_mut().skip(start) {
            match element.kind {
                ElementKind::Enter { captures, .. } => taken.push(captures),
                ElementKind::Leave(_) => drop(taken.pop()),
                _ => {}
            }
            let last = element.pipeline.stages.len();
            for (index, stage) in element.pipeline.stages.iter_mut().enumerate() {
                let is_taken = index + 1 < last || taken.contains(&true);
                let led = match &complaints {
                    // What a `cd` says of itself stays where it is.
                    _ if changes_directory(stage) && !streams.paths.is_empty() => &[],
                    _ if !is_taken => streams.led.as_slice(),
                    // It only prints names of files.
                    _ if stage.words.get(1).is_some_and(|word| word.literal() == Some("%s\\0")) => {
                        &[]
                    }
                    // What is captured may write to no file.
                    Some(led) if !element.is_captured || led.iter().all(|led| led.1.is_none()) => {
                        led
                    }
                    _ => return false,
                };
                for (redirect, path) in led.iter().rev() {
                    stage.redirect_first(redirect.clone(), path.clone());
                }
            }
        }
        true
    }

    /// Has the files of a statement be opened before anything of it runs, as a shell does. Where that fails, the
    /// statement is left out.
    fn open_first(
        &mut self,
        start: usize,
        streams: GroupStreams,
        place: &Span,
    ) -> Result<(), SyntaxRefusal> {
        let (behind, before) = (self.next_index(), self.number());
        for (name, path) in streams.paths {
            let (value, is_exported, keeps_status) = (Some(path), false, true);
            let kind = ElementKind::Assign { name, value, is_exported, keeps_status };
            self.emit(kind, place.clone())?;
        }
        self.emit(ElementKind::Note(before), place.clone())?;
        self.emit_run([streams.opening].into(), true, place.clone())?;
        let fails = self.jump(ListOperator::Or, place)?;
        self.emit(ElementKind::Recall(before), place.clone())?;
        self.move_to_front(start, behind);
        self.land(&[fails - (behind - start)]);
        Ok(())
    }

    /// Whether what the elements since one print can be kept for what is behind a pipe.
    fn is_pipeable(&self, start: usize) -> bool {
        // What leaves it before its end would leave its output behind.
        let leaves = self.loops.iter().any(|frame| frame.breaks.iter().any(|jump| *jump >= start));
        let leads_out =
            |element: &ScriptElement| matches!(element.kind, ElementKind::Jump(to) if to < start);
        let group = self.elements.get(start..).unwrap_or_default();
        // The status of a group in front of a pipe is not kept.
        !(leaves || group.iter().any(leads_out) || self.fails_with_pipes())
    }

    /// The pipeline that takes what a group prints. Of that nothing says any more which programs made it, so only
    /// what looks at text may take it.
    fn filter_output(&mut self, text: ShellWord, place: &Span) -> Result<(), SyntaxRefusal> {
        let behind = self.next_index();
        self.pipeline(Some(text))?;
        let behind = self.elements.get(behind..).unwrap_or_default();
        match behind.iter().flat_map(|element| &element.pipeline.stages).all(filters) {
            true => Ok(()),
            false => Err(SyntaxRefusal::of(UnsupportedSyntax::Group, place.clone())),
        }
    }
}
