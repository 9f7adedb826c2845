//! A command that is a list: judged as a whole first, and then its parts, each a call of its own when
//! it is reached, with what is found then.
//!
//! Nothing of a list runs unless all of it may. What a part finds may be otherwise than what the whole
//! found, since the parts before it have run: it is judged again, and where it may not run, the list
//! ends there. The directory and the status that it runs with are those that the parts left which really
//! ran: a `cd` that was left out or failed changes nothing.

use std::rc::Rc;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_command::shell_syntax::{
    OUTPUT_PLACEHOLDER, Script, ScriptElement, StdStream, ValueProblem, parse,
};
use capsule_command::steps::{ListState, NextStep, ReachedState};
use capsule_core::action::{FolderChange, UnsupportedStep};
use capsule_core::call::ToolCall;
use capsule_core::outcome::{CodedError, Status};
use capsule_tools::{ListPart, OutputKind, Sink};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::call_result::CallResult;
use crate::list_output::{join_outputs, texts};

/// The directory that the list is in by now, and the one before, which `cd -` goes back to; that of the whole if it went
/// nowhere.
type Directories = (Option<String>, Option<String>);

/// The parts of a list.
pub(crate) struct CommandList {
    script: Script,
    parts: Vec<ListPart>,
    /// Where the workspace is for the parts.
    root: Option<String>,
}

impl CommandList {
    /// The parts that the call for the whole found.
    pub(crate) fn from_result(call: &ToolCall, whole: &CallResult) -> Option<Self> {
        let value = whole.value.as_ref()?;
        let parts = Vec::deserialize(value.get("parts")?).ok()?;
        let script = parse(call.args.get("command")?.as_str()?).ok()?;
        let root = value.get("root").and_then(Value::as_str).map(str::to_owned);
        Some(Self { script, parts, root })
    }

    /// Runs the parts one after the other, as they are joined. `pass` makes a call, and is told whether what it prints is
    /// kept for a variable. What is said of parts that could not be started is shown in the sink.
    pub(crate) fn run<E>(
        self,
        (call, sink): (&ToolCall, Rc<dyn Sink>),
        whole: CallResult,
        mut pass: impl FnMut(ToolCall, bool) -> Result<CallResult, E>,
    ) -> Result<CallResult, E> {
        let mut sum = ListResult::new(whole, self.root.clone(), sink);
        let mut state = ListState::new((None, None));
        let status = self.run_parts(call, (&mut sum, &mut state), &mut pass)?;
        if !sum.jobs.is_empty() {
            let mut end = call.clone();
            if let Value::Object(args) = &mut end.args {
                args.insert("part".into(), (self.script.elements.len() + 1).into());
                args.insert("cwd".into(), named_directory(&state.directory, call).into());
                args.remove("stdin");
            }
            sum.add_end(pass(end, false)?);
        }
        Ok(sum.into_result(status))
    }

    /// Runs the parts up to the end, and gives the status of the last one; none where the list does not come to its end.
    fn run_parts<E>(
        &self,
        call: &ToolCall,
        (sum, state): (&mut ListResult, &mut ListState<Directories>),
        pass: &mut impl FnMut(ToolCall, bool) -> Result<CallResult, E>,
    ) -> Result<Option<u8>, E> {
        let mut runs = 0;
        loop {
            let index = match self.next(state, call) {
                Ok(Some(index)) => index,
                Ok(None) => break,
                Err(problem) => {
                    sum.stop(problem);
                    return Ok(None);
                }
            };
            runs += 1;
            if runs > limits::COMMAND_RUNS {
                let most = limits::COMMAND_RUNS;
                sum.stop(outside_language(&format!("a list runs at most {most} pipelines")));
                return Ok(None);
            }
            let Some(element) = self.script.elements.get(index) else { break };
            // In old records a `cd` is no call.
            let is_noted = |part: &&ListPart| part.number == index + 1 && !part.runs;
            let (status, output) = match self.parts.iter().find(is_noted) {
                Some(part) if !part.changes_folder => (0, String::new()),
                _ => {
                    sum.tell();
                    let done = match sum.call_for((index, element), call, state) {
                        Ok(call) => pass(call, state.captures())?,
                        Err(ended) => *ended,
                    };
                    match sum.add(done, state) {
                        Some(ended) => ended,
                        None => return Ok(None),
                    }
                }
            };
            if let Err(why) = state.ended(&self.script, Some(status), Some(&output)) {
                sum.stop(unsupported(&why));
                return Ok(None);
            }
        }
        Ok(state.status)
    }

