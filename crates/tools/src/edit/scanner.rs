//! Reads the lines of a file from its first one on, so that for every line it is known whether it begins inside of a
//! text, and takes a line apart into tokens.

use crate::edit::language::{Language, Raw, SingleQuote, Spacing};
use crate::edit::texts::{
    character_length, find_close, find_raw, has_open_expression, heredoc_word, number_length,
    pattern_length,
};

/// What a line begins inside of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Code,
    /// A comment, and how many more are open around it.
    Comment(&'static str, usize),
    /// A text up to its end.
    Text {
        close: String,
        escapes: bool,
    },
    /// A text with expressions: for each that is open, its open braces.
    Template(Vec<usize>),
    /// Lines up to one that is this word, which may be indented.
    Heredoc(Vec<(String, bool)>),
    /// Lines that are indented deeper than this.
    Indented(usize),
    /// The lines of a directive that goes on.
    Directive,
    /// The text of an element.
    ElementText,
    /// What is no code, up to `<?`.
    Page,
    /// Something of which the end is not known.
    Unknown,
}

/// What a part of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    /// What counts with each of its blanks.
    Text,
    Open,
    Close,
    Comma,
    Semicolon,
    Operator,
    /// What counts but for the number of its blanks.
    Comment,
}

/// A part of a line that belongs together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// Whether a space, a tab or nothing is before it.
    pub(super) blank: Option<char>,
}

/// Operators of the languages in which blanks say nothing, the longest first.
const OPERATORS: &[&str] = &[
    ">>>=", "<<=", ">>=", ">>>", "===", "!==", "...", "..=", "..<", "<=>", "**=", "&&=", "||=",
    "??=", "//=", "&^=", "->*", "?->", "?..", "==", "!=", "<=", ">=", "&&", "||", "++", "--", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>", "->", "=>", "::", ":=", "..", "?.", "??",
    "?:", "**", "//", "<-", "&^", "|>", "<>", "~=", "~/", "!!", "!.", "=~", "!~", ".*", ".=", "<:",
    ":>", "<%", "%>", "<?", "?>", "%:", "^^", "=:", "<|", "!<", ">?",
];
const SIGNS: &str = "=+-*/%<>&|^!?.:~";
/// Words behind which a slash begins a pattern.
const BEFORE_PATTERNS: &[&str] = &[
    "return", "typeof", "case", "in", "of", "and", "or", "not", "if", "unless", "when", "while",
    "until", "yield", "await", "else", "do", "void", "delete", "puts", "then", "match", "split",
];

/// A line as its tokens; none where they are not known for sure.
pub(super) type Tokens = Option<Vec<Token>>;

/// Reads lines one after the other.
#[derive(Clone, Debug)]
pub(super) struct Scanner<'l> {
    language: &'l Language,
    pub(super) state: State,
}

/// The line that is read.
struct Reading<'t> {
    rest: &'t str,
    tokens: Vec<Token>,
    blank: Option<char>,
    is_sure: bool,
    heredocs: Vec<(String, bool)>,
}

impl<'t> Reading<'t> {
    fn push(&mut self, kind: Kind, length: usize) {
        let (text, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.tokens.push(Token { kind, text: text.to_owned(), blank: self.blank.take() });
        self.rest = rest;
    }

    fn last(&self) -> Option<&Token> {
        self.tokens.last()
    }

    /// The word that the next character is attached to.
    fn prefix(&self) -> &str {
        let word = self.last().filter(|token| self.blank.is_none() && token.kind == Kind::Word);
        word.map_or("", |token| &token.text)
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest.trim_start_matches([' ', '\t']);
        if let Some(blanks) = self.rest.strip_suffix(rest).filter(|blanks| !blanks.is_empty()) {
            self.blank = Some(if blanks.contains('\t') { '\t' } else { ' ' });
            self.rest = rest;
        }
    }
}

impl<'l> Scanner<'l> {
    pub(super) fn new(language: &'l Language) -> Self {
        let state = if language.in_page { State::Page } else { State::Code };
        Self { language, state }
    }

