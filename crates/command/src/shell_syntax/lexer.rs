//! The text of a command falls into words, redirections and the signs between commands.

use alloc::string::String;
use alloc::vec::Vec;

use super::ast::{Redirection, Span, StdStream};
use super::cursor::Cursor;
use super::quotes;
use super::refusal::SyntaxRefusal;
use super::tokens::{CharKind, Token, Tokens, Unit, is_bare};
use super::unsupported::UnsupportedSyntax;
use super::wildcards;
use capsule_base::limits;

/// The parts, each with its place, and the refusal that ended the reading.
pub(super) fn tokens(source: &mut Cursor<'_>) -> (Tokens, Option<SyntaxRefusal>) {
    let mut lexer = Lexer { source, tokens: Vec::new(), pending: Vec::new(), open: 0 };
    loop {
        match lexer.step() {
            Ok(true) => {}
            Ok(false) => return (lexer.tokens, None),
            Err(refusal) => return (lexer.tokens, Some(refusal)),
        }
    }
}

/// The parts of a command whose output is put in, from behind its parenthesis to behind the closing one. `start` is
/// where its `$` is.
pub(super) fn substitution(source: &mut Cursor<'_>, start: usize) -> Result<Tokens, SyntaxRefusal> {
    let unclosed = SyntaxRefusal::of(UnsupportedSyntax::CommandSubstitution, start..start + 2);
    if source.depth >= limits::SUBSTITUTION_DEPTH || source.awaits_text {
        return Err(unclosed);
    }
    source.depth += 1;
    let mut lexer = Lexer { source, tokens: Vec::new(), pending: Vec::new(), open: 0 };
    loop {
        lexer.source.skip_blanks();
        if lexer.open == 0 && lexer.source.peek() == Some(')') {
            break;
        }
        if !lexer.step()? {
            return Err(unclosed);
        }
    }
    if !lexer.pending.is_empty() {
        return Err(unclosed);
    }
    lexer.source.take_raw();
    lexer.source.depth -= 1;
    Ok(lexer.tokens)
}

struct Lexer<'s, 't> {
    source: &'s mut Cursor<'t>,
    tokens: Tokens,
    /// The here-documents whose text begins at the next line.
    pending: Vec<PendingHereDocument>,
    /// How many parentheses are open.
    open: usize,
}

struct PendingHereDocument {
    /// Which token gets the text.
    token: usize,
    delimiter: String,
    /// Whether tabs before each line are taken away.
    strips: bool,
    /// Whether the text is read as it is.
    is_quoted: bool,
    span: Span,
}

impl Lexer<'_, '_> {
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
            '(' | ')' => self.parenthesis(start)?,
            '<' | '>' => self.redirect(None, start)?,
            _ => {
                let units = quotes::read_word(self.source)?;
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
        let follows = matches!(before, Some(Token::Word(_) | Token::Redirect(..) | Token::Close));
        let token = match () {
            () if self.source.eat("&&") => Token::And,
            () if self.source.eat("||") => Token::Or,
            () if self.source.eat("|&") => {
                self.push(duplicate(StdStream::Err, StdStream::Out), start);
                Token::Pipe
            }
            () if self.source.eat("|") => Token::Pipe,
            () if self.source.eat("&>") => return self.both_streams(start),
            () if self.source.eat("&") && follows => Token::Background,
            () if self.source.eat(";") => Token::Semicolon,
            () => return self.refuse(UnsupportedSyntax::EmptyCommand, start),
        };
        self.push(token, start);
        Ok(())
    }

    /// `&>` and `&>>`.
    fn both_streams(&mut self, start: usize) -> Result<(), SyntaxRefusal> {
        let append = self.source.eat(">");
        self.source.skip_blanks();
        let at = self.source.at();
        let units = quotes::read_word(self.source)?;
        if units.is_empty() {
            return Err(SyntaxRefusal::of(UnsupportedSyntax::NoTarget, start..at));
        }
        let (path, units) = self.target(units, at, start)?;
        let file = Redirection::File { stream: StdStream::Out, path, append };
        self.push(Token::Redirect(file, units), start);
        self.push(duplicate(StdStream::Err, StdStream::Out), start);
        Ok(())
    }

