//! The commands that a shell has in itself, and the texts that shells are given.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::ast::{
    ElementKind, GroupScope, ListOperator, ListOption, PipelineStage, Script, ScriptElement,
    ShellWord, Span, TextPlace, WordPiece, enter,
};
use super::parser::{Parser, check_count, parse_text};
use super::refusal::SyntaxRefusal;
use super::reserved_words::{INHERITED_VARIABLES, is_assignable};
use super::statements::changes_directory;
use super::unsupported::UnsupportedSyntax;
use capsule_base::limits;

impl Parser {
    /// Reads a command that a shell has in itself; false if it is none that is known here.
    pub(super) fn builtin(&mut self, stage: &PipelineStage) -> Result<bool, SyntaxRefusal> {
        let span = &stage.span;
        if stage.words.is_empty() && !stage.variables.is_empty() && stage.redirects.is_empty() {
            return self.assignments(stage).map(|()| true);
        }
        let plain: Option<Vec<&str>> = stage.words.iter().map(ShellWord::literal).collect();
        if !stage.variables.is_empty() || !stage.redirects.is_empty() {
            return Ok(false);
        }
        if let Some(("export", rest)) =
            stage.words.split_first().and_then(|(first, rest)| Some((first.literal()?, rest)))
        {
            return self.export(rest, span);
        }
        let Some(words) = plain else { return Ok(false) };
        match words.as_slice() {
            ["set", options @ ..] => return self.options(options, span),
            ["exit"] => drop(self.emit(ElementKind::Exit(None), span.clone())?),
            ["exit", status] => {
                let Ok(status) = status.parse() else { return Ok(false) };
                self.emit(ElementKind::Exit(Some(status)), span.clone())?;
            }
            ["break" | "continue"] => {
                return self.leave_loop(words.first() == Some(&"break"), span);
            }
            ["source" | ".", path] => {
                let is_bin = |folder: &&str| *folder == "bin" || folder.ends_with("/bin");
                let folder = path.strip_suffix("/activate").filter(is_bin);
                let Some(folder) = folder else { return Ok(false) };
                self.emit(ElementKind::Activate(folder.into()), span.clone())?;
            }
            _ => {
                let Some((options, text)) = shell_text(stage) else { return Ok(false) };
                let inner = self.nested_script(text, span)?;
                if options.is_empty() && self.takes_place(&inner, &options) {
                    return Ok(false);
                }
                self.nested_shell(options, inner, span)?;
            }
        }
        Ok(true)
    }

    fn assignments(&mut self, stage: &PipelineStage) -> Result<(), SyntaxRefusal> {
        for (index, (name, text)) in stage.variables.iter().enumerate() {
            let place = TextPlace::Variable(index);
            let template = stage.templates.iter().find(|(item, _)| *item == place);
            let value = template.map_or_else(|| ShellWord::text(text), |(_, word)| word.clone());
            if !is_assignable(name) {
                return Err(SyntaxRefusal::of(UnsupportedSyntax::VariableForm, stage.span.clone()));
            }
            if INHERITED_VARIABLES.contains(&name.as_str()) {
                let why = "programs would see the new value, which this does not say";
                let hint = "write `export NAME=value`, or put it before the command that needs it";
                let construct = UnsupportedSyntax::OnlyVariables;
                return Err(SyntaxRefusal::with_reason(construct, stage.span.clone(), why, hint));
            }
            self.assign(name, Some(value), false, &stage.span)?;
        }
        Ok(())
    }

    fn assign(
        &mut self,
        name: &str,
        value: Option<ShellWord>,
        is_exported: bool,
        span: &Span,
    ) -> Result<(), SyntaxRefusal> {
        let inner = || value.iter().flat_map(ShellWord::variables);
        inner().try_for_each(|name| self.capture(name, span))?;
        let keeps_status = !is_exported && inner().any(|name| name.starts_with('('));
        let name = name.to_string();
        self.names.push(name.clone());
        let kind = ElementKind::Assign { name, value, is_exported, keeps_status };
        let assign = ScriptElement::new(kind, self.next_index(), span.clone());
        self.push(ScriptElement { is_checked: keeps_status, ..assign }).map(drop)
    }

    /// `export NAME=VALUE ..` and `export NAME ..`.
    fn export(&mut self, words: &[ShellWord], span: &Span) -> Result<bool, SyntaxRefusal> {
        if words.is_empty() {
            return Ok(false);
        }
        for word in words {
            let Some(WordPiece::Text(first)) = word.pieces.first() else { return Ok(false) };
            let (name, value) = match first.split_once('=') {
                Some((name, rest)) => {
                    let mut value = word.clone();
                    if let Some(WordPiece::Text(first)) = value.pieces.first_mut() {
                        *first = rest.into();
                    }
                    value.pieces.retain(|piece| *piece != WordPiece::Text(String::new()));
                    (name, Some(value))
                }
                None if self.names.contains(first) && word.literal().is_some() => {
                    (first.as_str(), None)
                }
                None => return Ok(false),
            };
            if !is_assignable(name) {
                return Ok(false);
            }
            self.assign(name, value, true, span)?;
        }
        Ok(true)
    }