    /// Reads a line, and says its tokens.
    pub(super) fn read(&mut self, line: &'_ str) -> Tokens {
        let body = line.trim_matches([' ', '\t']);
        if let Some(tokens) = self.read_other(line, body) {
            return tokens;
        }
        let mut reading = Reading {
            rest: body,
            tokens: Vec::new(),
            blank: None,
            is_sure: true,
            heredocs: Vec::new(),
        };
        let is_element_line = self.language.elements
            && self.state == State::Code
            && (body.starts_with('<') || body.contains("</") || body.contains("/>"));
        while !reading.rest.is_empty() {
            self.read_token(&mut reading);
            let is_tag_end = is_element_line && reading.last().is_some_and(|last| last.text == ">");
            if is_tag_end && self.state == State::Code && !reading.rest.is_empty() {
                let end = reading.rest.find('<').unwrap_or(reading.rest.len());
                if end > 0 {
                    reading.push(Kind::Text, end);
                }
            }
        }
        let is_directive =
            self.language.preprocessor && (body.starts_with('#') || self.state == State::Directive);
        if self.state == State::Code && is_directive && body.ends_with('\\') {
            self.state = State::Directive;
        }
        if self.state == State::Code
            && is_element_line
            && body.ends_with('>')
            && !body.ends_with("=>")
        {
            self.state = State::ElementText;
        }
        let is_unknown = self.language.single == SingleQuote::Unknown;
        let block =
            body.trim_end_matches(|sign: char| sign.is_ascii_digit() || matches!(sign, '+' | '-'));
        if is_unknown && [": |", ": >", "- |", "- >"].iter().any(|end| block.ends_with(end)) {
            self.state = State::Indented(line.len() - line.trim_start_matches([' ', '\t']).len());
        }
        if self.state == State::Code && !reading.heredocs.is_empty() {
            self.state = State::Heredoc(reading.heredocs);
        }
        if !reading.is_sure && matches!(self.state, State::Text { .. } | State::Template(_)) {
            self.state = State::Unknown;
        }
        reading.is_sure.then_some(reading.tokens)
    }

    /// Reads a line that is no code, by the state in which it begins.
    fn read_other(&mut self, line: &str, body: &str) -> Option<Tokens> {
        match self.state.clone() {
            State::Unknown => Some(None),
            State::Heredoc(mut words) => {
                let is_end = |(word, is_indented): &(String, bool)| {
                    let line = if *is_indented { body } else { line };
                    let behind = line.strip_prefix(word.as_str());
                    behind.is_some_and(|behind| behind.trim_matches([';', ',', ')']).is_empty())
                };
                if words.first().is_some_and(is_end) {
                    words.remove(0);
                }
                self.state = if words.is_empty() { State::Code } else { State::Heredoc(words) };
                Some(None)
            }
            State::Indented(depth) => {
                let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
                if body.is_empty() || indent > depth {
                    return Some(None);
                }
                self.state = State::Code;
                None
            }
            State::ElementText if body.starts_with(['<', '}', ')', ']']) => {
                self.state = State::Code;
                None
            }
            State::ElementText => Some(None),
            State::Directive => {
                self.state = State::Code;
                let tokens = self.read(body);
                if body.ends_with('\\') {
                    self.state = State::Directive;
                }
                Some(tokens)
            }
            state if self.language.in_page && is_page_line(&state, body) => {
                let (open, close) = (body.rfind("<?"), body.rfind("?>"));
                if open > close {
                    self.state = State::Code;
                } else if close.is_some() {
                    self.state = State::Page;
                }
                Some(None)
            }
            State::Code if self.language.raw == Raw::Ruby && line.starts_with("=begin") => {
                self.state = State::Text { close: "=end".into(), escapes: false };
                None
            }
            State::Code if self.language.raw == Raw::Ruby && line == "__END__" => {
                self.state = State::Unknown;
                Some(None)
            }
            _ => None,
        }
    }

    fn read_token(&mut self, reading: &mut Reading<'_>) {
        match self.state.clone() {
            State::Comment(close, depth) => self.read_comment(reading, close, depth),
            State::Text { close, escapes } => self.read_text(reading, 0, &close, escapes, true),
            State::Template(open) => self.read_template(reading, open, 0),
            _ => {
                reading.skip_blanks();
                let Some(sign) = reading.rest.chars().next() else { return };
                let is_read = self.read_comment_start(reading)
                    || self.read_heredoc(reading)
                    || self.read_quote(reading, sign)
                    || self.read_pattern(reading, sign);
                if !is_read {
                    self.read_plain(reading, sign);
                }
            }
        }
    }

