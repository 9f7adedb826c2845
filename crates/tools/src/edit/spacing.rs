//! The form of a line by which it is the same as another that differs only in blanks which say nothing.

use crate::edit::language::{Language, SingleQuote, Spacing};
use crate::edit::scanner::{Kind, Scanner, State, Token};
use crate::edit::texts::find_close;

/// Between tokens that may be apart or together.
const ANY: char = '\u{1}';
/// Between tokens that have nothing between them.
const NONE: char = '\u{2}';
/// Before a line of which every blank counts.
const EXACT: char = '\u{3}';

/// Operators that are the same with a blank on either side and with none.
const SYMMETRIC: &[&str] = &[
    "=", "==", "!=", "===", "!==", "+", "<", ">", "<=", ">=", "&&", "||", "+=", "-=", "*=", "/=",
    "=>", "->", ":=",
];
/// The same in a language in which names have no such signs.
const SYMMETRIC_ELSE: &[&str] =
    &["-", "*", "/", "%", "&", "|", "^", "<-", "|>", "<>", "++", "**", "=~", "<<", ">>", "||="];
/// Words before a bracket that is not the one of a call.
const BEFORE_BRACKETS: &[&str] =
    &["if", "while", "for", "switch", "catch", "elif", "elsif", "until", "foreach"];

/// Reads the next line of a file, and says its form.
pub(super) fn read_form(language: &Language, scanner: &mut Scanner<'_>, line: &str) -> String {
    let body = line.trim_matches([' ', '\t']);
    let exact = || format!("{EXACT}{body}");
    let is_directive = language.preprocessor
        && (scanner.state == State::Directive
            || scanner.state == State::Code && body.starts_with('#'));
    let spacing = language.spacing;
    let form = match spacing {
        Spacing::Verbatim => return exact(),
        Spacing::Yaml => return read_yaml(&mut scanner.state, line).unwrap_or_else(exact),
        Spacing::Markdown => return read_markdown(&mut scanner.state, line).unwrap_or_else(exact),
        Spacing::Markup => return read_markup(&mut scanner.state, body).unwrap_or_else(exact),
        _ => scanner.read(line),
    };
    let Some(tokens) = form else { return exact() };
    if is_directive && body.starts_with('#') {
        const CODE: &[&str] =
            &["define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif"];
        let word = body.trim_start_matches(['#', ' ', '\t']);
        let word = word.split(|sign: char| !sign.is_alphabetic()).next().unwrap_or_default();
        if !CODE.contains(&word) {
            return exact();
        }
    }
    // Fields and prose have commas outside of brackets.
    let mut depth = 0_usize;
    let has_free_comma = tokens.iter().any(|token| {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        token.kind == Kind::Comma && depth == 0
    });
    if has_free_comma && language.single == SingleQuote::Unknown {
        return exact();
    }
    let spacing = if is_directive { Spacing::Runs } else { spacing };
    join_tokens(&tokens, &gaps(&tokens, spacing, language))
}

/// What is before each token: a blank, none, or either.
fn gaps(tokens: &[Token], spacing: Spacing, language: &Language) -> Vec<char> {
    match spacing {
        Spacing::Free { .. } => free_gaps(tokens),
        Spacing::Symmetric { dashes } => symmetric_gaps(tokens, dashes, language),
        _ => run_gaps(tokens, spacing),
    }
}

fn blank_before(token: &Token) -> char {
    token.blank.map_or(NONE, |_| ' ')
}

fn is_operand(token: &Token) -> bool {
    matches!(token.kind, Kind::Word | Kind::Text)
}

fn free_gaps(tokens: &[Token]) -> Vec<char> {
    let mut before: Option<&Token> = None;
    let gap = |token| {
        let is_kept = before.is_some_and(is_operand) && is_operand(token)
            || before
                .is_some_and(|before| before.kind == Kind::Comment && token.kind == Kind::Comment);
        before = Some(token);
        if is_kept { blank_before(token) } else { ANY }
    };
    tokens.iter().map(gap).collect()
}