    fn options(&mut self, words: &[&str], span: &Span) -> Result<bool, SyntaxRefusal> {
        let mut found = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let on = word.starts_with('-');
            let letters = word.strip_prefix(['-', '+']).unwrap_or_default();
            if letters.is_empty() {
                return Ok(false);
            }
            for letter in letters.chars() {
                match letter {
                    'e' => found.push((ListOption::ErrorExit, on)),
                    // Variables without a value are refused in any case.
                    'u' => {}
                    'o' => match rest.next() {
                        Some(&"pipefail") => found.push((ListOption::PipeFail, on)),
                        Some(&"errexit") => found.push((ListOption::ErrorExit, on)),
                        Some(&"nounset") => {}
                        _ => return Ok(false),
                    },
                    _ => return Ok(false),
                }
            }
        }
        for (option, on) in found {
            self.emit(ElementKind::Option(option, on), span.clone())?;
        }
        self.emit(ElementKind::Succeed, span.clone()).map(|_| true)
    }

    fn leave_loop(&mut self, breaks: bool, span: &Span) -> Result<bool, SyntaxRefusal> {
        let groups = self.groups;
        let Some(frame) = self.loops.last().filter(|frame| frame.groups == groups) else {
            return Ok(false);
        };
        let (head, note) = (frame.head, frame.note);
        self.emit(ElementKind::Succeed, span.clone())?;
        if !breaks {
            self.emit(ElementKind::Note(note), span.clone())?;
            return self.emit(ElementKind::Jump(head), span.clone()).map(|_| true);
        }
        let index = self.emit(ElementKind::Jump(0), span.clone())?;
        if let Some(frame) = self.loops.last_mut() {
            frame.breaks.push(index);
        }
        Ok(true)
    }

    /// Has what the elements since one run go on in the background: one pipeline, and before it nothing but what a shell
    /// has in itself. `$!` names it from there on.
    pub(super) fn background(&mut self, start: usize, place: Span) -> Result<(), SyntaxRefusal> {
        let jobs = self.elements.iter().filter(|element| element.is_background).count();
        check_count(jobs, "background parts", limits::BACKGROUND_JOBS, &place)?;
        let is_top = self.depth == 0 && self.groups == 0 && self.captured == 0;
        let group = self.elements.get_mut(start..).unwrap_or_default();
        let is_group = group.len() > 1;
        let last = group.iter().rposition(|element| !matches!(element.kind, ElementKind::Leave(_)));
        let (before, rest) = group.split_at_mut(last.unwrap_or_default());
        let only_leads = before.iter().enumerate().all(|(at, item)| leads_on(item, start + at));
        match rest.first_mut().filter(|last| is_top && only_leads && runs_programs(last)) {
            Some(last) => last.is_background = true,
            None => return Err(SyntaxRefusal::of(UnsupportedSyntax::Background, place)),
        }
        rest.iter_mut().for_each(|element| element.is_checked = false);
        if is_group {
            let behind = self.emit(enter(false, GroupScope::Subshell), place.clone())?;
            self.move_to_front(start, behind);
            self.emit(ElementKind::Leave(None), place.clone())?;
            self.emit(ElementKind::Succeed, place.clone())?;
        }
        let job =
            ShellWord { is_opaque: true, ..ShellWord::text(&alloc::format!("%{}", jobs + 1)) };
        self.assign("!", Some(job), false, &place)
    }

    /// Whether a part of the list may be about its background parts.
    pub(super) fn has_jobs(&self) -> bool {
        let is_started = self.elements.iter().any(|element| element.is_background);
        is_started && self.groups == 0 && self.captured == 0
    }

    /// Puts the programs of `bash -c TEXT` in its place in a pipeline, where the text is one pipeline.
    pub(super) fn read_shells(
        &self,
        stages: Vec<PipelineStage>,
    ) -> Result<Vec<PipelineStage>, SyntaxRefusal> {
        let mut read = Vec::new();
        for stage in stages {
            let (options, inner) = match shell_text(&stage) {
                Some((options, text)) => (options, self.nested_script(text, &stage.span)?),
                None => (Vec::new(), Script { elements: Vec::new() }),
            };
            let is_plain = stage.templates.is_empty()
                && inner.stages().all(|program| program.templates.is_empty())
                && (stage.redirects.is_empty() || inner.stages().nth(1).is_none());
            if !is_plain || !self.takes_place(&inner, &options) {
                read.push(stage);
                continue;
            }
            for mut program in inner.elements.into_iter().flat_map(|item| item.pipeline.stages) {
                program.redirects.splice(0..0, stage.redirects.iter().cloned());
                program.variables.splice(0..0, stage.variables.iter().cloned());
                program.span = stage.span.clone();
                read.push(program);
            }
        }
        Ok(read)
    }

    /// Whether a text means the same in the place of its shell: one pipeline that neither leaves a directory behind nor asks
    /// for a status before, and whose own depends on no option.
    fn takes_place(&self, inner: &Script, options: &[ListOption]) -> bool {
        let pipe_fails = options.contains(&ListOption::PipeFail) || self.fails_with_pipes();
        let is_scoped = |stage: &PipelineStage| {
            changes_directory(stage) || stage.variable_names().any(|name| name == "?")
        };
        inner.is_single()
            && !inner.stages().any(is_scoped)
            && !(pipe_fails && inner.stages().nth(1).is_some())
    }

    /// Reads the text that a shell is given. Places in it are those of the shell.
    fn nested_script(&self, text: &str, span: &Span) -> Result<Script, SyntaxRefusal> {
        check_count(self.depth, "statements in one another", limits::STATEMENT_DEPTH, span)?;
        let place = |refusal: SyntaxRefusal| SyntaxRefusal { span: span.clone(), ..refusal };
        let mut script = parse_text(text, self.depth + 1).map_err(place)?;
        for stage in script.elements.iter_mut().flat_map(|element| &mut element.pipeline.stages) {
            stage.span = span.clone();
            stage.words.iter_mut().for_each(|word| word.span = span.clone());
        }
        Ok(script)
    }

    /// `bash -c TEXT`: the text is read as this language, and no shell is started.
    fn nested_shell(
        &mut self,
        switched: Vec<ListOption>,
        inner: Script,
        span: &Span,
    ) -> Result<(), SyntaxRefusal> {
        self.emit(enter(false, GroupScope::Shell), span.clone())?;
        for option in switched {
            self.emit(ElementKind::Option(option, true), span.clone())?;
        }
        self.splice(inner.elements, span)?;
        self.leave(span)
    }

    /// Adds the elements of another script. Its numbers and its outputs get names that are free.
    fn splice(&mut self, elements: Vec<ScriptElement>, span: &Span) -> Result<(), SyntaxRefusal> {
        let base = self.next_index();
        let first = self.number();
        for _ in 0..elements.len() {
            self.number();
        }
        for mut element in elements {
            element.renumber(base, first);
            if element.join == ListOperator::First {
                element.join = ListOperator::Then;
            }
            self.push(ScriptElement { span: span.clone(), ..element })?;
        }
        let runs = self.elements.iter().filter(|element| element.kind == ElementKind::Run).count();
        check_count(runs, "elements", limits::COMMAND_ELEMENTS + 1, span)
    }
}

