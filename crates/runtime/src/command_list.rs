//! A command that is a list: judged as a whole first, and then its parts, each a call of its own when
//! it is reached, with what is found then.
//!
//! Nothing of a list runs unless all of it may. What a part finds may be otherwise than what the whole
//! found, since the parts before it have run: it is judged again, and where it may not run, the list
//! ends there. The folder and the status that it runs with are those that the parts left which really
//! ran: a `cd` that was left out or failed changes nothing.

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_command::shell_syntax::{ListOperator, StdStream, parse};
use capsule_core::action::{FolderChange, ListPart};
use capsule_core::call::ToolCall;
use capsule_core::outcome::{CodedError, Status};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::call_result::CallResult;

/// The parts of a list.
pub(crate) struct CommandList(Vec<ListPart>);

impl CommandList {
    /// The parts that the call for the whole found.
    pub(crate) fn from_result(whole: &CallResult) -> Option<Self> {
        let parts = whole.value.as_ref()?.get("parts")?;
        Vec::deserialize(parts).ok().map(Self)
    }

    /// Runs the parts one after the other, as they are joined.
    pub(crate) fn run<E>(
        self,
        call: &ToolCall,
        whole: CallResult,
        mut pass: impl FnMut(ToolCall) -> Result<CallResult, E>,
    ) -> Result<CallResult, E> {
        let mut sum = ListResult::new(whole);
        for part in self.0 {
            let due = match part.join {
                ListOperator::First | ListOperator::Then => true,
                ListOperator::And => sum.succeeded,
                ListOperator::Or => !sum.succeeded,
            };
            if !due {
                continue;
            }
            if !part.runs && !part.changes_folder {
                sum.succeeded = true;
                continue;
            }
            let done = match sum.call_for(&part, call) {
                Ok(call) => pass(call)?,
                Err(ended) => *ended,
            };
            if !sum.add(done) {
                break;
            }
        }
        Ok(sum.into_result())
    }
}

/// What came of the parts so far.
struct ListResult {
    whole: CallResult,
    value: Map<String, Value>,
    /// Whether the last part that ran ended with 0.
    succeeded: bool,
    /// Whether any part ran.
    any_ran: bool,
    /// Whether a program was given what the whole is given to read.
    fed: bool,
    /// The folder that the list is in by now; that of the whole if it went nowhere.
    folder: Option<String>,
    /// The folder before, which `cd -` goes back to.
    before: Option<String>,
}

/// What is put together of all parts.
const CONCATENATED_FIELDS: [&str; 2] = ["stdout", "stderr"];
/// What is added up.
const SUMMED_FIELDS: [&str; 4] =
    ["stdout_bytes_total", "stderr_bytes_total", "changes_total", "left_running"];

impl ListResult {
    fn new(whole: CallResult) -> Self {
        let (value, folder, before) = (Map::new(), None, None);
        Self { whole, value, succeeded: true, any_ran: false, fed: false, folder, before }
    }

    /// The call that a part is, in the state that the parts before it left.
    ///
    /// # Errors
    /// What comes of it without one.
    fn call_for(&mut self, part: &ListPart, whole: &ToolCall) -> Result<ToolCall, Box<CallResult>> {
        let mut call = whole.clone();
        let Value::Object(args) = &mut call.args else { return Ok(call) };
        args.insert("part".into(), part.number.into());
        // What the whole is given to read, the first program reads.
        if self.fed || part.changes_folder {
            args.remove("stdin");
        }
        self.fed |= part.runs;
        let change = part.changes_folder.then(|| change(whole, part.number)).flatten();
        let folder = match change {
            Some((true, stream)) if self.before.is_none() => {
                return Err(Box::new(self.ended(1, stream, "cd: OLDPWD not set")));
            }
            Some((true, _)) => self.before.clone(),
            _ => self.folder.clone(),
        };
        if let Some(folder) = folder {
            args.insert("cwd".into(), folder.into());
        }
        if part.changes_folder {
            let here = whole.args.get("cwd").and_then(Value::as_str).unwrap_or(".");
            self.folder.get_or_insert_with(|| here.to_owned());
        }
        Ok(call)
    }

