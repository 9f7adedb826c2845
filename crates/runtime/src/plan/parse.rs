//! Reads the plan language: version 1.

use std::collections::BTreeSet;

use capsule_core::capability::{Capabilities, Capability};
use capsule_core::code::Code;
use capsule_core::diagnostic::{Diagnostic, Diagnostics, Severity};
use capsule_core::escape;
use capsule_core::limits;
use capsule_core::tool::{Catalogue, Kind, Signature, closest};
use capsule_core::yaml::{self, Dialect, Key, Node, Reader, Section, Value as Yaml, key};
use serde_json::Value;

use crate::plan::expect::KINDS;
use crate::plan::{
    Denial, Expect, Expression, Input, InputKind, Item, Matcher, OnError, Plan, Reference, Segment,
    Step,
};

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

pub(super) const TOP: &[Key] = &[
    key("version"),
    key("name"),
    key("description"),
    key("inputs"),
    key("defaults"),
    key("steps"),
    key("outputs"),
];
pub(super) const INPUT: &[Key] = &[key("type"), key("default"), key("pattern"), key("description")];
pub(super) const DEFAULTS: &[Key] = &[key("on_error"), key("timeout")];
pub(super) const STEP: &[Key] = &[
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
pub(super) const RETRY: &[Key] = &[key("retry"), key("backoff")];
pub(super) const MATCHER: &[Key] = &[
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
        let mut parser =
            Parser { reader: Reader::new(&DIALECT), tools, steps: Vec::new(), inputs: Vec::new() };
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
    reader: Reader,
    tools: Catalogue,
    /// The steps so far, with their tools: what references may lead to.
    steps: Vec<(String, &'static Signature)>,
    inputs: Vec<String>,
}

impl Parser {
    fn error(&mut self, code: Code, node: &Node, message: impl Into<String>) {
        self.reader.problem(Diagnostic::error(code, node.span.clone(), message));
    }

    fn plan(&mut self, root: &Node, fallback: &str) -> Option<Plan> {
        let mut plan = Plan {
            name: fallback.to_owned(),
            description: None,
            inputs: Vec::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
        };
        let defaults = (OnError::Stop, None);
        if let Yaml::List(steps) = &root.value {
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
            plan.name = self.reader.line(node)?;
        }
        plan.description =
            section.get("description").and_then(|node| self.reader.text(node)).map(Into::into);
        plan.inputs = section.get("inputs").map(|node| self.inputs(node)).unwrap_or_default();
        let defaults = match section.get("defaults") {
            Some(node) => self.defaults(node),
            None => defaults,
        };
        let steps = self.reader.need(&section, "steps", "a plan")?;
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

    fn inputs(&mut self, node: &Node) -> Vec<Input> {
        let Some(map) = self.reader.map(node, "`inputs`") else { return Vec::new() };
        let mut inputs = Vec::new();
        for (name, at, node) in map.entries() {
            if !is_id(name) {
                self.error(Code::PlanType, at, "a name has letters, digits, `-` and `_`");
            }
            self.inputs.push(name.to_owned());
            let Some(section) = self.reader.section(node, "an input", INPUT) else { continue };
            let word = section.get("type").and_then(|node| self.reader.word(node, INPUT_KINDS));
            let kind = match word {
                Some("integer") => InputKind::Integer,
                Some("boolean") => InputKind::Boolean,
                _ => InputKind::String,
            };
            let pattern = section.get("pattern").and_then(|node| self.regex(node, true));
            let input = Input {
                name: name.to_owned(),
                kind,
                default: None,
                pattern,
                description: section
                    .get("description")
                    .and_then(|node| self.reader.text(node))
                    .map(Into::into),
            };
            let default = section.get("default").and_then(|node| {
                let given = input.read(node.text().unwrap_or_default());
                given.map_err(|why| self.error(Code::PlanInput, node, why)).ok()
            });
            inputs.push(Input { default, ..input });
        }
        inputs
    }

    fn regex(&mut self, node: &Node, whole: bool) -> Option<regex::Regex> {
        let text = self.reader.text(node)?;
        let text = if whole { format!("^(?:{text})$") } else { text.to_owned() };
        let built = regex::RegexBuilder::new(&text).size_limit(limits::REGEX_BYTES).build();
        built.map_err(|_| self.error(Code::PlanType, node, "a regular expression is needed")).ok()
    }

    fn defaults(&mut self, node: &Node) -> (OnError, Option<std::time::Duration>) {
        let Some(section) = self.reader.section(node, "`defaults`", DEFAULTS) else {
            return (OnError::Stop, None);
        };
        let on_error = section.get("on_error").and_then(|node| self.on_error(node));
        let timeout = section.get("timeout").and_then(|node| self.reader.duration(node));
        (on_error.unwrap_or_default(), timeout)
    }

    fn on_error(&mut self, node: &Node) -> Option<OnError> {
        if node.text().is_some() {
            return match self.reader.word(node, ON_ERROR)? {
                "continue" => Some(OnError::Continue),
                _ => Some(OnError::Stop),
            };
        }
        let section = self.reader.section(node, "`on_error`", RETRY)?;
        let times = self.reader.need(&section, "retry", "`on_error`")?;
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
        nodes: &[Node],
        defaults: (OnError, Option<std::time::Duration>),
    ) -> Vec<Step> {
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
        node: &Node,
        defaults: (OnError, Option<std::time::Duration>),
    ) -> Option<Step> {
        let section = self.reader.section(node, "a step", STEP)?;
        let id = self.step_id(index, &section);
        let tool = self.reader.need(&section, "tool", "a step")?;
        let signature = self.tool(tool)?;
        let args = section.get("args").map(|node| self.args(node, signature)).unwrap_or_default();
        self.required(&section, signature, &args);
        let step = Step {
            name: section.get("name").and_then(|node| self.reader.line(node)),
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
        let Some(id) = self.reader.line(node) else { return number };
        if !is_id(&id) {
            self.error(Code::PlanStep, node, "an id has letters, digits, `-` and `_`");
        } else if self.steps.iter().any(|(other, _)| *other == id) {
            self.error(Code::PlanStep, node, format!("another step has the id `{id}`"));
        }
        id
    }

    fn tool(&mut self, node: &Node) -> Option<&'static Signature> {
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

    fn args(&mut self, node: &Node, signature: &'static Signature) -> Vec<(String, Expression)> {
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
    fn literal(&mut self, node: &Node, signature: &Signature, name: &str, value: &Value) {
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
        signature: &Signature,
        args: &[(String, Expression)],
    ) {
        for argument in signature.arguments.iter().filter(|argument| argument.required) {
            if !args.iter().any(|(name, _)| name == argument.name) {
                let message =
                    format!("`{}` needs `{}`: {}", signature.id, argument.name, argument.about);
                let at = section.place(if section.get("args").is_some() { "args" } else { "tool" });
                self.reader.problem(Diagnostic::error(Code::PlanArgument, at, message));
            }
        }
    }

    fn needs(&mut self, node: &Node) -> Vec<String> {
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

    fn expect(&mut self, node: &Node, signature: &'static Signature) -> Expect {
        let mut expect = Expect::default();
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
                    if !signature.results.iter().any(|own| own.name == field) {
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

    fn unknown_field(&mut self, at: &Node, name: &str, signature: &Signature) {
        let names = signature.results.iter().map(|field| field.name).chain(EXPECT.iter().copied());
        let message = format!("the result of `{}` has no `{}`", signature.id, escape::line(name));
        let problem = Diagnostic::error(Code::PlanUnknownKey, at.span.clone(), message);
        let all: Vec<&str> = names.clone().collect();
        self.reader.problem(match closest(name, names) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint(format!("it has `{}`", all.join("`, `"))),
        });
    }

    fn denied(&mut self, node: &Node) -> Option<Denial> {
        match self.reader.line(node)?.as_str() {
            "true" => Some(Denial::Any),
            name => Some(Denial::By(name.to_owned())),
        }
    }

    fn failed(&mut self, node: &Node) -> Option<Option<Code>> {
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

    fn capabilities(&mut self, node: &Node) -> Capabilities {
        let names = Capability::ALL.map(Capability::name);
        let items = self.reader.list(node, "a list of capabilities").unwrap_or_default();
        let words = items.iter().filter_map(|item| self.reader.word(item, &names));
        words.filter_map(Capability::from_name).collect()
    }

    fn matcher(&mut self, node: &Node) -> Matcher {
        let mut matcher = Matcher::default();
        if !matches!(node.value, Yaml::Map(_)) {
            matcher.equals = Some(node.to_json());
            return matcher;
        }
        let Some(section) = self.reader.section(node, "a matcher", MATCHER) else {
            return matcher;
        };
        let extent = |parser: &mut Self, node: &Node| {
            let is_number =
                node.text().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()));
            if is_number { parser.reader.number(node) } else { parser.reader.size(node) }
        };
        matcher.equals = section.get("equals").map(Node::to_json);
        matcher.max = section.get("max").and_then(|node| extent(self, node));
        matcher.min = section.get("min").and_then(|node| extent(self, node));
        matcher.not_empty = section.get("not_empty").and_then(|node| self.reader.truth(node));
        matcher.kind = section.get("type").and_then(|node| self.reader.word(node, KINDS));
        matcher.contains = section.get("contains").map(Node::to_json);
        matcher.matches = section.get("matches").and_then(|node| self.regex(node, false));
        matcher
    }

    /// A value, or how to make one. `kind` is that of the argument it stands in.
    fn expression(&mut self, node: &Node, kind: Option<Kind>) -> Option<Expression> {
        match &node.value {
            Yaml::Scalar(_) => Some(Expression::Value(literal(node, kind))),
            Yaml::List(items) => self.list(items, kind),
            Yaml::Map(entries) => match entries.first() {
                Some((name, inner)) if name.text().is_some_and(|name| name.starts_with('$')) => {
                    if let Some((other, _)) = entries.get(1) {
                        let message = "a `$`-function stands alone in its map";
                        self.error(Code::PlanFunction, other, message);
                        return None;
                    }
                    self.function(name, inner, kind)
                }
                _ => self.entries(entries, kind),
            },
        }
    }

    fn list(&mut self, items: &[Node], kind: Option<Kind>) -> Option<Expression> {
        let mut list = Vec::new();
        for item in items {
            list.push(match item.get("$spread") {
                Some(inner) => Item::Spread(self.expression(inner, kind)?),
                None => Item::One(self.expression(item, kind)?),
            });
        }
        let values: Option<Vec<Value>> = list
            .iter()
            .map(|item| match item {
                Item::One(Expression::Value(value)) => Some(value.clone()),
                _ => None,
            })
            .collect();
        Some(match values {
            Some(values) => Expression::Value(Value::Array(values)),
            None => Expression::List(list),
        })
    }

    fn entries(&mut self, entries: &[(Node, Node)], kind: Option<Kind>) -> Option<Expression> {
        let mut map = Vec::new();
        for (name, inner) in entries {
            let key = name.text().unwrap_or("");
            if key.starts_with('$') {
                self.error(Code::PlanFunction, name, "a `$`-function stands alone in its map");
                return None;
            }
            map.push((key.to_owned(), self.expression(inner, kind)?));
        }
        let values: Option<serde_json::Map<String, Value>> = map
            .iter()
            .map(|(key, made)| match made {
                Expression::Value(value) => Some((key.clone(), value.clone())),
                _ => None,
            })
            .collect();
        Some(match values {
            Some(values) => Expression::Value(Value::Object(values)),
            None => Expression::Map(map),
        })
    }

    fn function(&mut self, name: &Node, inner: &Node, kind: Option<Kind>) -> Option<Expression> {
        match self.function_name(name)? {
            "$ref" => self.reference(inner).map(Expression::Ref),
            "$concat" => self.several(inner, kind).map(Expression::Concat),
            "$default" => self.several(inner, kind).map(Expression::Default),
            "$lines" => Some(Expression::Lines(Box::new(self.expression(inner, None)?))),
            "$not_empty" => Some(Expression::NotEmpty(Box::new(self.expression(inner, None)?))),
            "$url" => self.url(inner),
            "$template" => self.template(name, inner, kind),
            _ => {
                self.error(Code::PlanFunction, name, "`$spread` stands in a list");
                None
            }
        }
    }

    fn function_name(&mut self, name: &Node) -> Option<&'static str> {
        let text = name.text().unwrap_or("");
        let known = FUNCTIONS.iter().copied().find(|own| *own == text);
        if known.is_none() {
            let message = format!("there is no function `{}`", escape::line(text));
            let problem = Diagnostic::error(Code::PlanFunction, name.span.clone(), message);
            self.reader.problem(match closest(text, FUNCTIONS.iter().copied()) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint(format!("there are `{}`", FUNCTIONS.join("`, `"))),
            });
        }
        known
    }

    fn several(&mut self, node: &Node, kind: Option<Kind>) -> Option<Vec<Expression>> {
        let items = self.reader.list(node, "a list")?;
        items.iter().map(|item| self.expression(item, kind)).collect()
    }

    fn url(&mut self, node: &Node) -> Option<Expression> {
        let section = self.reader.section(node, "`$url`", &[key("base"), key("query")])?;
        let base = self.reader.need(&section, "base", "`$url`")?;
        let base = Box::new(self.expression(base, Some(Kind::Url))?);
        Some(Expression::Url { base, query: self.named(&section, "query")? })
    }

    /// A template makes text, and text is all it can make: never a path, a URL or a word of a
    /// command line.
    fn template(&mut self, name: &Node, node: &Node, kind: Option<Kind>) -> Option<Expression> {
        if kind.is_some_and(|kind| kind != Kind::Text) {
            let wanted = kind.map_or("", Kind::name);
            let message = format!("`$template` makes text; {wanted} is needed here");
            self.error(Code::PlanFunction, name, message);
        }
        let section = self.reader.section(node, "`$template`", &[key("text"), key("vars")])?;
        let text = self.reader.need(&section, "text", "`$template`")?;
        let text = Box::new(self.expression(text, None)?);
        Some(Expression::Template { text, vars: self.named(&section, "vars")? })
    }

    fn named(&mut self, section: &Section<'_>, name: &str) -> Option<Vec<(String, Expression)>> {
        let Some(node) = section.get(name) else { return Some(Vec::new()) };
        let map = self.reader.map(node, "a map")?;
        map.entries()
            .map(|(name, _, inner)| Some((name.to_owned(), self.expression(inner, None)?)))
            .collect()
    }

    fn reference(&mut self, node: &Node) -> Option<Reference> {
        let text = self.reader.text(node)?;
        let reference = match Reference::parse(text) {
            Ok(reference) => reference,
            Err(why) => {
                self.error(Code::PlanRef, node, why);
                return None;
            }
        };
        let problem = match &reference {
            Reference::Input(name) => (!self.inputs.contains(name))
                .then(|| (format!("there is no input `{name}`"), closest_of(name, &self.inputs))),
            Reference::Step { id, way } => self.unknown_step(id, way),
        };
        if let Some((message, near)) = problem {
            let problem = Diagnostic::error(Code::PlanRef, node.span.clone(), message);
            self.reader.problem(match near {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem,
            });
        }
        Some(reference)
    }

    fn unknown_step(&self, id: &str, way: &[Segment]) -> Option<(String, Option<String>)> {
        let ids: Vec<String> = self.steps.iter().map(|(own, _)| own.clone()).collect();
        let Some((_, tool)) = self.steps.iter().find(|(own, _)| own == id) else {
            return Some((format!("no step before has the id `{id}`"), closest_of(id, &ids)));
        };
        let Some(Segment::Key(field)) = way.first() else { return None };
        let fields = tool.results.iter().map(|own| own.name);
        let known: BTreeSet<&str> = fields.clone().collect();
        if known.contains(field.as_str()) {
            return None;
        }
        let near = closest(field, fields).map(Into::into);
        Some((format!("the result of `{}` has no `{field}`", tool.id), near))
    }
}

fn closest_of(word: &str, candidates: &[String]) -> Option<String> {
    closest(word, candidates.iter().map(String::as_str)).map(Into::into)
}

fn is_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !text.is_empty() && text.len() <= 64 && text.chars().all(plain)
}

/// A scalar as JSON. In a place that takes text a number is the text that was written.
fn literal(node: &Node, kind: Option<Kind>) -> Value {
    let takes_text = matches!(
        kind,
        Some(Kind::Argv | Kind::Text | Kind::Path | Kind::Url | Kind::Name | Kind::Headers)
    );
    match (takes_text, node.text()) {
        (true, Some(text)) => text.into(),
        _ => node.to_json(),
    }
}

impl Input {
    /// Reads the text of an input.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let name = &self.name;
        if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            return Err(format!("`{name}` does not match `{pattern}`"));
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
