//! Arrows point one way: which crate may depend on which (house rule 6).

use serde_json::Value;

use crate::repository::Repository;
use crate::tidy::TidyFinding;

/// What each room may depend on. What is not drawn is forbidden.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    (
        "cli",
        &["serve", "agent", "authoring", "report", "runtime", "store", "policy", "core", "sandbox"],
    ),
    ("serve", &["agent", "report", "runtime", "core"]),
    ("agent", &["runtime", "core"]),
    ("authoring", &["report", "store", "policy", "core"]),
    ("report", &["store", "core"]),
    ("runtime", &["tools", "workspace", "store", "policy", "core"]),
    ("tools", &["sandbox", "workspace", "core"]),
    ("workspace", &["core"]),
    ("store", &["core"]),
    ("sandbox", &["core"]),
    ("policy", &["core"]),
    ("core", &[]),
    ("command", &[]),
    ("base", &[]),
    ("redact", &[]),
];

/// Rooms that know no policy and act on nothing. Every other room may depend on them, and each of them on
/// those behind it in this list.
const PLAIN_CRATES: &[&str] = &["command", "base", "redact"];

/// Rooms for development: they may depend on everything, and nothing but tests depends on them.
const DEVELOPMENT_CRATES: &[&str] = &["fuzz", "testkit", "xtask"];

/// The only places of the command line that may name the sandbox: its child entry point, the doctor's probes, and
/// the command that puts a whole agent into it.
const SANDBOX_USERS: &[&str] = &[
    "crates/cli/src/main.rs",
    "crates/cli/src/command/doctor.rs",
    "crates/cli/src/sandbox/attach.rs",
    "crates/cli/src/sandbox/docker.rs",
    "crates/cli/src/sandbox/namespaces.rs",
    "crates/cli/src/sandbox/recorded.rs",
];

/// What the crate that reads policies may not name of `core`: it fills in what a policy says, and neither asks it nor makes
/// evidence.
const NOT_FOR_READERS: &[&str] = &["decide", "lifecycle"];
/// What only the crate that reads policies may name of `core` and of itself: of these a policy could be made that lacks the
/// rules of the base policy.
const FOR_READERS: &[&str] = &["UnboundPolicy", "bind_layer", "rules_mut"];
/// Where they may be named: in both crates, and by the targets that look for a policy that a tightening weakens.
const READERS: &[&str] = &["crates/core/", "crates/policy/", "fuzz/"];

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let packages = house.metadata.get("packages").and_then(Value::as_array);
    let mut found: Vec<TidyFinding> =
        packages.into_iter().flatten().flat_map(check_package).collect();
    found.extend(check_names(
        house,
        &["capsule_sandbox"],
        |path| path.starts_with("crates/cli/src/") && !SANDBOX_USERS.contains(&path),
        "only the sandbox's child entry point, the doctor's probes and `capsule sandbox` may",
    ));
    found.extend(check_names(
        house,
        NOT_FOR_READERS,
        |path| path.starts_with("crates/policy/src/"),
        "who reads a policy neither asks it nor makes evidence",
    ));
    found.extend(check_names(
        house,
        FOR_READERS,
        |path| !READERS.iter().any(|place| path.starts_with(place)),
        "only who reads policies makes one, so that none lacks the rules of the base policy",
    ));
    found
}

/// The room of a package of ours.
fn crate_name(name: &str) -> &str {
    name.strip_prefix("capsule-").unwrap_or(name)
}

fn check_package(package: &Value) -> Vec<TidyFinding> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some(name) = text(package, "name") else { return Vec::new() };
    let own = crate_name(&name).to_owned();
    let for_development = DEVELOPMENT_CRATES.contains(&own.as_str());
    let allowed =
        ALLOWED_DEPENDENCIES.iter().find(|(room, _)| *room == own).map(|(_, allowed)| *allowed);
    if allowed.is_none() && !for_development {
        let what = "is no room of the house: a crate exists only if its border forbids something; \
                    draw its arrows in xtask/src/tidy/dependencies.rs";
        return vec![TidyFinding::at(name, what)];
    }
    let dependencies = package.get("dependencies").and_then(Value::as_array);
    let mut found = Vec::new();
    for dependency in dependencies.into_iter().flatten() {
        // Ours are those with a path; a kind that is null is a normal dependency.
        let is_ours = dependency.get("path").is_some_and(Value::is_string);
        let kind = text(dependency, "kind").unwrap_or_else(|| "normal".to_owned());
        let Some(other) = text(dependency, "name").filter(|_| is_ours) else { continue };
        let other = crate_name(&other);
        let is_allowed = allowed.is_some_and(|list| list.contains(&other)) || is_plain(&own, other);
        if kind == "dev" || for_development || is_allowed {
            continue;
        }
        let what = match DEVELOPMENT_CRATES.contains(&other) {
            true => format!("only tests may depend on `{other}`"),
            false => format!("must not depend on `{other}` ({kind}); that arrow is not drawn"),
        };
        found.push(TidyFinding::at(name.as_str(), what));
    }
    found
}

