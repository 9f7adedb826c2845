//! Types prove the order of the path, not its honesty. Whoever could forge evidence is on a list
//! (decision 13), and the shapes that would let a tool act on its own are not there (house,
//! evidence 1 and 4).

use crate::repository::Repository;
use crate::rust::Source;
use crate::tidy::TidyFinding;

/// The only places that may write history: the store, the observer that passes it on, and the
/// recording that a replay is compared with.
const JOURNALS: &[&str] = &[
    "crates/store/src/write.rs",
    "crates/runtime/src/observer.rs",
    "crates/runtime/src/replay/journal.rs",
];

/// The only places that may answer for a person: nobody, the desk that a person's word passes, and
/// the record of what was said.
const APPROVERS: &[&str] = &[
    "crates/core/src/approval/mod.rs",
    "crates/runtime/src/approval/broker.rs",
    "crates/runtime/src/backend/answers.rs",
];

/// The only places that may make the token that says that a person answered: cards in a terminal,
/// forms of an MCP client, and the record of what was said.
const PERSONS: &[&str] = &[
    "crates/cli/src/card/card_state.rs",
    "crates/runtime/src/backend/answers.rs",
    "crates/runtime/src/approval/pending.rs",
    "crates/runtime/src/session/approvals.rs",
    "crates/serve/src/mcp/elicitation.rs",
];

/// Where permits come from.
const EVIDENCE: &str = "crates/core/src/lifecycle/";

/// The only variant of those types that means that nothing holds: the bounds of the action that has the
/// power to run unconfined. Each is made, narrowed and spent in one place.
const UNCONFINED_VARIANT: (&str, &str, &[&str]) = (
    "Restrictions",
    "Unconfined",
    &[
        "crates/core/src/policy/decide/call_restrictions.rs",
        "crates/core/src/policy/restrictions/intersection.rs",
        "crates/core/src/lifecycle/run.rs",
    ],
);
/// The only places that name the function that confines nothing: where it stands, and the one tool that
/// spends a leave on it.
const UNCONFINED_RUNNERS: (&str, &[&str]) = (
    "run_unconfined",
    &[
        "crates/sandbox/src/backend.rs",
        "crates/sandbox/src/unsupported_os.rs",
        "crates/sandbox/src/linux/supervise/mod.rs",
        "crates/tools/src/command/unconfined.rs",
    ],
);

/// Types that say how a command is held, and words that would say that it is not.
const ENFORCEMENT_TYPES: &[&str] = &["Confinement", "SandboxTier", "SandboxStatus", "Restrictions"];
const UNCONFINED_WORDS: &[&str] =
    &["None", "Unconfined", "Unrestricted", "Unlimited", "Off", "Disabled", "Host", "Open"];

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let shipped = house.sources.iter().filter(|source| !source.is_for_development());
    shipped.flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<TidyFinding> {
    let mut found = check_implementations(source, "Journal", JOURNALS);
    found.extend(check_implementations(source, "Approver", APPROVERS));
    found.extend(check_persons(source));
    found.extend(check_permits(source));
    found.extend(check_runs(source));
    found.extend(check_variants(source));
    found.extend(check_optional(source));
    found.extend(check_unconfined(source));
    found
}

fn check_implementations(source: &Source, of: &str, sites: &[&str]) -> Vec<TidyFinding> {
    if sites.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let item = source
        .items
        .implementations
        .iter()
        .filter(|implementation| implementation.trait_name == of);
    let shipped = item.filter(|implementation| !source.is_test(implementation.line));
    let what =
        format!("implements `{of}`; its sites are listed in xtask/src/tidy/trusted_sites.rs");
    shipped
        .map(|implementation| {
            TidyFinding::at_line(&source.path, implementation.line, what.as_str())
        })
        .collect()
}

fn check_persons(source: &Source) -> Vec<TidyFinding> {
    if PERSONS.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let made =
        ["Person", "PersonToken"].into_iter().flat_map(|name| source.tokens.paths_after(name));
    let shipped = made.filter(|(_, line)| !source.is_test(*line));
    let what = "makes a person's token; only a user interface may, and none does in this build";
    shipped.map(|(_, line)| TidyFinding::at_line(&source.path, line, what)).collect()
}

fn check_permits(source: &Source) -> Vec<TidyFinding> {
    if source.path.starts_with(EVIDENCE) {
        return Vec::new();
    }
    let gives = |types: &[String]| types.iter().any(|name| name == "Permit");
    let item = source.items.functions.iter().filter(|function| gives(&function.result_types));
    let what = |name: &str| format!("`{name}` returns a `Permit`; only {EVIDENCE} may");
    item.map(|function| {
        TidyFinding::at_line(&source.path, function.first_line, what(&function.name))
    })
    .collect()
}

fn check_runs(source: &Source) -> Vec<TidyFinding> {
    if !source.path.starts_with("crates/tools/") {
        return Vec::new();
    }
    let takes = |types: &[String]| types.iter().any(|name| name == "ToolCall");
    let iter = source.items.functions.iter();
    let item = iter.filter(|function| function.name == "run" && takes(&function.parameter_types));
    let what = "a `run` takes a `ToolCall`; nothing runs from what was merely asked";
    item.map(|function| TidyFinding::at_line(&source.path, function.first_line, what)).collect()
}

