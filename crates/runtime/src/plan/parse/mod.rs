//! Reads the plan language: version 1.

mod expect;
mod expression;

use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Diagnostics, Severity};
use capsule_base::escape;
use capsule_base::limits;
use capsule_base::suggestion::closest;
use capsule_base::yaml::{self, Dialect, KeySpec, Section, YamlNode, YamlReader, YamlValue, key};
use capsule_core::tool::{Catalogue, ToolSignature};
use serde_json::Value;

use crate::plan::{Expression, InputKind, OnError, Plan, PlanInput, PlanStep};

static DIALECT: Dialect = Dialect {
    syntax: Code::PlanSyntax,
    yaml: Code::PlanYaml,
    duplicate_key: Code::PlanDuplicateKey,
    unknown_key: Code::PlanUnknownKey,
    not_yet: Code::PlanUnknownKey,
    missing_key: Code::PlanMissingKey,
    wrong_type: Code::PlanType,
    unknown_value: Code::PlanValue,
    unit: Code::PlanUnit,
};

pub(super) const TOP: &[KeySpec] = &[
    key("version"),
    key("name"),
    key("description"),
    key("inputs"),
    key("defaults"),
    key("steps"),
    key("outputs"),
];
pub(super) const INPUT: &[KeySpec] =
    &[key("type"), key("default"), key("pattern"), key("description")];
pub(super) const DEFAULTS: &[KeySpec] = &[key("on_error"), key("timeout")];
pub(super) const STEP: &[KeySpec] = &[
    key("id"),
    key("name"),
    key("tool"),
    key("args"),
    key("expect"),
    key("on_error"),
    key("needs"),
    key("when"),
    key("timeout"),
];
pub(super) const RETRY: &[KeySpec] = &[key("retry"), key("backoff")];
pub(super) const MATCHER: &[KeySpec] = &[
    key("equals"),
    key("max"),
    key("min"),
    key("not_empty"),
    key("type"),
    key("contains"),
    key("matches"),
];
/// What `expect` knows besides the fields of results.
pub(super) const EXPECT: &[&str] = &["denied", "failed", "status", "capabilities"];
pub(super) const FUNCTIONS: &[&str] =
    &["$ref", "$concat", "$url", "$template", "$lines", "$default", "$not_empty", "$spread"];
pub(super) const INPUT_KINDS: &[&str] = &["string", "integer", "boolean"];
pub(super) const ON_ERROR: &[&str] = &["stop", "continue"];

impl Plan {
    /// Reads a plan. `fallback` is its name where it gives none.
    ///
    /// # Errors
    /// Every problem of the text, in the order of their places.
    pub fn parse(text: &str, fallback: &str, tools: Catalogue) -> Result<Self, Diagnostics> {
        if text.len() > limits::PLAN_BYTES {
            let message = format!("{} bytes; at most {} are read", text.len(), limits::PLAN_BYTES);
            return Err(vec![Diagnostic::error(Code::PlanUnreadable, 0..0, message)]);
        }
        let root = yaml::parse(text, &DIALECT).map_err(|problem| vec![problem])?;
        let mut parser = Parser {
            reader: YamlReader::new(&DIALECT),
            tools,
            steps: Vec::new(),
            inputs: Vec::new(),
        };
        let plan = match root.filter(|root| !root.is_null()) {
            Some(root) => parser.plan(&root, fallback),
            None => {
                let problem = Diagnostic::error(Code::PlanType, 0..0, "the plan is empty");
                parser.reader.problem(problem.hint("a plan is a list of steps"));
                None
            }
        };
        let mut problems = parser.reader.problems;
        problems.sort_by_key(|problem| problem.span.start);
        match plan {
            Some(plan) if problems.iter().all(|p| p.severity == Severity::Warning) => Ok(plan),
            _ => Err(problems),
        }
    }
}