    /// The index of the part that is next.
    fn next(
        &self,
        state: &mut ListState<Directories>,
        call: &ToolCall,
    ) -> Result<Option<usize>, CodedError> {
        let directory =
            |directories: &Directories| working_directory(self.root.as_deref(), directories, call);
        let programs = |directories: &Directories, path: &str| match path.starts_with('/') {
            true => Some(path.to_owned()),
            false => Some(format!("{}/{path}", named_directory(directories, call))),
        };
        match state.advance(&self.script, &directory, &programs) {
            Ok(NextStep::Run(index)) => Ok(Some(index)),
            Ok(NextStep::End | NextStep::Unknown) => Ok(None),
            Err(why) => Err(unsupported(&why)),
        }
    }
}

fn outside_language(message: &str) -> CodedError {
    CodedError::new(Code::ExecNotInLanguage, message)
}

/// Why a list does not go on.
fn unsupported(why: &UnsupportedStep) -> CodedError {
    outside_language(match why {
        UnsupportedStep::Value(ValueProblem::TooLong) => {
            "the values of the list are longer than a command may be"
        }
        UnsupportedStep::Value(_) => "a variable has no value that can be put in here",
        _ => "the list does not end by itself",
    })
}

/// The directory that a list is in, as calls name it.
fn named_directory<'f>(directories: &'f Directories, call: &'f ToolCall) -> &'f str {
    let whole = || call.args.get("cwd").and_then(Value::as_str).unwrap_or(".");
    directories.0.as_deref().unwrap_or_else(whole)
}

/// The same, as programs see it.
fn working_directory(
    root: Option<&str>,
    directories: &Directories,
    call: &ToolCall,
) -> Option<String> {
    let (root, directory) = (root?, named_directory(directories, call));
    Some(match directory.trim_start_matches("./").trim_end_matches('/') {
        "" | "." => root.to_owned(),
        _ if directory.starts_with('/') => directory.to_owned(),
        directory => format!("{root}/{directory}"),
    })
}

/// What came of the parts so far.
struct ListResult {
    whole: CallResult,
    value: Map<String, Value>,
    /// The status of the last part that ran.
    status: u8,
    /// Whether a program was given what the whole is given to read.
    fed: bool,
    /// Where the workspace is for the parts.
    root: Option<String>,
    /// The parts that run in the background.
    jobs: Vec<u64>,
    /// Whether it ended before its end, and the last part says why.
    has_stopped: bool,
    /// Where output is shown while it comes.
    sink: Rc<dyn Sink>,
    /// What is said of the last part, which could not be started, as long as the list may end with it.
    untold: String,
}

/// What is put together of all parts.
const CONCATENATED_FIELDS: [&str; 2] = ["stdout", "stderr"];
/// What is added up.
const SUMMED_FIELDS: [&str; 4] =
    ["stdout_bytes_total", "stderr_bytes_total", "changes_total", "left_running"];
/// What is listed, and how much of it at most.
const LISTED_FIELDS: [(&str, usize); 3] = [
    ("changes", limits::STAGED_SHOWN),
    ("jobs", limits::BACKGROUND_JOBS),
    ("refused_hosts", limits::REFUSED_HOSTS),
];

impl ListResult {
    fn new(whole: CallResult, root: Option<String>, sink: Rc<dyn Sink>) -> Self {
        let (value, untold) = (Map::new(), String::new());
        let (fed, has_stopped) = (false, false);
        Self { whole, value, status: 0, fed, root, jobs: Vec::new(), has_stopped, sink, untold }
    }

    /// Shows what is said of the last part, since the list goes on.
    fn tell(&mut self) {
        let text = std::mem::take(&mut self.untold);
        if text.is_empty() {
            return;
        }
        self.sink.output(OutputKind::Stderr, text.as_bytes());
        let total = self.value.get("stderr_bytes_total").and_then(Value::as_u64).unwrap_or(0);
        let length = u64::try_from(text.len()).unwrap_or(0);
        self.value.insert("stderr_bytes_total".into(), total.saturating_add(length).into());
    }

