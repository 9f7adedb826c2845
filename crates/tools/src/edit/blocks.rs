//! Edits in the text of a model:
//! `<edit path="..."><search>..</search><replace>..</replace><count>..</count></edit>`.
//!
//! This is no XML. What stands between the tags is taken as it is: `a < b && c` needs no escaping, and
//! `&lt;` stays `&lt;`, since code is full of both and nobody could say which of the two was meant. One
//! line end behind an opening tag and one before a closing tag belong to the tags. Where a tag of an
//! edit itself stands in a text, only `<![CDATA[`..`]]>` around all of that text says where it ends:
//! without it the block is refused rather than cut at a guess.

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use serde_json::{Map, Value, json};

/// What a call of an edit is for.
pub const TOOL: &str = "fs.edit";

/// A call as a block asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct EditCall {
    /// The tool.
    pub tool: &'static str,
    /// Its arguments.
    pub args: Value,
}

/// What was found in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EditBlocks {
    /// The calls in their order, or why a block is none.
    pub calls: Vec<Result<EditCall, CodedError>>,
    /// The text without the blocks.
    pub rest: String,
}

const OPEN: &str = "<edit";
const CLOSE: &str = "</edit>";
const CDATA: (&str, &str) = ("<![CDATA[", "]]>");
/// What may not stand in a text that no `CDATA` bounds.
const TAGS: [&str; 8] = [
    "<edit>",
    "<edit ",
    "</edit>",
    "<search>",
    "</search>",
    "<replace>",
    "</replace>",
    "<![CDATA[",
];

/// Finds the edits in a text. A block begins a line; whatever else there is stays text.
#[must_use]
pub fn find_edits(text: &str) -> EditBlocks {
    let mut found = EditBlocks::default();
    if text.len() > limits::MODEL_TEXT_BYTES {
        let message =
            format!("the text is longer than the {} bytes that are read", limits::MODEL_TEXT_BYTES);
        found.calls.push(Err(malformed_problem(message)));
        found.rest = text.to_owned();
        return found;
    }
    let mut rest = text;
    while let Some(start) = next_block(rest) {
        let (before, block) = rest.split_at_checked(start).unwrap_or((rest, ""));
        found.rest.push_str(before);
        if found.calls.len() >= limits::EDIT_BLOCKS {
            let message = format!("the text holds more than {} edits", limits::EDIT_BLOCKS);
            found.calls.push(Err(malformed_problem(message)));
            found.rest.push_str(block);
            return found;
        }
        let mut reader = BlockReader { rest: block };
        match reader.read_block() {
            Ok(asked) => {
                found.calls.push(Ok(asked));
                rest = reader.rest;
            }
            Err(message) => {
                found.calls.push(Err(malformed_problem(message)));
                // Whatever comes next may still be a part of it, so nothing behind it is believed.
                found.rest.push_str(block);
                return found;
            }
        }
    }
    found.rest.push_str(rest);
    found
}

/// The one call that a text is.
///
/// # Errors
/// [`Code::EditMalformed`] where it is none, or more.
pub fn parse_single_edit(text: &str) -> Result<EditCall, CodedError> {
    let EditBlocks { mut calls, rest } = find_edits(text);
    match (calls.pop(), calls.is_empty()) {
        (Some(Err(problem)), true) => Err(problem),
        (Some(Ok(asked)), true) if rest.trim().is_empty() => Ok(asked),
        (Some(Ok(_)), true) => Err(malformed_problem("something stands beside the `<edit>` block")),
        (Some(_), false) => {
            Err(malformed_problem("there is more than one `<edit>` block; a call is one"))
        }
        (None, _) => Err(malformed_problem("there is no `<edit path=\"..\">` block")),
    }
}

fn malformed_problem(message: impl Into<String>) -> CodedError {
    let form = "write `<edit path=\"..\"><search>..</search><replace>..</replace></edit>`, or call \
        `fs.edit` with JSON";
    CodedError::new(Code::EditMalformed, message).with_suggestion(form)
}

/// Where the next block begins: at the first word of a line.
fn next_block(text: &str) -> Option<usize> {
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let word = line.trim_start();
        let is_tag = |rest: &str| rest.starts_with(|c: char| c == '>' || c.is_ascii_whitespace());
        if word.strip_prefix(OPEN).is_some_and(is_tag) {
            return Some(line_start + (line.len() - word.len()));
        }
        line_start += line.len();
    }
    None
}

/// Reads one block.
struct BlockReader<'r> {
    rest: &'r str,
}

/// A text between tags, and whether `CDATA` bounded it.
struct TagContent {
    text: String,
    in_cdata: bool,
}

