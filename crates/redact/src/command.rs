//! Passwords in command lines whose options do not say what they are: `mysql -p..`, `curl -u a:b`.

use core::ops::Range;

use crate::masked_value::{classify, is_placeholder};
use crate::matches::{MaskLabel, PASSWORD, SecretMatch, holds_mask};
use crate::program_table::{PasswordProgram, PasswordSyntax};
use crate::quoted_value::{SEPARATOR, is_quote};
use crate::text_window::{Lookahead, TextWindow};
use crate::value::{CharCounts, ValueLook};

/// How much of a command line is looked at.
const MAX_LINE: usize = 1 << 10;
/// How many words of it.
const MAX_ARGUMENTS: usize = 64;

const fn label() -> MaskLabel {
    MaskLabel::new(PASSWORD, "command")
}

/// The first password behind the last mask, in the command line of a program whose name stands here.
pub(super) fn find_password(
    view: &TextWindow<'_>,
    at: usize,
    program: &PasswordProgram,
    floor: usize,
) -> Lookahead<Option<SecretMatch>> {
    view.set_undecided_from(at);
    let end = at + program.name.len();
    if !view.matches_at(at, program.name.as_bytes())?
        || !can_begin(view, at)
        || !view.at(end)?.is_some_and(is_separator)
    {
        return Ok(None);
    }
    let mut words = ArgumentReader::behind(view, end)?;
    let mut seen = program.required_argument.is_empty();
    let mut count = 0;
    let mut last: Option<Range<usize>> = None;
    while let Some(word) = words.next()? {
        view.set_undecided_from(word.start);
        count += 1;
        let text = view.bytes(word.clone());
        seen |= program.required_argument.as_bytes() == text;
        // What a mask took with it, how the words behind it are to be read, nobody can tell.
        if count > MAX_ARGUMENTS || word.start - at > MAX_LINE || holds_mask(text) {
            break;
        }
        if !seen {
            // Only what stands right behind the program can say what it does.
            if count > 3 {
                break;
            }
            continue;
        }
        for (flag, taken) in program.options {
            let value = match flag.is_empty() {
                true => Some(word.clone()).filter(|_| !text.starts_with(b"-")),
                false => option_value(&word, text, flag.as_bytes(), *taken, last.as_ref(), view),
            };
            if let Some(value) = value
                && value.start >= floor
                && let Some(range) = secret_part(view, value, *taken)
            {
                return Ok(Some(SecretMatch::complete(label(), range)));
            }
        }
        last = Some(word);
    }
    Ok(None)
}

/// What is fed to a program that reads a password: `echo .. | sudo -S`.
pub(super) fn find_piped_password(
    view: &TextWindow<'_>,
    at: usize,
) -> Lookahead<Option<SecretMatch>> {
    const READERS: [&[u8]; 7] = [
        b"sudo -S",
        b"chpasswd",
        b"--password-stdin",
        b"--with-token",
        b"passwd --stdin",
        b"-passin stdin",
        b"cryptsetup",
    ];
    view.set_undecided_from(at);
    let name = if view.matches_at(at, b"printf")? { 6 } else { 4 };
    if !can_begin(view, at) || !view.at(at + name)?.is_some_and(is_separator) {
        return Ok(None);
    }
    let mut words = ArgumentReader::behind(view, at + name)?;
    let Some(mut word) = words.next()? else { return Ok(None) };
    while view.bytes(word.clone()).starts_with(b"-") {
        let Some(next) = words.next()? else { return Ok(None) };
        word = next;
    }
    view.set_undecided_from(word.start);
    let end = view.run_end(word.end, 160, |byte| byte != b'\n')?;
    let rest = view.bytes(word.end..end);
    let Some(pipe) = rest.iter().position(|byte| *byte == b'|') else { return Ok(None) };
    let reader = rest.get(pipe..).unwrap_or_default();
    let read = READERS.iter().any(|item| reader.windows(item.len()).any(|part| part == *item));
    let taken = match reader.windows(8).any(|part| part == b"chpasswd") {
        true => PasswordSyntax::NextUserSeparator(b':'),
        false => PasswordSyntax::NextArgument,
    };
    let found = if read { secret_part(view, word, taken) } else { None };
    Ok(found.map(|range| SecretMatch::complete(label(), range)))
}

/// Whether a command can begin here.
fn can_begin(view: &TextWindow<'_>, at: usize) -> bool {
    view.before(at).is_none_or(|byte| {
        is_separator(byte) || matches!(byte, b'/' | b'(' | b'`' | b'|' | b';' | b'&' | b'$' | b':')
    })
}

fn is_separator(byte: u8) -> bool {
    byte.is_ascii_whitespace() || is_quote(byte) || matches!(byte, SEPARATOR | b',' | b'\\')
}

/// The words of a command line, without their quotes.
struct ArgumentReader<'w, 't> {
    view: &'w TextWindow<'t>,
    at: usize,
    /// Whether it is a list in a program, whose words stand in quotes with commas between.
    list: bool,
}