fn check_variants(source: &Source) -> Vec<TidyFinding> {
    let item = source
        .items
        .enumerations
        .iter()
        .filter(|enumeration| ENFORCEMENT_TYPES.contains(&enumeration.name.as_str()));
    let variants = item.flat_map(|enumeration| {
        enumeration.variants.iter().map(|variant| (&enumeration.name, variant))
    });
    let known =
        |name: &str, variant: &str| (name, variant) == (UNCONFINED_VARIANT.0, UNCONFINED_VARIANT.1);
    let loose = variants.filter(|(name, (variant, _))| {
        UNCONFINED_WORDS.contains(&variant.as_str()) && !known(name, variant)
    });
    loose
        .map(|(name, (variant, line))| {
            let what = format!(
                "`{name}::{variant}` means that nothing holds; running unconfined is another \
                 action with a capability of its own"
            );
            TidyFinding::at_line(&source.path, *line, what)
        })
        .collect()
}

/// Whoever could run a command unconfined by another way than the one.
fn check_unconfined(source: &Source) -> Vec<TidyFinding> {
    let shipped = |line: &usize| !source.is_test(*line);
    let (owner, variant, sites) = UNCONFINED_VARIANT;
    let bounds =
        source.tokens.paths_after(owner).filter(|(name, line)| *name == variant && shipped(line));
    let bounds = bounds.filter(|_| !sites.contains(&source.path.as_str()));
    let (function, callers) = UNCONFINED_RUNNERS;
    let runs = source.tokens.names().filter(|(name, line)| *name == function && shipped(line));
    let runs = runs.filter(|_| !callers.contains(&source.path.as_str()));
    let what =
        "lets a command run unconfined; its sites are listed in xtask/src/tidy/trusted_sites.rs";
    bounds.chain(runs).map(|(_, line)| TidyFinding::at_line(&source.path, line, what)).collect()
}

fn check_optional(source: &Source) -> Vec<TidyFinding> {
    let item = source.items.structures.iter().filter(|structure| structure.name == "Confinement");
    let fields = item.flat_map(|structure| &structure.fields);
    let optional = fields.filter(|(_, types, _)| types.iter().any(|name| name == "Option"));
    optional
        .map(|(field, _, line)| {
            let what = format!("`Confinement::{field}` can be left out; every part must hold");
            TidyFinding::at_line(&source.path, *line, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Repository::from_files(&[(path, text)])).len()
    }

    #[test]
    fn a_second_writer_of_history_is_found() {
        assert_eq!(found("crates/tools/src/x.rs", "impl Journal for Quiet {}"), 1);
        assert_eq!(found("crates/store/src/write.rs", "impl Journal for RunWriter {}"), 0);
        assert_eq!(found("crates/tools/tests/x.rs", "impl Journal for Quiet {}"), 0);
        let test = "#[cfg(test)]\nmod tests {\n impl Journal for Quiet {}\n}";
        assert_eq!(found("crates/tools/src/x.rs", test), 0);
    }

    #[test]
    fn a_model_that_approves_is_found() {
        assert_eq!(found("crates/agent/src/x.rs", "impl capsule_core::Approver for Model {}"), 1);
        assert_eq!(found("crates/agent/src/x.rs", "fn f() { Person::present() }"), 1);
        assert_eq!(found("crates/core/src/x.rs", "fn f() { Move::Person }"), 0);
    }

    #[test]
    fn a_second_source_of_permits_is_found() {
        let forged = "fn forge() -> Option<Permit<'static>> { None }";
        assert_eq!(found("crates/runtime/src/x.rs", forged), 1);
        assert_eq!(found("crates/core/src/lifecycle/run.rs", forged), 0);
    }

    #[test]
    fn a_run_from_a_call_is_found() {
        let text = "impl Tool for X { fn run(&self, call: &ToolCall) {} }";
        assert_eq!(found("crates/tools/src/x.rs", text), 1);
        assert_eq!(found("crates/tools/src/x.rs", "fn run(permit: Permit<'_>) {}"), 0);
    }

    #[test]
    fn a_second_way_to_run_unconfined_is_found() {
        let text = "fn f(leave: &UnconfinedPermit<'_>) { capsule_sandbox::run_unconfined(leave) }";
        assert_eq!(found("crates/tools/src/builtin/test_run.rs", text), 1);
        assert_eq!(found("crates/tools/src/command/unconfined.rs", text), 0);
        let text = "fn f() -> Restrictions { Restrictions::Unconfined { clamped: false } }";
        assert_eq!(found("crates/core/src/policy/decide/command_list.rs", text), 1);
        assert_eq!(found("crates/core/src/policy/decide/call_restrictions.rs", text), 0);
    }

    #[test]
    fn a_confinement_that_means_nothing_is_found() {
        assert_eq!(found("crates/core/src/x.rs", "enum SandboxTier { Landlock, None }"), 1);
        assert_eq!(
            found("crates/core/src/x.rs", "enum Restrictions { Nothing, Unconfined, Open }"),
            1
        );
        assert_eq!(
            found("crates/core/src/x.rs", "struct Confinement { floor: Option<SandboxTier> }"),
            1
        );
        assert_eq!(found("crates/core/src/x.rs", "struct Confinement { floor: SandboxTier }"), 0);
    }
}
