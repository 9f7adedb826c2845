//! Conditions, loops, groups, and the commands that a shell has in itself: each becomes elements of the one row.

use alloc::string::String;
use alloc::vec::Vec;

use super::ast::{
    ElementKind, GroupScope, ListOperator, ListOption, PipelineStage, ScriptElement, ShellWord,
    Span, enter,
};
use super::parser::{LoopFrame, Parser, check_count, ends_command};
use super::refusal::SyntaxRefusal;
use super::reserved_words::is_assignable;
use super::tokens::{Token, is_bare};
use super::unsupported::UnsupportedSyntax;
use capsule_base::limits;

impl Parser {
    /// A command with what is built of commands.
    pub(super) fn command(&mut self) -> Result<(), SyntaxRefusal> {
        let start = self.next_index();
        if let Some(place) = self.take_word("!") {
            self.statement()?;
            self.uncheck_since(start);
            return self.emit(ElementKind::Negate, place).map(drop);
        }
        self.statement()
    }

    fn statement(&mut self) -> Result<(), SyntaxRefusal> {
        let (start, place) = (self.next_index(), self.place());
        check_count(self.depth, "statements in one another", limits::STATEMENT_DEPTH, &place)?;
        self.depth += 1;
        let mut body = start;
        let is_group = self.tokens.next_if(|(token, _)| matches!(token, Token::Open)).is_some();
        if is_group {
            self.subshell(&place)?;
        } else if self.take_word("if").is_some() {
            self.condition(&place)?;
        } else if self.take_word("while").is_some() {
            match self.take_read()? {
                Some(read) => body = self.loop_over_file(read, &place)?,
                None => self.conditional_loop(&place, ListOperator::Or)?,
            }
        } else if self.take_word("until").is_some() {
            self.conditional_loop(&place, ListOperator::And)?;
        } else if self.take_word("for").is_some() {
            self.loop_over_words(&place)?;
        } else if self.take_word("{").is_some() {
            self.list(&["}"])?;
            self.expect("}", &place)?;
        } else {
            self.depth -= 1;
            return self.pipeline(None);
        }
        self.depth -= 1;
        self.lead_streams((start, body), &place)
    }

    /// Whether an option before has a pipeline fail with any of its programs.
    pub(super) fn fails_with_pipes(&self) -> bool {
        let option = ElementKind::Option(ListOption::PipeFail, true);
        self.elements.iter().any(|element| element.kind == option)
    }

    /// Takes this word, if it comes next and nothing of it is quoted.
    pub(super) fn take_word(&mut self, word: &str) -> Option<Span> {
        let is_it = |(token, _): &(Token, Span)| matches!(token, Token::Word(units) if is_bare(units, word));
        self.tokens.next_if(is_it).map(|(_, place)| place)
    }

    /// The same where nothing else can come. `open` is what it closes.
    fn expect(&mut self, word: &str, open: &Span) -> Result<(), SyntaxRefusal> {
        match self.take_word(word) {
            Some(_) => Ok(()),
            None => {
                let why = alloc::format!("`{word}` is missing behind this");
                let hint = alloc::format!("write `{word}` where a command could begin");
                // It may stand behind what cannot be read.
                let construct = match self.tokens.peek() {
                    Some(_) => UnsupportedSyntax::Keyword,
                    None => UnsupportedSyntax::EmptyCommand,
                };
                Err(SyntaxRefusal::with_reason(construct, open.clone(), &why, &hint))
            }
        }
    }

    pub(super) fn jump(
        &mut self,
        join: ListOperator,
        place: &Span,
    ) -> Result<usize, SyntaxRefusal> {
        let jump = ScriptElement::new(ElementKind::Jump(0), self.next_index(), place.clone());
        self.push(ScriptElement { join, ..jump })
    }

    /// Has jumps lead to what comes next.
    pub(super) fn land(&mut self, jumps: &[usize]) {
        let here = self.next_index();
        for index in jumps {
            let element = self.elements.get_mut(*index);
            if let Some(to) = element.and_then(|element| element.kind.target_mut()) {
                *to = here;
            }
        }
    }

    fn subshell(&mut self, place: &Span) -> Result<(), SyntaxRefusal> {
        self.groups += 1;
        self.emit(enter(false, GroupScope::Subshell), place.clone())?;
        self.list(&[])?;
        if self.tokens.next_if(|(token, _)| matches!(token, Token::Close)).is_none() {
            return Err(SyntaxRefusal::of(UnsupportedSyntax::Parenthesis, place.clone()));
        }
        self.groups -= 1;
        self.leave(place)
    }

    pub(super) fn leave(&mut self, place: &Span) -> Result<(), SyntaxRefusal> {
        let leave = ScriptElement::new(ElementKind::Leave(None), self.next_index(), place.clone());
        self.push(ScriptElement { is_checked: true, ..leave }).map(drop)
    }

    fn condition(&mut self, place: &Span) -> Result<(), SyntaxRefusal> {
        let mut ends = Vec::new();
        loop {
            let start = self.next_index();
            self.list(&["then"])?;
            self.expect("then", place)?;
            self.uncheck_since(start);
            let fails = self.jump(ListOperator::Or, place)?;
            self.list(&["elif", "else", "fi"])?;
            ends.push(self.jump(ListOperator::Then, place)?);
            self.land(&[fails]);
            if self.take_word("elif").is_none() {
                break;
            }
        }
        match self.take_word("else") {
            Some(_) => self.list(&["fi"])?,
            None => {
                self.emit(ElementKind::Succeed, place.clone())?;
            }
        }
        self.expect("fi", place)?;
        self.land(&ends);
        Ok(())
    }