struct Parser {
    reader: YamlReader,
    tools: Catalogue,
    /// The steps so far, with their tools: what references may lead to.
    steps: Vec<(String, &'static ToolSignature)>,
    inputs: Vec<String>,
}

impl Parser {
    fn error(&mut self, code: Code, node: &YamlNode, message: impl Into<String>) {
        self.reader.problem(Diagnostic::error(code, node.span.clone(), message));
    }

    fn plan(&mut self, root: &YamlNode, fallback: &str) -> Option<Plan> {
        let mut plan = Plan {
            name: fallback.to_owned(),
            inputs: Vec::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
        };
        let defaults = (OnError::Stop, None);
        if let YamlValue::List(steps) = &root.value {
            // The simplest plan is a list of steps.
            plan.steps = self.steps(steps, defaults);
            return Some(plan);
        }
        let section = self.reader.section(root, "a plan", TOP)?;
        if let Some(node) = section.get("version")
            && node.text() != Some("1")
        {
            self.error(Code::PlanVersion, node, "this build knows version 1 of the plan language");
        }
        if let Some(node) = section.get("name") {
            plan.name = self.reader.name(node)?;
        }
        self.check_remark(&section, "description");
        plan.inputs = section.get("inputs").map(|node| self.inputs(node)).unwrap_or_default();
        let defaults = match section.get("defaults") {
            Some(node) => self.defaults(node),
            None => defaults,
        };
        let steps = self.reader.required(&section, "steps", "a plan")?;
        let steps = self.reader.list(steps, "a list of steps")?;
        plan.steps = self.steps(steps, defaults);
        if let Some(map) =
            section.get("outputs").and_then(|node| self.reader.map(node, "`outputs`"))
        {
            for (name, _, node) in map.entries() {
                if let Some(made) = self.expression(node, None) {
                    plan.outputs.push((name.to_owned(), made));
                }
            }
        }
        Some(plan)
    }

    fn inputs(&mut self, node: &YamlNode) -> Vec<PlanInput> {
        let Some(map) = self.reader.map(node, "`inputs`") else { return Vec::new() };
        let mut inputs = Vec::new();
        for (name, at, node) in map.entries() {
            if !is_id(name) {
                self.error(Code::PlanType, at, "a name has letters, digits, `-` and `_`");
            }
            self.inputs.push(name.to_owned());
            let Some(section) = self.reader.section(node, "an input", INPUT) else { continue };
            let word = section.get("type").and_then(|node| self.reader.keyword(node, INPUT_KINDS));
            let kind = match word {
                Some("integer") => InputKind::Integer,
                Some("boolean") => InputKind::Boolean,
                _ => InputKind::String,
            };
            let pattern = section.get("pattern").and_then(|node| self.regex(node, true));
            self.check_remark(&section, "description");
            let input = PlanInput { name: name.to_owned(), kind, default: None, pattern };
            let default = section.get("default").and_then(|node| {
                let given = input.read(node.text().unwrap_or_default());
                given.map_err(|why| self.error(Code::PlanInput, node, why)).ok()
            });
            inputs.push(PlanInput { default, ..input });
        }
        inputs
    }

    /// A text for whoever reads the plan; nothing depends on it, and it is one.
    fn check_remark(&mut self, section: &Section<'_>, name: &str) {
        if let Some(node) = section.get(name) {
            self.reader.text(node);
        }
    }

    fn regex(&mut self, node: &YamlNode, whole: bool) -> Option<regex::Regex> {
        let text = self.reader.text(node)?;
        let build =
            |text: &str| regex::RegexBuilder::new(text).size_limit(limits::REGEX_BYTES).build();
        // Alone first: a text that closes our group would not be bound to the whole input.
        let built = match whole {
            true => build(text).and_then(|_| build(&format!("^(?:{text})$"))),
            false => build(text),
        };
        built.map_err(|_| self.error(Code::PlanType, node, "a regular expression is needed")).ok()
    }

