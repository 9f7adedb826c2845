//! What is sent to the executor for one command.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use capsule_base::limits;

use super::view::hidden_paths;
use crate::linux::protocol::{self, CommandMessage, ExecutorRequest};
use crate::{DirectWrites, Launch, LaunchStage, RedirectTarget, SandboxError};

/// A launch in the words of the executor. The directories are those for temporary files, and the home directory.
pub(super) fn build_request(
    launch: Launch,
    [tmp, home]: &[OsString; 2],
) -> Result<ExecutorRequest, SandboxError> {
    check_launch(&launch).map_err(|problem| SandboxError::Launch { problem })?;
    let Launch {
        stages,
        private_directory_variables: private,
        cwd,
        stdin: _,
        limits,
        writes,
        ignores_tmp_links,
        direct: open,
        hidden,
        is_last: last,
    } = launch;
    let directory = |name: &OsString| if name == "HOME" { home.clone() } else { tmp.clone() };
    let named = private.into_iter().map(|name| {
        let path = directory(&name);
        (name, path)
    });
    let private: Vec<_> = named.collect();
    let stages = stages.into_iter().map(|stage| protocol::StageMessage {
        program: (stage.program.path.into_os_string().into_vec(), stage.program.identity),
        arguments: stage.argv.into_iter().map(OsString::into_vec).collect(),
        environment: stage.environment.iter().chain(&private).map(encode_variable).collect(),
        redirects: stage.redirects,
    });
    let run = CommandMessage { stages: stages.collect(), cwd: cwd.into_vec(), limits };
    let direct = open.as_ref().map(direct_paths).transpose()?;
    let hidden = hidden_paths(&hidden)?;
    Ok(ExecutorRequest::Run { writes, ignores_tmp_links, direct, hidden, is_last: last, run })
}

fn encode_variable((name, value): &(OsString, OsString)) -> Vec<u8> {
    [name.as_bytes(), b"=", value.as_bytes()].concat()
}

/// Whether a launch makes sense, as far as can be told from here; else what is wrong with it.
fn check_launch(launch: &Launch) -> Result<(), &'static str> {
    if launch.stages.is_empty() || launch.stages.len() > limits::PIPELINE_STAGES {
        return Err("the command has no programs, or too many");
    }
    let words = || launch.stages.iter().flat_map(|stage| &stage.argv);
    let none = launch.stages.iter().any(|stage| stage.argv.is_empty());
    if none || words().count() > limits::ARGV_WORDS {
        return Err("the command has no words, or too many");
    }
    if words().map(|word| word.len()).sum::<usize>() > limits::ARGV_BYTES {
        return Err("the command's words are too long");
    }
    if launch.cwd.as_bytes().contains(&0)
        || launch.private_directory_variables.iter().any(is_invalid_name)
    {
        return Err("a NUL byte stands in the command");
    }
    launch.stages.iter().try_for_each(check_stage)
}

fn check_stage(stage: &LaunchStage) -> Result<(), &'static str> {
    // A bare name would be looked for in the directory that the command starts in.
    if !stage.program.path.as_os_str().as_bytes().contains(&b'/') {
        return Err("the program's path is a bare name");
    }
    if stage.environment.iter().any(|(name, _)| is_invalid_name(name)) {
        return Err("a variable's name is empty or holds `=`");
    }
    if stage.redirects.len() > limits::STAGE_REDIRECTS {
        return Err("a program has too many redirections");
    }
    let paths = stage.redirects.iter().filter_map(|redirect| match &redirect.target {
        RedirectTarget::Read(path)
        | RedirectTarget::Create(path)
        | RedirectTarget::Append(path) => Some(path),
        RedirectTarget::Device(_) | RedirectTarget::Same(_) => None,
    });
    let values = stage.environment.iter().map(|(_, value)| value);
    let mut texts = stage.argv.iter().chain(values).chain(paths).map(OsString::as_os_str);
    let ends = |text: &std::ffi::OsStr| text.as_bytes().contains(&0);
    if ends(stage.program.path.as_os_str()) || texts.any(ends) {
        return Err("a NUL byte stands in the command");
    }
    Ok(())
}

fn is_invalid_name(name: &OsString) -> bool {
    name.is_empty() || name.as_bytes().iter().any(|byte| matches!(byte, b'=' | 0))
}

/// What it may change in the workspace itself.
fn direct_paths(direct: &DirectWrites) -> Result<protocol::DirectPaths, SandboxError> {
    let [open, held, pinned] = [&direct.writable, &direct.read_only, &direct.pinned]
        .map(|paths| paths.iter().map(|path| path.as_bytes().to_vec()).collect::<Vec<_>>());
    if open.len() + held.len() + pinned.len() > limits::HIDDEN_PATHS {
        return Err(SandboxError::Launch { problem: "too many paths are to be held" });
    }
    Ok(protocol::DirectPaths { writable: open, read_only: held, pinned })
}
