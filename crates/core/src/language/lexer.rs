//! The text of a command falls into words, redirections and the signs between commands.

use alloc::string::String;
use alloc::vec::Vec;

use super::construct::Construct;
use super::quotes::{self, Sign, Unit};
use super::refusal::Refusal;
use super::source::Source;
use super::tree::{Redirect, Span, Stream};
use super::wild;
use crate::limits;

/// A part of a command.
#[derive(Debug)]
pub(super) enum Token {
    /// A word whose braces and wildcards are not read yet.
    Word(Vec<Unit>),
    Redirect(Redirect),
    /// `|`
    Pipe,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;`
    Semicolon,
    /// A line end.
    Newline,
}

/// The parts, each with its place, and the refusal that ended the reading.
pub(super) fn tokens(text: &str) -> (Vec<(Token, Span)>, Option<Refusal>) {
    let mut lexer = Lexer { source: Source::new(text), tokens: Vec::new(), waiting: Vec::new() };
    loop {
        match lexer.step() {
            Ok(true) => {}
            Ok(false) => return (lexer.tokens, None),
            Err(refusal) => return (lexer.tokens, Some(refusal)),
        }
    }
}

struct Lexer<'t> {
    source: Source<'t>,
    tokens: Vec<(Token, Span)>,
    /// The here-documents whose text begins at the next line.
    waiting: Vec<Waiting>,
}

struct Waiting {
    /// Which token gets the text.
    token: usize,
    delimiter: String,
    /// Whether tabs before each line are taken away.
    strips: bool,
    span: Span,
}

impl Lexer<'_> {
    /// Reads one part; false at the end.
    fn step(&mut self) -> Result<bool, Refusal> {
        self.source.skip_blanks();
        let start = self.source.at();
        let Some(c) = self.source.peek() else {
            let open = self.waiting.first();
            let open = open.map(|own| Refusal::of(Construct::OpenHereDocument, own.span.clone()));
            return open.map_or(Ok(false), Err);
        };
        match c {
            '#' => {
                while self.source.raw().is_some_and(|c| c != '\n') {
                    self.source.take_raw();
                }
            }
            '\n' => {
                self.source.take_raw();
                self.push(Token::Newline, start);
                self.here_documents()?;
            }
            '|' | '&' | ';' => self.sign(start)?,
            '(' | ')' => return Err(self.parenthesis(start)),
            '<' | '>' => self.redirect(None, start)?,
            _ => {
                let units = quotes::word(&mut self.source)?;
                let before_redirect = matches!(self.source.raw(), Some('<' | '>'));
                match descriptor(&units).filter(|_| before_redirect) {
                    Some(number) => self.redirect(Some(number), start)?,
                    None => self.push(Token::Word(units), start),
                }
            }
        }
        Ok(true)
    }

    fn push(&mut self, token: Token, start: usize) {
        let span = self.source.since(start);
        self.tokens.push((token, span));
    }

    fn refuse<T>(&self, construct: Construct, start: usize) -> Result<T, Refusal> {
        Err(Refusal::of(construct, self.source.since(start)))
    }

    /// A sign between commands.
    fn sign(&mut self, start: usize) -> Result<(), Refusal> {
        let before = self.tokens.last().map(|(token, _)| token);
        let follows = matches!(before, Some(Token::Word(_) | Token::Redirect(_)));
        let token = match () {
            () if self.source.eat("&&") => Token::And,
            () if self.source.eat("||") => Token::Or,
            () if self.source.eat("|&") => return self.refuse(Construct::PipeBoth, start),
            () if self.source.eat("|") => Token::Pipe,
            () if self.source.eat("&>") => return self.refuse(Construct::BothStreams, start),
            () if self.source.eat("&") && follows => {
                return self.refuse(Construct::Background, start);
            }
            () if self.source.eat(";") => Token::Semicolon,
            () => return self.refuse(Construct::EmptyCommand, start),
        };
        self.push(token, start);
        Ok(())
    }

    /// What a parenthesis was meant to be.
    fn parenthesis(&mut self, start: usize) -> Refusal {
        let is_double = self.source.eat("((");
        let opens = is_double || self.source.eat("(");
        let span = if is_double { start..start + 2 } else { start..start + 1 };
        self.source.skip_blanks();
        let is_empty = opens && self.source.peek() == Some(')');
        let construct = match self.tokens.last() {
            Some((Token::Word(units), own)) => {
                let last = units.last().and_then(|unit| unit.bare()).filter(|_| own.end == start);
                match last {
                    Some('?' | '*' | '+' | '@' | '!') if opens => Construct::ExtendedPattern,
                    Some('=') if opens => Construct::VariableForm,
                    _ if is_empty => Construct::Function,
                    _ => Construct::Parenthesis,
                }
            }
            Some((Token::Redirect(_), _)) => Construct::Parenthesis,
            _ if is_double => Construct::Arithmetic,
            _ if opens => Construct::Subshell,
            _ => Construct::Parenthesis,
        };
        Refusal::of(construct, span)
    }

    /// A redirection, whose number was read before.
    fn redirect(&mut self, number: Option<&str>, start: usize) -> Result<(), Refusal> {
        const SIGNS: [&str; 12] =
            ["<<<", "<<-", "<<", "<>", "<&", "<(", "<", ">>", ">&", ">|", ">(", ">"];
        let sign = SIGNS.into_iter().find(|sign| self.source.eat(sign)).unwrap_or_default();
        let stream = match (number, sign.starts_with('>')) {
            (None | Some("1"), true) => Stream::Out,
            (Some("2"), true) => Stream::Err,
            (None, false) => Stream::Out,
            _ => return self.refuse(Construct::Descriptor, start),
        };
        match sign {
            "<>" => return self.refuse(Construct::ReadWrite, start),
            ">|" => return self.refuse(Construct::Clobber, start),
            "<&" => return self.refuse(Construct::Descriptor, start),
            "<(" | ">(" => return self.refuse(Construct::ProcessSubstitution, start),
            _ => {}
        }
        self.source.skip_blanks();
        let at = self.source.at();
        let is_comment = self.source.peek() == Some('#');
        let units = if is_comment { Vec::new() } else { quotes::word(&mut self.source)? };
        if units.is_empty() {
            return Err(Refusal::of(Construct::NoTarget, start..at));
        }
        // The number belongs to what follows it, and shells do not agree on `2>&1>file`.
        if descriptor(&units).is_some() && matches!(self.source.raw(), Some('<' | '>')) {
            return self.refuse(Construct::Descriptor, start);
        }
        if matches!(sign, "<<" | "<<-") {
            return self.here(&units, sign == "<<-", start);
        }
        let target = wild::single(&units, self.source.since(at));
        let redirect = match sign {
            ">&" => self.same(stream, number, &units, start)?,
            "<<<" => Redirect::Here { text: alloc::format!("{}\n", target?) },
            "<" => Redirect::Input { path: self.path(target?, start)? },
            _ => Redirect::File { stream, path: self.path(target?, start)?, append: sign == ">>" },
        };
        self.push(Token::Redirect(redirect), start);
        Ok(())
    }

    /// `2>&1`.
    fn same(
        &self,
        stream: Stream,
        number: Option<&str>,
        units: &[Unit],
        start: usize,
    ) -> Result<Redirect, Refusal> {
        let target = match units {
            [unit] if unit.is('1') => Stream::Out,
            [unit] if unit.is('2') => Stream::Err,
            [unit] if unit.is('-') => return self.refuse(Construct::Descriptor, start),
            _ if number.is_some() || descriptor(units).is_some() => {
                return self.refuse(Construct::Descriptor, start);
            }
            _ => return self.refuse(Construct::BothStreams, start),
        };
        Ok(Redirect::Same { stream, target })
    }

    fn path(&self, path: String, start: usize) -> Result<String, Refusal> {
        match path.as_str() {
            "" => self.refuse(Construct::NoTarget, start),
            path if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") => {
                self.refuse(Construct::NetworkFile, start)
            }
            _ => Ok(path),
        }
    }

    fn here(&mut self, units: &[Unit], strips: bool, start: usize) -> Result<(), Refusal> {
        if units.iter().all(|unit| unit.bare().is_some()) {
            return self.refuse(Construct::UnquotedHereDocument, start);
        }
        let delimiter: String = units.iter().filter_map(|unit| unit.char()).collect();
        let is_plain = |c: char| c.is_alphanumeric() || "_-.,:+=!%@#".contains(c);
        // Shells do not agree on what ends a here-document that begins with `<<$'E'`.
        let written = self.source.read(start);
        if delimiter.is_empty() || !delimiter.chars().all(is_plain) || written.contains('$') {
            return self.refuse(Construct::HereDelimiter, start);
        }
        let span = self.source.since(start);
        self.waiting.push(Waiting { token: self.tokens.len(), delimiter, strips, span });
        self.push(Token::Redirect(Redirect::Here { text: String::new() }), start);
        Ok(())
    }

    /// Reads the texts of the here-documents of the line that ended.
    fn here_documents(&mut self) -> Result<(), Refusal> {
        for Waiting { token, delimiter, strips, span } in core::mem::take(&mut self.waiting) {
            let mut body = String::new();
            loop {
                let line = self.source.line();
                let line = line.map(|own| if strips { own.trim_start_matches('\t') } else { own });
                match line {
                    None => return Err(Refusal::of(Construct::OpenHereDocument, span)),
                    Some(line) if line == delimiter => break,
                    Some(line) => body.extend([line, "\n"]),
                }
                if body.len() > limits::STDIN_BYTES {
                    let most = limits::STDIN_BYTES;
                    return Err(Refusal::limit(span, "bytes of a here-document", most));
                }
            }
            if let Some((Token::Redirect(Redirect::Here { text }), _)) = self.tokens.get_mut(token)
            {
                *text = body;
            }
        }
        Ok(())
    }
}

/// The number or name of a descriptor, if a word before a redirection is one: `2`, or `{name}`.
fn descriptor(units: &[Unit]) -> Option<&'static str> {
    let bare: Option<Vec<char>> = units.iter().map(|unit| unit.bare()).collect();
    let bare = bare?;
    match bare.as_slice() {
        ['1'] => Some("1"),
        ['2'] => Some("2"),
        ['{', .., '}'] if !bare.contains(&',') && bare.len() > 2 => Some("other"),
        [_, ..] if bare.iter().all(char::is_ascii_digit) => Some("other"),
        _ => None,
    }
}

/// Whether a unit could belong to a name.
pub(super) fn is_name(unit: Unit, first: bool) -> bool {
    let is = |c: char| c == '_' || c.is_ascii_alphabetic() || (!first && c.is_ascii_digit());
    matches!(unit.sign, Sign::Bare(c) if is(c))
}
