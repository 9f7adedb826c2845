//! What was understood, written as text of the language.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::ast::{
    ListOperator, PipelineStage, Redirection, Script, ShellWord, StdStream, WordPiece,
};
use super::refusal::SyntaxRefusal;
use super::unsupported::UnsupportedSyntax;

/// Writes a command line as a text that is read back as the same words.
///
/// # Errors
/// Some command lines have no text: those with characters that a text may not hold, those whose
/// program is a word of a shell, and the empty one. The refusal says so; its place is in the text
/// that would have been.
pub fn quote_argv(argv: &[String]) -> Result<String, SyntaxRefusal> {
    let mut text = String::new();
    for (index, word) in argv.iter().enumerate() {
        text.push_str(if index > 0 { " " } else { "" });
        quote(word, &mut text);
    }
    let script = super::parse(&text)?;
    let is_same = script.only_stage().is_some_and(|stage| {
        stage.words.iter().map(ShellWord::literal).eq(argv.iter().map(|word| Some(word.as_str())))
    });
    if is_same { Ok(text) } else { Err(SyntaxRefusal::of(UnsupportedSyntax::EmptyCommand, 0..0)) }
}

impl Script {
    /// The stage that it is, if it is no more than one.
    pub(super) fn only_stage(&self) -> Option<&PipelineStage> {
        let mut stages = self.stages();
        stages.next().filter(|_| self.is_single() && stages.next().is_none())
    }
}

/// Writes text so that no character of it means anything else.
fn quote(text: &str, into: &mut String) {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_-./,:+@".contains(c);
    if !text.is_empty() && text.chars().all(is_safe) {
        into.push_str(text);
        return;
    }
    // A carriage return may stand in a text only where everybody sees it.
    if text.contains('\r') {
        into.push_str("$'");
        for c in text.chars() {
            match c {
                '\r' => into.push_str("\\r"),
                '\\' | '\'' => into.extend(['\\', c]),
                c => into.push(c),
            }
        }
        into.push('\'');
        return;
    }
    into.push('\'');
    for c in text.chars() {
        match c {
            '\'' => into.push_str("'\\''"),
            c => into.push(c),
        }
    }
    into.push('\'');
}

impl fmt::Display for ShellWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut written = String::new();
        for piece in &self.pieces {
            match piece {
                WordPiece::Text(text) => quote(text, &mut written),
                wild => written.push_str(&wild.unexpanded()),
            }
        }
        f.write_str(if self.pieces.is_empty() { "''" } else { &written })
    }
}

/// The text of a list without loops, conditions and groups, with here-documents behind the line that they belong
/// to.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bodies: Vec<&str> = Vec::new();
        for element in &self.elements {
            match element.join {
                ListOperator::First => {}
                ListOperator::And => f.write_str(" && ")?,
                ListOperator::Or => f.write_str(" || ")?,
                ListOperator::Then => line_end(f, &mut bodies)?,
            }
            for (index, stage) in element.pipeline.stages.iter().enumerate() {
                f.write_str(if index > 0 { " | " } else { "" })?;
                write_stage(stage, f, &mut bodies)?;
            }
            f.write_str(if element.is_background { " &" } else { "" })?;
        }
        if bodies.is_empty() { Ok(()) } else { line_end(f, &mut bodies) }
    }
}

fn line_end(f: &mut fmt::Formatter<'_>, bodies: &mut Vec<&str>) -> fmt::Result {
    f.write_str("\n")?;
    for body in core::mem::take(bodies) {
        writeln!(f, "{body}{}", delimiter(body))?;
    }
    Ok(())
}

/// A word that is no line of the text.
fn delimiter(body: &str) -> String {
    let mut delimiter = String::from("EOF");
    while body.lines().any(|line| line == delimiter) {
        delimiter.push('F');
    }
    delimiter
}

fn write_stage<'s>(
    stage: &'s PipelineStage,
    f: &mut fmt::Formatter<'_>,
    bodies: &mut Vec<&'s str>,
) -> fmt::Result {
    let mut parts: Vec<String> = Vec::new();
    for (name, value) in &stage.variables {
        parts.push(alloc::format!("{name}={}", ShellWord::text(value)));
    }
    parts.extend(stage.words.iter().map(|word| alloc::format!("{word}")));
    for redirect in &stage.redirects {
        parts.push(match redirect {
            Redirection::File { stream, path, append } => {
                let sign = if *append { ">>" } else { ">" };
                alloc::format!("{}{sign}{}", descriptor(*stream), ShellWord::text(path))
            }
            Redirection::Duplicate { stream, target } => {
                alloc::format!("{}>&{}", descriptor(*stream), descriptor(*target))
            }
            Redirection::Input { path } => alloc::format!("<{}", ShellWord::text(path)),
            // No body can hold a carriage return; only a word that is read as one has it.
            Redirection::Here { text } if text.contains('\r') => {
                alloc::format!("<<<{}", ShellWord::text(text.strip_suffix('\n').unwrap_or(text)))
            }
            Redirection::Here { text } => {
                bodies.push(text);
                alloc::format!("<<'{}'", delimiter(text))
            }
        });
    }
    f.write_str(&parts.join(" "))
}

const fn descriptor(stream: StdStream) -> char {
    match stream {
        StdStream::Out => '1',
        StdStream::Err => '2',
    }
}
