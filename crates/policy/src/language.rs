//! The keys of the policy language, each with what its value is and what it is for.
//!
//! The parser takes the names that it knows from this table, and the schema for editors is made of it.

use alloc::vec::Vec;

use crate::language::ValueShape::{
    Each, Either, Internal, List, ListBetween, Map, Matching, Named, Number, Pattern, Section,
    Special, Text, Truth, Unsupported, Words,
};
use capsule_base::limits;
use capsule_base::yaml::{KeySpec, key, unsupported_key};
use capsule_core::action::WriteMode;
use capsule_core::approval::GrantLifetime;
use capsule_core::capability::Capability;
use capsule_core::confinement::{MountPoint, NetworkAccess, SandboxTier};
use capsule_core::decision::Verdict;
use capsule_core::policy::{CheckpointRule, Hazard, LayerKind, Profile, ReturnedMasks};
use capsule_core::risk::Risk;
use capsule_core::tool::{ToolShape, ToolSignature};
use capsule_redact::limits as secret_limits;

/// A key of the language.
#[derive(Clone, Copy, Debug)]
pub struct LanguageKey {
    /// The name.
    pub name: &'static str,
    /// The form of its value.
    pub value: ValueShape,
    /// Its purpose, for authors; empty where the form of the value says it.
    pub about: &'static str,
}

impl LanguageKey {
    /// The key as the reader checks it.
    pub(crate) fn spec(&self) -> KeySpec {
        match self.value {
            Unsupported => unsupported_key(self.name),
            _ => key(self.name),
        }
    }
}

