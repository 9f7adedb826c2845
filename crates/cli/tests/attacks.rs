//! Runs every row of `attacks/`: at the judge, at preflight, and end to end.
//!
//! One check function, data in rows; every row that fails is reported, not only the first. A row
//! that cannot run fails.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panics"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use capsule_core::action::Facts;
use capsule_core::policy::{BindRoots, PolicyInput, Usage, decide};
use capsule_core::tool::ToolName;
use capsule_policy::PolicyDraft;
use capsule_runtime::{CATALOGUE, describe};
use capsule_testkit::{Capsule, HttpServer, run_in_parallel};
use serde::Deserialize;
use serde_json::{Value, json};

/// The ids of the groups that this build must answer for.
const CASES: &str = "
A1 A2 A4 A5 A7 A8 A10 A11 A13 A14 A16 A17 A19 A20 A22 A23 A25 A26 A28 A29 A31 A32 A41 A42 A43 A44
B1 B2 B4 B5 B7 B8 B10 B11 B13 B14 B16 B17 B19 B20 B22 B23 B25 B31 B32 B33 B34
C1 C2 C4 C5 C7 C8 C10 C11 C13 C14 C16 C17 C19 C20 C22 C23 C25 C26 C28 C29 C31 C32 C34 C35 C37 C38 C40 C45
D1 D2 D4 D5 D7 D8 D10 D11 D13 D14 D16 D17 D19 D20 D22 D23 D25 D26 D28 D29 D31 D32 D34 D35 D37
E1 E2 E4 E5 E7 E8 E10 E11 E13 E14 E16 E17 E19 E20 E22 E23 E25 E31 E32
F19 F20 F22 F23
G1 G2 G4 G5 G7 G8 G10 G11 G13 G14 G16 G17 G19 G20 G22 G23 G25 G26
H1 H2 H3 H4 H5
";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    row: Vec<Row>,
    #[serde(default)]
    later: Vec<Later>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Later {
    id: String,
    why: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Row {
    id: String,
    what: String,
    /// Read by the generator of the requirements page.
    requirements: Vec<String>,
    /// A test elsewhere that shows it.
    test: Option<String>,
    /// Which of `attacks/policies`; `open` if left out.
    policy: Option<String>,
    levels: Option<Vec<Level>>,
    // ---- what is there -------------------------------------------------------------------------
    files: BTreeMap<String, String>,
    executable: Vec<String>,
    links: BTreeMap<String, String>,
    hard_links: BTreeMap<String, String>,
    outside: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
    git: Vec<Vec<String>>,
    unix_socket: Option<String>,
    abstract_socket: bool,
    loopback: bool,
    host_pid: bool,
    descriptors: bool,
    store_in_workspace: bool,
    // ---- what is asked -------------------------------------------------------------------------
    calls: Vec<Call>,
    perl: Option<String>,
    repeat: Option<Repeat>,
    resolves: Vec<std::net::IpAddr>,
    // ---- what must come of it --------------------------------------------------------------------
    decision: Option<String>,
    code: Option<String>,
    rule: Option<String>,
    risk: Option<String>,
    present: Vec<String>,
    absent: Vec<String>,
    held: Vec<String>,
    unchanged: bool,
    nothing_left: Option<String>,
    within_seconds: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Level {
    Judge,
    Preflight,
    EndToEnd,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    args: Value,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeat {
    text: String,
    times: usize,
    into: String,
}

/// The repository; tests that were built by one user are run again by another, who has a copy.
fn repository() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("CAPSULE_TEST_ROOT").map_or_else(built, PathBuf::from)
}

fn attacks() -> PathBuf {
    repository().join("attacks")
}

fn files() -> Vec<(String, File)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(attacks()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let file = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            files.push((name, file));
        }
    }
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    files
}

/// Every case of the groups has a row, or a reason why it comes later; never both.
#[test]
fn every_case_has_a_row_or_a_reason() {
    let known: BTreeSet<&str> = CASES.split_whitespace().collect();
    let mut rows = BTreeSet::new();
    let mut later = BTreeSet::new();
    for (name, file) in files() {
        for row in file.row {
            assert!(known.contains(row.id.as_str()), "{name}: there is no case {}", row.id);
            rows.insert(row.id);
        }
        for case in file.later {
            assert!(!case.why.is_empty(), "{}: a reason is needed", case.id);
            assert!(later.insert(case.id.clone()), "{} stands twice", case.id);
        }
    }
    let missing: Vec<&&str> =
        known.iter().filter(|id| !rows.contains(**id) && !later.contains(**id)).collect();
    assert!(missing.is_empty(), "cases without a row: {missing:?}");
    // G5 and its like are partly shown already, so a reason may stand beside a row only in `later`.
    let both: Vec<&String> = rows.intersection(&later).collect();
    assert!(both.is_empty(), "cases with a row need no reason: {both:?}");
}

