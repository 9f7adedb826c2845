//! The values that the rules of several tools have: a word, a text, a time, a number in a range.

use alloc::format;
use alloc::string::{String, ToString};
use core::ops::RangeInclusive;
use core::time::Duration;

use crate::language::limit_keys;
use crate::parse::context::Context;
use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostic;
use capsule_base::limits;
use capsule_base::yaml::{Section, YamlNode, YamlReader};
use capsule_core::decision::Verdict;
use capsule_core::tool::ToolSignature;

/// Whether nobody vouches for what comes of it. What came from elsewhere is untrusted in any case; the key is
/// there so that a reader sees it.
pub(super) fn untrusted(context: &mut Context<'_>, section: &Section<'_>) -> bool {
    let node = section.get("output");
    node.is_some_and(|node| context.reader.only_supported(node, "untrusted", &[]))
}

/// The word of a rule.
pub(super) fn read_decision(context: &mut Context<'_>, section: &Section<'_>) -> Option<Verdict> {
    section.get("decision").and_then(|node| verdict(context, node))
}

/// A verdict by its word.
pub(super) fn verdict(context: &mut Context<'_>, node: &YamlNode) -> Option<Verdict> {
    context.reader.keyword(node, &Verdict::WORDS).and_then(Verdict::from_word)
}

/// A text of a rule.
pub(super) fn text(context: &mut Context<'_>, section: &Section<'_>, name: &str) -> Option<String> {
    section.get(name).and_then(|node| context.reader.text(node)).map(ToString::to_string)
}

/// A duration up to the ceiling.
pub(super) fn bounded_time(context: &mut Context<'_>, node: &YamlNode) -> Option<Duration> {
    let duration = context.reader.duration(node)?;
    if duration.is_zero() || duration > limits::TIMEOUT_CEILING {
        context.error(Code::PolicyValue, node, "a time limit lies between 1ms and 24h");
        return None;
    }
    Some(duration)
}

/// A number in a range; a policy that wants more or less is told so instead of being clamped. Less was once let
/// through, and is read where it was recorded.
pub(super) fn in_range(
    context: &mut Context<'_>,
    node: &YamlNode,
    value: Option<u64>,
    range: RangeInclusive<u64>,
) -> Option<u64> {
    let value = value?;
    let limit_text = |which, bound| format!("the {which} that can be allowed is {bound}");
    if value > *range.end() {
        context.error(Code::PolicyValue, node, limit_text("most", range.end()));
        return None;
    }
    if value < *range.start() {
        let message = limit_text("least", range.start());
        let diagnostic = Diagnostic::warning(Code::PolicyValue, node.span.clone(), message);
        context.reader.problem(diagnostic);
    }
    Some(value)
}

/// Reads a number in a range, where a rule has one by this name: `read` says how it is written.
pub(super) fn read_bound(
    context: &mut Context<'_>,
    (section, name): (&Section<'_>, &str),
    read: fn(&mut YamlReader, &YamlNode) -> Option<u64>,
    range: RangeInclusive<u64>,
    bound: &mut u64,
) {
    if let Some(node) = section.get(name) {
        let value = read(&mut context.reader, node);
        *bound = in_range(context, node, value, range).unwrap_or(*bound);
    }
}

/// The `limits` of a tool, if its rule has any.
pub(super) fn limit_section<'n>(
    context: &mut Context<'_>,
    signature: &ToolSignature,
    section: &Section<'n>,
) -> Option<Section<'n>> {
    let node = section.get("limits")?;
    context.section_with(node, "`limits`", &limit_keys(signature))
}

/// Reads how many results a call gives at most, and where it names no limit.
pub(super) fn result_limits(
    context: &mut Context<'_>,
    section: &Section<'_>,
    (results_max, results): (&mut u64, &mut u64),
) {
    let most = *results_max;
    for (name, limit) in [("results_max", &mut *results_max), ("results", &mut *results)] {
        read_bound(context, (section, name), YamlReader::number, 0..=most, limit);
    }
    *results = (*results).min(*results_max);
}