fn run_gaps(tokens: &[Token], spacing: Spacing) -> Vec<char> {
    let is_styles = spacing == Spacing::Styles;
    let colon = is_styles.then(|| declaration_colon(tokens)).flatten();
    let is_loose = |at: usize| {
        tokens.get(at).is_some_and(|token| match token.kind {
            Kind::Semicolon => true,
            Kind::Comma => is_styles,
            Kind::Open | Kind::Close => is_styles && matches!(&*token.text, "{" | "}"),
            _ => Some(at) == colon,
        })
    };
    let is_semicolon =
        |at: usize| tokens.get(at).is_some_and(|token| token.kind == Kind::Semicolon);
    let gap = |(at, token): (usize, &Token)| {
        let before = at.checked_sub(1);
        let is_kept = is_semicolon(at) && before.is_some_and(is_semicolon);
        let is_any = at == 0 || is_loose(at) || before.is_some_and(is_loose);
        if is_any && !is_kept { ANY } else { blank_before(token) }
    };
    tokens.iter().enumerate().map(gap).collect()
}

/// The colon of a declaration such as `color: red;`. One of a selector is another.
fn declaration_colon(tokens: &[Token]) -> Option<usize> {
    let colon =
        tokens.iter().position(|token| token.kind == Kind::Operator && token.text == ":")?;
    let is_name = tokens.get(..colon)?.iter().enumerate().all(|(at, token)| {
        (at == 0 || token.blank.is_none())
            && (token.kind == Kind::Word && !token.text.starts_with('#')
                || matches!(&*token.text, "-" | "--"))
    });
    let is_declaration = tokens.last()?.kind == Kind::Semicolon
        && !tokens.iter().any(|token| token.text == "{")
        && colon > 0
        && colon + 2 < tokens.len();
    (is_name && is_declaration).then_some(colon)
}

fn symmetric_gaps(tokens: &[Token], dashes: bool, language: &Language) -> Vec<char> {
    let is_unknown = language.single == SingleQuote::Unknown;
    let plain = |token: &Token| match token.blank {
        Some('\t') if is_unknown => '\t',
        _ => blank_before(token),
    };
    let mut gaps: Vec<char> = tokens.iter().map(plain).collect();
    if let Some(first) = gaps.first_mut() {
        *first = ANY;
    }
    let mut loosen = |at: usize| {
        if let Some(gap) = gaps.get_mut(at) {
            *gap = ANY;
        }
    };
    let mut open: Vec<bool> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let next = tokens.get(at + 1);
        match token.kind {
            Kind::Comma if !is_unknown || !open.is_empty() => {
                [at, at + 1].into_iter().for_each(&mut loosen)
            }
            Kind::Semicolon => {
                if before.is_none_or(|before| before.kind != Kind::Semicolon) {
                    loosen(at);
                }
                if next.is_some_and(|next| next.kind != Kind::Semicolon) {
                    loosen(at + 1);
                }
            }
            Kind::Open => {
                let is_joined = before.is_some_and(|before| match &*token.text {
                    "(" => BEFORE_BRACKETS.contains(&&*before.text),
                    "{" => before.text == ")",
                    _ => false,
                });
                if is_joined {
                    loosen(at);
                }
                let is_loose = !is_unknown || is_loose_inside(token, before);
                open.push(is_loose);
                if is_loose {
                    loosen(at + 1);
                }
            }
            Kind::Close if open.pop().unwrap_or(!is_unknown) => loosen(at),
            Kind::Comment => loosen(at),
            Kind::Operator if is_symmetric(token, before, next, dashes) => {
                [at, at + 1].into_iter().for_each(&mut loosen)
            }
            _ => {}
        }
    }
    gaps
}

