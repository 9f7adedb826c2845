//! Passwords in command lines whose options do not say what they are: `mysql -p..`, `curl -u a:b`.

use core::ops::Range;

use crate::found::{Found, Label, PASSWORD};
use crate::holds_mask;
use crate::programs::{Program, Taken};
use crate::quoted::{SEPARATOR, is_quote};
use crate::value::{Count, Look, is_stand_in, look};
use crate::view::{Read, View};

/// How much of a command line is looked at.
const LINE: usize = 1 << 10;
/// How many words of it.
const WORDS: usize = 64;

const fn label() -> Label {
    Label::new(PASSWORD, "command")
}

/// The first password behind the last mask, in the command line of a program whose name stands here.
pub(super) fn find(
    view: &View<'_>,
    at: usize,
    program: &Program,
    floor: usize,
) -> Read<Option<Found>> {
    view.hold(at);
    let end = at + program.name.len();
    if !view.says(at, program.name.as_bytes())?
        || !begins(view, at)
        || !view.at(end)?.is_some_and(is_gap)
    {
        return Ok(None);
    }
    let mut words = Words::behind(view, end)?;
    let mut seen = program.only.is_empty();
    let mut count = 0;
    let mut last: Option<Range<usize>> = None;
    while let Some(word) = words.next()? {
        view.hold(word.start);
        count += 1;
        let text = view.bytes(word.clone());
        seen |= program.only.as_bytes() == text;
        // What a mask took with it, how the words behind it are to be read, nobody can tell.
        if count > WORDS || word.start - at > LINE || holds_mask(text) {
            break;
        }
        if !seen {
            // Only what stands right behind the program can say what it does.
            if count > 3 {
                break;
            }
            continue;
        }
        for (flag, taken) in program.flags {
            let value = match flag.is_empty() {
                true => Some(word.clone()).filter(|_| !text.starts_with(b"-")),
                false => flagged(&word, text, flag.as_bytes(), *taken, last.as_ref(), view),
            };
            if let Some(value) = value
                && value.start >= floor
                && let Some(range) = secret(view, value, *taken)
            {
                return Ok(Some(Found::whole(label(), range)));
            }
        }
        last = Some(word);
    }
    Ok(None)
}

/// What is fed to a program that reads a password: `echo .. | sudo -S`.
pub(super) fn echoed(view: &View<'_>, at: usize) -> Read<Option<Found>> {
    const READERS: [&[u8]; 7] = [
        b"sudo -S",
        b"chpasswd",
        b"--password-stdin",
        b"--with-token",
        b"passwd --stdin",
        b"-passin stdin",
        b"cryptsetup",
    ];
    view.hold(at);
    let name = if view.says(at, b"printf")? { 6 } else { 4 };
    if !begins(view, at) || !view.at(at + name)?.is_some_and(is_gap) {
        return Ok(None);
    }
    let mut words = Words::behind(view, at + name)?;
    let Some(mut word) = words.next()? else { return Ok(None) };
    while view.bytes(word.clone()).starts_with(b"-") {
        let Some(next) = words.next()? else { return Ok(None) };
        word = next;
    }
    view.hold(word.start);
    let end = view.run(word.end, 160, |byte| byte != b'\n')?;
    let rest = view.bytes(word.end..end);
    let Some(pipe) = rest.iter().position(|byte| *byte == b'|') else { return Ok(None) };
    let reader = rest.get(pipe..).unwrap_or_default();
    let read = READERS.iter().any(|own| reader.windows(own.len()).any(|part| part == *own));
    let taken = match reader.windows(8).any(|part| part == b"chpasswd") {
        true => Taken::NextUser(b':'),
        false => Taken::Next,
    };
    let found = if read { secret(view, word, taken) } else { None };
    Ok(found.map(|range| Found::whole(label(), range)))
}

/// Whether a command can begin here.
fn begins(view: &View<'_>, at: usize) -> bool {
    view.before(at).is_none_or(|byte| {
        is_gap(byte) || matches!(byte, b'/' | b'(' | b'`' | b'|' | b';' | b'&' | b'$' | b':')
    })
}

fn is_gap(byte: u8) -> bool {
    byte.is_ascii_whitespace() || is_quote(byte) || matches!(byte, SEPARATOR | b',' | b'\\')
}

/// The words of a command line, without their quotes.
struct Words<'w, 't> {
    view: &'w View<'t>,
    at: usize,
    /// Whether it is a list in a program, whose words stand in quotes with commas between.
    list: bool,
}

