//! P3: one decision, with a policy of a thousand rules, against Cedar with a thousand equivalent
//! policies. Both in this process, both with the request already made.
//!
//! Cedar's policies have the form that it finds fastest: program and path prefix stand in the scope
//! or in one condition, and there is no entity to be looked up.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use capsule_core::action::{Action, Facts, PathTarget};
use capsule_core::decision::Verdict;
use capsule_core::policy::{Policy, PolicyInput, Usage, decide};
use capsule_core::tool::ToolName;
use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Request, RestrictedExpression,
};

use crate::Answer;
use crate::law;
use crate::line;
use crate::options::Options;
use crate::pairs::{Pairs, seconds_each};
use crate::row::{Row, Target};

/// How many rules the policies have.
const RULES: usize = 1_000;
/// How many tokens the command has.
const TOKENS: usize = 20;

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let count = options.pick(101, 21);
    let mut rows = Vec::new();
    for subject in [Subject::Command, Subject::Path] {
        let (ours, theirs) = (Ours::new(subject, RULES)?, Theirs::new(subject, RULES)?);
        ours.must_allow()?;
        theirs.must_allow()?;
        let pairs = Pairs::take(
            count,
            Duration::ZERO,
            || Ok(seconds_each(|| ours.decide())),
            || Ok(seconds_each(|| theirs.decide())),
        )?;
        let what = format!("one decision, {RULES} {}", subject.words());
        let reference = format!("cedar-policy, {RULES} policies");
        let mut row = Row::new("P3", what, reference, pairs, Target::TimeAtMost(0.1));
        for fewer in [10, 100] {
            let few = Ours::new(subject, fewer)?;
            let growth = Pairs::take(
                count,
                Duration::ZERO,
                || Ok(seconds_each(|| ours.decide())),
                || Ok(seconds_each(|| few.decide())),
            )?;
            let times = growth.times().median;
            row = row.note(format!(
                "with {RULES} rules ours takes {times:.2} x its time with {fewer}; the last rule matches"
            ));
        }
        rows.push(row);
    }
    rows.push(line::measure(options)?);
    Ok(rows)
}

/// What the rules are about.
#[derive(Clone, Copy)]
enum Subject {
    Command,
    Path,
}

impl Subject {
    const fn words(self) -> &'static str {
        match self {
            Self::Command => "programs, a command of 20 tokens",
            Self::Path => "path rules, a read",
        }
    }

    const fn tool(self) -> &'static str {
        match self {
            Self::Command => "shell.run",
            Self::Path => "fs.read",
        }
    }
}

/// The name of a rule's program or folder.
fn name(number: usize) -> String {
    format!("item{number:04}")
}

/// The command: the last rule's program, with a subcommand, options and paths.
fn argv(rules: usize) -> Vec<String> {
    let mut argv = vec![name(rules - 1), "build".to_owned(), "--release".to_owned()];
    argv.extend((argv.len()..TOKENS).map(|number| match number % 3 {
        0 => format!("--jobs={number}"),
        1 => format!("src/part{number}.c"),
        _ => format!("word{number}"),
    }));
    argv
}

fn path(rules: usize) -> String {
    format!("{}/notes/today.md", name(rules - 1))
}

/// Our policy, and a case for its last rule.
struct Ours {
    policy: Arc<Policy>,
    tool: ToolName,
    action: Action,
    facts: Facts,
    usage: Usage,
}

impl Ours {
    fn new(subject: Subject, rules: usize) -> Answer<Self> {
        let policy = law::policy(&text(subject, rules))?;
        let (action, facts) = match subject {
            Subject::Command => (run(rules), Facts::default()),
            Subject::Path => read(rules)?,
        };
        let tool = ToolName::unchecked(subject.tool());
        Ok(Self { policy: Arc::new(policy), tool, action, facts, usage: Usage::default() })
    }

    fn verdict(&self) -> Verdict {
        let Self { policy, tool, action, facts, usage } = self;
        decide(policy, &PolicyInput { tool, action, facts, usage, tainted: &[], args_digest: None })
            .decision
            .verdict
    }

    fn decide(&self) {
        std::hint::black_box(self.verdict());
    }

    fn must_allow(&self) -> Answer<()> {
        match self.verdict() {
            Verdict::Allow => Ok(()),
            other => Err(format!("ours says {other} and should allow")),
        }
    }
}

