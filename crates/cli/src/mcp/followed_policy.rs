//! The policy of an MCP server, read anew where a file that it came from is another one than before.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::mem;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use capsule_base::code::Code;
use capsule_core::outcome::CodedError;
use capsule_runtime::{BoundPolicy, workspace_layer};
use capsule_serve::PolicyWatch;

use crate::args::McpServeArgs;
use crate::command::load_session_policy;
use crate::context::CliContext;
use crate::failure::Failure;

/// The policy in force, with the workspace that it is about.
pub(super) struct FollowedPolicy<'c> {
    args: &'c McpServeArgs,
    /// As the server was started.
    started: &'c CliContext,
    /// The same with the directory that the client named, where that is the workspace.
    ctx: CliContext,
    /// Whether the server began under the user's own policy: then no built-in one takes its place while it is away.
    began_with_user_policy: bool,
    bound: Result<BoundPolicy, CodedError>,
    /// The files that it was read from, there or not, as they were then.
    files: PolicyFiles,
    /// Whether neither the user nor the policy names the workspace.
    is_assumed: bool,
    /// The directory that the client named; none before it was asked.
    root: Option<Option<PathBuf>>,
}

type PolicyFiles = BTreeMap<PathBuf, FileState>;

/// By what a file is seen to be another one than before: the name itself, and what it leads to.
type FileState = [Option<(u64, u64, u64, u32, i64, i64)>; 2];

/// For how long a changed file has to stay as it is before it is read: an editor truncates, renames and writes in steps.
const SETTLED: Duration = Duration::from_millis(200);
/// How often that is tried, and a policy read again whose files changed meanwhile.
const MOST_TRIES: usize = 10;

/// The way on from a directory that is no workspace.
const NAME_WORKSPACE: &str = "name the directory of a project: `capsule mcp serve --workspace DIR`";

impl<'c> FollowedPolicy<'c> {
    /// Reads the policy that a server is started with.
    ///
    /// # Errors
    /// When it cannot be used, and the client cannot mend that by naming a workspace.
    pub(super) fn read(args: &'c McpServeArgs, started: &'c CliContext) -> Result<Self, Failure> {
        let named = args.policy.policy.as_ref().map(|named| started.cwd.join(named));
        let user = started.config_directory().join("policy.yaml");
        // Where the workspace is the one that is expected, its layer is known before the policy is read, and that is read once.
        let workspace = started.named_workspace().unwrap_or_else(|| started.cwd.clone());
        let layer = workspace.canonicalize().ok().map(|workspace| workspace_layer(&workspace));
        let files = [Some(user), named, layer].into_iter().flatten();
        let mut policy = Self {
            args,
            started,
            ctx: started.clone(),
            began_with_user_policy: started.has_user_policy(),
            bound: Err(changing()),
            files: files.map(|file| (file, FileState::default())).collect(),
            is_assumed: false,
            root: None,
        };
        match policy.read_until_unchanged() {
            Err(failure) if !policy.awaits_root() => Err(failure),
            read => {
                policy.bound = read.map_err(CodedError::from);
                Ok(policy)
            }
        }
    }

    /// The policy in force.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn bound(&self) -> Result<&BoundPolicy, CodedError> {
        self.bound.as_ref().map_err(CodedError::clone)
    }

    /// The context of its calls.
    pub(super) const fn ctx(&self) -> &CliContext {
        &self.ctx
    }

    /// Whether the client may name the workspace. Who opens a server for HTTP has chosen the directory.
    pub(super) fn awaits_root(&self) -> bool {
        self.is_assumed && self.args.listen.is_none() && self.root.is_none()
    }

    /// Takes the directory that the client works in; none where it names none.
    pub(super) fn take_root(&mut self, root: Option<&Path>) {
        let real = root.map(|root| root.canonicalize().unwrap_or_else(|_| root.to_owned()));
        self.root = Some(real);
        self.bound = self.read_until_unchanged().map_err(CodedError::from);
    }

    /// Reads the policy again where a file is another one, or where there is none in force. Whether that was tried.
    pub(super) fn refresh(&mut self) -> bool {
        if is_changed(&self.files) {
            self.bound = match self.wait_until_settled() {
                true => self.read_until_unchanged().map_err(CodedError::from),
                false => Err(changing()),
            };
            return true;
        }
        if self.bound.is_err() {
            // The reason may be no file that it was read from, but a directory that is missing.
            self.bound = self.read_until_unchanged().map_err(CodedError::from);
            return true;
        }
        false
    }

    /// Looks whether the policy in force is changed.
    pub(super) fn watch(&self) -> PolicyWatch {
        let files = self.files.clone();
        Box::new(move || is_changed(&files))
    }

    fn wait_until_settled(&self) -> bool {
        let look = || self.files.keys().map(|file| file_state(file)).collect::<Vec<_>>();
        let mut before = look();
        for _ in 0..MOST_TRIES {
            thread::sleep(SETTLED);
            let now = look();
            if mem::replace(&mut before, now) == before {
                return true;
            }
        }
        false
    }

    /// Reads the policy such that no file was changed while it was read.
    fn read_until_unchanged(&mut self) -> Result<BoundPolicy, Failure> {
        for _ in 0..MOST_TRIES {
            for (file, state) in &mut self.files {
                *state = file_state(file);
            }
            let read = self.read_once();
            // Only the policy says where the workspace is, whose layer is read with it.
            let layer = read.as_ref().ok().map(|bound| workspace_layer(bound.workspace.path()));
            let is_new = layer.as_ref().is_some_and(|layer| !self.files.contains_key(layer));
            if let (true, Some(layer)) = (is_new, layer) {
                self.files.insert(layer, FileState::default());
            }
            if !is_new && !is_changed(&self.files) {
                return read;
            }
        }
        Err(changing().into())
    }

    fn read_once(&mut self) -> Result<BoundPolicy, Failure> {
        let is_users = self.began_with_user_policy || self.started.has_user_policy();
        let read = |ctx: &CliContext| load_session_policy(&self.args.policy, ctx, is_users);
        let as_started = read(self.started);
        self.ctx = self.started.clone();
        self.is_assumed = match &as_started {
            Ok(bound) => bound.is_workspace_assumed,
            Err(Failure::Problem(problem)) => problem.code == Code::WorkspaceRefused,
            Err(_) => false,
        };
        let bound = match (&self.root, as_started) {
            (Some(Some(root)), as_started)
                if self.is_assumed && !as_started.as_ref().is_ok_and(comes_with_workspace) =>
            {
                self.ctx = self.started.with_workspace(root);
                read(&self.ctx)?
            }
            (_, as_started) => as_started?,
        };
        let workspace: &Path = bound.roots.workspace.as_ref();
        self.started.refuse_too_wide(workspace, NAME_WORKSPACE)?;
        Ok(bound)
    }
}

/// Whether a policy lies in the directory that it would be about: it only tightens there, and would be free of that
/// if the client named a directory below.
fn comes_with_workspace(bound: &BoundPolicy) -> bool {
    !bound.roots.may_drop_base_rules
}

fn changing() -> CodedError {
    CodedError::new(Code::PolicyUnreadable, "the policy is being changed, so nothing is decided")
        .with_suggestion("make the call again")
}

fn is_changed(files: &PolicyFiles) -> bool {
    files.iter().any(|(file, state)| file_state(file) != *state)
}

fn file_state(file: &Path) -> FileState {
    let facts = |found: Metadata| {
        (found.dev(), found.ino(), found.size(), found.mode(), found.ctime(), found.ctime_nsec())
    };
    [file.symlink_metadata(), file.metadata()].map(|found| found.ok().map(facts))
}