    fn defaults(&mut self, node: &YamlNode) -> (OnError, Option<std::time::Duration>) {
        let Some(section) = self.reader.section(node, "`defaults`", DEFAULTS) else {
            return (OnError::Stop, None);
        };
        let on_error = section.get("on_error").and_then(|node| self.on_error(node));
        let timeout = section.get("timeout").and_then(|node| self.reader.duration(node));
        (on_error.unwrap_or_default(), timeout)
    }

    fn on_error(&mut self, node: &YamlNode) -> Option<OnError> {
        if node.text().is_some() {
            return match self.reader.keyword(node, ON_ERROR)? {
                "continue" => Some(OnError::Continue),
                _ => Some(OnError::Stop),
            };
        }
        let section = self.reader.section(node, "`on_error`", RETRY)?;
        let times = self.reader.required(&section, "retry", "`on_error`")?;
        let times = self.reader.number(times)?;
        if times > limits::PLAN_RETRIES {
            let message = format!("at most {} retries", limits::PLAN_RETRIES);
            self.error(Code::PlanValue, node, message);
        }
        let backoff = section.get("backoff").and_then(|node| self.reader.duration(node));
        let backoff = backoff.unwrap_or_default().min(limits::PLAN_BACKOFF);
        Some(OnError::Retry { times, backoff })
    }

    fn steps(
        &mut self,
        nodes: &[YamlNode],
        defaults: (OnError, Option<std::time::Duration>),
    ) -> Vec<PlanStep> {
        if let Some(node) = nodes.get(limits::PLAN_STEPS) {
            let message = format!("a plan has at most {} steps", limits::PLAN_STEPS);
            self.error(Code::PlanStep, node, message);
        }
        let nodes = nodes.iter().take(limits::PLAN_STEPS).enumerate();
        nodes.filter_map(|(index, node)| self.step(index, node, defaults)).collect()
    }

    fn step(
        &mut self,
        index: usize,
        node: &YamlNode,
        defaults: (OnError, Option<std::time::Duration>),
    ) -> Option<PlanStep> {
        let section = self.reader.section(node, "a step", STEP)?;
        let id = self.step_id(index, &section);
        let tool = self.reader.required(&section, "tool", "a step")?;
        let signature = self.tool(tool)?;
        let args = section.get("args").map(|node| self.args(node, signature)).unwrap_or_default();
        self.required(&section, signature, &args);
        // For whoever reads the plan, as descriptions are, and one line.
        if let Some(node) = section.get("name") {
            self.reader.name(node);
        }
        let step = PlanStep {
            tool: signature,
            args,
            expect: section
                .get("expect")
                .map(|node| self.expect(node, signature))
                .unwrap_or_default(),
            on_error: section
                .get("on_error")
                .and_then(|node| self.on_error(node))
                .unwrap_or(defaults.0),
            needs: section.get("needs").map(|node| self.needs(node)).unwrap_or_default(),
            when: section.get("when").and_then(|node| self.expression(node, None)),
            timeout: section
                .get("timeout")
                .and_then(|node| self.reader.duration(node))
                .or(defaults.1),
            span: section.span.clone(),
            id: id.clone(),
        };
        self.steps.push((id, signature));
        Some(step)
    }

    fn step_id(&mut self, index: usize, section: &Section<'_>) -> String {
        let number = (index + 1).to_string();
        let Some(node) = section.get("id") else { return number };
        let Some(id) = self.reader.name(node) else { return number };
        if !is_id(&id) {
            self.error(Code::PlanStep, node, "an id has letters, digits, `-` and `_`");
        } else if self.steps.iter().any(|(other, _)| *other == id) {
            self.error(Code::PlanStep, node, format!("another step has the id `{id}`"));
        }
        id
    }