fn text(subject: Subject, rules: usize) -> String {
    let mut text = format!("version: 1\nname: bench\ntools:\n  {}:\n", subject.tool());
    text.push_str(match subject {
        Subject::Command => "    executables:\n",
        Subject::Path => "    paths: [\"**\"]\n    rules:\n",
    });
    for number in 0..rules {
        let name = name(number);
        text.push_str(&match subject {
            Subject::Command => format!(
                "      {name}:\n        subcommands:\n          build: \
                 {{ decision: allow, flags: {{ deny: [--exec, --output] }} }}\n"
            ),
            Subject::Path => {
                format!("      - {{ id: {name}, paths: [\"{name}/**\"], decision: allow }}\n")
            }
        });
    }
    text
}

fn run(rules: usize) -> Action {
    Action::Run {
        argv: argv(rules),
        cwd: PathTarget::parse("."),
        stdin: None,
        timeout_ms: None,
        unconfined: false,
    }
}

fn read(rules: usize) -> Answer<(Action, Facts)> {
    let asked = path(rules);
    let action = Action::Read { path: PathTarget::parse(&asked), offset: 0, limit: None };
    Ok((action, Facts { paths: vec![law::plain_file(&asked)?], ..Facts::default() }))
}

/// Cedar's policies, and a request for the last of them.
struct Theirs {
    authorizer: Authorizer,
    policies: PolicySet,
    entities: Entities,
    request: Request,
}

impl Theirs {
    fn new(subject: Subject, rules: usize) -> Answer<Self> {
        let failed = |error: &dyn std::fmt::Display| format!("cedar: {error}");
        let policies: String = (0..rules).map(|number| statement(subject, &name(number))).collect();
        let policies: PolicySet = policies.parse().map_err(|error| failed(&error))?;
        let uid = |text: String| text.parse::<EntityUid>().map_err(|error| failed(&error));
        let resource = match subject {
            Subject::Command => uid(format!("Program::\"{}\"", name(rules - 1)))?,
            Subject::Path => uid("Folder::\"workspace\"".to_owned())?,
        };
        let context = context(subject, rules).map_err(|error| failed(&error))?;
        let principal = uid("Agent::\"plan\"".to_owned())?;
        let action = uid(format!("Action::\"{}\"", subject.tool()))?;
        let request = Request::new(principal, action, resource, context, None)
            .map_err(|error| failed(&error))?;
        let (authorizer, entities) = (Authorizer::new(), Entities::empty());
        Ok(Self { authorizer, policies, entities, request })
    }

    fn allows(&self) -> bool {
        let answer = self.authorizer.is_authorized(&self.request, &self.policies, &self.entities);
        answer.decision() == Decision::Allow
    }

    fn decide(&self) {
        std::hint::black_box(self.allows());
    }

    fn must_allow(&self) -> Answer<()> {
        if self.allows() { Ok(()) } else { Err("cedar denies and should allow".to_owned()) }
    }
}

/// One policy that says what one of our rules says.
fn statement(subject: Subject, name: &str) -> String {
    match subject {
        Subject::Command => format!(
            "permit(principal, action == Action::\"shell.run\", resource == Program::\"{name}\") \
             when {{ context.subcommand == \"build\" }} \
             unless {{ context.words.containsAny([\"--exec\", \"--output\"]) }};\n"
        ),
        Subject::Path => format!(
            "permit(principal, action == Action::\"fs.read\", resource) \
             when {{ context.path like \"{name}/*\" }};\n"
        ),
    }
}

fn context(subject: Subject, rules: usize) -> Result<Context, Box<dyn std::error::Error>> {
    let text = RestrictedExpression::new_string;
    let mut fields: HashMap<String, RestrictedExpression> = HashMap::new();
    match subject {
        Subject::Command => {
            let words: HashSet<String> = argv(rules).into_iter().collect();
            let words = words.into_iter().map(text);
            fields.insert("words".to_owned(), RestrictedExpression::new_set(words));
            fields.insert("subcommand".to_owned(), text("build".to_owned()));
        }
        Subject::Path => {
            fields.insert("path".to_owned(), text(path(rules)));
        }
    }
    let fields: BTreeMap<_, _> = fields.into_iter().collect();
    Ok(Context::from_pairs(fields)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_decide_alike() {
        for subject in [Subject::Command, Subject::Path] {
            Ours::new(subject, 20).unwrap().must_allow().unwrap();
            Theirs::new(subject, 20).unwrap().must_allow().unwrap();
        }
        assert_eq!(argv(20).len(), TOKENS);
    }

    #[test]
    fn both_sides_deny_what_no_rule_names() {
        let mut ours = Ours::new(Subject::Command, 20).unwrap();
        ours.action = run(30);
        assert!(ours.must_allow().is_err());
        let few = Theirs::new(Subject::Command, 20).unwrap();
        let many = Theirs::new(Subject::Command, 30).unwrap();
        assert!(!Theirs { policies: few.policies, ..many }.allows());
    }
}