    /// What a part comes to that could not be started.
    fn ended(&self, code: u8, stream: Option<StdStream>, says: &str) -> CallResult {
        let mut value = json!({ "exit_code": code, "stdout": "", "stderr": "" });
        let name = match stream {
            Some(StdStream::Out) => "stdout",
            Some(StdStream::Err) => "stderr",
            None => "",
        };
        if let Some(text) = value.get_mut(name) {
            *text = format!("{says}\n").into();
        }
        let problem = Some(CodedError::new(Code::ExecFailed, says));
        let (status, value) = (Status::ToolError, Some(value));
        CallResult { status, value, problem, ..self.whole.clone() }
    }

    /// A program that is not there, and a stream that cannot be led to its file, end a part with a status of
    /// their own, as in a shell.
    fn with_status(&self, done: CallResult) -> CallResult {
        let Some(problem) = done.problem.as_ref().filter(|_| done.status == Status::ToolError)
        else {
            return done;
        };
        let is_over = done.value.as_ref().is_none_or(|value| value.get("exit_code").is_none());
        let code = match problem.code {
            Code::ExecNotFound if is_over => 127,
            Code::FileSystem if is_over => 1,
            _ => return done,
        };
        let ended = self.ended(code, Some(StdStream::Err), &problem.message);
        CallResult { problem: done.problem, decision: done.decision, ..ended }
    }

    /// Adds what came of a part; says whether the list goes on.
    fn add(&mut self, done: CallResult) -> bool {
        self.any_ran = true;
        let done = self.with_status(done);
        self.succeeded = done.status == Status::Ok;
        self.whole.status = done.status;
        self.whole.problem = done.problem;
        let Some(Value::Object(mut value)) = done.value else {
            // Nothing ran: why is what the whole ends with.
            self.whole.decision = done.decision;
            return false;
        };
        if let Some(Value::String(folder)) = value.remove("folder") {
            self.before = self.folder.replace(folder);
        }
        let mut cut = self.value.get("truncated") == Some(&Value::Bool(true));
        for name in CONCATENATED_FIELDS {
            // Bytes that are no text stand in the record of their own part.
            cut |= self.value.contains_key(&format!("{name}_base64"));
            let [before, before_tail] = texts(&self.value, name);
            let [after, after_tail] = texts(&value, name);
            let (text, tail) = join_outputs((before, before_tail), (after, after_tail));
            value.extend(text.map(|text| (name.to_owned(), text.into())));
            value.extend(tail.map(|tail| (format!("{name}_tail"), tail.into())));
        }
        for name in SUMMED_FIELDS {
            let count = |map: &Map<String, Value>| map.get(name).and_then(Value::as_u64);
            if let Some(before) = count(&self.value) {
                let sum = before.saturating_add(count(&value).unwrap_or(0));
                value.insert(name.into(), sum.into());
            }
        }
        if let Some(Value::Array(mut changes)) = self.value.remove("changes") {
            let item = value.get("changes").and_then(Value::as_array);
            changes.extend(item.into_iter().flatten().cloned());
            changes.truncate(limits::STAGED_SHOWN);
            value.insert("changes".into(), changes.into());
        }
        if cut || is_too_long(&value) {
            value.insert("truncated".into(), true.into());
        }
        self.value = value;
        let has = |name| self.value.get(name).is_some_and(Value::is_number);
        // What was cancelled or ran into a bound of the whole does not go on.
        has("exit_code") || has("signal") || self.succeeded
    }

    fn into_result(self) -> CallResult {
        let Self { mut whole, value, any_ran: reached, .. } = self;
        whole.value = Some(match reached {
            true if !value.is_empty() => Value::Object(value),
            _ => json!({ "exit_code": 0, "stdout": "", "stderr": "" }),
        });
        whole
    }
}