    /// The call that a part is, in the state that the parts before it left.
    ///
    /// # Errors
    /// What comes of it without one.
    fn call_for(
        &mut self,
        (index, element): (usize, &ScriptElement),
        whole: &ToolCall,
        state: &mut ListState<Directories>,
    ) -> Result<ToolCall, Box<CallResult>> {
        let mut call = whole.clone();
        let Value::Object(args) = &mut call.args else { return Ok(call) };
        args.insert("part".into(), (index + 1).into());
        let reached = state.reached(element);
        if reached != ReachedState::default() {
            let text = serde_json::to_string(&reached).unwrap_or_default();
            args.insert("reached".into(), text.into());
        }
        let here = working_directory(self.root.as_deref(), &state.directory, whole);
        let stage = element.pipeline.stages.first();
        let stage = stage.and_then(|stage| stage.with_values(&state.values_here(here)).ok());
        let change = stage.as_ref().and_then(FolderChange::of).and_then(Result::ok);
        // What the whole is given to read, the first program reads.
        if self.fed || change.is_some() {
            args.remove("stdin");
        }
        self.fed |= change.is_none();
        let (directory, before) = &state.directory;
        let directory = match &change {
            Some(FolderChange { to: "-", err, .. }) if before.is_none() => {
                return Err(Box::new(self.ended(1, *err, "cd: OLDPWD not set")));
            }
            Some(FolderChange { to: "-", .. }) => before.clone(),
            _ => directory.clone(),
        };
        if let Some(directory) = directory {
            args.insert("cwd".into(), directory.into());
        }
        if change.is_some() {
            state.directory.0 = Some(named_directory(&state.directory, whole).to_owned());
        }
        Ok(call)
    }

    /// What a part comes to that could not be started.
    fn ended(&self, code: u8, stream: Option<StdStream>, says: &str) -> CallResult {
        let mut value = json!({ "exit_code": code, "stdout": "", "stderr": "" });
        let text = format!("{says}\n");
        let (name, kind) = match stream {
            Some(StdStream::Out) => ("stdout", OutputKind::Stdout),
            _ => ("stderr", OutputKind::Stderr),
        };
        if let (Value::Object(value), Some(_)) = (&mut value, stream) {
            self.sink.output(kind, text.as_bytes());
            value.insert(format!("{name}_bytes_total"), text.len().into());
            value.insert(name.into(), text.into());
        }
        let problem = Some(CodedError::new(Code::ExecFailed, says));
        let (status, value) = (Status::ToolError, Some(value));
        CallResult { status, value, problem, ..self.whole.clone() }
    }

    /// A program that is not there, and a stream that cannot be led to its file, end a part with a status of
    /// their own, as in a shell.
    fn with_status(&mut self, done: CallResult) -> CallResult {
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
        let mut ended = self.ended(code, None, &problem.message);
        self.untold = format!("{}\n", problem.message);
        if let Some(Value::Object(value)) = &mut ended.value {
            value.insert("stderr".into(), self.untold.clone().into());
        }
        CallResult { problem: done.problem, decision: done.decision, ..ended }
    }

    /// Adds what came of a part, and gives its status, and what it printed, where that is kept for a variable; none
    /// where the list ends with it.
    fn add(
        &mut self,
        done: CallResult,
        state: &mut ListState<Directories>,
    ) -> Option<(u8, String)> {
        let done = self.with_status(done);
        self.whole.status = done.status;
        self.whole.problem = done.problem;
        let Some(Value::Object(mut value)) = done.value else {
            // Nothing ran: why is what the whole ends with.
            self.whole.decision = done.decision;
            self.has_stopped = true;
            return None;
        };
        if let Some(Value::String(directory)) = value.remove("folder") {
            state.directory.1 = state.directory.0.replace(directory);
        }
        let number = |name| value.get(name).and_then(Value::as_u64);
        let status = match (number("exit_code"), number("signal")) {
            (Some(code), _) => u8::try_from(code).ok(),
            (None, Some(signal)) => u8::try_from(signal + 128).ok(),
            (None, None) => (done.status == Status::Ok).then_some(0),
        };
        let mut output = String::new();
        if state.captures() {
            match captured_output(&mut value) {
                Ok(text) => output = text,
                Err(problem) => {
                    self.stop(problem);
                    return None;
                }
            }
        }
        self.note_jobs(&mut value);
        self.merge(value);
        // What was cancelled or ran into a bound of the whole does not go on.
        self.has_stopped = status.is_none();
        self.status = status?;
        Some((self.status, output))
    }

    /// Notes which parts run in the background by now.
    fn note_jobs(&mut self, value: &mut Map<String, Value>) {
        self.jobs.extend(value.remove("job").as_ref().and_then(Value::as_u64));
        for end in value.get("jobs").and_then(Value::as_array).into_iter().flatten() {
            let ended = end.get("job").and_then(Value::as_u64);
            self.jobs.retain(|job| Some(*job) != ended);
        }
    }

    /// Adds what came of the parts that still ran when the list ended. How they ended says nothing of the list, unless what
    /// they changed was refused.
    fn add_end(&mut self, done: CallResult) {
        if done.problem.is_some() && !self.has_stopped {
            (self.whole.status, self.whole.problem) = (done.status, done.problem);
            self.has_stopped = true;
        }
        let Some(Value::Object(mut value)) = done.value else { return };
        for name in ["exit_code", "signal"] {
            let before = self.value.get(name).cloned().unwrap_or(Value::Null);
            value.insert(name.into(), before);
        }
        self.merge(value);
    }