impl<'w, 't> ArgumentReader<'w, 't> {
    /// Those behind the name of a program.
    fn behind(view: &'w TextWindow<'t>, name: usize) -> Lookahead<Self> {
        let list = view.at(name)?.is_some_and(is_quote);
        Ok(Self { view, at: name + usize::from(list), list })
    }

    fn next(&mut self) -> Lookahead<Option<Range<usize>>> {
        let (view, list) = (self.view, self.list);
        let quote = |byte: u8| byte == b'"' || byte == b'\'';
        let gap =
            |byte: u8| byte == b' ' || byte == b'\t' || byte == SEPARATOR || list && byte == b',';
        let start = view.run_end(self.at, MAX_LINE, gap)?;
        match view.at(start)? {
            None | Some(b'\n' | b'\r' | b'|' | b';' | b')' | b']') => return Ok(None),
            Some(b'&') if view.at(start + 1)? == Some(b'&') => return Ok(None),
            Some(mark) if quote(mark) => {
                let end =
                    view.run_end(start + 1, MAX_LINE, |byte| byte != mark && byte != b'\n')?;
                let closed = view.at(end)? == Some(mark) || view.is_cut(end);
                self.at = end + 1;
                return Ok(closed.then_some(start + 1..end));
            }
            Some(_) => {}
        }
        let mut end = start;
        loop {
            let plain = |byte: u8| !gap(byte) && !quote(byte) && !b"\n\r|;".contains(&byte);
            end = view.run_end(end, MAX_LINE, plain)?;
            match view.at(end)? {
                // Quotes in the middle of a word: `-p'..'`.
                Some(mark) if quote(mark) => {
                    let close =
                        view.run_end(end + 1, MAX_LINE, |byte| byte != mark && byte != b'\n')?;
                    if view.at(close)? != Some(mark) || close == end + 1 {
                        break;
                    }
                    end = close + 1;
                }
                _ => break,
            }
        }
        self.at = end;
        Ok((end > start).then_some(start..end))
    }
}

/// The value of an option, in the same word or in this one behind it.
fn option_value(
    word: &Range<usize>,
    text: &[u8],
    flag: &[u8],
    taken: PasswordSyntax,
    last: Option<&Range<usize>>,
    view: &TextWindow<'_>,
) -> Option<Range<usize>> {
    let attached = matches!(
        taken,
        PasswordSyntax::SameArgument | PasswordSyntax::Either | PasswordSyntax::UserColon
    );
    if attached && let Some(rest) = text.strip_prefix(flag).filter(|rest| !rest.is_empty()) {
        let rest = rest.strip_prefix(b"=").unwrap_or(rest);
        return Some(word.end - rest.len()..word.end);
    }
    let before = last.map_or(b"".as_slice(), |range| view.bytes(range.clone()));
    let follows =
        before == flag || taken == PasswordSyntax::AfterPrefix && before.starts_with(flag);
    (taken != PasswordSyntax::SameArgument && follows).then(|| word.clone())
}

/// What of a value is secret.
fn secret_part(
    view: &TextWindow<'_>,
    value: Range<usize>,
    taken: PasswordSyntax,
) -> Option<Range<usize>> {
    let value = unquoted(view, value);
    let text = view.bytes(value.clone());
    match taken {
        PasswordSyntax::UserColon | PasswordSyntax::NextUserSeparator(_) => {
            let sign =
                if let PasswordSyntax::NextUserSeparator(sign) = taken { sign } else { b':' };
            let at = text.iter().position(|byte| *byte == sign)?;
            let host = |item: &[u8]| item.iter().rposition(|byte| *byte == b'@');
            let end = match sign {
                b'/' => {
                    text.get(at + 1..).and_then(host).map(|number| value.start + at + 1 + number)
                }
                _ => None,
            };
            let range = value.start + at + 1..end.unwrap_or(value.end);
            let word = view.bytes(range.clone());
            if word.is_empty() {
                let user = text.get(..at)?;
                let token = classify(user) == ValueLook::Random && user.len() >= 16;
                return token.then(|| value.start..value.start + at);
            }
            is_password(word).then_some(range)
        }
        PasswordSyntax::Scheme => {
            let word = text.strip_prefix(b"pass:")?;
            let range = value.end - word.len()..value.end;
            is_password(word).then_some(range)
        }
        PasswordSyntax::Random => {
            let count = CharCounts::of(text);
            let random = classify(text) == ValueLook::Random && count.digit > 0 && text.len() >= 8;
            random.then_some(value)
        }
        PasswordSyntax::SameArgument
        | PasswordSyntax::Either
        | PasswordSyntax::NextArgument
        | PasswordSyntax::AfterPrefix => is_password(text).then_some(value),
    }
}

fn unquoted(view: &TextWindow<'_>, value: Range<usize>) -> Range<usize> {
    match view.bytes(value.clone()) {
        [open, .., close] if is_quote(*open) && open == close => value.start + 1..value.end - 1,
        _ => value,
    }
}

fn is_password(word: &[u8]) -> bool {
    let flag = word.starts_with(b"-");
    !flag && word.len() >= 4 && !is_placeholder(word) && !word.iter().all(u8::is_ascii_digit)
}