/// Whether a room may depend on another because that one is plain.
fn is_plain(own: &str, other: &str) -> bool {
    let rank = |name: &str| PLAIN_CRATES.iter().position(|plain| *plain == name);
    rank(other).is_some_and(|other| rank(own).is_none_or(|own| own < other))
}

/// Finds names in files that are closed to them.
fn check_names(
    house: &Repository,
    names: &[&str],
    is_closed: impl Fn(&str) -> bool,
    why: &str,
) -> Vec<TidyFinding> {
    let closed = house.sources.iter().filter(|source| is_closed(&source.path));
    let named = closed.flat_map(|source| {
        let found = source.tokens.names().filter(|(name, _)| names.contains(name));
        found.map(|(name, line)| (source.path.as_str(), line, format!("names `{name}`: {why}")))
    });
    named.map(|(path, line, what)| TidyFinding::at_line(path, line, what)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(name: &str, dependencies: &Value) -> Vec<TidyFinding> {
        let metadata = json!({ "packages": [{ "name": name, "dependencies": dependencies }] });
        check(&Repository { metadata, ..Repository::default() })
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_found() {
        let on =
            |name: &str, kind: Option<&str>| json!([{ "name": name, "kind": kind, "path": "/x" }]);
        assert_eq!(with("capsule-tools", &on("capsule-store", None)).len(), 1);
        assert_eq!(with("capsule-workspace", &on("capsule-sandbox", None)).len(), 1);
        assert_eq!(with("capsule-core", &on("capsule-sandbox", Some("build"))).len(), 1);
        assert_eq!(with("capsule-runtime", &on("capsule-testkit", None)).len(), 1);
        assert_eq!(with("capsule-runtime", &on("capsule-testkit", Some("dev"))), []);
        assert_eq!(with("capsule-runtime", &on("capsule-tools", None)), []);
        assert_eq!(with("xtask", &on("capsule-core", None)), []);
        assert_eq!(with("capsule-tools", &on("capsule-base", None)), []);
        assert_eq!(with("capsule-command", &on("capsule-base", None)), []);
        assert_eq!(with("capsule-base", &on("capsule-command", None)).len(), 1);
        assert_eq!(with("capsule-command", &on("capsule-core", None)).len(), 1);
        for acting in ["capsule-tools", "capsule-sandbox", "capsule-runtime"] {
            assert_eq!(with("capsule-authoring", &on(acting, None)).len(), 1);
        }
        assert_eq!(with("capsule-runtime", &on("capsule-authoring", None)).len(), 1);
        assert_eq!(with("capsule-core", &on("capsule-policy", None)).len(), 1);
        assert_eq!(with("capsule-tools", &on("capsule-policy", None)).len(), 1);
        assert_eq!(with("capsule-core", &on("capsule-policy", Some("dev"))), []);
    }

    #[test]
    fn a_crate_that_is_no_room_is_found() {
        assert_eq!(with("capsule-shed", &json!([])).len(), 1);
    }

    #[test]
    fn a_reader_that_asks_or_makes_evidence_is_found() {
        let house = Repository::from_files(&[
            ("crates/policy/src/a.rs", "use capsule_core::lifecycle::Judged;"),
            ("crates/policy/src/b.rs", "fn x() { capsule_core::policy::decide(); }"),
            ("crates/policy/src/c.rs", "use capsule_core::policy::Policy;"),
            ("crates/runtime/src/d.rs", "use capsule_core::lifecycle::Judged;"),
        ]);
        assert_eq!(check(&house).len(), 2);
    }

    #[test]
    fn a_policy_that_is_made_elsewhere_is_found() {
        for text in [
            "use capsule_core::policy::UnboundPolicy;",
            "fn x() { read.bind_layer(kind, location, &roots); }",
            "fn x() { *draft.rules_mut() = rules; }",
        ] {
            let found = |path: &str| check(&Repository::from_files(&[(path, text)])).len();
            let open = ["crates/policy/src/a.rs", "crates/core/src/a.rs", "fuzz/src/targets/a.rs"];
            assert_eq!(open.map(found), [0; 3], "{text}");
            let closed =
                ["crates/runtime/src/a.rs", "crates/cli/tests/a.rs", "crates/policy_x/a.rs"];
            assert_eq!(closed.map(found), [1; 3], "{text}");
        }
    }

    #[test]
    fn the_command_line_reaches_the_sandbox_through_three_doors() {
        let text = "fn x() { capsule_sandbox::executor_main(); }";
        let house = Repository::from_files(&[
            ("crates/cli/src/main.rs", text),
            ("crates/cli/src/x.rs", text),
        ]);
        assert_eq!(check(&house).len(), 1);
    }
}
