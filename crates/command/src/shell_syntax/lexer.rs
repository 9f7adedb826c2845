//! The text of a command falls into words, redirections and the signs between commands.

use alloc::string::String;
use alloc::vec::Vec;

use super::ast::{Redirection, Span, StdStream};
use super::cursor::Cursor;
use super::quotes::{self, CharKind, Unit};
use super::refusal::SyntaxRefusal;
use super::unsupported::UnsupportedSyntax;
use super::wildcards;
use capsule_base::limits;

/// A part of a command.
#[derive(Debug)]
pub(super) enum Token {
    /// A word whose braces and wildcards are not read yet.
    Word(Vec<Unit>),
    Redirect(Redirection),
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
pub(super) fn tokens(text: &str) -> (Vec<(Token, Span)>, Option<SyntaxRefusal>) {
    let mut lexer = Lexer { source: Cursor::new(text), tokens: Vec::new(), pending: Vec::new() };
    loop {
        match lexer.step() {
            Ok(true) => {}
            Ok(false) => return (lexer.tokens, None),
            Err(refusal) => return (lexer.tokens, Some(refusal)),
        }
    }
}

struct Lexer<'t> {
    source: Cursor<'t>,
    tokens: Vec<(Token, Span)>,
    /// The here-documents whose text begins at the next line.
    pending: Vec<PendingHereDocument>,
}

struct PendingHereDocument {
    /// Which token gets the text.
    token: usize,
    delimiter: String,
    /// Whether tabs before each line are taken away.
    strips: bool,
    span: Span,
}