    /// Puts together what parts come to.
    fn merge(&mut self, mut value: Map<String, Value>) {
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
        for (name, most) in LISTED_FIELDS {
            if let Some(Value::Array(mut all)) = self.value.remove(name) {
                let item = value.get(name).and_then(Value::as_array);
                all.extend(item.into_iter().flatten().cloned());
                all.truncate(most);
                value.insert(name.into(), all.into());
            }
        }
        if cut || is_too_long(&value) {
            value.insert("truncated".into(), true.into());
        }
        self.value = value;
    }

    /// Ends the list with a problem of its own.
    fn stop(&mut self, problem: CodedError) {
        self.has_stopped = true;
        self.whole.status = Status::ToolError;
        self.whole.problem = Some(problem);
    }

    /// What the list comes to, which ends with this status, if it came to its end.
    fn into_result(mut self, status: Option<u8>) -> CallResult {
        if let Some(status) = status.filter(|status| !self.has_stopped && *status != self.status) {
            let texts = ["stdout", "stderr"].map(|name| (name.to_owned(), Value::from("")));
            texts.into_iter().for_each(|(name, text)| {
                self.value.entry(name).or_insert(text);
            });
            self.value.insert("exit_code".into(), status.into());
            self.value.insert("signal".into(), Value::Null);
            (self.whole.status, self.whole.problem) = match status {
                0 => (Status::Ok, None),
                _ => {
                    let message = format!("the command ended with status {status}");
                    (Status::ToolError, Some(CodedError::new(Code::ExecFailed, message)))
                }
            };
        }
        let is_problem =
            |problem: &CodedError| problem.message.as_str() == self.untold.trim_end_matches('\n');
        if !self.whole.problem.as_ref().is_some_and(is_problem) {
            self.tell();
        }
        let Self { mut whole, value, .. } = self;
        whole.value = Some(match value.is_empty() {
            false => Value::Object(value),
            true => json!({ "exit_code": 0, "stdout": "", "stderr": "" }),
        });
        whole
    }
}

