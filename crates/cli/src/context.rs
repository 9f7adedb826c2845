//! What surrounds a command: folders, files of our own, the environment. Read here and nowhere
//! else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::{escape, limits};
use capsule_command::argv::show_argv;
use capsule_core::journal::SIDECAR_SUFFIXES;
use capsule_core::outcome::CodedError;
use capsule_policy::is_layer;
use capsule_runtime::{BoundPolicy, PolicyLoadError, PolicyLoadOptions, PolicySource, read_text};
use etcetera::BaseStrategy;

use crate::args::{Globals, PolicyArg};
use crate::failure::Failure;

/// What surrounds a command.
#[derive(Clone, Debug)]
pub(crate) struct CliContext {
    /// The current folder.
    pub(crate) cwd: PathBuf,
    /// The same as the shell spells it.
    shell_cwd: Option<PathBuf>,
    /// The user's home.
    pub(crate) home: PathBuf,
    /// The store.
    pub(crate) store: PathBuf,
    /// Whether the store was named, so that it is expected to be there.
    pub(crate) store_is_explicit: bool,
    /// The folder for the user's own configuration.
    config: PathBuf,
    /// The workspace that was named.
    workspace: Option<PathBuf>,
}

impl CliContext {
    /// Looks around.
    ///
    /// # Errors
    /// When there is no current folder or no home.
    pub(crate) fn read(globals: &Globals) -> Result<Self, Failure> {
        let machine = |what: &str| {
            Failure::from(CodedError::new(Code::StoreOpen, format!("{what} cannot be told")))
        };
        let cwd = std::env::current_dir().map_err(|_| machine("the current folder"))?;
        let base = etcetera::choose_base_strategy().map_err(|_| machine("the home folder"))?;
        let store = match &globals.store {
            Some(store) => cwd.join(store),
            None => base.data_dir().join("capsule").join("store.db"),
        };
        // A shell that came through a link says so; others do not know.
        let leads_here = |path: &PathBuf| path.canonicalize().is_ok_and(|real| real == cwd);
        let shell_cwd = std::env::var_os("PWD").map(PathBuf::from).filter(leads_here);
        Ok(Self {
            cwd,
            shell_cwd,
            home: base.home_dir().to_owned(),
            store,
            store_is_explicit: globals.store.is_some(),
            config: base.config_dir().join("capsule"),
            workspace: globals.workspace.clone(),
        })
    }

    /// The folder that a command is about where it was not told by a policy: the one that was named,
    /// else the current one.
    pub(crate) fn start_directory(&self) -> PathBuf {
        self.workspace.as_ref().map_or_else(|| self.cwd.clone(), |named| self.cwd.join(named))
    }

    /// The same around another workspace, with another store.
    pub(crate) fn with_workspace_and_store(&self, workspace: &Path, store: PathBuf) -> Self {
        Self {
            workspace: Some(workspace.to_owned()),
            store,
            store_is_explicit: false,
            ..self.clone()
        }
    }

    /// Whether everything of the user lies in a directory, given by its real path: such a one is no workspace. The home
    /// directory, and one above it, is one where the user names it.
    pub(crate) fn is_too_wide(&self, real: &Path) -> bool {
        let holds_home = || self.home.canonicalize().is_ok_and(|home| home.starts_with(real));
        real == Path::new("/") || self.workspace.is_none() && holds_home()
    }

    /// Refuses such a directory as the workspace of an agent, with a way on.
    ///
    /// # Errors
    /// [`Code::WorkspaceRefused`].
    pub(crate) fn refuse_too_wide(&self, real: &Path, hint: &str) -> Result<(), CodedError> {
        if !self.is_too_wide(real) {
            return Ok(());
        }
        let shown = escape::line(&real.display().to_string()).into_owned();
        let message = format!("`{shown}` is no workspace: everything of the user lies in it");
        Err(CodedError::new(Code::WorkspaceRefused, message).with_suggestion(hint))
    }

    /// The folder that was named.
    pub(crate) fn named_workspace(&self) -> Option<PathBuf> {
        self.workspace.as_ref().map(|named| self.cwd.join(named))
    }

    /// The same with another workspace.
    pub(crate) fn with_workspace(&self, workspace: &Path) -> Self {
        Self { workspace: Some(workspace.to_owned()), ..self.clone() }
    }