impl<'w, 't> Words<'w, 't> {
    /// Those behind the name of a program.
    fn behind(view: &'w View<'t>, name: usize) -> Read<Self> {
        let list = view.at(name)?.is_some_and(is_quote);
        Ok(Self { view, at: name + usize::from(list), list })
    }

    fn next(&mut self) -> Read<Option<Range<usize>>> {
        let (view, list) = (self.view, self.list);
        let quote = |byte: u8| byte == b'"' || byte == b'\'';
        let gap =
            |byte: u8| byte == b' ' || byte == b'\t' || byte == SEPARATOR || list && byte == b',';
        let start = view.run(self.at, LINE, gap)?;
        match view.at(start)? {
            None | Some(b'\n' | b'\r' | b'|' | b';' | b')' | b']') => return Ok(None),
            Some(b'&') if view.at(start + 1)? == Some(b'&') => return Ok(None),
            Some(own) if quote(own) => {
                let end = view.run(start + 1, LINE, |byte| byte != own && byte != b'\n')?;
                let closed = view.at(end)? == Some(own) || view.is_cut(end);
                self.at = end + 1;
                return Ok(closed.then_some(start + 1..end));
            }
            Some(_) => {}
        }
        let mut end = start;
        loop {
            let plain = |byte: u8| !gap(byte) && !quote(byte) && !b"\n\r|;".contains(&byte);
            end = view.run(end, LINE, plain)?;
            match view.at(end)? {
                // Quotes in the middle of a word: `-p'..'`.
                Some(own) if quote(own) => {
                    let close = view.run(end + 1, LINE, |byte| byte != own && byte != b'\n')?;
                    if view.at(close)? != Some(own) || close == end + 1 {
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
fn flagged(
    word: &Range<usize>,
    text: &[u8],
    flag: &[u8],
    taken: Taken,
    last: Option<&Range<usize>>,
    view: &View<'_>,
) -> Option<Range<usize>> {
    let attached = matches!(taken, Taken::Attached | Taken::Either | Taken::User);
    if attached && let Some(rest) = text.strip_prefix(flag).filter(|rest| !rest.is_empty()) {
        let rest = rest.strip_prefix(b"=").unwrap_or(rest);
        return Some(word.end - rest.len()..word.end);
    }
    let before = last.map_or(b"".as_slice(), |own| view.bytes(own.clone()));
    let follows = before == flag || taken == Taken::Behind && before.starts_with(flag);
    (taken != Taken::Attached && follows).then(|| word.clone())
}

/// What of a value is secret.
fn secret(view: &View<'_>, value: Range<usize>, taken: Taken) -> Option<Range<usize>> {
    let value = unquoted(view, value);
    let text = view.bytes(value.clone());
    match taken {
        Taken::User | Taken::NextUser(_) => {
            let sign = if let Taken::NextUser(sign) = taken { sign } else { b':' };
            let at = text.iter().position(|byte| *byte == sign)?;
            let host = |own: &[u8]| own.iter().rposition(|byte| *byte == b'@');
            let end = match sign {
                b'/' => text.get(at + 1..).and_then(host).map(|own| value.start + at + 1 + own),
                _ => None,
            };
            let range = value.start + at + 1..end.unwrap_or(value.end);
            let word = view.bytes(range.clone());
            if word.is_empty() {
                let user = text.get(..at)?;
                let token = look(user) == Look::Random && user.len() >= 16;
                return token.then(|| value.start..value.start + at);
            }
            is_password(word).then_some(range)
        }
        Taken::Scheme => {
            let word = text.strip_prefix(b"pass:")?;
            let range = value.end - word.len()..value.end;
            is_password(word).then_some(range)
        }
        Taken::Random => {
            let count = Count::of(text);
            let random = look(text) == Look::Random && count.digit > 0 && text.len() >= 8;
            random.then_some(value)
        }
        Taken::Attached | Taken::Either | Taken::Next | Taken::Behind => {
            is_password(text).then_some(value)
        }
    }
}

fn unquoted(view: &View<'_>, value: Range<usize>) -> Range<usize> {
    match view.bytes(value.clone()) {
        [open, .., close] if is_quote(*open) && open == close => value.start + 1..value.end - 1,
        _ => value,
    }
}

fn is_password(word: &[u8]) -> bool {
    let flag = word.starts_with(b"-");
    !flag && word.len() >= 4 && !is_stand_in(word) && !word.iter().all(u8::is_ascii_digit)
}
