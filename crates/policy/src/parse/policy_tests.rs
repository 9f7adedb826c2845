//! Reads what a policy's author says that it decides.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::language::{CALL, EXPECT, TEST};
use crate::parse::context::Context;
use crate::parse::rule_value::verdict;
use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostic;
use capsule_base::yaml::YamlNode;
use capsule_core::policy::Profile;
use capsule_core::policy::{DecisionExpectation, PolicyTest};
use capsule_core::risk::Risk;
use capsule_core::tool::ToolName;

/// The tests of a policy.
pub(super) fn tests(
    context: &mut Context<'_>,
    node: &YamlNode,
    profiles: &[Profile],
) -> Vec<PolicyTest> {
    let items = context.reader.list(node, "a list of tests").unwrap_or_default();
    let mut tests: Vec<PolicyTest> = Vec::new();
    for item in items {
        let Some(test) = test(context, item, profiles) else { continue };
        if tests.iter().any(|other| other.name == test.name) {
            let message = format!("another test is called `{}`", test.name);
            context.error(Code::PolicyDuplicateKey, item, message);
        }
        tests.push(test);
    }
    tests
}

fn test(context: &mut Context<'_>, node: &YamlNode, item: &[Profile]) -> Option<PolicyTest> {
    let section = context.section(node, "a test", &TEST)?;
    let name = context.reader.required(&section, "name", "a test");
    let call = context.reader.required(&section, "call", "a test");
    let expect = context.reader.required(&section, "expect", "a test");
    let mut profiles = Vec::new();
    if let Some(node) = section.get("profiles") {
        for (profile, span) in context.reader.lines(node, "a list of profiles") {
            let known = item.iter().map(|profile| profile.name.as_str()).chain(Profile::BUILTIN);
            if !known.into_iter().any(|known| known == profile) {
                let message = format!("there is no profile `{profile}`");
                context.reader.problem(Diagnostic::error(Code::PolicyValue, span, message));
            }
            profiles.push(profile);
        }
    }
    let name = context.reader.line(name?)?;
    let source = context.source(node);
    let section = context.section(call?, "`call`", &CALL)?;
    let asked = context.reader.required(&section, "tool", "`call`")?;
    let tool = context.reader.line(asked)?;
    let Some(signature) = context.tools.find(&tool) else {
        let message = format!("there is no tool `{tool}`");
        context.error(Code::PolicyValue, asked, message);
        return None;
    };
    let args = section.get("args").map_or_else(|| serde_json::json!({}), YamlNode::to_json);
    if let Err(error) = signature.check(&args) {
        context.error(Code::PolicyTest, section.get("args").unwrap_or(node), error.message);
        return None;
    }
    let mut resolves = Vec::new();
    for (text, span) in section
        .get("resolves")
        .map(|node| context.reader.lines(node, "a list of addresses"))
        .unwrap_or_default()
    {
        match text.parse() {
            Ok(address) => resolves.push(address),
            Err(_) => context.reader.problem(Diagnostic::error(
                Code::PolicyType,
                span,
                "an address such as `169.254.169.254` is needed",
            )),
        }
    }
    let expect = expectation(context, expect?)?;
    let tool = ToolName::unchecked(signature.id);
    Some(PolicyTest { source, name, profiles, tool, args, resolves, expect })
}

fn expectation(context: &mut Context<'_>, node: &YamlNode) -> Option<DecisionExpectation> {
    let section = context.section(node, "`expect`", &EXPECT)?;
    if section.entries().next().is_none() {
        let message = "`expect` says nothing, so the test could not fail";
        context.error(Code::PolicyMissingKey, node, message);
        return None;
    }
    let decision = section.get("decision").and_then(|node| verdict(context, node));
    let rule: Option<String> = section.get("rule").and_then(|node| context.reader.line(node));
    let code = section.get("code").and_then(|node| code(context, node));
    let risk = section.get("risk").and_then(|node| context.reader.keyword(node, &Risk::WORDS));
    let risk = risk.and_then(Risk::from_word);
    let capabilities = section.get("capabilities").map(|node| context.capabilities(node));
    Some(DecisionExpectation { decision, rule, code, risk, capabilities })
}

fn code(context: &mut Context<'_>, node: &YamlNode) -> Option<Code> {
    let text = context.reader.text(node)?;
    let code = Code::from_slug(text);
    if code.is_none() {
        let slugs: Vec<&'static str> = Code::ALL.iter().map(|code| code.slug()).collect();
        let message = format!("there is no code `{}`", capsule_base::escape::line(text));
        let problem = Diagnostic::error(Code::PolicyValue, node.span.clone(), message);
        let near = capsule_base::suggestion::closest(text, slugs.iter().copied());
        let hint = near.map_or_else(
            || String::from("`capsule explain-code` lists them"),
            |near| format!("did you mean `{near}`?"),
        );
        context.reader.problem(problem.hint(hint));
    }
    code
}