/// Whether the element with this index ends at once, and only leads on to those behind it: it is nothing that runs, but a
/// `cd` or what opens files.
fn leads_on(element: &ScriptElement, index: usize) -> bool {
    let mut stages = element.pipeline.stages.iter();
    match &element.kind {
        ElementKind::Run => stages.all(|stage| {
            let is_opening =
                !stage.redirects.is_empty() && stage.words == [ShellWord::text("true")];
            changes_directory(stage) || is_opening
        }),
        ElementKind::Jump(to) => *to > index,
        ElementKind::Enter { captures, .. } => !captures,
        ElementKind::Leave(name) => name.is_none(),
        ElementKind::Exit(_) | ElementKind::Negate => false,
        kind => !matches!(kind, ElementKind::Each { .. } | ElementKind::EachLine { .. }),
    }
}

/// Whether an element runs programs, and is nothing that a shell has in itself.
fn runs_programs(element: &ScriptElement) -> bool {
    let mut names =
        element.pipeline.stages.iter().filter_map(|stage| stage.words.first()?.literal());
    element.kind == ElementKind::Run
        && !names.any(|name| matches!(name, "cd" | "jobs" | "kill" | "wait"))
}

/// The options and the text of `bash -c TEXT`.
fn shell_text(stage: &PipelineStage) -> Option<(Vec<ListOption>, &str)> {
    let words: Option<Vec<&str>> = stage.words.iter().map(ShellWord::literal).collect();
    let words = words?;
    let [shell, options @ .., text] = words.as_slice() else { return None };
    if !SHELLS.contains(shell) {
        return None;
    }
    let (mut switched, mut has_text) = (Vec::new(), false);
    let mut rest = options.iter();
    while let Some(word) = rest.next() {
        for letter in word.strip_prefix('-').filter(|letters| !letters.is_empty())?.chars() {
            match letter {
                'c' => has_text = true,
                // A login shell reads files of the user, of which none is there.
                'l' | 'u' => {}
                'e' => switched.push(ListOption::ErrorExit),
                'o' if rest.next() == Some(&"pipefail") => switched.push(ListOption::PipeFail),
                _ => return None,
            }
        }
    }
    // What a single letter is missing in stays a program's name for whoever judges it.
    has_text.then_some((switched, *text))
}

/// The shells whose texts and scripts are read.
pub const SHELLS: &[&str] = &["sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash"];