/// Whether a bracket of a file of an unknown language is none of a shell, where blanks inside of it are needed.
fn is_loose_inside(token: &Token, before: Option<&Token>) -> bool {
    let is_value = before
        .is_some_and(|before| matches!(before.kind, Kind::Operator | Kind::Open | Kind::Comma));
    let is_attached =
        token.blank.is_none() && before.is_some_and(|before| before.kind == Kind::Word);
    match &*token.text {
        "(" => true,
        "[" => is_value || is_attached,
        _ => is_value,
    }
}

/// Whether an operator has blanks on both sides or on none, between two operands.
fn is_symmetric(token: &Token, before: Option<&Token>, next: Option<&Token>, dashes: bool) -> bool {
    let (Some(before), Some(next)) = (before, next) else { return false };
    let text = &&*token.text;
    (SYMMETRIC.contains(text) || dashes && SYMMETRIC_ELSE.contains(text))
        && (is_operand(before) || before.kind == Kind::Close)
        && (is_operand(next) || next.kind == Kind::Open)
        && token.blank.is_some() == next.blank.is_some()
}

fn join_tokens(tokens: &[Token], gaps: &[char]) -> String {
    let mut form = String::new();
    for (token, gap) in tokens.iter().zip(gaps) {
        form.push(*gap);
        match token.kind {
            Kind::Comment => form.push_str(&collapse_runs(&token.text)),
            _ => form.push_str(&token.text),
        }
    }
    form
}

/// A text with one space for several blanks.
fn collapse_runs(text: &str) -> String {
    let words: Vec<&str> = text.split([' ', '\t']).collect();
    let inner = words.iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>().join(" ");
    let lead = if text.starts_with([' ', '\t']) && !inner.is_empty() { " " } else { "" };
    format!("{lead}{inner}")
}

/// A line of YAML, with one blank behind its dashes and its key. None where each of its blanks counts.
fn read_yaml(state: &mut State, line: &str) -> Option<String> {
    let body = line.trim_matches([' ', '\t']);
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    match state {
        State::Indented(depth) if body.is_empty() || indent > *depth => return None,
        State::Text { close, escapes } => {
            if find_close(body, 0, close, *escapes).is_some() {
                *state = State::Code;
            }
            return None;
        }
        _ => *state = State::Code,
    }
    if body.is_empty() || body.starts_with(['#', '%']) {
        return None;
    }
    let (mut form, mut rest, mut depth) = (String::new(), body, indent);
    while let Some(next) = rest.strip_prefix("- ").or_else(|| rest.strip_prefix("-\t")) {
        let next = next.trim_start_matches([' ', '\t']);
        form.push_str("- ");
        depth = indent + (body.len() - rest.len());
        rest = next;
    }
    let key = yaml_key(rest);
    let mut value = rest;
    if let Some(name) = key {
        depth = indent + (body.len() - rest.len());
        value = rest.get(name.len()..).unwrap_or_default().trim_start_matches([' ', '\t']);
        form.push_str(name);
        form.push(' ');
    }
    if let Some(quote) = value.chars().next().filter(|sign| matches!(sign, '"' | '\'')) {
        let (close, escapes) = (quote.to_string(), quote == '"');
        if find_close(value, 1, &close, escapes).is_none() {
            *state = State::Text { close, escapes };
        }
    }
    let without_comment = value.find(" #").and_then(|at| value.get(..at)).unwrap_or(value);
    let last =
        without_comment.split([' ', '\t']).rfind(|word| !word.is_empty()).unwrap_or_default();
    let marks =
        last.trim_end_matches(|sign: char| sign.is_ascii_digit() || matches!(sign, '+' | '-'));
    if matches!(marks, "|" | ">") {
        *state = State::Indented(depth);
    }
    form.push_str(&yaml_list(value).unwrap_or_else(|| value.to_owned()));
    Some(form)
}

/// A key with its colon, where blanks are behind it or nothing is.
fn yaml_key(text: &str) -> Option<&str> {
    let end = text
        .find(": ")
        .or_else(|| text.find(":\t"))
        .or_else(|| text.ends_with(':').then(|| text.len() - 1))?;
    let name = text.get(..end)?;
    let bare = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
    let is_name = |sign: char| sign.is_alphanumeric() || "_-./$<@".contains(sign);
    (!bare.is_empty() && bare.chars().all(is_name)).then(|| text.get(..=end)).flatten()
}

