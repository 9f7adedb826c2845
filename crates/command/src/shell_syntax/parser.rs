//! Parts of a text become stages, pipelines and a list of them.

use alloc::string::String;
use alloc::vec::Vec;

use super::ast::{
    ElementKind, GroupScope, ListOperator, Pipeline, PipelineStage, Redirection, Script,
    ScriptElement, ShellWord, Span, TextPlace, WordPiece, enter,
};
use super::cursor::{self, Cursor};
use super::lexer::{self, is_name};
use super::refusal::SyntaxRefusal;
use super::reserved_words::SHELL_VARIABLES;
use super::tokens::{CharKind, Token, Tokens, Unit, is_bare};
use super::unsupported::UnsupportedSyntax;
use super::{braces, command_name, wildcards};
use capsule_base::limits;

/// Reads a text, of which so many others are around.
///
/// # Errors
/// What of it is not of the language. Of several such places it is the first that says what was
/// meant: in `for f in $(ls` it is the loop.
pub(super) fn parse_text(text: &str, depth: usize) -> Result<Script, SyntaxRefusal> {
    cursor::check(text)?;
    let mut source = Cursor::new(text, lexer::substitution);
    let (tokens, refusal) = lexer::tokens(&mut source);
    let script = script(tokens, source.substitutions, depth);
    let Some(refusal) = refusal else { return script };
    match script {
        Err(early) if is_specific(early.construct) => Err(early),
        _ => Err(refusal),
    }
}

/// Whether the construct is one of the text so far, and not only that the text ends.
const fn is_specific(construct: UnsupportedSyntax) -> bool {
    use UnsupportedSyntax::{EmptyCommand, NoProgram, OnlyVariables, Time};
    !matches!(construct, EmptyCommand | NoProgram | OnlyVariables | Time)
}

/// Reads the parts of a whole text, and of the commands whose output is put into it.
fn script(
    tokens: Tokens,
    substitutions: Vec<Tokens>,
    depth: usize,
) -> Result<Script, SyntaxRefusal> {
    let end = tokens.last().map_or(0, |(_, span)| span.end);
    let tokens = tokens.into_iter().peekable();
    let mut parser = Parser {
        tokens,
        substitutions,
        end,
        words: 0,
        bytes: 0,
        elements: Vec::new(),
        names: Vec::new(),
        loops: Vec::new(),
        depth,
        groups: 0,
        captured: 0,
        numbers: 0,
    };
    parser.list(&[])?;
    if let Some((token, place)) = parser.tokens.next() {
        return Err(SyntaxRefusal::of(misplaced(&token), place));
    }
    if !parser.elements.iter().any(|element| element.kind == ElementKind::Run) {
        return Err(SyntaxRefusal::of(UnsupportedSyntax::OnlyVariables, 0..end));
    }
    if let Some(first) = parser.elements.first_mut() {
        first.join = ListOperator::First;
    }
    Ok(Script { elements: parser.elements })
}

/// What a part is where nothing like it can stand.
const fn misplaced(token: &Token) -> UnsupportedSyntax {
    match token {
        Token::Open | Token::Close => UnsupportedSyntax::Parenthesis,
        Token::Word(_) | Token::Redirect(..) | Token::Pipe => UnsupportedSyntax::Group,
        _ => UnsupportedSyntax::EmptyCommand,
    }
}

/// A loop that is open.
pub(super) struct LoopFrame {
    /// Where it begins anew.
    pub(super) head: usize,
    /// The number under which its status is kept.
    pub(super) note: usize,
    /// The jumps that leave it.
    pub(super) breaks: Vec<usize>,
    /// How many groups are around it.
    pub(super) groups: usize,
}

pub(super) struct Parser {
    pub(super) tokens: core::iter::Peekable<alloc::vec::IntoIter<(Token, Span)>>,
    substitutions: Vec<Tokens>,
    /// Where the last part ends.
    pub(super) end: usize,
    /// How many words there are by now, and their bytes.
    words: usize,
    bytes: usize,
    pub(super) elements: Vec<ScriptElement>,
    /// The variables that have a value somewhere before.
    pub(super) names: Vec<String>,
    /// The loops that are open.
    pub(super) loops: Vec<LoopFrame>,
    /// How many statements stand in one another.
    pub(super) depth: usize,
    /// How many groups are open, and how many commands whose output is put in.
    pub(super) groups: usize,
    pub(super) captured: usize,
    /// The last number that was given to something.
    numbers: usize,
}

impl Parser {
    pub(super) fn skip_lines(&mut self) {
        while self.tokens.next_if(|(token, _)| matches!(token, Token::Newline)).is_some() {}
    }