/// Whether the `cd` that a part of a list is goes back to the folder before, and where it complains.
fn change(call: &ToolCall, number: usize) -> Option<(bool, Option<StdStream>)> {
    let script = parse(call.args.get("command")?.as_str()?).ok()?;
    let element = script.elements.get(number.checked_sub(1)?)?;
    let change = FolderChange::of(element.pipeline.stages.first()?)?.ok()?;
    Some((change.to == "-", change.err))
}

/// What a result holds of a stream: the text, and the end of one that was cut.
fn texts(value: &Map<String, Value>, name: &str) -> [Option<String>; 2] {
    [name.to_owned(), format!("{name}_tail")]
        .map(|name| value.get(&name).and_then(Value::as_str).map(str::to_owned))
}

/// A text, and the end of one that was cut.
type HeadAndTail = (Option<String>, Option<String>);

/// Two outputs, one behind the other, up to the most that a command may give. Where the first was cut, all of
/// the other lies behind the gap.
fn join_outputs(
    (before, before_tail): HeadAndTail,
    (after, after_tail): HeadAndTail,
) -> HeadAndTail {
    let most = usize::try_from(limits::OUTPUT_BYTES_MAX).unwrap_or(usize::MAX);
    match before_tail {
        Some(first) => {
            (before, after_tail.or_else(|| Some(last(first + &after.unwrap_or_default(), most))))
        }
        None => {
            let text =
                before.map(|before| first(before + after.as_deref().unwrap_or_default(), most));
            (text.or(after), after_tail)
        }
    }
}

/// The first bytes of a text, as far as they are whole characters.
fn first(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}

/// The last ones.
fn last(mut text: String, most: usize) -> String {
    text.drain(..text.ceil_char_boundary(text.len().saturating_sub(most)));
    text
}