    fn tool(&mut self, node: &YamlNode) -> Option<&'static ToolSignature> {
        let name = self.reader.text(node)?;
        let found = self.tools.find(name);
        if found.is_none() {
            let message = format!("there is no tool `{}`", escape::line(name));
            let problem = Diagnostic::error(Code::PlanTool, node.span.clone(), message);
            let ids: Vec<&str> = self.tools.0.iter().map(|tool| tool.id).collect();
            self.reader.problem(match self.tools.closest(name) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint(format!("there are `{}`", ids.join("`, `"))),
            });
        }
        found
    }

    fn args(
        &mut self,
        node: &YamlNode,
        signature: &'static ToolSignature,
    ) -> Vec<(String, Expression)> {
        let Some(map) = self.reader.map(node, "the arguments") else { return Vec::new() };
        let mut args = Vec::new();
        for (name, at, node) in map.entries() {
            let Some(argument) = signature.argument(name) else {
                let names = signature.arguments.iter().map(|argument| argument.name);
                let message =
                    format!("`{}` has no argument `{}`", signature.id, escape::line(name));
                let problem = Diagnostic::error(Code::PlanArgument, at.span.clone(), message);
                let all: Vec<&str> = names.clone().collect();
                self.reader.problem(match closest(name, names) {
                    Some(near) => problem.hint(format!("did you mean `{near}`?")),
                    None => problem.hint(format!("it takes `{}`", all.join("`, `"))),
                });
                continue;
            };
            let Some(made) = self.expression(node, Some(argument.kind)) else { continue };
            if let Expression::Value(value) = &made {
                self.literal(node, signature, name, value);
            }
            args.push((name.to_owned(), made));
        }
        args
    }

    /// A value that is known now is checked now.
    fn literal(&mut self, node: &YamlNode, signature: &ToolSignature, name: &str, value: &Value) {
        let alone = serde_json::json!({ name: value });
        if let Err(error) = signature.check(&alone)
            && error.argument.as_deref() == Some(name)
        {
            self.error(Code::PlanArgument, node, error.message);
        }
    }

    fn required(
        &mut self,
        section: &Section<'_>,
        signature: &ToolSignature,
        args: &[(String, Expression)],
    ) {
        for argument in signature.arguments.iter().filter(|argument| argument.required) {
            if !args.iter().any(|(name, _)| name == argument.name) {
                let message =
                    format!("`{}` needs `{}`: {}", signature.id, argument.name, argument.about);
                let at =
                    section.key_span(if section.get("args").is_some() { "args" } else { "tool" });
                self.reader.problem(Diagnostic::error(Code::PlanArgument, at, message));
            }
        }
    }

    fn needs(&mut self, node: &YamlNode) -> Vec<String> {
        let mut needs = Vec::new();
        for (id, span) in self.reader.lines(node, "a list of steps") {
            if !self.steps.iter().any(|(other, _)| *other == id) {
                let message = format!("no step before has the id `{id}`");
                self.reader.problem(
                    Diagnostic::error(Code::PlanStep, span, message)
                        .hint("steps run in the order of the file"),
                );
            }
            needs.push(id);
        }
        needs
    }
}

fn closest_of(word: &str, candidates: &[String]) -> Option<String> {
    closest(word, candidates.iter().map(String::as_str)).map(Into::into)
}

fn is_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !text.is_empty() && text.len() <= 64 && text.chars().all(plain)
}

impl PlanInput {
    /// Reads the text of an input.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let name = &self.name;
        if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            // The pattern as it was written, without what holds it at both ends.
            let whole = pattern.as_str();
            let text = whole.strip_prefix("^(?:").and_then(|text| text.strip_suffix(")$"));
            let text = text.unwrap_or(whole);
            return Err(format!("`{name}` does not match `{text}`, which must match all of it"));
        }
        match self.kind {
            InputKind::String => Ok(text.into()),
            InputKind::Integer => match text.parse::<i64>() {
                Ok(number) if number.unsigned_abs() <= limits::EXACT_INTEGER => Ok(number.into()),
                _ => Err(format!("`{name}` is a whole number")),
            },
            InputKind::Boolean => text
                .parse::<bool>()
                .map(Into::into)
                .map_err(|_| format!("`{name}` is true or false")),
        }
    }
}
