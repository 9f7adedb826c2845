//! A command line, one word a line. ParsedArgv it never panics, with knowledge of its program or
//! without; a denied pattern is not escaped by one option more; and a policy that names a few
//! commands allows no other.

use std::sync::{Arc, LazyLock};

use crate::Call;
use capsule_command::specs::{self, CommandLine, CommandSpec, ParsedArgv};
use capsule_core::action::{Action, Facts, PathTarget};
use capsule_core::decision::Verdict;
use capsule_core::policy::{ArgumentPattern, ArgvPattern, Policy, SourceLocation, TokenMatcher};
use capsule_core::tool::ToolName;

static POLICY: LazyLock<Arc<Policy>> =
    LazyLock::new(|| crate::policy(include_str!("../../seeds/policy_yaml/commands.yaml")));

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let argv: Vec<String> = text.split('\n').map(Into::into).collect();
    // As any program that is known, whatever its first word says, and as one that is not.
    for knowledge in specs::program_names().map(specs::find_spec).chain([None]) {
        for subcommands in [true, false] {
            read(&argv, knowledge, subcommands);
        }
    }
    pattern(&argv);
    judge(argv);
}

fn read(argv: &[String], knowledge: Option<&CommandSpec>, subcommands: bool) {
    let reading = ParsedArgv::parse(argv, knowledge, subcommands);
    assert_eq!(reading.known(), knowledge.is_some());
    assert_eq!(reading.levels.first().map(|level| &level.name), argv.first());
    let is_word = |word: &String| argv.contains(word);
    for level in &reading.levels {
        assert!(is_word(&level.name) && level.operands.iter().all(is_word));
        assert!(level.flags.iter().all(|flag| flag.spelled.starts_with('-')));
        for flag in &level.flags {
            assert!(flag.names.iter().all(|name| flag.is_certainly(name) && flag.could_be(name)));
        }
    }
}

/// The first word and the last, as a pattern: what it matches it matches behind one option more.
fn pattern(argv: &[String]) {
    let line = CommandLine::parse(argv, None, false);
    let word = |word: &str| ArgumentPattern::Any(vec![TokenMatcher::Exact(word.into())]);
    let ends = line.names.first().into_iter().chain(argv.last());
    let pattern = ArgvPattern {
        source: SourceLocation::default(),
        arguments: ends.map(|end| word(end)).collect(),
        flags: Vec::new(),
    };
    let mut longer = argv.to_vec();
    longer.insert(1, "--fuzz".into());
    if pattern.matches(&line) {
        assert!(pattern.matches(&CommandLine::parse(&longer, None, false)), "{longer:?}");
    }
}

/// The policy names three programs, and one command of the one that has many.
fn judge(argv: Vec<String>) {
    let call = Call {
        tool: ToolName::unchecked("shell.run"),
        action: Action::Run {
            argv,
            cwd: PathTarget::parse("docs"),
            stdin: None,
            timeout_ms: None,
            unconfined: false,
        },
        facts: Facts::default(),
        hopeless: false,
    };
    let _ = call.action.argument_paths(&call.facts);
    let verdict = call.judge(&POLICY).decision.verdict;
    let Action::Run { argv, .. } = &call.action else { return };
    if verdict == Verdict::Deny {
        return;
    }
    let holds = |wanted: &str| argv.iter().any(|word| word == wanted);
    match argv[0].as_str() {
        // Behind `log` the same letters mean something else, and harmless.
        "git" => {
            let mut global = argv.iter().take_while(|word| *word != "log");
            assert!(holds("log") && !global.any(|word| word == "-c" || word == "-C"), "{argv:?}");
        }
        "tool" | "/usr/bin/tool" => assert!(!holds("-z"), "{argv:?}"),
        program => assert_eq!(program, "cat"),
    }
}