/// Takes from a result what a part printed, for a variable.
///
/// # Errors
/// Not all of it is there, or it is none that can be put into words.
fn captured_output(value: &mut Map<String, Value>) -> Result<String, CodedError> {
    let is_whole = value.get("truncated") != Some(&Value::Bool(true));
    let text = match value.insert("stdout".into(), "".into()) {
        Some(Value::String(text)) if is_whole && text.len() <= limits::STDIN_BYTES => text,
        None if is_whole && !value.contains_key("stdout_base64") => String::new(),
        _ => {
            return Err(outside_language(
                "what was printed is too long, or no text, to be put into words",
            ));
        }
    };
    if text.contains(OUTPUT_PLACEHOLDER) {
        return Err(outside_language("what was printed cannot be told from what is not known yet"));
    }
    value.insert("stdout_bytes_total".into(), 0.into());
    Ok(text)
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
    use capsule_command::shell_syntax::{PipelineStage, Redirection, TextPlace};
    use capsule_core::action::{Action, CommandStep, PathLocation, PathTarget, expanded_argv};
    use capsule_core::action::{Expansion, glob_arguments};
    use capsule_core::capability::Capabilities;
    use capsule_core::decision::{Decision, Verdict};
    use capsule_core::risk::Risk;
    use capsule_tools::NullSink;
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
        let done = if parse(text).ok()?.is_single() {
            outside = steps[0].cwd.inside().is_none();
            part(root.path(), &steps[0], false)
        } else {
            let parts = json!({ "parts": ListPart::of(&steps), "root": "/workspace" });
            let list = CommandList::from_result(&whole, &delivered(parts, None)).unwrap();
            let whole_done = delivered(json!({}), None);
            let (mut started, mut jobs) = (0_u64, Vec::new());
            let sink: Rc<dyn Sink> = Rc::new(NullSink);
            list.run((&whole, sink), whole_done, |call, _| {
                let Some(steps) = understood(&call) else { return Err(()) };
                assert_eq!(steps.len(), 1, "{text:?}");
                outside |= steps[0].cwd.inside().is_none();
                let pipe_fail = call.args["reached"].as_str().is_some_and(|text| {
                    serde_json::from_str::<ReachedState>(text).unwrap().pipe_fail
                });
                if steps[0].is_background {
                    started += 1;
                    jobs.push((started, part(root.path(), &steps[0], pipe_fail)));
                    let value = json!({ "exit_code": 0, "stdout": "", "job": started });
                    return Ok(delivered(value, None));
                }
                let index = usize::try_from(call.args["part"].as_u64().unwrap()).unwrap();
                let script = parse(text).unwrap();
                let stages = script.elements.get(index - 1).map(|element| &element.pipeline.stages);
                if stages.is_some_and(|stages| has_lost_file(root.path(), &steps[0], stages)) {
                    return Err(());
                }
                let words = stages.and_then(|stages| stages.first()).map(|stage| &stage.words);
                match words {
                    Some(words) if words[0].literal() != Some("wait") => {
                        Ok(part(root.path(), &steps[0], pipe_fail))
                    }
                    words => Ok(waited(&mut jobs, words.is_some_and(|words| words.len() > 1))),
                }
            })
            .ok()?
        };
        let is_refused =
            done.problem.as_ref().is_some_and(|own| own.code == Code::ExecNotInLanguage);
        // What a pipeline by itself could not be started for is no status.
        let has_end = ["exit_code", "signal"]
            .iter()
            .any(|name| done.value.as_ref().unwrap().get(name).is_some());
        if outside || is_refused || !has_end {
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

    /// Whether a file that a group around a part keeps open is not there any more, which the tool refuses.
    fn has_lost_file(root: &Path, step: &CommandStep, typed: &[PipelineStage]) -> bool {
        let cwd = root.join(step.cwd.inside().map(ToString::to_string).unwrap_or_default());
        typed.iter().zip(&step.stages).any(|(typed, stage)| {
            typed.templates.iter().any(|(place, word)| match place {
                TextPlace::Redirect(index) => match &stage.redirects[*index] {
                    Redirection::File { path, .. } => {
                        word.variables().any(|name| name.starts_with('|'))
                            && !in_root(root, &cwd, path).exists()
                    }
                    _ => false,
                },
                TextPlace::Variable(_) => false,
            })
        })
    }

    /// The place of a path of a stream.
    fn in_root(root: &Path, cwd: &Path, path: &str) -> PathBuf {
        match path.strip_prefix("/workspace") {
            Some(rest) => root.join(rest.trim_start_matches('/')),
            None => cwd.join(path),
        }
    }

    /// What a `wait` comes to behind parts that have ended; with the status of the last of them, if it names one.
    fn waited(jobs: &mut Vec<(u64, CallResult)>, names_one: bool) -> CallResult {
        let (mut status, mut stdout, mut ends) = (0, String::new(), Vec::new());
        for (number, done) in jobs.drain(..) {
            status = match done.problem.as_ref().map(|problem| problem.code) {
                Some(Code::ExecNotFound) => 127,
                Some(Code::FileSystem) => 1,
                _ => done.command_status(Exit::Ok),
            };
            stdout += done.value.as_ref().unwrap()["stdout"].as_str().unwrap_or_default();
            ends.push(json!({ "job": number }));
        }
        let status = if names_one { status } else { 0 };
        let failed = || CodedError::new(Code::ExecFailed, "failed");
        let value = json!({ "exit_code": status, "stdout": stdout, "jobs": ends });
        delivered(value, (status != 0).then(failed))
    }

    fn understood(call: &ToolCall) -> Option<Vec<CommandStep>> {
        match crate::describe(call.tool.as_str(), &call.args, 0).ok()? {
            Action::Command { steps, .. } => Some(steps),
            _ => None,
        }
    }

    fn part(root: &Path, step: &CommandStep, pipe_fail: bool) -> CallResult {
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
        match pipeline((root, &cwd), step, pipe_fail) {
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
        (root, cwd): (&Path, &Path),
        step: &CommandStep,
        pipe_fail: bool,
    ) -> Result<(String, Result<i32, i32>), (Code, io::Error)> {
        let mut children: Vec<Child> = Vec::new();
        for (index, stage) in step.stages.iter().enumerate() {
            let words = expanded_argv(stage, &step.cwd, &expansions(cwd, step, stage));
            let mut command = program(&words[0], cwd);
            command.args(&words[1..]).stderr(Stdio::null()).stdout(Stdio::piped());
            command.envs(stage.variables.iter().cloned());
            command.stdin(match children.last_mut().and_then(|child| child.stdout.take()) {
                Some(out) => Stdio::from(out),
                None => Stdio::null(),
            });
            for redirect in &stage.redirects {
                let opened = match redirect {
                    Redirection::Here { text } => {
                        let mut file = tempfile::tempfile().unwrap();
                        io::Write::write_all(&mut file, text.as_bytes()).unwrap();
                        io::Seek::rewind(&mut file).unwrap();
                        Ok(file)
                    }
                    Redirection::File { path, .. } if path == "/dev/null" => {
                        File::create("/dev/null")
                    }
                    Redirection::Duplicate { .. } => continue,
                    Redirection::File { path, append: true, .. } => {
                        OpenOptions::new().append(true).create(true).open(in_root(root, cwd, path))
                    }
                    Redirection::File { path, .. } => File::create(in_root(root, cwd, path)),
                    Redirection::Input { path } => File::open(cwd.join(path)),
                };
                let file = Stdio::from(opened.map_err(|error| (Code::FileSystem, error))?);
                match redirect {
                    Redirection::Input { .. } | Redirection::Here { .. } => command.stdin(file),
                    Redirection::File { stream: StdStream::Err, .. } => command.stderr(file),
                    _ => command.stdout(file),
                };
            }
            let child = command.spawn().map_err(|error| (Code::ExecNotFound, error))?;
            assert!(index < 9);
            children.push(child);
        }
        let last = children.pop().unwrap();
        let done = last.wait_with_output().unwrap();
        let mut status = 0;
        for mut child in children {
            status = child.wait().unwrap().code().filter(|code| *code != 0).unwrap_or(status);
        }
        if pipe_fail && status != 0 && done.status.success() {
            return Ok((String::from_utf8(done.stdout).unwrap(), Ok(status)));
        }
        let signal = std::os::unix::process::ExitStatusExt::signal(&done.status);
        let status = done.status.code().ok_or_else(|| signal.unwrap());
        Ok((String::from_utf8(done.stdout).unwrap(), status))
    }

    /// The names that the patterns of a stage stand for.
    fn expansions(cwd: &Path, step: &CommandStep, stage: &PipelineStage) -> Vec<Expansion> {
        let here = step.cwd.inside().map(ToString::to_string).unwrap_or_default();
        let here = if here == "." { String::new() } else { here };
        let expanded = |(_, pattern): (_, String)| {
            let text = format!("printf '%s\\0' {pattern}");
            let done = program("bash", cwd).args(["-O", "nullglob", "-c", &text]).output().unwrap();
            let names = String::from_utf8(done.stdout).unwrap();
            let names = names.split_terminator('\0').filter(|name| !name.is_empty());
            Expansion { cwd: here.clone(), pattern, names: names.map(Into::into).collect() }
        };
        glob_arguments(stage).map(expanded).collect()
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
            "(cd a; cat f; rm f); cat f; pwd -P",
            "{ cd a; cat f; } && cat f",
            "for d in a b missing; do cd $d && cat f && cd ..; done; pwd -P",
            "for d in */; do cat \"${d}f\"; done; for x in *.none; do echo \"$x\"; done",
            "for d in a b; do (cd $d && echo $d > name); done; cat a/name b/name",
            "d=a; cd $d; pwd; echo $PWD; cd ..; echo \"$PWD/x\"",
            "x=$(cat f); cd a; x=\"$x $(cat f)\"; echo \"$x\"",
            "cat missing; echo $?; false; echo $? $?; true || echo never; echo $?",
            "set -e; cat f; cat missing || echo none; (cat missing; echo never); echo never",
            "set -o pipefail; false | cat; echo $?; true | cat",
            "if cd a; then cat f; else cat b/f; fi; pwd -P",
            "if cd missing; then cat f; elif [ -d b ]; then cd b; cat f; fi; pwd -P",
            "until [ -f n ]; do cat f > n; done; cat n; while [ -f n ]; do rm n; done; echo $?",
            "for f in f g; do if [ -f $f ]; then cat $f; continue; fi; echo no $f; break; done; echo $?",
            "{ cat f; cat a/f; } > out; cat f; cat out; pwd -P",
            "(cat f; cd a; cat f) | cat > out; cat out; pwd -P",
            "for x in 1 2; do echo $x; done | cat > out; cat out",
            "bash -c 'cd a; cat f'; cat f; bash -ec 'false; echo never' || echo $?",
            "v=a; v=$v$v cat f; echo $v; export E=$v; env | grep ^E=; (E=c; env | grep ^E=); env | grep ^E=",
            "cat <<E > out\n$(cat f) x\nE\ncat out; cat <<< \"$(cat a/f)\"",
            "! cat missing; echo $?; ! true && echo never; (exit 3); echo $?; exit 4",
            "cd a; touch -- -f; for f in *; do cat \"$f\"; done; rm ./*; ls",
            "x=; printf 'a b\\nc  d e \\nf' > l1; while read -r x y; do echo \"$y.$x\"; done < l1; echo \"[$x]\"",
            "x=; printf ' a \\n\\nb' > l1; while IFS= read -r x || [ -n \"$x\" ]; do echo \"[$x]\"; done < l1; echo \"[$x]\"",
            "while IFS== read -r k v; do echo \"$k\"; [ \"$k\" = b ] && break; done <<'E'\na=1\nb=2\nc=3\nE",
            "while read -r d; do cat \"$d/f\"; done < missing; echo $?; pwd -P",
            "set -e; while read -r x; do echo \"$x\"; done < missing; echo never",
            "set -e; if while read -r x; do echo \"$x\"; done < missing; then echo a; else echo b; fi",
            "ls | while read -r x; do echo \"$x\"; y=$x; done; echo end; while read -r x; do false; done < f; echo $?",
            "v=f; while read -r x; do for z in 1 2; do while read -r w; do echo $z \"$w$x\"; done < \"$v\"; done; done < a/f",
            "while read -r x; do echo \"$x\"; done <<< \"$(cat f a/f)\" | sort > out; cat out",
            "false && while read -r x; do echo \"$x\"; done < f; while read -r x; do continue; done < f || echo never",
            "cat f & wait; echo $?; false & wait $!; echo $?; nosuchprogram & wait $! || echo $?",
            "v=f; cat $v > n & P=$!; wait $P && cat n; set -e; false & echo $?; wait $!; echo never",
            "set -o pipefail; false | true & wait $!; echo $?; perl -e 'kill 15, $$' & wait $!",
            "(cd a && cat f) & wait $!; echo $?; pwd -P; cd a && cat f > n & wait; pwd -P; cat a/n",
            "(cd missing && cat f) & echo $?; wait; { cd a; cat f missing; } > o 2>/dev/null & wait; cat o",
            "v=a; { cd $v; v=b; false; } > o & wait $!; echo $? $v; bash -c 'cd a; cat f' & P=$!; wait $P; pwd -P",
            "x=; for z in 1 2; do while read -r x; do echo $x; break; done < f; [ $z = 1 ] || break; done; echo $z $x",
            "{ for v in *; do echo x > n$v; done; } > o; cat no",
            "cat missing; for v in *; do echo $? $v; done; for v in *; do echo $?; false; done",
            "{ echo a; cat o; } > o; cat o",
            "echo q > o; { echo a; wc -l < o; cat f; } >> o; cat o",
            "{ cd a; echo x; cd b; pwd -P; cd ../..; } > o; pwd -P; (cd b && cat f && cat missing) > o2 2>/dev/null; echo $?",
            "for d in a b; do cd $d; cat f; cd ..; continue; done > o; cat o; pwd -P",
            "for z in 1 2 3; do { echo $z; [ $z = 2 ] && break; cat f; } >> o; done; cat o",
            "{ cat f; exit 3; } > o; echo never",
            "set -e; { cat f; cat missing; cat f; } > o 2>/dev/null; echo never",
            "{ { echo a; echo b; } > o; echo c; } > p; { echo d | cat; { echo e; } >> o; } > q; cat o p q",
            "v=o; { v=p; echo $v; } > $v; cat o; [ -e p ] || echo none",
            "{ bash -c 'cat f; cd a; cat f'; v=$(cat f); echo $v; } > o 2>/dev/null; cat o",
            "if cat f; then cd a; else cat missing; fi > o; cat ../o",
            "while read -r x; do echo \"$x\" | cat; done < f > o; cat f | while read -r x; do echo $x; done >> o; cat o",
            "for x in *; do [ -d \"$x\" ] && echo \"$x\"; done > o 2>&1; cat o",
            "{ cat f; cat missing; } 2>/dev/null | cat; (echo c) |& cat",
            "{ cat f; } > missing/o || echo $?; { cat f; } > o > p; cat o p; { cat f; } > a; echo $?",
            "mkdir n; { cat f; { cat a/f; } >> n/o; } > n/p 2>> n/e; cat n/o n/p n/e",
            "for v in f g; do { echo $v; } > \"$v.o\"; done; cat f.o g.o; (exit 2) > o || echo $?",
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
        "true | false",
        "false | true",
        "pwd -P | cat",
        "cat ../f",
        "ln -s a s",
        "[ -e g ]",
        "cat f f | tail -n 1",
        "grep -q root f",
        "rm -r .",
        "perl -e 'kill 15, $$'",
    ];

    /// Words with values, most of them set by what comes before.
    const VALUED: &[&str] = &[
        "v=a",
        "v=b/f",
        "v=$(cat f)",
        "w=$v",
        "v=\"$v/b\"",
        "export X=$v",
        "X=1",
        "v=",
        "w='a b'",
        "echo $v",
        "echo \"$v\" $w",
        "cat \"$v\"",
        "cd \"$v\"",
        "cd $w",
        "echo $?",
        "echo $PWD",
        "env | grep ^X=",
        "X=2 env | grep ^X=",
        "test -d \"$v\"",
        "echo x > \"$v\"",
        "rm \"$v\"",
        "cat <<< \"$v\"",
        "touch \"$v.n\"",
        "[ \"$v\" = a ]",
        "set -e",
        "set +e",
        "set -o pipefail",
        "exit 3",
        "! cat missing",
        "! true",
        "cat <<E\n$v $(cat f)\nE",
        "echo $(ls) \"$(pwd -P)\"",
        "break",
        "continue",
    ];

    fn simple() -> impl Strategy<Value = String> {
        let change = prop::sample::select(CHANGES).prop_map(|to| format!("cd {to}"));
        let program = prop::sample::select(PROGRAMS).prop_map(String::from);
        let valued = prop::sample::select(VALUED).prop_map(String::from);
        let wait = prop::sample::select(vec!["& wait $!", "& wait", "& P=$!; wait \"$P\""]);
        let beside = (prop::sample::select(PROGRAMS), wait).prop_map(|(a, b)| format!("{a} {b}"));
        prop_oneof![4 => change, 6 => program, 6 => valued, 1 => beside]
    }

    fn joined(
        element: impl Strategy<Value = String>,
        most: usize,
    ) -> impl Strategy<Value = String> {
        let join = prop::sample::select(vec![" && ", " || ", "; ", "\n", " &&\n", " ||\n\n"]);
        prop::collection::vec((element, join), 1..most).prop_map(|parts| {
            let mut text = String::new();
            for (index, (element, join)) in parts.iter().enumerate() {
                text.push_str(element);
                let is_text = element.contains("<<E");
                let last = index + 1 == parts.len();
                // A `cd` that fails before a program in the background leaves no job here, and one in bash.
                let next = parts.get(index + 1).map_or("", |(next, _)| next);
                text.push_str(if is_text || next.contains("& wait") || next.contains("& P=") {
                    "\n"
                } else if last {
                    ""
                } else {
                    join
                });
            }
            text
        })
    }

    /// Lists with folders, variables, conditions, loops and groups.
    fn lists() -> impl Strategy<Value = String> {
        let statement = simple().boxed().prop_recursive(3, 24, 4, |inner| {
            let list = || joined(inner.clone(), 4);
            let words = prop::sample::select(vec![
                "a b",
                "a/b b missing",
                "*",
                "f $(echo a b)",
                "'a b'",
                "*/",
                "{1,2}",
            ]);
            prop_oneof![
                list().prop_map(|list| format!("({list}\n)")),
                list().prop_map(|list| format!("{{ {list}\n}}")),
                list().prop_map(|list| format!("{{ {list}\n}} > o")),
                list().prop_map(|list| format!("({list}\n) >> o 2>/dev/null")),
                list().prop_map(|list| format!("for v in a b; do {list}\ndone > \"o$v\"")),
                list().prop_map(|list| format!("({list}\n) | cat")),
                (list(), list()).prop_map(|(one, two)| format!("if {one}\nthen {two}\nfi")),
                (list(), list(), list()).prop_map(|(one, two, three)| format!(
                    "if {one}\nthen {two}\nelse {three}\nfi"
                )),
                (words, list())
                    .prop_map(|(words, list)| format!("for v in {words}; do {list}\ndone")),
                list().prop_map(|list| format!("while [ ! -e s ]; do {list}\ntouch s\ndone")),
                list().prop_map(|list| format!("while read -r v; do {list}\ndone <<< 'a b'")),
                list().prop_map(|list| format!("echo a b | while read -r v w; do {list}\ndone")),
                // Behind a here-document in a substitution bash 5.2 loses a `;`.
                list()
                    .prop_map(|list| list.replace("cat <<E\n$v $(cat f)\nE\n", "cat f\n"))
                    .prop_map(|list| format!("w=$(echo \"$(cat f)\"\n{list}\n)")),
            ]
        });
        joined(prop_oneof![2 => simple().boxed(), 3 => statement], 7)
    }

    #[test]
    fn lists_made_at_random_mean_what_they_mean_to_bash() {
        let more = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
        let enough = more.unwrap_or(0_usize).max(300);
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
            let parts = json!({ "parts": ListPart::of(&steps), "root": "/workspace" });
            let list = CommandList::from_result(&whole, &delivered(parts, None)).unwrap();
            let sink: Rc<dyn Sink> = Rc::new(NullSink);
            let _ = list.run((&whole, sink), delivered(json!({}), None), |call, _| {
                let Some(mut reached) = understood(&call) else { return Err(()) };
                let item = reached.remove(0);
                let seen = |step: &CommandStep| {
                    step.number == item.number && step.cwd.location == item.cwd.location
                };
                // Outside is denied, whatever follows.
                let outside = steps.iter().any(|step| step.cwd.inside().is_none());
                assert!(outside || steps.iter().any(seen), "{text:?}: {item:?}");
                Ok(part(root.path(), &item, false))
            });
        }
    }
}