    pub(super) fn begin_loop(&mut self, note: usize, place: &Span) -> Result<(), SyntaxRefusal> {
        // What runs first in it still finds the status before.
        let before = self.number();
        self.emit(ElementKind::Note(before), place.clone())?;
        self.emit(ElementKind::Succeed, place.clone())?;
        self.emit(ElementKind::Note(note), place.clone())?;
        self.emit(ElementKind::Recall(before), place.clone())?;
        let (head, groups) = (self.next_index(), self.groups);
        self.loops.push(LoopFrame { head, note, breaks: Vec::new(), groups });
        Ok(())
    }

    /// From `do` to `done`. `leaves` is the jump that leaves the loop at its head.
    pub(super) fn end_loop(&mut self, leaves: usize, place: &Span) -> Result<(), SyntaxRefusal> {
        self.expect("do", place)?;
        self.list(&["done"])?;
        self.expect("done", place)?;
        let Some(frame) = self.loops.pop() else { return Ok(()) };
        self.emit(ElementKind::Note(frame.note), place.clone())?;
        self.emit(ElementKind::Jump(frame.head), place.clone())?;
        self.land(&[leaves]);
        self.emit(ElementKind::Recall(frame.note), place.clone())?;
        self.land(&frame.breaks);
        Ok(())
    }

    fn conditional_loop(&mut self, place: &Span, fails: ListOperator) -> Result<(), SyntaxRefusal> {
        let note = self.number();
        self.begin_loop(note, place)?;
        let start = self.next_index();
        self.list(&["do"])?;
        self.uncheck_since(start);
        let always = match fails {
            ListOperator::Or => "true",
            _ => "false",
        };
        let is_endless = self.elements.get(start..).is_some_and(|rows| match rows {
            [one] => matches!(one.pipeline.stages.as_slice(),
                [stage] if matches!(stage.words.as_slice(), [word] if word.literal() == Some(always))),
            _ => false,
        });
        let leaves = self.jump(fails, place)?;
        let body = self.next_index();
        self.end_loop(leaves, place)?;
        let leads_out = |element: &ScriptElement| match element.kind {
            ElementKind::Jump(to) => to >= self.next_index(),
            ElementKind::Exit(_) => true,
            _ => false,
        };
        let rows = self.elements.get(body..).unwrap_or_default();
        if is_endless && !rows.iter().any(leads_out) {
            let why = "this loop has no end";
            let hint =
                "loop over words, such as `for n in 1 2 3; do .. done`, or have `break` end it";
            let construct = UnsupportedSyntax::Keyword;
            return Err(SyntaxRefusal::with_reason(construct, place.clone(), why, hint));
        }
        Ok(())
    }

    fn loop_over_words(&mut self, place: &Span) -> Result<(), SyntaxRefusal> {
        let keyword = || SyntaxRefusal::of(UnsupportedSyntax::Keyword, place.clone());
        let Some((Token::Word(units), _)) = self.tokens.next() else { return Err(keyword()) };
        let name: Option<String> = units.iter().map(|unit| unit.bare()).collect();
        let name = name.filter(|name| is_assignable(name)).ok_or_else(keyword)?;
        self.take_word("in").ok_or_else(keyword)?;
        let mut words = Vec::new();
        while let Some((token, span)) =
            self.tokens.next_if(|(token, _)| matches!(token, Token::Word(_)))
        {
            if let Token::Word(units) = token {
                self.check_names(&units)?;
                words.extend(self.expand(units, &span)?);
            }
        }
        check_count(words.len(), "words of a loop", limits::LOOP_WORDS, place)?;
        self.tokens.next_if(ends_command).ok_or_else(keyword)?;
        self.skip_lines();
        let number = self.number();
        words
            .iter()
            .flat_map(ShellWord::variables)
            .try_for_each(|name| self.capture(name, place))?;
        if words.iter().any(|word| word.as_glob().is_some()) {
            self.expand_patterns(number, &words, place)?;
        }
        self.emit(ElementKind::Items(number, words), place.clone())?;
        self.names.push(name.clone());
        self.begin_loop(number, place)?;
        let leaves = self.emit(ElementKind::Each { number, name, end: 0 }, place.clone())?;
        self.end_loop(leaves, place)
    }

    /// Has a program print the names that patterns stand for when the loop is reached.
    fn expand_patterns(
        &mut self,
        number: usize,
        words: &[ShellWord],
        place: &Span,
    ) -> Result<(), SyntaxRefusal> {
        let before = self.number();
        self.emit(ElementKind::Note(before), place.clone())?;
        self.emit(enter(true, GroupScope::Subshell), place.clone())?;
        let mut stage = PipelineStage::of(["printf", "%s\\0"], place);
        stage.words.extend(words.iter().cloned());
        self.emit_run([stage].into(), false, place.clone())?;
        self.emit(ElementKind::Leave(Some(alloc::format!("*{number}"))), place.clone())?;
        self.emit(ElementKind::Recall(before), place.clone()).map(drop)
    }
}

pub(super) fn changes_directory(stage: &PipelineStage) -> bool {
    stage.words.first().and_then(ShellWord::literal) == Some("cd")
}