impl Lexer<'_> {
    /// Reads one part; false at the end.
    fn step(&mut self) -> Result<bool, SyntaxRefusal> {
        self.source.skip_blanks();
        let start = self.source.at();
        let Some(c) = self.source.peek() else {
            let open = self.pending.first();
            let open = open.map(|document| {
                SyntaxRefusal::of(UnsupportedSyntax::OpenHereDocument, document.span.clone())
            });
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
            '|' | '&' | ';' => self.operator(start)?,
            '(' | ')' => return Err(self.parenthesis(start)),
            '<' | '>' => self.redirect(None, start)?,
            _ => {
                let units = quotes::read_word(&mut self.source)?;
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
        let span = self.source.range_since(start);
        self.tokens.push((token, span));
    }

    fn refuse<T>(&self, construct: UnsupportedSyntax, start: usize) -> Result<T, SyntaxRefusal> {
        Err(SyntaxRefusal::of(construct, self.source.range_since(start)))
    }

    /// A sign between commands.
    fn operator(&mut self, start: usize) -> Result<(), SyntaxRefusal> {
        let before = self.tokens.last().map(|(token, _)| token);
        let follows = matches!(before, Some(Token::Word(_) | Token::Redirect(_)));
        let token = match () {
            () if self.source.eat("&&") => Token::And,
            () if self.source.eat("||") => Token::Or,
            () if self.source.eat("|&") => return self.refuse(UnsupportedSyntax::PipeBoth, start),
            () if self.source.eat("|") => Token::Pipe,
            () if self.source.eat("&>") => {
                return self.refuse(UnsupportedSyntax::BothStreams, start);
            }
            () if self.source.eat("&") && follows => {
                return self.refuse(UnsupportedSyntax::Background, start);
            }
            () if self.source.eat(";") => Token::Semicolon,
            () => return self.refuse(UnsupportedSyntax::EmptyCommand, start),
        };
        self.push(token, start);
        Ok(())
    }

    /// What a parenthesis was meant to be.
    fn parenthesis(&mut self, start: usize) -> SyntaxRefusal {
        let is_double = self.source.eat("((");
        let opens = is_double || self.source.eat("(");
        let span = if is_double { start..start + 2 } else { start..start + 1 };
        self.source.skip_blanks();
        let is_empty = opens && self.source.peek() == Some(')');
        let construct = match self.tokens.last() {
            Some((Token::Word(units), range)) => {
                let last = units.last().and_then(|unit| unit.bare()).filter(|_| range.end == start);
                match last {
                    Some('?' | '*' | '+' | '@' | '!') if opens => {
                        UnsupportedSyntax::ExtendedPattern
                    }
                    Some('=') if opens => UnsupportedSyntax::VariableForm,
                    _ if is_empty => UnsupportedSyntax::Function,
                    _ => UnsupportedSyntax::Parenthesis,
                }
            }
            Some((Token::Redirect(_), _)) => UnsupportedSyntax::Parenthesis,
            _ if is_double => UnsupportedSyntax::Arithmetic,
            _ if opens => UnsupportedSyntax::Subshell,
            _ => UnsupportedSyntax::Parenthesis,
        };
        SyntaxRefusal::of(construct, span)
    }

    /// A redirection, whose number was read before.
    fn redirect(&mut self, number: Option<&str>, start: usize) -> Result<(), SyntaxRefusal> {
        const SIGNS: [&str; 12] =
            ["<<<", "<<-", "<<", "<>", "<&", "<(", "<", ">>", ">&", ">|", ">(", ">"];
        let sign = SIGNS.into_iter().find(|sign| self.source.eat(sign)).unwrap_or_default();
        let stream = match (number, sign.starts_with('>')) {
            (None | Some("1"), true) => StdStream::Out,
            (Some("2"), true) => StdStream::Err,
            (None, false) => StdStream::Out,
            _ => return self.refuse(UnsupportedSyntax::Descriptor, start),
        };
        match sign {
            "<>" => return self.refuse(UnsupportedSyntax::ReadWrite, start),
            ">|" => return self.refuse(UnsupportedSyntax::Clobber, start),
            "<&" => return self.refuse(UnsupportedSyntax::Descriptor, start),
            "<(" | ">(" => return self.refuse(UnsupportedSyntax::ProcessSubstitution, start),
            _ => {}
        }
        self.source.skip_blanks();
        let at = self.source.at();
        let is_comment = self.source.peek() == Some('#');
        let units = if is_comment { Vec::new() } else { quotes::read_word(&mut self.source)? };
        if units.is_empty() {
            return Err(SyntaxRefusal::of(UnsupportedSyntax::NoTarget, start..at));
        }
        // The number belongs to what follows it, and shells do not agree on `2>&1>file`.
        if descriptor(&units).is_some() && matches!(self.source.raw(), Some('<' | '>')) {
            return self.refuse(UnsupportedSyntax::Descriptor, start);
        }
        if matches!(sign, "<<" | "<<-") {
            return self.here_redirect(&units, sign == "<<-", start);
        }
        let target = wildcards::parse_literal(&units, self.source.range_since(at));
        let redirect = match sign {
            ">&" => self.duplicate_stream(stream, number, &units, start)?,
            "<<<" => Redirection::Here { text: alloc::format!("{}\n", target?) },
            "<" => Redirection::Input { path: self.path(target?, start)? },
            _ => {
                Redirection::File { stream, path: self.path(target?, start)?, append: sign == ">>" }
            }
        };
        self.push(Token::Redirect(redirect), start);
        Ok(())
    }

    /// `2>&1`.
    fn duplicate_stream(
        &self,
        stream: StdStream,
        number: Option<&str>,
        units: &[Unit],
        start: usize,
    ) -> Result<Redirection, SyntaxRefusal> {
        let target = match units {
            [unit] if unit.is('1') => StdStream::Out,
            [unit] if unit.is('2') => StdStream::Err,
            [unit] if unit.is('-') => return self.refuse(UnsupportedSyntax::Descriptor, start),
            _ if number.is_some() || descriptor(units).is_some() => {
                return self.refuse(UnsupportedSyntax::Descriptor, start);
            }
            _ => return self.refuse(UnsupportedSyntax::BothStreams, start),
        };
        Ok(Redirection::Duplicate { stream, target })
    }

    fn path(&self, path: String, start: usize) -> Result<String, SyntaxRefusal> {
        match path.as_str() {
            "" => self.refuse(UnsupportedSyntax::NoTarget, start),
            path if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") => {
                self.refuse(UnsupportedSyntax::NetworkFile, start)
            }
            _ => Ok(path),
        }
    }

    fn here_redirect(
        &mut self,
        units: &[Unit],
        strips: bool,
        start: usize,
    ) -> Result<(), SyntaxRefusal> {
        if units.iter().all(|unit| unit.bare().is_some()) {
            return self.refuse(UnsupportedSyntax::UnquotedHereDocument, start);
        }
        let delimiter: String = units.iter().filter_map(|unit| unit.char()).collect();
        let is_plain = |c: char| c.is_alphanumeric() || "_-.,:+=!%@#".contains(c);
        // Shells do not agree on what ends a here-document that begins with `<<$'E'`.
        let written = self.source.text_since(start);
        if delimiter.is_empty() || !delimiter.chars().all(is_plain) || written.contains('$') {
            return self.refuse(UnsupportedSyntax::HereDelimiter, start);
        }
        let span = self.source.range_since(start);
        self.pending.push(PendingHereDocument {
            token: self.tokens.len(),
            delimiter,
            strips,
            span,
        });
        self.push(Token::Redirect(Redirection::Here { text: String::new() }), start);
        Ok(())
    }

    /// Reads the texts of the here-documents of the line that ended.
    fn here_documents(&mut self) -> Result<(), SyntaxRefusal> {
        for PendingHereDocument { token, delimiter, strips, span } in
            core::mem::take(&mut self.pending)
        {
            let mut body = String::new();
            loop {
                let line = self.source.line();
                let line =
                    line.map(|line| if strips { line.trim_start_matches('\t') } else { line });
                match line {
                    None => {
                        return Err(SyntaxRefusal::of(UnsupportedSyntax::OpenHereDocument, span));
                    }
                    Some(line) if line == delimiter => break,
                    Some(line) => body.extend([line, "\n"]),
                }
                if body.len() > limits::STDIN_BYTES {
                    let most = limits::STDIN_BYTES;
                    return Err(SyntaxRefusal::limit(span, "bytes of a here-document", most));
                }
            }
            if let Some((Token::Redirect(Redirection::Here { text }), _)) =
                self.tokens.get_mut(token)
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
    matches!(unit.kind, CharKind::Bare(c) if is(c))
}
