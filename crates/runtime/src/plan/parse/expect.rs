//! What a step must give.

use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostic;
use capsule_base::escape;
use capsule_base::suggestion::closest;
use capsule_base::yaml::{YamlNode, YamlValue};
use capsule_core::capability::{Capabilities, Capability};
use capsule_core::tool::ToolSignature;

use super::{EXPECT, MATCHER, Parser};
use crate::plan::expect::VALUE_KINDS;
use crate::plan::{ExpectedDenial, FieldMatcher, StepExpectation};

impl Parser {
    pub(super) fn expect(
        &mut self,
        node: &YamlNode,
        signature: &'static ToolSignature,
    ) -> StepExpectation {
        let mut expect = StepExpectation::default();
        let Some(map) = self.reader.map(node, "`expect`") else { return expect };
        for (name, at, node) in map.entries() {
            match name {
                "denied" => expect.denied = self.denied(node),
                "failed" => expect.failed = self.failed(node),
                "capabilities" => expect.capabilities = Some(self.capabilities(node)),
                _ => {
                    // `status: 200` is what people write for the status of an HTTP answer.
                    let field = match name {
                        "status" if signature.id == "http.get" => "http_status",
                        other => other,
                    };
                    if !signature.results.iter().any(|result| result.name == field) {
                        self.unknown_field(at, name, signature);
                        continue;
                    }
                    let matcher = self.matcher(node);
                    expect.fields.push((field.to_owned(), matcher));
                }
            }
        }
        expect
    }

    fn unknown_field(&mut self, at: &YamlNode, name: &str, signature: &ToolSignature) {
        let expected = EXPECT.iter().copied().filter(|known| *known != name);
        let names = signature.results.iter().map(|field| field.name).chain(expected);
        let message = format!("the result of `{}` has no `{}`", signature.id, escape::line(name));
        let problem = Diagnostic::error(Code::PlanUnknownKey, at.span.clone(), message);
        let all: Vec<&str> = names.clone().collect();
        self.reader.problem(match closest(name, names) {
            // The status of a call, which a failure and a denial say.
            _ if name == "status" => {
                problem.hint("`denied: true` expects a denial, and `failed: true` a failure")
            }
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint(format!("it has `{}`", all.join("`, `"))),
        });
    }

    fn denied(&mut self, node: &YamlNode) -> Option<ExpectedDenial> {
        match self.reader.line(node)?.as_str() {
            "true" => Some(ExpectedDenial::Any),
            name => Some(ExpectedDenial::By(name.to_owned())),
        }
    }

    fn failed(&mut self, node: &YamlNode) -> Option<Option<Code>> {
        let name = self.reader.line(node)?;
        if name == "true" {
            return Some(None);
        }
        let code = Code::from_slug(&name);
        if code.is_none() {
            let slugs = Code::ALL.iter().map(|code| code.slug());
            let message = format!("there is no code `{}`", escape::line(&name));
            let problem = Diagnostic::error(Code::PlanValue, node.span.clone(), message);
            self.reader.problem(match closest(&name, slugs) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem,
            });
        }
        code.map(Some)
    }

    fn capabilities(&mut self, node: &YamlNode) -> Capabilities {
        let names = Capability::WORDS;
        let items = self.reader.list(node, "a list of capabilities").unwrap_or_default();
        let words = items.iter().filter_map(|item| self.reader.keyword(item, &names));
        words.filter_map(Capability::from_word).collect()
    }

    fn matcher(&mut self, node: &YamlNode) -> FieldMatcher {
        let mut matcher = FieldMatcher::default();
        if !matches!(node.value, YamlValue::Map(_)) {
            matcher.equals = Some(node.to_json());
            return matcher;
        }
        let Some(section) = self.reader.section(node, "a matcher", MATCHER) else {
            return matcher;
        };
        let extent = |parser: &mut Self, node: &YamlNode| {
            let is_number =
                node.text().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()));
            if is_number { parser.reader.number(node) } else { parser.reader.size(node) }
        };
        matcher.equals = section.get("equals").map(YamlNode::to_json);
        matcher.max = section.get("max").and_then(|node| extent(self, node));
        matcher.min = section.get("min").and_then(|node| extent(self, node));
        matcher.not_empty = section.get("not_empty").and_then(|node| self.reader.boolean(node));
        matcher.kind = section.get("type").and_then(|node| self.reader.keyword(node, VALUE_KINDS));
        matcher.contains = section.get("contains").map(YamlNode::to_json);
        matcher.matches = section.get("matches").and_then(|node| self.regex(node, false));
        matcher
    }
}