fn is_too_long(value: &Map<String, Value>) -> bool {
    CONCATENATED_FIELDS.iter().any(|name| {
        let length = value.get(*name).and_then(Value::as_str).map_or(0, str::len);
        u64::try_from(length).is_ok_and(|length| length >= limits::OUTPUT_BYTES_MAX)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};

    use capsule_base::exit::Exit;
    use capsule_command::shell_syntax::{PipelineStage, Redirection, ShellWord};
    use capsule_core::action::{Action, CommandStep, PathLocation, PathTarget};
    use capsule_core::capability::Capabilities;
    use capsule_core::decision::{Decision, Verdict};
    use capsule_core::risk::Risk;
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;

    /// What is there before a list runs.
    fn folder(name: &str) -> tempfile::TempDir {
        let root = tempfile::Builder::new().prefix(name).tempdir().unwrap();
        for inner in ["a/b", "b"] {
            fs::create_dir_all(root.path().join(inner)).unwrap();
        }
        for (file, text) in [("f", "root\n"), ("a/f", "a\n"), ("a/b/f", "ab\n"), ("b/f", "b\n")] {
            fs::write(root.path().join(file), text).unwrap();
        }
        symlink("a/b", root.path().join("l")).unwrap();
        symlink("nowhere", root.path().join("d")).unwrap();
        root
    }

    /// Every file with its text, every folder and every link.
    fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut open = vec![root.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let (path, kind) =
                    entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
                let text = match () {
                    () if kind.is_symlink() => {
                        format!("-> {}", fs::read_link(&path).unwrap().display())
                    }
                    () if kind.is_dir() => "folder".into(),
                    () => fs::read_to_string(&path)
                        .unwrap()
                        .replace(root.to_str().unwrap(), "/workspace"),
                };
                if kind.is_dir() {
                    open.push(path.clone());
                }
                found.insert(path.strip_prefix(root).unwrap().to_owned(), text);
            }
        }
        found
    }

    /// What a list comes to: what it prints, its status, and the files that are there then.
    type Done = (String, u8, BTreeMap<PathBuf, String>);

    fn by_bash(text: &str) -> Done {
        let root = folder("bash");
        let done =
            program("bash", root.path()).args(["-c", text]).stdin(Stdio::null()).output().unwrap();
        let stdout = String::from_utf8(done.stdout)
            .unwrap()
            .replace(root.path().to_str().unwrap(), "/workspace");
        let code = std::os::unix::process::ExitStatusExt::into_raw(done.status);
        let code = done.status.code().unwrap_or(128 + (code & 0x7f));
        (stdout, u8::try_from(code).unwrap(), tree(root.path()))
    }

    fn program(name: &str, cwd: &Path) -> Command {
        let mut command = Command::new(name);
        let path = "/usr/local/bin:/usr/bin:/bin";
        command.current_dir(cwd).env_clear().envs([("PATH", path), ("LC_ALL", "C")]);
        command
    }

    fn decision() -> Decision {
        Decision {
            verdict: Verdict::Allow,
            code: Code::Allowed,
            rule: None,
            at: None,
            risk: Risk::Low,
            capabilities: Capabilities::NONE,
            reason: String::new(),
            suggestion: None,
            approvable: false,
        }
    }

    fn delivered(value: Value, problem: Option<CodedError>) -> CallResult {
        let status = if problem.is_none() { Status::Ok } else { Status::ToolError };
        CallResult {
            call: 1,
            decision: decision(),
            status,
            value: Some(value),
            problem,
            has_undo: false,
        }
    }

    /// Runs a list as the runtime does, but for the sandbox: every part is understood by the real tool,
    /// and its programs are started where that says. None for a list that is refused, or goes outside.
    fn by_us(text: &str) -> Option<Done> {
        let root = folder("ours");
        let whole = ToolCall::by_person("shell.run", json!({ "command": text }));
        let steps = understood(&whole)?;
        let mut outside = false;
        let done = match ListPart::of(&steps).as_slice() {
            [step] if !step.changes_folder => {
                outside = steps[0].cwd.inside().is_none();
                part(root.path(), &steps[0])
            }
            parts => {
                let list =
                    CommandList::from_result(&delivered(json!({ "parts": parts }), None)).unwrap();
                let whole_done = delivered(json!({}), None);
                list.run(&whole, whole_done, |call| {
                    let steps = understood(&call).unwrap();
                    assert_eq!(steps.len(), 1, "{text:?}");
                    outside |= steps[0].cwd.inside().is_none();
                    Ok::<_, ()>(part(root.path(), &steps[0]))
                })
                .unwrap()
            }
        };
        if outside {
            return None;
        }
        let stdout = done.value.as_ref().unwrap()["stdout"].as_str().unwrap_or_default();
        let stdout = stdout.replace(root.path().to_str().unwrap(), "/workspace");
        let code = match done.problem.as_ref().map(|problem| problem.code) {
            Some(Code::ExecNotFound | Code::FileSystem) => {
                u8::try_from(done.value.as_ref().unwrap()["exit_code"].as_u64().unwrap()).unwrap()
            }
            _ => done.command_status(Exit::Ok),
        };
        Some((stdout, code, tree(root.path())))
    }

    fn understood(call: &ToolCall) -> Option<Vec<CommandStep>> {
        match crate::describe(call.tool.as_str(), &call.args, 0).ok()? {
            Action::Command { steps, .. } => Some(steps),
            _ => None,
        }
    }

    fn part(root: &Path, step: &CommandStep) -> CallResult {
        let place = |cwd: &PathTarget| match &cwd.location {
            PathLocation::Inside(path) => root.join(path.as_str()),
            PathLocation::Outside(_) => root.join("nowhere"),
        };
        let cwd = place(&step.cwd);
        if step.is_cd() {
            return match fs::metadata(&cwd).is_ok_and(|meta| meta.is_dir()) {
                true => {
                    let folder = step.cwd.asked.clone();
                    let folder = step.cwd.inside().map_or(folder, ToString::to_string);
                    // `cd -` says where it goes; by the tool's own text this is tested with the binary.
                    delivered(json!({ "exit_code": 0, "stdout": "", "folder": folder }), None)
                }
                false => delivered(
                    json!({ "exit_code": 1, "stdout": "" }),
                    Some(CodedError::new(Code::ExecFailed, "no folder")),
                ),
            };
        }
        match pipeline(&cwd, &step.stages) {
            Ok((stdout, Ok(0))) => delivered(json!({ "exit_code": 0, "stdout": stdout }), None),
            Ok((stdout, Ok(code))) => delivered(
                json!({ "exit_code": code, "stdout": stdout }),
                Some(CodedError::new(Code::ExecFailed, "failed")),
            ),
            Ok((stdout, Err(signal))) => delivered(
                json!({ "exit_code": null, "signal": signal, "stdout": stdout }),
                Some(CodedError::new(Code::ExecSignal, "ended by a signal")),
            ),
            Err((code, why)) => delivered(json!({}), Some(CodedError::new(code, why.to_string()))),
        }
    }

    /// What the programs print, and the status of the last or the signal that ended it.
    fn pipeline(
        cwd: &Path,
        stages: &[PipelineStage],
    ) -> Result<(String, Result<i32, i32>), (Code, io::Error)> {
        let mut children: Vec<Child> = Vec::new();
        for (index, stage) in stages.iter().enumerate() {
            let words: Vec<&str> = stage.words.iter().filter_map(ShellWord::literal).collect();
            let mut command = program(words[0], cwd);
            command.args(&words[1..]).stderr(Stdio::null()).stdout(Stdio::piped());
            command.stdin(match children.last_mut().and_then(|child| child.stdout.take()) {
                Some(out) => Stdio::from(out),
                None => Stdio::null(),
            });
            for redirect in &stage.redirects {
                let opened = match redirect {
                    Redirection::File { path, append: true, .. } => {
                        OpenOptions::new().append(true).create(true).open(cwd.join(path))
                    }
                    Redirection::File { path, .. } => File::create(cwd.join(path)),
                    Redirection::Input { path } => File::open(cwd.join(path)),
                    other => panic!("{other:?}"),
                };
                let file = Stdio::from(opened.map_err(|error| (Code::FileSystem, error))?);
                match redirect {
                    Redirection::Input { .. } => command.stdin(file),
                    _ => command.stdout(file),
                };
            }
            let child = command.spawn().map_err(|error| (Code::ExecNotFound, error))?;
            assert!(index < 9);
            children.push(child);
        }
        let last = children.pop().unwrap();
        let done = last.wait_with_output().unwrap();
        for mut child in children {
            let _ = child.wait();
        }
        let signal = std::os::unix::process::ExitStatusExt::signal(&done.status);
        let status = done.status.code().ok_or_else(|| signal.unwrap());
        Ok((String::from_utf8(done.stdout).unwrap(), status))
    }

    /// Compares a list with what bash makes of it; says whether it is one of the language.
    fn compare(text: &str) -> bool {
        let Some(ours) = by_us(text) else { return false };
        assert_eq!(ours, by_bash(text), "{text:?}");
        true
    }

    #[test]
    fn a_list_means_what_it_means_to_bash() {
        for text in [
            "test -f f || cd a; rm f",
            "test -f missing || cd a; rm f",
            "cd missing; rm f",
            "cd missing && rm f; touch g",
            "cd missing || cd a; rm f",
            "cd missing || cd nowhere || cd b && rm f",
            "cd a && cd missing; rm f",
            "false && cd a; pwd -P",
            "true || cd a; pwd -P; cd b; pwd -P",
            "cd a; cd ..; pwd -P; cd b && cd - >/dev/null; pwd -P",
            "cd - 2>/dev/null || touch failed",
            "cd a; cd - >/dev/null; cd - >/dev/null; pwd -P",
            "cd f; touch x",
            "cd l && pwd -P && cat f && cd .. && pwd -P && cat f",
            "cd l; cat ../f; echo x > ../new; cd ../a && cat f",
            "cd d || echo dangling",
            "mkdir new; cd new; touch x; cd ..; rm -r new",
            "nosuchprogram || echo none; nosuchprogram",
            "perl -e 'kill 9, $$' || echo killed; perl -e 'kill 9, $$'",
            "cat < missing || echo none",
            "cd a\ncat f\ncd b\ncat f\ncd ../..\ncat f",
            "echo x | cd a 2>&1 | cat; pwd -P",
            "cd - >/dev/null &&\n[ -e g ] &&\ncd - >/dev/null",
        ] {
            let is_ours = compare(text);
            assert_eq!(is_ours, !text.contains(" | cd"), "{text:?}");
        }
    }

    const CHANGES: &[&str] = &[
        "a",
        "b",
        "a/b",
        "..",
        "../b",
        "../a",
        ".",
        "missing",
        "f",
        "l",
        "d",
        "./a",
        "-- a",
        "../..",
        "n",
        "a 2>/dev/null",
        "missing 2>/dev/null",
        "- >/dev/null",
    ];
    const PROGRAMS: &[&str] = &[
        "true",
        "false",
        "true",
        "false",
        ":",
        "pwd -P",
        "cat f",
        "cat missing",
        "echo x",
        "touch t",
        "rm f",
        "rm -r b",
        "mkdir n",
        "rmdir n",
        "mv f g",
        "cp f ../h",
        "test -f f",
        "test -d b",
        "ls",
        "echo y >> f",
        "echo z > n",
        "pwd -P > where",
        "cat < f",
        "cat < missing",
        "nosuchprogram",
        "echo q | cat",
        "cat f | false",
        "false | true",
        "pwd -P | cat",
        "cat ../f",
        "ln -s a s",
        "[ -e g ]",
        "cat f f | head -n 1",
        "grep -q root f",
        "rm -r .",
        "perl -e 'kill 15, $$'",
    ];

    fn lists() -> impl Strategy<Value = String> {
        let change = prop::sample::select(CHANGES).prop_map(|to| format!("cd {to}"));
        let program = prop::sample::select(PROGRAMS).prop_map(String::from);
        let element = prop_oneof![2 => change, 3 => program];
        let join = prop::sample::select(vec![" && ", " || ", "; ", "\n", " &&\n", " ||\n\n"]);
        prop::collection::vec((element, join), 2..8).prop_map(|parts| {
            let mut text = String::new();
            for (index, (element, join)) in parts.iter().enumerate() {
                text.push_str(element);
                text.push_str(if index + 1 < parts.len() { join } else { "" });
            }
            text
        })
    }

    #[test]
    fn lists_made_at_random_mean_what_they_mean_to_bash() {
        let more = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
        let enough = more.unwrap_or(0_usize).max(500);
        let mut runner = TestRunner::deterministic();
        if more.is_some() {
            runner = TestRunner::default();
        }
        let mut compared = 0;
        for _ in 0..enough * 20 {
            if compared < enough && compare(&lists().new_tree(&mut runner).unwrap().current()) {
                compared += 1;
            }
        }
        assert_eq!(compared, enough, "too few lists were accepted");
    }

    /// Whatever way a list goes, each of its parts was judged in the folder that it then runs in.
    #[test]
    fn a_part_runs_only_in_a_folder_that_was_judged() {
        let mut runner = TestRunner::deterministic();
        for _ in 0..500 {
            let text = lists().new_tree(&mut runner).unwrap().current();
            let whole = ToolCall::by_person("shell.run", json!({ "command": text }));
            let Some(steps) = understood(&whole) else { continue };
            let root = folder("judged");
            let list = CommandList(ListPart::of(&steps));
            let _ = list.run(&whole, delivered(json!({}), None), |call| {
                let item = understood(&call).unwrap().remove(0);
                let seen = |step: &CommandStep| {
                    step.number == item.number && step.cwd.location == item.cwd.location
                };
                // Outside is denied, whatever follows.
                let outside = steps.iter().any(|step| step.cwd.inside().is_none());
                assert!(outside || steps.iter().any(seen), "{text:?}: {item:?}");
                Ok::<_, ()>(part(root.path(), &item))
            });
        }
    }
}