    /// Where the next part is.
    pub(super) fn place(&mut self) -> Span {
        self.tokens.peek().map_or(self.end..self.end, |(_, place)| place.clone())
    }

    pub(super) fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    /// The index that the next element has.
    pub(super) const fn next_index(&self) -> usize {
        self.elements.len()
    }

    /// Adds an element that always runs, and gives its index.
    pub(super) fn emit(&mut self, kind: ElementKind, span: Span) -> Result<usize, SyntaxRefusal> {
        self.push(ScriptElement::new(kind, self.next_index(), span))
    }

    /// Adds an element, and gives its index.
    pub(super) fn push(&mut self, mut element: ScriptElement) -> Result<usize, SyntaxRefusal> {
        let index = self.next_index();
        check_count(index, "elements", limits::COMMAND_ELEMENTS_ALL, &element.span)?;
        element.is_captured |= self.captured > 0;
        self.elements.push(element);
        Ok(index)
    }

    /// Says that nothing of the elements from here on ends a list by its failure: what follows looks at it. A shell of
    /// its own does not know that.
    pub(super) fn uncheck_since(&mut self, start: usize) {
        // Which of the groups that are open are shells.
        let mut groups: Vec<bool> = Vec::new();
        for element in self.elements.iter_mut().skip(start) {
            match element.kind {
                ElementKind::Enter { scope, .. } => groups.push(scope == GroupScope::Shell),
                ElementKind::Leave(_) => {
                    groups.pop();
                }
                _ => {}
            }
            element.is_checked &= groups.contains(&true);
        }
    }

    /// Commands up to one of these words, a parenthesis that closes, or the end.
    pub(super) fn list(&mut self, ends: &[&str]) -> Result<(), SyntaxRefusal> {
        let mut is_empty = true;
        loop {
            self.skip_lines();
            let is_over = match self.tokens.peek() {
                None | Some((Token::Close, _)) => true,
                Some((Token::Word(units), _)) => ends.iter().any(|word| is_bare(units, word)),
                Some(_) => false,
            };
            if is_over && is_empty {
                return Err(SyntaxRefusal::of(UnsupportedSyntax::EmptyCommand, self.place()));
            }
            if is_over {
                return Ok(());
            }
            let start = self.next_index();
            self.and_or()?;
            is_empty = false;
            if let Some((_, place)) = self.tokens.next_if(|(token, _)| *token == Token::Background)
            {
                self.background(start, place)?;
            } else if self.tokens.next_if(ends_command).is_none() {
                return Ok(());
            }
        }
    }

    /// Commands joined by `&&` and `||`.
    fn and_or(&mut self) -> Result<(), SyntaxRefusal> {
        let begin = self.next_index();
        let mut join = ListOperator::Then;
        loop {
            let start = self.next_index();
            self.command()?;
            let end = self.next_index();
            if let Some(first) = self.elements.get_mut(start).filter(|_| join != ListOperator::Then)
            {
                (first.join, first.otherwise) = (join, end);
            }
            join = match self.tokens.peek() {
                Some((Token::And, _)) => ListOperator::And,
                Some((Token::Or, _)) => ListOperator::Or,
                _ => return Ok(()),
            };
            self.tokens.next();
            self.uncheck_since(begin);
            self.skip_lines();
            if self.tokens.peek().is_none() {
                return Err(SyntaxRefusal::of(UnsupportedSyntax::EmptyCommand, self.end..self.end));
            }
        }
    }

    /// A pipeline of programs, or what a shell has in itself.
    pub(super) fn pipeline(&mut self, input: Option<ShellWord>) -> Result<(), SyntaxRefusal> {
        let mut stages = Vec::new();
        loop {
            let stage = self.stage()?;
            let (of, most) = ("stages of a pipeline", limits::PIPELINE_STAGES);
            check_count(stages.len(), of, most, &stage.span)?;
            stages.push(stage);
            if self.tokens.next_if(|(token, _)| matches!(token, Token::Pipe)).is_none() {
                break;
            }
            self.skip_lines();
            if input.is_none()
                && let Some(place) = self.take_word("while")
            {
                let start = self.next_index();
                let body = self.loop_over_output(stages, &place)?;
                return self.lead_streams((start, body), &place);
            }
        }
        self.run_stages(stages, input)
    }