impl<'r> BlockReader<'r> {
    fn read_block(&mut self) -> Result<EditCall, String> {
        let mut args = Map::new();
        args.insert("path".into(), self.read_head()?.into());
        let (mut search, mut replace, mut count) = (None, None, None);
        loop {
            self.skip();
            let name = match () {
                () if self.take(CLOSE) => break,
                () if self.take("<search>") => "search",
                () if self.take("<replace>") => "replace",
                () if self.take("<count>") => "count",
                () if self.rest.is_empty() => return Err("the `<edit>` block does not end".into()),
                () => {
                    return Err(
                        "an `<edit>` block holds `<search>`, `<replace>` and `<count>`, and \
                        nothing beside them"
                            .into(),
                    );
                }
            };
            let slot = match name {
                "search" => &mut search,
                "replace" => &mut replace,
                _ => &mut count,
            };
            if slot.is_some() {
                return Err(format!("the `<edit>` block holds `<{name}>` twice"));
            }
            *slot = Some(self.read_content(name)?);
        }
        let search = search.ok_or("the `<edit>` block has no `<search>`")?;
        let replace = replace.ok_or("the `<edit>` block has no `<replace>`")?;
        let is_needed = |content: &TagContent| TAGS.iter().any(|tag| content.text.contains(tag));
        let lone = match (search.in_cdata, replace.in_cdata) {
            (true, false) => Some(&search).filter(|_| !replace.text.is_empty()),
            (false, true) => Some(&replace),
            _ => None,
        };
        if lone.is_some_and(|content| !is_needed(content)) {
            return Err(
                "one of `<search>` and `<replace>` is in `CDATA` and the other is not, so it \
                cannot be told whether that belongs to the text"
                    .into(),
            );
        }
        args.insert("search".into(), search.text.into());
        args.insert("replace".into(), replace.text.into());
        if let Some(count) = count {
            let number = count.text.trim().parse::<u32>().ok().filter(|number| *number > 0);
            let number = number.ok_or("`<count>` holds a whole number, 1 or more")?;
            args.insert("count".into(), json!(number));
        }
        Ok(EditCall { tool: TOOL, args: Value::Object(args) })
    }

    /// `<edit path="...">`; gives the path.
    fn read_head(&mut self) -> Result<String, String> {
        let wrong = || "an `<edit>` tag has one attribute, `path=\"..\"`".to_owned();
        if !self.take(OPEN) {
            return Err(wrong());
        }
        self.skip_blanks();
        if !self.take("path") {
            return Err(wrong());
        }
        self.skip_blanks();
        if !self.take("=") {
            return Err(wrong());
        }
        self.skip_blanks();
        let quote = match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => quote,
            _ => return Err(wrong()),
        };
        let inner = self.rest.get(1..).unwrap_or_default();
        let (path, rest) = inner.split_once(quote).ok_or_else(wrong)?;
        if path.contains(['\n', '<', '>']) {
            return Err("the path of an `<edit>` is on one line, without `<` and `>`".into());
        }
        self.rest = rest;
        self.skip_blanks();
        if self.take(">") { Ok(path.to_owned()) } else { Err(wrong()) }
    }

    /// What stands up to the closing tag of this name.
    fn read_content(&mut self, name: &str) -> Result<TagContent, String> {
        let close = format!("</{name}>");
        let unended = || format!("`<{name}>` does not end");
        if let Some(inner) = self.rest.trim_start().strip_prefix(CDATA.0) {
            let (text, rest) = cdata_content(inner, &close).ok_or_else(unended)?;
            self.rest = rest;
            if text.contains(CDATA.1) {
                return Err(format!("the `CDATA` in `<{name}>` ends more than once"));
            }
            return Ok(TagContent { text: trim_tag_lines(text).to_owned(), in_cdata: true });
        }
        let (text, rest) = self.rest.split_once(&close).ok_or_else(unended)?;
        if let Some(tag) = TAGS.iter().find(|tag| text.contains(**tag)) {
            return Err(format!(
                "`{tag}` stands in `<{name}>`, so it cannot be told where that ends; put the text \
                 in `<![CDATA[`..`]]>`"
            ));
        }
        self.rest = rest;
        Ok(TagContent { text: trim_tag_lines(text).to_owned(), in_cdata: false })
    }

    /// Skips blanks and comments between tags.
    fn skip(&mut self) {
        loop {
            self.skip_blanks();
            let Some(inner) = self.rest.strip_prefix("<!--") else { return };
            let Some((_, rest)) = inner.split_once("-->") else { return };
            self.rest = rest;
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, word: &str) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

/// The text up to the first end of `CDATA` that the closing tag follows, and what is behind that tag.
fn cdata_content<'t>(inner: &'t str, close: &str) -> Option<(&'t str, &'t str)> {
    let ends = inner.match_indices(CDATA.1);
    ends.filter_map(|(at, end)| {
        let rest = inner.get(at + end.len()..)?.trim_start().strip_prefix(close)?;
        Some((inner.get(..at)?, rest))
    })
    .next()
}

/// A text without the line end behind its opening tag, and without that before its closing one.
fn trim_tag_lines(text: &str) -> &str {
    let Some(text) = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')) else {
        return trim_last_line_end(text);
    };
    trim_last_line_end(text)
}

