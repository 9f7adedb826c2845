//! Parts of a text become stages, pipelines and a list of them.

use alloc::string::String;
use alloc::vec::Vec;

use super::ast::{ListOperator, Pipeline, PipelineStage, Script, ScriptElement, Span};
use super::lexer::{Token, is_name};
use super::quotes::Unit;
use super::refusal::SyntaxRefusal;
use super::reserved_words::SHELL_VARIABLES;
use super::unsupported::UnsupportedSyntax;
use super::{braces, command_name, wildcards};
use capsule_base::limits;

/// Reads the parts of a whole text.
pub(super) fn script(tokens: Vec<(Token, Span)>) -> Result<Script, SyntaxRefusal> {
    let end = tokens.last().map_or(0, |(_, span)| span.end);
    let tokens = tokens.into_iter().peekable();
    let mut parser = Parser { tokens, end, words: 0, bytes: 0 };
    let mut script = Script::default();
    let mut join = ListOperator::First;
    loop {
        parser.skip_lines();
        match parser.tokens.peek() {
            None if matches!(join, ListOperator::First | ListOperator::And | ListOperator::Or) => {
                return Err(SyntaxRefusal::of(UnsupportedSyntax::EmptyCommand, end..end));
            }
            None => return Ok(script),
            Some(_) => {}
        }
        let (pipeline, span) = parser.pipeline()?;
        check_count(script.elements.len(), "elements", limits::COMMAND_ELEMENTS, &span)?;
        script.elements.push(ScriptElement { join, pipeline, span });
        join = match parser.tokens.next() {
            None => return Ok(script),
            Some((Token::And, _)) => ListOperator::And,
            Some((Token::Or, _)) => ListOperator::Or,
            Some(_) => ListOperator::Then,
        };
    }
}

struct Parser<I: Iterator<Item = (Token, Span)>> {
    tokens: core::iter::Peekable<I>,
    /// Where the last part ends.
    end: usize,
    /// How many words there are by now, and their bytes.
    words: usize,
    bytes: usize,
}

impl<I: Iterator<Item = (Token, Span)>> Parser<I> {
    fn skip_lines(&mut self) {
        while self.tokens.next_if(|(token, _)| matches!(token, Token::Newline)).is_some() {}
    }

    fn pipeline(&mut self) -> Result<(Pipeline, Span), SyntaxRefusal> {
        let mut stages = Vec::new();
        loop {
            let stage = self.stage()?;
            check_count(
                stages.len(),
                "stages of a pipeline",
                limits::PIPELINE_STAGES,
                &stage.span,
            )?;
            stages.push(stage);
            if self.tokens.next_if(|(token, _)| matches!(token, Token::Pipe)).is_none() {
                break;
            }
            self.skip_lines();
        }
        let start = stages.first().map_or(0, |stage| stage.span.start);
        let end = stages.last().map_or(start, |stage| stage.span.end);
        for stage in &mut stages {
            command_name::replace_builtin(stage);
        }
        for stage in &stages {
            command_name::check_command_name(stage, stages.len())?;
        }
        Ok((Pipeline { stages }, start..end))
    }

    fn stage(&mut self) -> Result<PipelineStage, SyntaxRefusal> {
        let mut stage = PipelineStage {
            variables: Vec::new(),
            words: Vec::new(),
            redirects: Vec::new(),
            span: 0..0,
        };
        let mut span: Option<Span> = None;
        while let Some((token, place)) = self.tokens.next_if(|(token, _)| is_stage_token(token)) {
            span = Some(span.map_or(place.start, |range| range.start)..place.end);
            match token {
                Token::Redirect(redirect) => {
                    let most = limits::STAGE_REDIRECTS;
                    check_count(stage.redirects.len(), "redirections of a program", most, &place)?;
                    stage.redirects.push(redirect);
                }
                Token::Word(units) => self.word(units, place, &mut stage)?,
                _ => {}
            }
        }
        let Some(span) = span else {
            let place = self.tokens.peek().map_or(self.end..self.end, |(_, place)| place.clone());
            return Err(SyntaxRefusal::of(UnsupportedSyntax::EmptyCommand, place));
        };
        stage.span = span.clone();
        if stage.words.is_empty() && !stage.variables.is_empty() {
            return Err(SyntaxRefusal::of(UnsupportedSyntax::OnlyVariables, span));
        }
        Ok(stage)
    }

    /// Adds what a word is: a variable, or one word or several.
    fn word(
        &mut self,
        units: Vec<Unit>,
        place: Span,
        stage: &mut PipelineStage,
    ) -> Result<(), SyntaxRefusal> {
        if stage.words.is_empty()
            && let Some(variable) = variable(&units, &place)?
        {
            let most = limits::STAGE_VARIABLES;
            check_count(stage.variables.len(), "variables of a program", most, &place)?;
            stage.variables.push(variable);
            return Ok(());
        }
        for units in braces::expand(units)? {
            self.bytes = self.bytes.saturating_add(units.len());
            check_count(self.words, "words", limits::ARGV_WORDS, &place)?;
            check_count(self.bytes, "bytes of words", limits::ARGV_BYTES, &place)?;
            self.words += 1;
            stage.words.push(wildcards::parse_word(&units, place.clone())?);
        }
        Ok(())
    }
}

const fn is_stage_token(token: &Token) -> bool {
    matches!(token, Token::Word(_) | Token::Redirect(_))
}

/// Refuses one more when there are as many as there may be.
fn check_count(count: usize, of: &str, most: usize, place: &Span) -> Result<(), SyntaxRefusal> {
    if count >= most {
        return Err(SyntaxRefusal::limit(place.clone(), of, most));
    }
    Ok(())
}

/// `NAME=value` with a bare name; none for any other word.
fn variable(units: &[Unit], place: &Span) -> Result<Option<(String, String)>, SyntaxRefusal> {
    let is_in_name = |(at, unit): &(usize, &Unit)| is_name(**unit, *at == 0);
    let length = units.iter().enumerate().take_while(is_in_name).count();
    let (name, rest) = units.split_at_checked(length).unwrap_or_default();
    let refusal = || SyntaxRefusal::of(UnsupportedSyntax::VariableForm, place.clone());
    let is_form = |rest: &[Unit]| match rest {
        [plus, equals, ..] if plus.is('+') => equals.is('='),
        [open, behind @ ..] if open.is('[') => behind.iter().any(|unit| unit.is('=')),
        _ => false,
    };
    let value = match rest {
        _ if name.is_empty() => return Ok(None),
        [equals, value @ ..] if equals.is('=') => value,
        rest if is_form(rest) => return Err(refusal()),
        _ => return Ok(None),
    };
    let name: String = name.iter().filter_map(|unit| unit.char()).collect();
    if SHELL_VARIABLES.contains(&name.as_str()) || name.starts_with("BASH_") {
        return Err(refusal());
    }
    Ok(Some((name, wildcards::parse_value(value)?)))
}