    fn read_plain(&self, reading: &mut Reading<'_>, sign: char) {
        let rest = reading.rest;
        let digit_behind =
            |text: &str| text.chars().nth(1).is_some_and(|next| next.is_ascii_digit());
        match sign {
            '(' | '[' | '{' => reading.push(Kind::Open, 1),
            ')' | ']' | '}' => reading.push(Kind::Close, 1),
            ',' => reading.push(Kind::Comma, 1),
            ';' => reading.push(Kind::Semicolon, 1),
            '.' if digit_behind(rest) => reading.push(Kind::Word, number_length(rest)),
            _ if sign.is_ascii_digit() => reading.push(Kind::Word, number_length(rest)),
            _ if SIGNS.contains(sign) => {
                let run = rest.find(|next| !SIGNS.contains(next)).unwrap_or(rest.len());
                let is_fixed = self.language.spacing == (Spacing::Free { merged: false });
                let known = OPERATORS.iter().find(|known| rest.starts_with(**known));
                let length = if is_fixed { known.map_or(1, |known| known.len()) } else { run };
                // A comment may begin behind a sign.
                let comment = |at: &usize| {
                    rest.get(*at..)
                        .is_some_and(|rest| rest.starts_with("/*") || rest.starts_with("//"))
                };
                reading.push(Kind::Operator, (1..length).find(comment).unwrap_or(length));
            }
            '\\' => {
                let length = rest.chars().take(2).map(char::len_utf8).sum();
                reading.push(Kind::Word, length);
            }
            _ => {
                let comments = self.language.line_comments.contains(&"#")
                    && self.language.spacing != Spacing::Runs;
                let ends = |sign: char| {
                    let is_word = sign.is_ascii_alphanumeric() || matches!(sign, '_' | '$' | '@');
                    sign.is_ascii() && !is_word && (sign != '#' || comments)
                };
                let end = rest.char_indices().skip(1).find(|(_, sign)| ends(*sign));
                reading.push(Kind::Word, end.map_or(rest.len(), |(at, _)| at));
            }
        }
    }

    /// Reads a comment; in a file of an unknown language it counts as it is.
    fn read_comment_start(&mut self, reading: &mut Reading<'_>) -> bool {
        let rest = reading.rest;
        if let Some((open, close)) =
            self.language.block_comments.iter().find(|(open, _)| rest.starts_with(open))
        {
            self.state = State::Comment(close, 0);
            reading.push(Kind::Comment, open.len());
            return true;
        }
        let is_apart = reading.tokens.is_empty() || reading.blank.is_some();
        let is_unknown = self.language.single == SingleQuote::Unknown;
        let needs_blank = is_unknown || matches!(self.language.spacing, Spacing::Runs);
        let is_comment = self.language.line_comments.iter().any(|open| rest.starts_with(open))
            && (is_apart || !needs_blank)
            && !(self.language.in_page && rest.starts_with("#["));
        if is_comment {
            let kind = if is_unknown { Kind::Text } else { Kind::Comment };
            reading.push(kind, rest.len());
        }
        is_comment
    }

    fn read_comment(&mut self, reading: &mut Reading<'_>, close: &'static str, depth: usize) {
        let kind =
            if self.language.single == SingleQuote::Unknown { Kind::Text } else { Kind::Comment };
        let rest = reading.rest;
        let end = rest.find(close).unwrap_or(rest.len());
        let open = self
            .language
            .block_comments
            .iter()
            .find(|(_, sign)| *sign == close)
            .map_or("", |(open, _)| open);
        let inner = rest
            .find(open)
            .filter(|at| self.language.nested_comments && !open.is_empty() && *at < end);
        if let Some(at) = inner {
            self.state = State::Comment(close, depth + 1);
            return reading.push(kind, at + open.len());
        }
        if end < rest.len() {
            self.state =
                depth.checked_sub(1).map_or(State::Code, |depth| State::Comment(close, depth));
        }
        reading.push(kind, (end + close.len()).min(rest.len()));
    }

    /// Reads what begins with a quote.
    fn read_quote(&mut self, reading: &mut Reading<'_>, sign: char) -> bool {
        let rest = reading.rest;
        let is_operand_before = reading.blank.is_none()
            && reading
                .last()
                .is_some_and(|last| matches!(last.kind, Kind::Word | Kind::Text | Kind::Close));
        if let Some(raw) = find_raw(self.language, rest, reading.prefix(), is_operand_before) {
            self.read_text(reading, raw.start, &raw.close, raw.escapes, true);
            return true;
        }
        if sign == '\'' && self.language.single == SingleQuote::Character {
            let end = character_length(rest);
            reading.push(if end > 1 { Kind::Text } else { Kind::Word }, end);
            return true;
        }
        if sign == '\'' && self.language.single == SingleQuote::Unknown && !rest.starts_with("'''")
        {
            let prefix = reading.prefix();
            let is_prefix =
                prefix.len() <= 2 && prefix.chars().all(|letter| "rbfuRBFUL".contains(letter));
            if !is_prefix
                || reading.blank.is_none()
                    && reading.last().is_some_and(|last| last.kind == Kind::Close)
            {
                reading.is_sure = false;
                reading.push(Kind::Text, 1);
                return true;
            }
        }
        if self.language.templates && sign == '`' {
            self.read_template(reading, Vec::new(), 1);
            return true;
        }
        let Some(quote) = self.language.quotes.iter().find(|quote| rest.starts_with(quote.open))
        else {
            return false;
        };
        let escapes = quote.escapes || quote.open == "'" && reading.prefix().ends_with('$');
        self.read_text(reading, quote.open.len(), quote.close, escapes, quote.lines);
        true
    }