/// Rows that point to a test elsewhere point to one that exists.
#[test]
fn tests_that_rows_name_exist() {
    let sources = sources(&repository().join("crates"));
    let mut wrong = Vec::new();
    for (name, file) in files() {
        for row in file.row {
            if let Some(test) = row.test
                && !sources.contains(&format!("fn {test}("))
            {
                wrong.push(format!("{name} {}: no test `{test}`", row.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    text
}

macro_rules! groups {
    ($($test:ident: $file:literal,)*) => {
        $(
            /// FR-3, FR-19, NFR-1, SAF-5: the rows of this group.
            #[test]
            fn $test() {
                check_file($file);
            }
        )*
    };
}

groups! {
    group_a_commands: "a-commands.toml",
    group_b_arguments: "b-arguments.toml",
    group_c_files: "c-files.toml",
    group_d_processes: "d-process.toml",
    group_e_network: "e-network.toml",
    group_f_policies: "f-policy.toml",
    group_g_record: "g-record.toml",
}

fn check_file(wanted: &str) {
    let (_, file) = files().into_iter().find(|(name, _)| name == wanted).unwrap();
    let rows: Vec<Row> = file.row.into_iter().filter(|row| row.test.is_none()).collect();
    let checked = rows.len();
    let failures = run_in_parallel(rows, |row| {
        let wrong = check(&row).into_iter();
        wrong.map(|why| format!("{} {}: {why}", row.id, row.what)).collect::<Vec<_>>()
    });
    let failures = failures.concat();
    assert!(checked > 0, "{wanted} has no rows");
    assert!(failures.is_empty(), "{} of {checked} rows:\n{}", failures.len(), failures.join("\n"));
}

fn check(row: &Row) -> Vec<String> {
    let levels = row.levels.clone().unwrap_or_else(|| {
        let all = [Level::Judge, Level::Preflight, Level::EndToEnd];
        if row.perl.is_some() { vec![Level::EndToEnd] } else { all.to_vec() }
    });
    let mut wrong = Vec::new();
    if levels.is_empty() || (row.calls.is_empty() && row.perl.is_none()) {
        wrong.push("the row asks nothing".into());
    }
    for call in row.calls.iter().map(|call| repeated(row, call)) {
        for level in &levels {
            let found = match level {
                Level::Judge => judge(row, &call),
                Level::Preflight => preflight(row, &call),
                Level::EndToEnd => end_to_end(row, &call),
            };
            wrong.extend(found.into_iter().map(|why| {
                format!("{level:?} {} {:.120}: {why}", call.tool, call.args.to_string())
            }));
        }
    }
    if let Some(script) = &row.perl {
        wrong.extend(inside(row, script));
    }
    wrong
}

fn repeated(row: &Row, call: &Call) -> Call {
    let mut call = call.clone();
    if let (Some(repeat), Value::Object(args)) = (&row.repeat, &mut call.args) {
        args.insert(repeat.into.clone(), repeat.text.repeat(repeat.times).into());
    }
    call
}

fn policy_text(row: &Row) -> String {
    let name = row.policy.as_deref().unwrap_or("open");
    fs::read_to_string(attacks().join(format!("policies/{name}.yaml"))).unwrap()
}

/// What a decision must be; a call that was not understood is one that is denied.
fn compare(row: &Row, decision: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut field = |name: &str, wanted: &Option<String>| {
        if let Some(wanted) = wanted
            && decision[name] != json!(wanted)
        {
            wrong.push(format!("{name} is {} and should be {wanted}: {decision}", decision[name]));
        }
    };
    field("decision", &row.decision);
    field("rule", &row.rule);
    field("risk", &row.risk);
    // The code of a call that is allowed is that of its end, which only the last level has.
    if row.decision.as_deref() == Some("deny") {
        field("code", &row.code);
    }
    wrong
}

/// The policy decides on the text of the call alone.
fn judge(row: &Row, call: &Call) -> Vec<String> {
    let text = policy_text(row);
    let (draft, _) = PolicyDraft::parse(&text, "policy.yaml", "/home/someone", CATALOGUE).unwrap();
    let roots = BindRoots {
        workspace: "/home/someone/work".into(),
        runtime_files: Vec::new(),
        may_drop_base_rules: true,
        ..BindRoots::default()
    };
    let policy = std::sync::Arc::new(draft.bind(&roots, "/home/someone", CATALOGUE).unwrap());
    let decision = match describe(&call.tool, &call.args, 0) {
        Ok(action) => {
            let facts = Facts { resolves: row.resolves.clone(), ..Facts::default() };
            let id = CATALOGUE.find(&call.tool).map_or(call.tool.as_str(), |own| own.id);
            let tool = ToolName::unchecked(id);
            {
                let (tool, action, facts) = (&tool, &action, &facts);
                let usage = &Usage::default();
                let case =
                    PolicyInput { tool, action, facts, usage, tainted: &[], args_digest: None };
                json!(decide(&policy, &case).decision)
            }
        }
        Err(problem) => json!({ "decision": "deny", "code": problem.code, "rule": null }),
    };
    compare(row, &decision)
}

struct Scene {
    capsule: Capsule,
    policy: String,
    before: BTreeMap<PathBuf, String>,
    /// Kept alive while the row runs.
    _kept: Vec<Box<dyn std::any::Any>>,
    word: Option<String>,
}

/// A workspace as the row wants it.
fn scene(row: &Row) -> Scene {
    let mut capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    let root = capsule.workspace();
    let mut kept: Vec<Box<dyn std::any::Any>> = Vec::new();
    let mut word = None;
    for (path, content) in &row.files {
        if row.executable.contains(path) {
            let _ = capsule.write_program(path, content);
        } else {
            let _ = capsule.write_file(path, content);
        }
    }
    for (path, content) in &row.outside {
        let path = capsule.directory().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    for (link, target) in &row.links {
        symlink(target, root.join(link)).unwrap();
    }
    for (link, target) in &row.hard_links {
        fs::create_dir_all(root.join(link).parent().unwrap()).unwrap();
        fs::hard_link(root.join(target), root.join(link)).unwrap();
    }
    for words in &row.git {
        let done = std::process::Command::new("git")
            .args(words)
            .current_dir(&root)
            .env("HOME", capsule.home())
            .output()
            .unwrap();
        assert!(done.status.success(), "git {words:?}: {done:?}");
    }
    for (name, value) in &row.environment {
        capsule.set(name, &value.replace("{ws}", &root.to_string_lossy()));
    }
    if let Some(name) = &row.unix_socket {
        kept.push(Box::new(std::os::unix::net::UnixListener::bind(root.join(name)).unwrap()));
    }
    if row.abstract_socket {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("capsule-attack-{}-{}", row.id, std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        kept.push(Box::new(std::os::unix::net::UnixListener::bind_addr(&address).unwrap()));
        word = Some(name);
    }
    if row.loopback {
        let server = HttpServer::fixed("200 OK", "", "x");
        word = Some(server.port().to_string());
        kept.push(Box::new(server));
    }
    if row.host_pid {
        word = Some(std::process::id().to_string());
    }
    if row.store_in_workspace {
        let store = root.join("state/store.db");
        capsule.set("CAPSULE_STORE", &store.to_string_lossy());
    }
    let policy = capsule.write_policy(&policy_text(row));
    let before = tree(capsule.directory(), &capsule.home());
    Scene { capsule, policy, before, _kept: kept, word }
}

/// Every file with what it holds, so that nothing can change unseen. The home holds our own store.
fn tree(folder: &Path, home: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if path == home {
                continue;
            }
            let what = if meta.is_dir() {
                folders.push(path.clone());
                String::from("folder")
            } else if meta.is_symlink() {
                format!("link {}", fs::read_link(&path).unwrap().display())
            } else if meta.is_file() {
                format!("{:o} {:?}", meta.permissions().mode(), fs::read(&path).unwrap())
            } else {
                String::from("special")
            };
            found.insert(path, what);
        }
    }
    found
}

/// The call is looked at in a real workspace, and judged with what was found.
fn preflight(row: &Row, call: &Call) -> Vec<String> {
    let scene = scene(row);
    let line = json!({ "tool": call.tool, "args": call.args }).to_string();
    let ran = scene
        .capsule
        .run_with(&["policy", "explain", "--policy", &scene.policy, "--batch", "-"], &line);
    if ran.status != 0 {
        return vec![format!("explain ended with {}: {}", ran.status, ran.stderr)];
    }
    let mut wrong = compare(row, &ran.json());
    wrong.extend(changes(&scene));
    wrong
}

/// The real binary carries the call out, or does not.
fn end_to_end(row: &Row, call: &Call) -> Vec<String> {
    let scene = scene(row);
    let args = call.args.to_string();
    let line = ["call", &call.tool, "--policy", &scene.policy, "--args", "-"];
    let ran = scene.capsule.run_with(&line, &args);
    let mut wrong = Vec::new();
    if ran.status == 2 && call_is_unreadable(call) {
        return changes(&scene);
    }
    let Ok(answer) = serde_json::from_str::<Value>(&ran.stdout) else {
        return vec![format!("no answer: {} {}", ran.status, ran.stderr)];
    };
    let shown = scene.capsule.run(&["show-run", "latest:1", "--json"]);
    let recorded = shown.json();
    wrong.extend(compare(row, &recorded["decision"]));
    if let Some(code) = &row.code
        && answer["code"] != json!(code)
    {
        wrong.push(format!("code is {} and should be {code}: {answer}", answer["code"]));
    }
    if row.decision.as_deref() == Some("deny") && answer.get("result").is_some() {
        wrong.push(format!("something ran: {answer}"));
    }
    let text = serde_json::to_string_pretty(&answer).unwrap();
    wrong.extend(texts(row, &text));
    if row.unchanged || row.decision.as_deref() == Some("deny") {
        wrong.extend(changes(&scene));
    }
    let verified = scene.capsule.run(&["verify"]);
    if verified.status != 0 {
        wrong.push(format!("the record does not verify: {}", verified.stderr));
    }
    wrong
}

/// A tool that the command line itself does not know is refused before there is a run.
fn call_is_unreadable(call: &Call) -> bool {
    CATALOGUE.find(&call.tool).is_none()
}

fn texts(row: &Row, text: &str) -> Vec<String> {
    let missing = row.present.iter().filter(|part| !text.contains(part.as_str()));
    let found = row.absent.iter().filter(|part| text.contains(part.as_str()));
    missing
        .map(|part| format!("`{part}` is missing: {text:.2000}"))
        .chain(found.map(|part| format!("`{part}` is there: {text:.2000}")))
        .collect()
}

fn changes(scene: &Scene) -> Vec<String> {
    let ours = |path: &Path| path.ends_with("state") || path.to_string_lossy().contains("/state/");
    let mut after = tree(scene.capsule.directory(), &scene.capsule.home());
    after.retain(|path, _| !ours(path));
    let mut before = scene.before.clone();
    before.retain(|path, _| !ours(path));
    if after == before {
        return Vec::new();
    }
    let changed: Vec<String> = after
        .iter()
        .filter(|(path, what)| before.get(*path) != Some(what))
        .map(|(path, _)| path.display().to_string())
        .chain(
            before
                .keys()
                .filter(|path| !after.contains_key(*path))
                .map(|path| path.display().to_string()),
        )
        .collect();
    vec![format!("something changed: {changed:?}")]
}

/// What every program of a row begins with: system calls by number, on copies of their arguments,
/// since the interpreter refuses to pass literals. The numbers are those of x86-64.
const PERL: &str = "sub call { my ($number, @rest) = @_; return syscall($number, @rest) }\n";

/// A program runs inside and reports on itself.
fn inside(row: &Row, script: &str) -> Vec<String> {
    let scene = scene(row);
    let script = format!("{PERL}{script}");
    let mut line = vec!["exec", "--policy", &scene.policy, "--json", "--", "perl", "-e", &script];
    line.extend(scene.word.as_deref());
    let began = Instant::now();
    let mut command = scene.capsule.command(&line);
    // A descriptor that is open in whoever starts the runtime must not reach the program.
    let leak = row.descriptors.then(|| fs::File::open("/etc/passwd").unwrap());
    if let Some(file) = &leak {
        rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty()).unwrap();
    }
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    let took = began.elapsed();
    let mut wrong = Vec::new();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let Ok(answer) = serde_json::from_str::<Value>(&text) else {
        return vec![format!("no answer: {}", String::from_utf8_lossy(&output.stderr))];
    };
    let stdout = answer["result"]["stdout"].as_str().unwrap_or_default();
    let stderr = answer["result"]["stderr"].as_str().unwrap_or_default();
    wrong.extend(
        stdout.lines().filter(|line| line.contains("ESCAPED")).map(|line| format!("{line:?}")),
    );
    for wanted in &row.held {
        if !stdout.lines().any(|line| line.contains(wanted.as_str())) {
            wrong
                .push(format!("`{wanted}` was not said: {stdout:?} {stderr:?} {}", answer["code"]));
        }
    }
    if row.held.is_empty() {
        wrong.push("the row names nothing that must be said".into());
    }
    if answer["ran"] != true {
        wrong.push(format!("the program did not run: {answer}"));
    }
    wrong.extend(changes(&scene));
    if let Some(seconds) = row.within_seconds
        && took > Duration::from_secs(seconds)
    {
        wrong.push(format!("it took {took:?}"));
    }
    if let Some(name) = &row.nothing_left {
        wrong.extend(left_behind(name));
    }
    wrong
}

/// Processes that go by this name.
fn left_behind(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).starts_with(name) {
            found.push(format!("process {} is left", entry.path().display()));
        }
    }
    found
}