    /// Runs the stages of a pipeline, or does what a shell has in itself.
    pub(super) fn run_stages(
        &mut self,
        stages: Vec<PipelineStage>,
        input: Option<ShellWord>,
    ) -> Result<(), SyntaxRefusal> {
        let start = stages.first().map_or(0, |stage| stage.span.start);
        let end = stages.last().map_or(start, |stage| stage.span.end);
        if let ([stage], None) = (stages.as_slice(), &input)
            && self.builtin(stage)?
        {
            return Ok(());
        }
        stages.iter().try_for_each(check_values)?;
        let mut stages = self.read_shells(stages)?;
        let (of, most) = ("stages of a pipeline", limits::PIPELINE_STAGES + 1);
        check_count(stages.len(), of, most, &(start..end))?;
        for stage in &mut stages {
            command_name::replace_builtin(stage);
        }
        for stage in &stages {
            command_name::check_command_name(stage, stages.len(), self.has_jobs())?;
        }
        if let (Some(input), Some(first)) = (input, stages.first_mut()) {
            // Whatever else leads to the first program's input comes later and holds.
            first.redirect_first(Redirection::Here { text: String::new() }, Some(input));
        }
        for stage in &stages {
            self.captures(stage)?;
        }
        let runs = self.elements.iter().filter(|element| element.kind == ElementKind::Run).count();
        check_count(runs, "elements", limits::COMMAND_ELEMENTS, &(start..end))?;
        self.emit_run(stages, true, start..end)
    }

    /// Adds a pipeline.
    pub(super) fn emit_run(
        &mut self,
        stages: Vec<PipelineStage>,
        is_checked: bool,
        span: Span,
    ) -> Result<(), SyntaxRefusal> {
        let run = ScriptElement::new(ElementKind::Run, self.next_index(), span);
        let pipeline = Pipeline { stages };
        self.push(ScriptElement { pipeline, is_checked, ..run }).map(drop)
    }

    /// Runs the commands whose output a stage needs, in the order of the text.
    pub(super) fn captures(&mut self, stage: &PipelineStage) -> Result<(), SyntaxRefusal> {
        let words = stage.words.iter().chain(stage.templates.iter().map(|(_, word)| word));
        let mut names = words.flat_map(ShellWord::variables);
        names.try_for_each(|name| self.capture(name, &stage.span))
    }

    /// Runs the command whose output is the value of this name, if there is one that has not run yet.
    pub(super) fn capture(&mut self, name: &str, span: &Span) -> Result<(), SyntaxRefusal> {
        let index = name.strip_prefix('(').and_then(|index| index.parse().ok());
        let tokens = index.and_then(|index: usize| self.substitutions.get_mut(index));
        let Some(mut tokens) = tokens.map(core::mem::take).filter(|tokens| !tokens.is_empty())
        else {
            return Ok(());
        };
        // `$(< FILE)` reads the file.
        if let [(Token::Redirect(Redirection::Input { .. }, _), place)] = tokens.as_slice() {
            let cat = "cat".chars().map(|c| Unit { kind: CharKind::Bare(c), at: place.start });
            tokens.insert(0, (Token::Word(cat.collect()), place.clone()));
        }
        self.captured += 1;
        self.groups += 1;
        self.emit(enter(true, GroupScope::Substitution), span.clone())?;
        let outer = core::mem::replace(&mut self.tokens, tokens.into_iter().peekable());
        self.list(&[])?;
        if let Some((token, place)) = self.tokens.next() {
            return Err(SyntaxRefusal::of(misplaced(&token), place));
        }
        self.tokens = outer;
        self.emit(ElementKind::Leave(Some(name.into())), span.clone())?;
        self.captured -= 1;
        self.groups -= 1;
        Ok(())
    }

    fn stage(&mut self) -> Result<PipelineStage, SyntaxRefusal> {
        let mut stage = PipelineStage::default();
        let mut span: Option<Span> = None;
        while let Some((token, place)) = self.tokens.next_if(|(token, _)| is_stage_token(token)) {
            span = Some(span.map_or(place.start, |range| range.start)..place.end);
            match token {
                Token::Redirect(redirect, units) => {
                    let most = limits::STAGE_REDIRECTS;
                    check_count(stage.redirects.len(), "redirections of a program", most, &place)?;
                    if !units.is_empty() {
                        self.check_names(&units)?;
                        let word = wildcards::parse_template(&units, place.clone())?;
                        stage.templates.push((TextPlace::Redirect(stage.redirects.len()), word));
                    }
                    stage.redirects.push(redirect);
                }
                Token::Word(units) => self.word(units, place, &mut stage)?,
                _ => {}
            }
        }
        let Some(span) = span else {
            return Err(SyntaxRefusal::of(UnsupportedSyntax::EmptyCommand, self.place()));
        };
        stage.span = span;
        Ok(stage)
    }