    /// Reads what says that the lines behind this one are a text.
    fn read_heredoc(&self, reading: &mut Reading<'_>) -> bool {
        let word =
            self.language.heredocs.then(|| heredoc_word(self.language, reading.rest)).flatten();
        let Some((word, is_indented, length)) = word else { return false };
        reading.heredocs.push((word, is_indented));
        reading.push(Kind::Text, length);
        true
    }

    /// Reads a pattern between slashes. Where it may as well be a division, it is taken for a pattern.
    fn read_pattern(&self, reading: &mut Reading<'_>, sign: char) -> bool {
        if sign != '/' || !self.language.regexes {
            return false;
        }
        let is_blank_behind =
            reading.rest.get(1..).is_some_and(|rest| rest.starts_with([' ', '\t', '=']));
        let may_be = reading.last().is_none_or(|last| match last.kind {
            Kind::Word => {
                BEFORE_PATTERNS.contains(&last.text.as_str())
                    || reading.blank.is_some() && !is_blank_behind
            }
            Kind::Text => false,
            _ => true,
        });
        let Some(length) = pattern_length(reading.rest).filter(|_| may_be) else { return false };
        reading.push(Kind::Text, length);
        true
    }

    /// Reads a text up to its end.
    fn read_text(
        &mut self,
        reading: &mut Reading<'_>,
        start: usize,
        close: &str,
        escapes: bool,
        lines: bool,
    ) {
        let rest = reading.rest;
        let prefix = reading.prefix();
        let has_expressions = prefix.len() <= 3 && prefix.contains(['f', 'F', '$', 't', 's']);
        let end = find_close(rest, start, close, escapes);
        let content = rest.get(start..end.unwrap_or(rest.len())).unwrap_or_default();
        reading.is_sure &= !has_open_expression(content, has_expressions);
        // Where a backslash is no escape here, it may be one in a dialect.
        reading.is_sure &= escapes || !(self.language.raw == Raw::Sql && content.ends_with('\\'));
        self.state = match end {
            Some(_) => State::Code,
            None if lines || rest.ends_with('\\') => {
                State::Text { close: close.to_owned(), escapes }
            }
            None => {
                reading.is_sure = false;
                State::Code
            }
        };
        if !reading.is_sure && self.language.raw == Raw::Sql {
            self.state = State::Unknown;
        }
        reading.push(Kind::Text, end.map_or(rest.len(), |end| end + close.len()));
    }

    /// Reads a text with expressions, in which such texts may be again.
    fn read_template(&mut self, reading: &mut Reading<'_>, mut open: Vec<usize>, start: usize) {
        let mut signs = reading.rest.char_indices().skip_while(|(at, _)| *at < start).peekable();
        if start > 0 {
            open.push(0);
        }
        let mut quote = None;
        // The last entry counts the braces of an expression; zero says that the text itself is read.
        while let Some((at, sign)) = signs.next() {
            let Some(depth) = open.last_mut() else { break };
            match (sign, quote) {
                ('\\', _) => drop(signs.next()),
                (_, Some(end)) if sign == end => quote = None,
                (_, Some(_)) => {}
                ('`', None) if *depth == 0 => {
                    open.pop();
                    if open.is_empty() {
                        self.state = State::Code;
                        return reading.push(Kind::Text, at + 1);
                    }
                }
                ('$', None)
                    if *depth == 0 && signs.peek().is_some_and(|(_, next)| *next == '{') =>
                {
                    signs.next();
                    *depth = 1;
                }
                (_, None) if *depth == 0 => {}
                ('`', None) => open.push(0),
                ('"' | '\'', None) => quote = Some(sign),
                ('{', None) => *depth += 1,
                ('}', None) => *depth -= 1,
                _ => {}
            }
        }
        reading.is_sure &= quote.is_none();
        self.state = State::Template(open);
        reading.push(Kind::Text, reading.rest.len());
    }
}

/// Whether a line has something of a page in which the code is, or may have.
fn is_page_line(state: &State, body: &str) -> bool {
    *state == State::Page || *state == State::Code && (body.contains("<?") || body.contains("?>"))
}