    /// A parenthesis, or what it was meant to be.
    fn parenthesis(&mut self, start: usize) -> Result<(), SyntaxRefusal> {
        let is_double = self.source.eat("((");
        let opens = is_double || self.source.eat("(");
        let span = if is_double { start..start + 2 } else { start..start + 1 };
        if !opens && self.open > 0 {
            self.source.take_raw();
            self.open -= 1;
            self.push(Token::Close, start);
            return Ok(());
        }
        let before = self.source.at();
        self.source.skip_blanks();
        let is_empty = opens && self.source.peek() == Some(')');
        let last = self.tokens.last();
        let begins = match last {
            Some((Token::Word(units), range)) => {
                range.end < start && COMMAND_FOLLOWS.iter().any(|word| is_bare(units, word))
            }
            Some((Token::Redirect(..) | Token::Close, _)) => false,
            _ => true,
        };
        let construct = match last {
            _ if !opens => UnsupportedSyntax::Parenthesis,
            _ if begins && is_double => UnsupportedSyntax::Arithmetic,
            _ if begins && !is_empty => {
                self.open += 1;
                let (of, most) = ("groups in one another", limits::STATEMENT_DEPTH);
                SyntaxRefusal::check(self.open, of, most, &span)?;
                self.tokens.push((Token::Open, start..before));
                return Ok(());
            }
            Some((Token::Word(units), range)) => {
                match units.last().and_then(|unit| unit.bare()).filter(|_| range.end == start) {
                    Some('?' | '*' | '+' | '@' | '!') => UnsupportedSyntax::ExtendedPattern,
                    Some('=') => UnsupportedSyntax::VariableForm,
                    _ if is_empty => UnsupportedSyntax::Function,
                    _ => UnsupportedSyntax::Parenthesis,
                }
            }
            _ => UnsupportedSyntax::Parenthesis,
        };
        Err(SyntaxRefusal::of(construct, span))
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
            "<&" => return self.refuse(UnsupportedSyntax::Descriptor, start),
            "<(" | ">(" => return self.refuse(UnsupportedSyntax::ProcessSubstitution, start),
            _ => {}
        }
        self.source.skip_blanks();
        let at = self.source.at();
        let is_comment = self.source.peek() == Some('#');
        let units = if is_comment { Vec::new() } else { quotes::read_word(self.source)? };
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
        if sign == ">&" {
            let redirect = self.duplicate_stream(stream, number, &units, start)?;
            self.push(Token::Redirect(redirect, Vec::new()), start);
            return Ok(());
        }
        if sign == "<<<" {
            let (text, mut units) = self.target_text(units, at)?;
            if !units.is_empty() {
                units.push(Unit { kind: CharKind::Quoted('\n'), at: self.source.at() });
            }
            let text = if units.is_empty() { text + "\n" } else { text };
            self.push(Token::Redirect(Redirection::Here { text }, units), start);
            return Ok(());
        }
        let (path, units) = self.target(units, at, start)?;
        let redirect = match (sign, path.as_str()) {
            ("<", _) => Redirection::Input { path },
            (_, "/dev/stdout") => Redirection::Duplicate { stream, target: StdStream::Out },
            (_, "/dev/stderr") => Redirection::Duplicate { stream, target: StdStream::Err },
            _ => Redirection::File { stream, path, append: sign == ">>" },
        };
        self.push(Token::Redirect(redirect, units), start);
        Ok(())
    }

    /// A word that must name one thing; its units, if they hold variables.
    fn target_text(
        &self,
        units: Vec<Unit>,
        at: usize,
    ) -> Result<(String, Vec<Unit>), SyntaxRefusal> {
        let span = self.source.range_since(at);
        let word = wildcards::parse_template(&units, span)?;
        match word.literal() {
            Some(text) => Ok((text.into(), Vec::new())),
            None => Ok((String::new(), units)),
        }
    }

    /// The same for the path of a file.
    fn target(
        &self,
        units: Vec<Unit>,
        at: usize,
        start: usize,
    ) -> Result<(String, Vec<Unit>), SyntaxRefusal> {
        let (path, units) = self.target_text(units, at)?;
        if units.is_empty() { Ok((self.path(path, start)?, units)) } else { Ok((path, units)) }
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
        let is_quoted = units.iter().any(|unit| unit.bare().is_none());
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
            is_quoted,
            span,
        });
        self.source.awaits_text = true;
        self.push(Token::Redirect(Redirection::Here { text: String::new() }, Vec::new()), start);
        Ok(())
    }

    /// Reads the texts of the here-documents of the line that ended.
    fn here_documents(&mut self) -> Result<(), SyntaxRefusal> {
        self.source.awaits_text = false;
        for document in core::mem::take(&mut self.pending) {
            let (mut body, mut units) = (String::new(), Vec::new());
            while !self.ends_here(&document)? {
                if document.is_quoted {
                    body.extend([self.source.line().unwrap_or_default(), "\n"]);
                } else {
                    self.here_line(&document, &mut units)?;
                }
                let (bytes, most) = (body.len().max(units.len()), limits::STDIN_BYTES);
                SyntaxRefusal::check(bytes, "bytes of a here-document", most, &document.span)?;
            }
            if !units.iter().any(|unit| matches!(unit.kind, CharKind::Variable { .. })) {
                body.extend(units.drain(..).filter_map(Unit::char));
            }
            if let Some((Token::Redirect(Redirection::Here { text }, template), _)) =
                self.tokens.get_mut(document.token)
            {
                (*text, *template) = (body, units);
            }
        }
        Ok(())
    }

    /// Goes behind the tabs that are taken away, and behind the line that ends a here-document, if that is next.
    fn ends_here(&mut self, document: &PendingHereDocument) -> Result<bool, SyntaxRefusal> {
        let rest = self.source.rest();
        let line = rest.split('\n').next().filter(|_| !rest.is_empty()).ok_or_else(|| {
            SyntaxRefusal::of(UnsupportedSyntax::OpenHereDocument, document.span.clone())
        })?;
        let bare = if document.strips { line.trim_start_matches('\t') } else { line };
        self.source.skip(line.len() - bare.len());
        if bare == document.delimiter {
            self.source.line();
        }
        Ok(bare == document.delimiter)
    }

    /// A line of a here-document into which variables are put.
    fn here_line(
        &mut self,
        document: &PendingHereDocument,
        units: &mut Vec<Unit>,
    ) -> Result<(), SyntaxRefusal> {
        loop {
            let at = self.source.at();
            // Whether joined lines could end it, shells do not agree on.
            if self.source.rest().starts_with("\\\n") {
                return Err(SyntaxRefusal::of(UnsupportedSyntax::UnquotedHereDocument, at..at + 1));
            }
            match self.source.take_raw() {
                Some('\n') | None => {
                    units.push(Unit { kind: CharKind::Quoted('\n'), at });
                    return Ok(());
                }
                Some(c) => quotes::double_quoted(self.source, (c, at), '\\', units)?,
            }
            if units.len() > limits::STDIN_BYTES {
                let most = limits::STDIN_BYTES;
                return Err(SyntaxRefusal::limit(
                    document.span.clone(),
                    "bytes of a here-document",
                    most,
                ));
            }
        }
    }
}

/// `2>&1` and the like.
const fn duplicate(stream: StdStream, target: StdStream) -> Token {
    Token::Redirect(Redirection::Duplicate { stream, target }, Vec::new())
}

/// Words of the language behind which a command begins.
const COMMAND_FOLLOWS: &[&str] = &["if", "then", "elif", "else", "while", "until", "do", "{", "!"];

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