/// The form of a value.
#[derive(Clone, Copy, Debug)]
pub enum ValueShape {
    /// Text, or what YAML reads as a number or a truth value; with what it is, where no key says so.
    Text(&'static str),
    /// Text that an expression matches; numbers and truth values are taken as they are written.
    Matching(&'static str),
    /// Text that an expression matches, and nothing else.
    Pattern(&'static str),
    /// One of these words.
    Words(&'static [&'static str]),
    /// `true` or `false`.
    Truth,
    /// A whole number from the first to the second, if there is one.
    Number(u64, Option<u64>),
    /// A list of these, with what one of them is.
    List(&'static ValueShape, &'static str),
    /// Likewise, with at least and at most so many.
    ListBetween(&'static ValueShape, &'static str, u64, Option<u64>),
    /// A map with these keys and no other.
    Section(&'static LanguageSection),
    /// A map with each of these names, all with the same form of value.
    Each(&'static [&'static [&'static str]], &'static ValueShape),
    /// A map from names that the expression matches, at most so many.
    Map(Option<&'static str>, Option<u64>, &'static ValueShape),
    /// The one or the other: a short form and a long one.
    Either(&'static ValueShape, &'static ValueShape),
    /// One of the forms in [`DEFINITIONS`].
    Named(&'static str),
    /// A form that follows from the tool, or from a rule that no other key has.
    Special(&'static str),
    /// Only the base policy has this key.
    Internal,
    /// The language has it, and this build does not enforce it yet: it is refused, never ignored.
    Unsupported,
}

/// The keys of a map.
#[derive(Clone, Copy, Debug)]
pub struct LanguageSection {
    /// The keys.
    pub keys: &'static [LanguageKey],
    /// Those that must be there.
    pub required: &'static [&'static str],
}

/// Rows of the table: `"name": form, "purpose";`.
macro_rules! keys {
    ($($name:literal: $value:expr, $about:expr;)*) => {
        &[$(LanguageKey { name: $name, value: $value, about: $about }),*]
    };
}

/// Sections with their rows, and the keys that must be there.
macro_rules! sections {
    ($($(#[$doc:meta])* $section:ident [$($required:literal),*] { $($rows:tt)* })*) => {$(
        #[doc = concat!("The keys of the section `", stringify!($section), "`.")]
        $(#[$doc])*
        pub const $section: LanguageSection =
            LanguageSection { keys: keys! { $($rows)* }, required: &[$($required),*] };
    )*};
}

const TEXT: ValueShape = Text("");
const WORD: ValueShape = Named("word");
const ID: ValueShape = Named("id");
const GLOBS: ValueShape = Named("globs");
const SIZE: ValueShape = Named("size");
const DURATION: ValueShape = Named("duration");
const BECAUSE: ValueShape = Named("because");
const SUGGEST: ValueShape = Named("suggest");
const COUNT: ValueShape = Number(0, None);
const POSITIVE: ValueShape = Number(1, None);
const RISKS: ValueShape = Words(&Risk::WORDS);
const CAPABILITIES: ValueShape = List(&Words(&Capability::WORDS), "");
const HOSTS_LIST: ValueShape =
    List(&TEXT, "A host: `registry.example.org`, `*.example.org:8443`; port 443 if none is named.");
const URL_RULES: ValueShape = List(&Named("urlRule"), "");
const CALLS: ValueShape = Special("calls");
const UNTRUSTED: &str = "Nobody vouches for the results: arguments made of them are tainted. What came from elsewhere \
                         always is.";
const HIDDEN: &str = "Names that begin with a dot.";
const SYMLINKS: &str = "Links: those that stay inside, or none.";
/// The name of a variable.
const VARIABLE: &str = "^[A-Za-z0-9_]+$";
/// A program goes by its plain name.
const PROGRAM_NAME: &str = "^[^-/* ][^/* ]*$";

sections! {
    /// The sections of a policy.
    POLICY ["version"] {
        "version": Special("version"), "The version of the language.";
        "name": TEXT, "What the policy is called.";
        "description": TEXT, "What the policy is for.";
        "extends": Special("extends"), "The policy that this one is laid over; `builtin:base` always applies.";
        "layer": Words(&LayerKind::WORDS), "Whose layer it is, where it is no policy and tightens others.";
        "workspace": Section(&WORKSPACE), "The folder that tools work in.";
        "default": Words(&["deny"]), "What is not named is denied.";
        "never": List(&Named("never"), ""), "What no profile, grant, flag or approval lifts.";
        "lift": List(&Section(&LIFT), ""), "Rules of the base policy that are dropped.";
        "tools": Named("tools"), "";
        "sandbox": Section(&SANDBOX), "What commands are confined to.";
        "toolchains": List(&TEXT, "A name, a directory, or `well-known`."), "Toolchains and package caches that commands see \
            read-only: names such as `rustup`, directories as absolute paths or with `~/`, or `well-known` for all that are there.";
        "audit": Section(&AUDIT), "What is kept.";
        "profile": TEXT, "The profile where none is chosen: supervised, autonomous, readonly, or one of `profiles`.";
        "profiles": Map(Some("^[A-Za-z0-9._-]+$"), None, &Section(&PROFILE)),
            "What decides where a rule has no word of its own, and a ceiling for all.";
        "capabilities": Each(&[&Capability::WORDS], &Section(&CAPABILITY)), "The wording and the least risk of each capability.";
        "risk": Section(&RISK), "How much a call could cost, and how much is too much.";
        "budgets": Section(&BUDGETS), "How much one run may do in all.";
        "tests": List(&Section(&TEST), ""), "Calls with what is decided on them; `capsule policy test` asks for each.";
        "grants": Section(&GRANTS), "What a prompt may offer beyond the call that it is about.";
        "composites": Section(&COMPOSITES), "How calls of several parts are decided. Pipelines and lists are always judged as a \
            whole before any of it runs.";
        "secrets": Map(Some("^[A-Z0-9_]+$"), Some(secret_limits::SECRETS as u64), &Section(&SECRET)),
            "Values that are sent without being known to anybody here.";
        "redaction": Section(&REDACTION), "What is masked, and what becomes of masks.";
    }

    /// The sections that only the base policy has.
    BASE_POLICY [] { "deny": Internal, ""; "ask": Internal, ""; }

    WORKSPACE ["root"] { "root": TEXT, "The folder, relative to the policy's own place."; }

    LIFT ["id", "because"] { "id": ID, ""; "because": TEXT, "Why the rule does not hold here."; }

    NEVER ["id"] {
        "id": ID, "";
        "capabilities": CAPABILITIES, "The powers that are forbidden on the paths; all of them if left out.";
        "paths": GLOBS, "The paths that are protected.";
        "except": GLOBS, "Carve-outs from this rule's own paths.";
        "tool": Named("tool"), "The tool that the rule is about.";
        "argv": List(&ListBetween(&Either(
            &Text("A word; `...` stands for any words, and an option may stand anywhere."), &Named("wordPattern")), "", 1, None), ""),
            "Command lines that are forbidden, by their program and words.";
        "effects": List(&Special("effect"), ""), "What no command may do.";
        "into": List(&Special("effect"), ""), "What a program does that may not be fed by such a command.";
        "because": BECAUSE, "";
        "suggest": SUGGEST, "";
    }

    /// The keys that `never` rules of the base policy have besides.
    BASE_NEVER [] { "new": Internal, ""; "listed": Internal, ""; "except_listed": Internal, ""; }

    ANY_WORD ["any"] {
        "any": List(&TEXT, "A word."), "One of these words.";
        "regex": TEXT, "An expression that must match a word as a whole.";
    }

    REGEX ["regex"] { "regex": TEXT, "An expression that must match a word as a whole."; }

    /// The keys of every tool.
    TOOL [] {
        "decision": WORD, "";
        "because": BECAUSE, "";
        "suggest": SUGGEST, "";
        "limits": Special("limits"), "";
        "quota": Special("quota"), "How much one run may use the tool.";
        "examples": Special("examples"), "Calls with what is decided on them; `capsule policy check` asks for each.";
        "output": Words(&["untrusted"]), UNTRUSTED;
        "capabilities": Unsupported, "";
        "pin": Unsupported, "";
    }

    /// The keys of a tool that works on files.
    FILES [] {
        "paths": Named("paths"), "";
        "hidden": Words(&["deny", "allow"]), HIDDEN;
        "symlinks": Words(&["inside", "deny"]), SYMLINKS;
        "rules": List(&Section(&PATH_RULE), "A rule for some of the paths, with a word of its own."), "";
        "undo": Words(&["always"]), "There is always an undo record.";
    }

    /// The key of the tool that writes whole files.
    WRITE_MODES [] { "modes": Each(&[&WriteMode::WORDS], &WORD), "A word for each way of writing."; }

    PATHS [] {
        "allow": GLOBS, "What is open; everything if left out.";
        "deny": GLOBS, "What is not.";
        "hidden": Words(&["deny", "allow"]), HIDDEN;
        "symlinks": Words(&["inside", "deny"]), SYMLINKS;
    }

    PATH_RULE ["id", "paths"] {
        "id": ID, "";
        "paths": GLOBS, "";
        "decision": WORD, "";
        "because": BECAUSE, "";
        "suggest": SUGGEST, "";
        "examples": Special("examples"), "Calls with what is decided on them; `capsule policy check` asks for each.";
    }

    /// The keys of a tool that fetches.
    FETCH [] {
        "urls": Either(&URL_RULES, &Section(&URLS)), "The addresses that are open.";
        "domains": List(&TEXT, "A host."), "Hosts that are open over https.";
        "private_ips": Named("privateIps"), "";
        "redirects": Named("redirects"), "";
    }

    URLS [] {
        "allow": URL_RULES, "The addresses that are open.";
        "deny": URL_RULES, "Those that are not.";
        "private_ips": Named("privateIps"), "";
        "redirects": Named("redirects"), "";
    }

    URL_RULE ["url"] {
        "id": ID, "";
        "url": Text(URL), "";
        "decision": WORD, "";
        "because": BECAUSE, "";
        "suggest": SUGGEST, "";
        "headers": Unsupported, "";
        "output": Words(&["untrusted"]), UNTRUSTED;
    }

    REDIRECTS [] {
        "max": Number(0, Some(limits::REDIRECTS_MAX)), "How many are followed.";
        "cross_origin": WORD, "To another origin that is open.";
    }

    PRIVATE_IPS [] { "allow": List(&TEXT, "An address or a range: `10.0.0.0/8`."), ""; }

    /// The keys of a tool that runs programs.
    EXEC [] {
        "executables": Either(&List(&Matching(PROGRAM_NAME), ""), &Map(Some(PROGRAM_NAME), None, &Either(&WORD, &Section(&PROGRAM)))),
            "The programs that may run.";
        "effects": Special("effects"), "Words for what programs do that no rule names; what has none is denied.";
        "denied_tokens": List(&Either(&Text("The whole word."), &Named("regex")), ""), "Words that no command line may hold.";
        "env": Section(&ENVIRONMENT), "What programs find in their environment.";
        "form": Words(&["argv", "command"]), "Lists of words, or also command lines as text.";
        "cwd": List(&TEXT, "A folder."), "The folders that commands may run in: `.`, and patterns for those beneath.";
        "rules": Unsupported, "";
    }

    PROGRAM [] {
        "path": Pattern("^/"), "Where the program must be.";
        "sha256": Pattern("^[0-9a-f]{64}$"), "The digest that the program must have.";
        "global_flags": Named("flags"), "Options before a subcommand.";
        "limits": Named("processLimits"), "";
        "decision": WORD, "";
        "flags": Named("flags"), "";
        "subcommands": Named("subcommands"), "";
        "because": BECAUSE, "";
        "suggest": SUGGEST, "";
        "examples": Special("examples"), "Calls with what is decided on them; `capsule policy check` asks for each.";
        "capabilities": Named("powers"), "";
        "reads": Named("reads"), "";
        "writes": Named("writes"), "";
        "cwd": Unsupported, "";
        "env": Unsupported, "";
    }

    COMMAND [] {
        "decision": WORD, "";
        "flags": Named("flags"), "";
        "subcommands": Named("subcommands"), "";
        "because": BECAUSE, "";
        "suggest": SUGGEST, "";
        "capabilities": Named("powers"), "";
        "reads": Named("reads"), "";
        "writes": Named("writes"), "";
        "limits": Unsupported, "";
    }

    FLAGS [] { "allow": Special("flags"), "Only these."; "deny": Special("flags"), "None of these."; }

    ENVIRONMENT [] {
        "pass": List(&Matching(VARIABLE), ""), "Variables of the user's own that are passed on.";
        "set": Map(Some(VARIABLE), None, &Text("The value.")), "Variables with their values.";
        "accept": List(&Matching("^[A-Za-z0-9_]+(=[^*]*\\*?)?$"), ""), "Variables that a command line may set: `NAME`, or \
            `NAME=VALUE` for this value alone, where a `*` at the end stands for letters, digits, `.`, `_` and `-`.";
    }

    /// The bounds of a command.
    PROCESS_LIMITS [] {
        "timeout": DURATION, "Where a call names none.";
        "timeout_max": DURATION, "The longest that a call may ask for.";
        "stdout_max": SIZE, "Standard output that is kept.";
        "stderr_max": SIZE, "Standard error that is kept.";
        "processes_max": Number(1, Some(limits::PROCESSES_MAX)), "Processes and threads of the whole tree.";
        "cpu": DURATION, "Processor time of the whole tree, rounded up to seconds.";
        "memory": SIZE, "Memory of the whole tree, 1 MB or more.";
        "tmp": SIZE, "The size of `/tmp`, and of the home directory of a call.";
        "file": SIZE, "The largest file that it may write.";
    }

    /// The keys of the tool that runs the project's tests.
    TESTS [] {
        "command": ListBetween(&TEXT, "A word.", 1, None), "The command of the tests, as a list of words.";
        "cwd": TEXT, "The folder of the workspace to run in.";
        "filter": Special("filter"), "Whether a call may name the tests to run, and how that is said.";
        "env": Section(&ENVIRONMENT), "What programs find in their environment.";
    }

    FILTER [] { "append": Truth, ""; "args": ListBetween(&TEXT, "A word.", 1, None), ""; }

    SANDBOX [] {
        "changes": Section(&CHANGES), "How much a run may change in a staged workspace.";
        "require": Truth, "No sandbox, no run; with `false`, rules that name `proc.unconfined` are asked.";
        "floor": Words(&SandboxTier::WORDS), "The weakest sandbox that will do.";
        "level": Words(&["strict", "workspace-write"]), "What commands may change that no rule bounds: nothing, or the workspace.";
        "mount": Words(&MountPoint::WORDS), "Where commands see the workspace: at its own path, or at `/workspace`.";
        "network": Either(&Words(&NetworkAccess::WORDS), &Section(&NETWORK)), "What commands may reach.";
        "tmp": Words(&["private"]), "Where `/tmp` is.";
        "workspace": Words(&["staged", "read-only", "direct"]), "What becomes of changes that commands make; `read-only` binds \
            them alone, and not `fs.write`, `fs.edit` and `fs.delete`.";
    }

    CHANGES [] {
        "paths": Number(1, Some(limits::STAGED_PATHS_MAX)), "The number of changed paths.";
        "bytes": SIZE, "The bytes of all changed files.";
    }

    NETWORK [] {
        "shell.run": Words(&NetworkAccess::WORDS), "";
        "hosts": Either(&HOSTS_LIST, &Section(&HOSTS)), "The hosts that commands reach through the proxy.";
        "private_ips": Named("privateIps"), "";
        "loopback": Section(&LOOPBACK), "Ports of the host's own loopback that commands reach at the same ports.";
    }

    HOSTS [] {
        "allow": HOSTS_LIST, "";
        "ask": HOSTS_LIST, "";
        "ask-each": HOSTS_LIST, "";
        "deny": HOSTS_LIST, "";
        "others": Words(&["ask", "ask-each", "deny"]), "The word for hosts that no list names; `deny` by default.";
    }

    LOOPBACK [] {
        "connect": ListBetween(&Number(1, Some(u16::MAX as u64)), "A port.", 0, Some(limits::LOOPBACK_PORTS as u64)), "";
    }

    AUDIT [] {
        "payloads": Words(&["full", "digest"]), "All, or only digests: such a run cannot be replayed.";
        "checkpoint": Section(&CHECKPOINT), "When the record is signed.";
        "anchors": ListBetween(&Pattern("^file:(/|~/)"), "", 0, Some(limits::ANCHORS as u64)),
            "Files that every checkpoint is added to: `file:` and a path from the root or the home folder on.";
        "erase_payloads_after": Either(&Words(&["never"]), &DURATION), "When payloads are erased: so long after their run ended, \
            when a later run ends or somebody asks. Events and hashes stay.";
    }

    CHECKPOINT [] {
        "every": Number(1, Some(limits::CHECKPOINT_EVERY)), "Each time that the record has so many events more.";
        "on": List(&Words(&CheckpointRule::MOMENTS), ""), "And at these moments.";
    }

    PROFILE ["decide"] {
        "decide": Each(&[&Capability::WORDS, &[Profile::WILDCARD]], &WORD), "A word for each capability; `*` stands for all others.";
        "unattended": Words(&["deny", "fail", "wait"]), "What a question becomes with nobody there.";
        "requires": Section(&REQUIRES), "Without this, the run does not start.";
    }

    REQUIRES [] {
        "sandbox": Words(&["enforced"]), "";
        "workspace": Words(&["disposable"]), "";
        "isolated": Words(&["yes"]), "";
    }

    CAPABILITY [] { "risk": RISKS, "The least risk of what needs it."; "label": TEXT, "What it is, for people."; }

    RISK [] {
        "escalate": List(&Section(&ESCALATION), ""), "What raises the risk.";
        "block_at": Words(&["high", "medium", "none"]), "What is refused instead of asked.";
        "unknown": Words(&["ask", "ask-each", "deny"]), "What becomes at least of a command of which nobody knows what it does.";
    }

    ESCALATION ["when", "to"] { "when": Words(&Hazard::WORDS), ""; "to": RISKS, ""; }

    BUDGETS [] { "run": Section(&RUN), ""; "loops": Section(&LOOPS), ""; "attention": Section(&ATTENTION), ""; }

    RUN [] {
        "calls": COUNT, "Calls.";
        "wall": DURATION, "";
        "written": SIZE, "Bytes that it writes.";
        "fetched": SIZE, "Bytes that it fetches.";
        "llm_tokens": COUNT, "Tokens that models read and write.";
        "llm_cost_usd": Special("dollars"), "What models may cost, in US dollars with at most six decimals.";
    }

    LOOPS [] {
        "same_call": POSITIVE, "The same call.";
        "denied_in_a_row": POSITIVE, "Refusals in a row.";
        "denied_total": POSITIVE, "Refusals in all.";
        "then": Words(&["stop", "pause"]), "";
    }

    ATTENTION ["prompts", "per"] {
        "prompts": COUNT, "How many prompts a person may be shown.";
        "per": DURATION, "";
        "then": Words(&["pause"]), "";
    }

    GRANTS [] {
        "offer": List(&Words(&GrantLifetime::WORDS), ""), "The scopes.";
        "default": Words(&["once"]), "What is chosen first.";
        "expire": Section(&EXPIRE), "When a grant ends, whichever comes first.";
        "always": Words(&["policy-patch"]), "What `always` writes.";
    }

    EXPIRE [] {
        "uses": Number(1, Some(limits::GRANT_USES_MAX)), "How often a grant answers.";
        "after": DURATION, "How long it lives.";
    }

    COMPOSITES [] {
        "preflight": Words(&["union"]), "Asks once for what is known of a plan, before its first step.";
        "overflow": Words(&["ask"]), "What becomes of a call beyond that.";
    }

    TEST ["name", "call", "expect"] {
        "name": TEXT, "What the test shows.";
        "profiles": List(&TEXT, "A profile."), "The profiles that it holds under.";
        "call": Special("call"), "";
        "expect": Special("expect"), "What is decided.";
    }

    /// The keys of a call in a test.
    CALL [] {
        "tool": Special("toolNames"), "The tool.";
        "args": Special("arguments"), "";
        "resolves": List(&TEXT, "An address."), "What the host's name resolves to.";
    }

    /// The keys of what a test expects.
    EXPECT [] {
        "decision": WORD, "";
        "rule": TEXT, "The rule that decides.";
        "code": Special("code"), "The kind of decision.";
        "risk": RISKS, "";
        "capabilities": CAPABILITIES, "";
    }

    /// The keys of the examples of a rule.
    EXAMPLES [] {
        "allow": CALLS, "";
        "ask": CALLS, "";
        "ask-each": CALLS, "";
        "deny": CALLS, "";
        "no_match": CALLS, "Calls that this rule is not asked about.";
    }

    REDACTION [] {
        "at": Words(&["boundary"]), "Before the record, the model and the screen.";
        "detectors": List(&Words(&["builtin"]), ""), "The rules of this build.";
        "patterns": ListBetween(&Section(&PATTERN), "", 0, Some(secret_limits::PATTERNS as u64)),
            "What is masked besides what this build knows.";
        "previews": Section(&PREVIEWS), "What is shown to whoever is asked.";
        "returned_masks": Words(&ReturnedMasks::WORDS), "A mask in what is to be written: refused, or put back into what the same \
            line of the file held.";
    }

    PATTERN ["id", "regex"] {
        "id": ID, "";
        "regex": TEXT, "What it looks like, with a bound on its length: `acme_[A-Za-z0-9]{32}`.";
    }

    PREVIEWS [] {
        "never_mask": List(&Words(&["executable", "flag", "path", "host"]), ""), "What a person has to see; all four are needed.";
    }

    SECRET ["from", "only_for", "as"] {
        "from": Words(&["env"]), "Where its value is: a variable of that name.";
        "only_for": List(&TEXT, "A rule: `http.get/ID`."), "The rules under which it is sent.";
        "as": Section(&HEADER), "How it is sent.";
    }

    HEADER ["header"] {
        "header": TEXT, "The header that it is sent in.";
        "format": TEXT, "The value of the header, with `{}` where the secret goes.";
    }

    /// The forms that several keys share, by name.
    DEFINITIONS [] {
        "word": Words(&Verdict::WORDS), "allow: it may run · ask: a person is asked, and a grant may answer · ask-each: a person is \
            asked every time · deny: it may not run";
        "size": Special("size"), "A size with its unit: 50KB, 256KiB, 1MiB.";
        "duration": Special("duration"), "A duration with its unit: 500ms, 10s, 5m, 4h.";
        "tool": Special("toolNames"), "";
        "because": Text("Why, for whoever is refused."), "";
        "suggest": Text("What to do instead."), "";
        "id": Matching("^[A-Za-z0-9._-]+$"), "The rule's name: letters, digits, `-`, `_` and `.`";
        "glob": Text("A pattern for paths, relative to the workspace: `docs/**`, `~/.ssh/**`."), "";
        "globs": List(&Named("glob"), ""), "";
        "wordPattern": Either(&Section(&ANY_WORD), &Special("regexWord")), "";
        "regex": Section(&REGEX), "";
        "never": Section(&NEVER), "";
        "paths": Either(&GLOBS, &Section(&PATHS)), "The paths that are open.";
        "urlRule": Either(&Text(URL), &Section(&URL_RULE)), "";
        "redirects": Section(&REDIRECTS), "";
        "privateIps": Either(&Words(&["deny"]), &Section(&PRIVATE_IPS)), "Private addresses: none, or these.";
        "flags": Section(&FLAGS), "Options that may be used.";
        "subcommands": Map(None, None, &Either(&WORD, &Section(&COMMAND))), "Subcommands by name; `*` is any other.";
        "powers": CAPABILITIES, "What it needs besides what its words show; it gives nothing, but with `proc.unconfined` it may run \
            where there is no sandbox.";
        "reads": GLOBS, "What the program sees of the workspace.";
        "writes": GLOBS, "What the program may change.";
        "processLimits": Section(&PROCESS_LIMITS), "The bounds of a command.";
    }
}
const URL: &str = "An address: `https://*.example.org/docs/**`.";

/// The keys of a tool.
#[must_use]
pub fn tool_keys(signature: &ToolSignature) -> Vec<LanguageKey> {
    let shape: &[LanguageKey] = match signature.shape {
        ToolShape::Files => FILES.keys,
        ToolShape::Fetch => FETCH.keys,
        ToolShape::Exec => EXEC.keys,
        ToolShape::Repository | ToolShape::User => &[],
        ToolShape::Test => TESTS.keys,
    };
    let modes = if signature.id == "fs.write" { WRITE_MODES.keys } else { &[] };
    // What a shape enforces comes before what is not enforced for all of them.
    [shape, TOOL.keys, modes].concat()
}

/// The keys of a tool's `limits`.
#[must_use]
pub fn limit_keys(signature: &ToolSignature) -> Vec<LanguageKey> {
    let has = |capability| signature.capabilities.contains(&capability);
    let shows_text = signature.results.iter().any(|result| result.name == "text");
    let timeout: &[LanguageKey] = keys! { "timeout": DURATION, ""; };
    let bounds: &[LanguageKey] = match signature.shape {
        ToolShape::Exec | ToolShape::Test => return PROCESS_LIMITS.keys.to_vec(),
        ToolShape::User => return Vec::new(),
        ToolShape::Fetch => keys! {
            "bytes_max": SIZE, "The most bytes over the wire.";
            "inflated_max": SIZE, "The most bytes after decompression.";
        },
        ToolShape::Files if has(Capability::FsWrite) => {
            keys! { "bytes_max": SIZE, "The most of any call."; }
        }
        ToolShape::Files if signature.gives_list() => keys! {
            "results": COUNT, "Where a call names no limit.";
            "results_max": COUNT, "The most of any call.";
        },
        ToolShape::Files if has(Capability::FsRead) => keys! {
            "bytes": SIZE, "Where a call names no limit.";
            "bytes_max": SIZE, "The most of any call.";
            "binary": Words(&["preview"]), "Binary files come as a preview.";
        },
        ToolShape::Files => &[],
        ToolShape::Repository if shows_text => {
            keys! { "bytes": SIZE, "The most bytes of a call."; }
        }
        ToolShape::Repository => keys! { "results": COUNT, "Where a call names no limit."; },
    };
    if signature.shape == ToolShape::Fetch {
        return [bounds, timeout].concat();
    }
    let takes_limit =
        signature.shape == ToolShape::Repository && signature.argument("limit").is_some();
    let most: &[LanguageKey] = if takes_limit {
        keys! { "results_max": COUNT, "The most of any call."; }
    } else {
        &[]
    };
    [timeout, bounds, most].concat()
}

/// The keys of a tool's `quota`.
#[must_use]
pub fn quota_keys(signature: &ToolSignature) -> Vec<LanguageKey> {
    let reaches = matches!(signature.shape, ToolShape::Fetch | ToolShape::Exec);
    let of_all: &[LanguageKey] =
        keys! { "calls": COUNT, "Calls."; "bytes": SIZE, ""; "wall": DURATION, ""; };
    let per_host: &[LanguageKey] =
        keys! { "per_host": COUNT, "Calls, or connections of commands, to one host."; };
    [of_all, if reaches { per_host } else { &[] }].concat()
}