    /// The runtime's own files, with those that SQLite keeps beside the store.
    pub(crate) fn own_files(&self, more: &[PathBuf]) -> Vec<PathBuf> {
        let store = real_parent(&self.store);
        let beside = SIDECAR_SUFFIXES.map(|suffix| capsule_store::sidecar_path(&store, suffix));
        // As it is named, too: the way there must stay what it is.
        let item = [store, self.store.clone(), self.config.clone()].into_iter().chain(beside);
        item.chain(more.iter().cloned()).collect()
    }

    /// Where a policy comes from: the one that is named, else the user's own. One that lies in a workspace
    /// is taken only when it is named: whoever wrote it grants nothing to itself.
    ///
    /// # Errors
    /// None is named and the user has none.
    fn policy_source(&self, named: Option<&str>) -> Result<PolicySource, Failure> {
        let user = self.config.join("policy.yaml");
        match named {
            Some(named) => Ok(PolicySource::from_argument(named)),
            None if user.symlink_metadata().is_ok() => Ok(PolicySource::File(user)),
            None => {
                let problem = CodedError::new(Code::Usage, "no policy is named");
                let hint = match self.policy_nearby() {
                    Some(place) => {
                        let place = show_argv(&[place.display().to_string()]);
                        format!(
                            "name it: `--policy {place}`; one in a workspace counts only when it is named"
                        )
                    }
                    None => format!(
                        "name one with `--policy`, such as `builtin:developer`; `capsule init` writes one, \
                         and one at `{}` counts without being named",
                        user.display()
                    ),
                };
                Err(problem.with_suggestion(hint).into())
            }
        }
    }

    /// Whether the user has a policy that counts without being named.
    pub(crate) fn has_user_policy(&self) -> bool {
        self.config.join("policy.yaml").symlink_metadata().is_ok()
    }

    /// The directory of the user's own configuration.
    pub(crate) fn config_directory(&self) -> &Path {
        &self.config
    }

    /// Where the user names providers of models.
    pub(crate) fn providers_file(&self) -> PathBuf {
        self.config.join("providers.yaml")
    }

    /// The policy that `capsule init` wrote here or in the nearest folder above, as it would be named.
    fn policy_nearby(&self) -> Option<PathBuf> {
        let here = self.start_directory();
        let is_policy = |place: &PathBuf| {
            let text = read_text(place, limits::POLICY_BYTES, Code::PolicyUnreadable);
            text.is_ok_and(|text| matches!(is_layer(&text), Ok(false)))
        };
        let found =
            here.ancestors().map(|above| above.join(".capsule/policy.yaml")).find(is_policy)?;
        Some(found.strip_prefix(&self.cwd).map(Path::to_owned).unwrap_or(found))
    }

    /// Reads a policy and binds it to its workspace. `out` is a file that the run will write for
    /// itself (see [`CliContext::check_out_file`]), which no tool may reach.
    ///
    /// # Errors
    /// When there is none to decide by.
    pub(crate) fn load_policy(
        &self,
        policy: &PolicyArg,
        out: Option<&Path>,
    ) -> Result<BoundPolicy, Failure> {
        let out: Vec<PathBuf> = out.map(Path::to_owned).into_iter().collect();
        let user = self.config.join("policy.yaml");
        let source = self.policy_source(policy.policy.as_deref())?;
        let lookup = PolicyLoadOptions {
            source: &source,
            user_layer: &user,
            profile: policy.profile.as_deref(),
            workspace: self.workspace.as_deref(),
            cwd: &self.cwd,
            shell_cwd: self.shell_cwd.as_deref(),
            home: &self.home,
            own_files: &self.own_files(&out),
        };
        BoundPolicy::load(&lookup).map_err(|error| match error {
            PolicyLoadError::Problem(problem) => problem.into(),
            PolicyLoadError::Invalid(text, problems) => Failure::InvalidText(text, problems),
        })
    }

    /// The file that a run will be written out to, if one is named and may be: told before anything
    /// runs, since nobody wants to hear it afterwards.
    ///
    /// # Errors
    /// When something is there that would be lost.
    pub(crate) fn check_out_file(&self, out: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
        let Some(out) = out.map(|out| self.cwd.join(out)) else { return Ok(None) };
        capsule_store::check_target(&self.store, &out)?;
        Ok(Some(real_parent(&out)))
    }

    /// A variable of the user's environment.
    pub(crate) fn variable(name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }
}

/// A file that may not be there yet, in its folder as it really is.
fn real_parent(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|parent| parent.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}