/// Without the last line end, where only the closing tag's own indentation follows it.
fn trim_last_line_end(text: &str) -> &str {
    match text.rsplit_once('\n') {
        Some((before, after)) if after.trim_matches([' ', '\t']).is_empty() => {
            before.strip_suffix('\r').unwrap_or(before)
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Value {
        parse_single_edit(text).unwrap().args
    }

    #[test]
    fn blocks_become_calls() {
        for (text, search, replace) in [
            ("<search>a</search><replace>b</replace>", "a", "b"),
            ("\n<search>\na\n</search>\n<replace>\nb\n\n</replace>\n", "a", "b\n"),
            ("  <search>\n  a\n  </search>\n  <replace></replace>", "  a", ""),
            ("<replace>b</replace> <!-- why --> <search>a</search>", "a", "b"),
            ("<search>\r\na\r\n</search><replace>\r\nb\r\n</replace>", "a", "b"),
            (
                "<search>a &lt; b</search><replace>a < b && c > d</replace>",
                "a &lt; b",
                "a < b && c > d",
            ),
            ("<search>$&</search><replace>$1 \\0 \\n</replace>", "$&", "$1 \\0 \\n"),
            (
                "<search><![CDATA[<search>]]></search><replace><![CDATA[</replace>]]></replace>",
                "<search>",
                "</replace>",
            ),
            ("<search>x</search><replace>\n<![CDATA[\n<edit>\n]]>\n</replace>", "x", "<edit>"),
            ("<search><div>a<br></search><replace></div></replace>", "<div>a<br>", "</div>"),
        ] {
            let text = format!("<edit path='a b.txt'>{text}</edit>");
            let args = json!({ "path": "a b.txt", "search": search, "replace": replace });
            assert_eq!(one(&text), args, "{text}");
        }
        let counted = "<edit path=\"file.js\">\n  <search>old text</search>\n  \
            <replace>new text</replace>\n  <count>1</count>  <!-- expected matches -->\n</edit>";
        assert_eq!(one(counted)["count"], 1);
    }

    #[test]
    fn the_rest_stays_text() {
        let block = |path: &str| {
            format!("<edit path=\"{path}\"><search>a</search><replace>b</replace></edit>")
        };
        let text = format!("Use `<edit>`: \n{}\nand\n  {}\nDone.\n", block("x"), block("y"));
        let found = find_edits(&text);
        let paths: Vec<_> =
            found.calls.iter().map(|call| call.as_ref().unwrap().args["path"].clone()).collect();
        assert_eq!(paths, ["x", "y"]);
        assert_eq!(found.rest, "Use `<edit>`: \n\nand\n  \nDone.\n");
        let plain = "An <editor> and an\n<editor path=\"x\">, no edit.\n<edits>";
        assert_eq!(find_edits(plain), EditBlocks { calls: Vec::new(), rest: plain.into() });
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        for text in [
            "<edit><search>a</search><replace>b</replace></edit>",
            "<edit path=x><search>a</search><replace>b</replace></edit>",
            "<edit path=\"x\" mode=\"y\"><search>a</search><replace>b</replace></edit>",
            "<edit path=\"x><search>a</search><replace>b</replace></edit>",
            "<edit path=\"x\"><search>a</search></edit>",
            "<edit path=\"x\"><search>a</search><replace>b</replace>",
            "<edit path=\"x\"><search>a</search><search>a</search><replace>b</replace></edit>",
            "<edit path=\"x\"><search>a<replace>b</replace></edit>",
            "<edit path=\"x\"><search>a</search>text<replace>b</replace></edit>",
            "<edit path=\"x\"><search>a</search><replace>b</replace><count>0</count></edit>",
            "<edit path=\"x\"><search>a</search><replace>b</replace><count>two</count></edit>",
            "<edit path=\"x\"><search>a</search></search><replace>b</replace></edit>",
            "<edit path=\"x\"><search>a</search><replace>b</replace></replace></edit>",
            "<edit path=\"x\"><search>a</search><replace><edit path=\"y\"></replace></edit>",
            "<edit path=\"x\"><search>a</search><replace><![CDATA[b]]></replace></edit>",
            "<edit path=\"x\"><search>a</search><replace>b<![CDATA[c]]></replace></edit>",
            "<edit path=\"x\"><search><![CDATA[a</search><replace>b</replace></edit>",
            "<edit path=\"x\"><search>a</search><replace>b</replace></edit> more",
            "",
        ] {
            let code = parse_single_edit(text).map(drop).map_err(|problem| problem.code);
            assert_eq!(code, Err(Code::EditMalformed), "{text}");
        }
        let two = "<edit path=\"x\"><search>a</search><replace>b</replace></edit>\n".repeat(2);
        assert!(parse_single_edit(&two).is_err());
        // Behind a block that does not end, nothing is believed.
        let broken = format!("<edit path=\"x\"><search>\n{two}");
        assert_eq!(find_edits(&broken).calls.len(), 1);
        let many = two.repeat(limits::EDIT_BLOCKS);
        assert_eq!(find_edits(&many).calls.len(), limits::EDIT_BLOCKS + 1);
    }
}