    /// Adds what a word is: a variable, or one word or several.
    fn word(
        &mut self,
        units: Vec<Unit>,
        place: Span,
        stage: &mut PipelineStage,
    ) -> Result<(), SyntaxRefusal> {
        self.check_names(&units)?;
        if stage.words.is_empty()
            && let Some((name, value)) = variable(&units, &place)?
        {
            let most = limits::STAGE_VARIABLES;
            check_count(stage.variables.len(), "variables of a program", most, &place)?;
            let text = value.literal().map(Into::into).unwrap_or_default();
            if value.has_variables() {
                stage.templates.push((TextPlace::Variable(stage.variables.len()), value));
            }
            stage.variables.push((name, text));
            return Ok(());
        }
        // What `export` is given are values, not patterns.
        let declares = stage.words.first().and_then(ShellWord::literal) == Some("export");
        if declares && let Some((name, mut value)) = variable(&units, &place)? {
            push_text_first(&mut value, &alloc::format!("{name}="));
            stage.words.push(value);
            return Ok(());
        }
        let words = self.expand(units, &place)?;
        stage.words.extend(words);
        Ok(())
    }

    /// The words that a word makes.
    pub(super) fn expand(
        &mut self,
        units: Vec<Unit>,
        place: &Span,
    ) -> Result<Vec<ShellWord>, SyntaxRefusal> {
        let mut words = Vec::new();
        for units in braces::expand(units)? {
            self.bytes = self.bytes.saturating_add(units.len());
            check_count(self.words, "words", limits::ARGV_WORDS, place)?;
            check_count(self.bytes, "bytes of words", limits::ARGV_BYTES, place)?;
            self.words += 1;
            words.push(wildcards::parse_word(&units, place.clone())?);
        }
        Ok(words)
    }

    /// Refuses variables that have no value.
    pub(super) fn check_names(&self, units: &[Unit]) -> Result<(), SyntaxRefusal> {
        for (index, unit) in units.iter().enumerate() {
            if !matches!(unit.kind, CharKind::Variable { .. }) {
                continue;
            }
            let is_end = |unit: &Unit| unit.kind == CharKind::VariableEnd;
            let rest = units.get(index + 1..).unwrap_or_default();
            let length = rest.iter().position(is_end).unwrap_or(rest.len());
            let name: String = rest.iter().take(length).filter_map(|unit| unit.char()).collect();
            let is_known = name.starts_with('(')
                || matches!(name.as_str(), "?" | "PWD")
                || self.names.contains(&name);
            if !is_known {
                let end = rest.get(length).map_or(unit.at, |unit| unit.at);
                return Err(SyntaxRefusal::of(UnsupportedSyntax::Variable, unit.at..end));
            }
        }
        Ok(())
    }
}

/// Refuses a value that is read from one that the same command sets: whether it is that or the one before, shells do not
/// agree on.
fn check_values(stage: &PipelineStage) -> Result<(), SyntaxRefusal> {
    let is_unsure = |(place, word): &(TextPlace, ShellWord)| {
        let TextPlace::Variable(index) = place else { return false };
        let before = stage.variables.get(..*index).unwrap_or_default();
        word.variables().any(|name| before.iter().any(|(known, _)| known == name))
    };
    match stage.templates.iter().any(is_unsure) {
        true => Err(SyntaxRefusal::of(UnsupportedSyntax::VariableForm, stage.span.clone())),
        false => Ok(()),
    }
}

/// Puts text before a word.
fn push_text_first(word: &mut ShellWord, text: &str) {
    match word.pieces.first_mut() {
        Some(WordPiece::Text(first)) => first.insert_str(0, text),
        _ => word.pieces.insert(0, WordPiece::Text(text.into())),
    }
}

/// Whether a part ends a command of a list.
pub(super) const fn ends_command((token, _): &(Token, Span)) -> bool {
    matches!(token, Token::Semicolon | Token::Newline)
}

const fn is_stage_token(token: &Token) -> bool {
    matches!(token, Token::Word(_) | Token::Redirect(..))
}

/// Refuses one more when there are as many as there may be.
pub(super) fn check_count(
    count: usize,
    of: &str,
    most: usize,
    place: &Span,
) -> Result<(), SyntaxRefusal> {
    SyntaxRefusal::check(count + 1, of, most, place)
}

/// `NAME=value` with a bare name; none for any other word.
fn variable(units: &[Unit], place: &Span) -> Result<Option<(String, ShellWord)>, SyntaxRefusal> {
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
    Ok(Some((name, wildcards::parse_value(value, place.clone())?)))
}