/// A list of plain words in one line.
fn yaml_list(value: &str) -> Option<String> {
    let inner = value.strip_prefix('[')?.strip_suffix(']')?;
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "_-./, ".contains(sign);
    let items: Vec<&str> = inner.split(',').map(str::trim).collect();
    inner.chars().all(is_plain).then(|| format!("[{}]", items.join(",")))
}

/// A line of a paragraph of Markdown.
fn read_markdown(state: &mut State, line: &str) -> Option<String> {
    let body = line.trim_matches([' ', '\t']);
    if let State::Text { close, .. } = state {
        if body
            .strip_prefix(close.as_str())
            .is_some_and(|rest| rest.trim_matches(['`', '~']).is_empty())
        {
            *state = State::Code;
        }
        return None;
    }
    if let Some(fence) = ["```", "~~~"].iter().find(|fence| body.starts_with(**fence)) {
        let sign = fence.get(..1).unwrap_or_default();
        let close = body.get(..body.len() - body.trim_start_matches(sign).len()).unwrap_or(fence);
        *state = State::Text { close: close.to_owned(), escapes: false };
        return None;
    }
    let is_code = line.starts_with("    ") || line.starts_with('\t');
    if is_code || body.contains(['`', '<', '$', '\\', '"', '\t']) || body.starts_with("---") {
        return None;
    }
    // How far an item is from its mark says how far what belongs to it is indented.
    let digits = body.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let item = match digits.len() == body.len() {
        true => body.strip_prefix(['-', '*', '+']),
        false => digits.strip_prefix(['.', ')']),
    };
    let text = item.map_or(body, |item| item.trim_start_matches(' '));
    let mark = body.strip_suffix(text).unwrap_or_default();
    Some(format!("{mark}{}", collapse_runs(text)))
}

/// A line that is one tag. None for text, for what stands in an element whose blanks count, and for more tags.
fn read_markup(state: &mut State, body: &str) -> Option<String> {
    const EXACT_ELEMENTS: &[(&str, &str)] = &[
        ("<pre", "</pre"),
        ("<textarea", "</textarea"),
        ("<script", "</script"),
        ("<style", "</style"),
        ("<!--", "-->"),
        ("<![CDATA[", "]]>"),
    ];
    let small = body.to_ascii_lowercase();
    if let State::Text { close, .. } = state {
        if small.contains(close.as_str()) {
            *state = State::Code;
        }
        return None;
    }
    let open = EXACT_ELEMENTS
        .iter()
        .find_map(|(open, close)| Some((small.rfind(&open.to_ascii_lowercase())?, *close)));
    if let Some((at, close)) = open {
        if !small.get(at..).is_some_and(|rest| rest.contains(close)) {
            *state = State::Text { close: close.to_owned(), escapes: false };
        }
        return None;
    }
    let one = |sign: char| body.matches(sign).count() == 1;
    let even = |sign: char| body.matches(sign).count().is_multiple_of(2);
    let is_tag = body.starts_with('<')
        && body.ends_with('>')
        && one('<')
        && one('>')
        && even('"')
        && even('\'');
    if !is_tag || body.contains('{') || body.contains('"') && body.contains('\'') {
        return None;
    }
    let quote = if body.contains('\'') { '\'' } else { '"' };
    let parts = body.split(quote).enumerate();
    let parts: Vec<String> = parts
        .map(|(at, part)| match at % 2 {
            0 if part.starts_with([' ', '\t']) && part.ends_with([' ', '\t']) => {
                format!("{} ", collapse_runs(part))
            }
            0 => collapse_runs(part) + if part.ends_with([' ', '\t']) { " " } else { "" },
            _ => part.to_owned(),
        })
        .collect();
    Some(parts.join(&quote.to_string()).replace(" />", "/>").replace(" >", ">"))
}
