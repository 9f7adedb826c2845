//! The layers over a policy: where they lie, how they are read, and what the record remembers of
//! them.
//!
//! The record of the runs is what pins them: each run says which layers it met, and the next one in
//! the same workspace is compared with that. What is there is out of reach of all tools, and cannot
//! be changed without a trace.

use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::diagnostic::Diagnostics;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_core::policy::LayerKind;
use capsule_policy::{SourceText, is_layer};
use capsule_workspace::Workspace;

use crate::policy_load_error::PolicyLoadError;
use crate::realpath::real_path;
use crate::source_text::read_text;

/// Where a workspace has its layer: at the place where `capsule init` writes a policy.
const WORKSPACE_LAYER_PATH: &str = ".capsule/policy.yaml";

/// Where the layer of a workspace lies.
#[must_use]
pub fn workspace_layer(workspace: &Path) -> PathBuf {
    workspace.join(WORKSPACE_LAYER_PATH)
}

/// A layer as it was read.
#[derive(Clone, Debug)]
pub struct LayerText {
    /// Whose it is.
    pub kind: LayerKind,
    /// Where it was read.
    pub path: PathBuf,
    /// Its text.
    pub text: SourceText,
    /// What its author probably did not mean.
    pub warnings: Diagnostics,
}

/// Reads the layers over a policy: the user's own, then the workspace's. What lies at their places
/// and is no layer is none; what cannot be read could be one, so that nothing is decided. The file of
/// the policy itself is a policy, whatever its place.
///
/// # Errors
/// When it cannot be told whether there is one.
pub(crate) fn read_layers(
    user: &Path,
    workspace: &Workspace,
    (policy, home): (Option<&Path>, &str),
) -> Result<Vec<LayerText>, PolicyLoadError> {
    let root = workspace.path().to_string_lossy().into_owned();
    let mut found = Vec::new();
    let mut add = |kind, path: PathBuf, text: String| {
        let name = display_path(kind, &path.to_string_lossy(), &root, home);
        let text = SourceText { name, text };
        match is_layer(&text.text) {
            Ok(true) => found.push(LayerText { kind, path, text, warnings: Vec::new() }),
            Ok(false) => {}
            Err(problem) => {
                let problem = problem.hint("it could be a layer, so that nothing is decided");
                return Err(PolicyLoadError::Invalid(text, vec![problem]));
            }
        }
        Ok(())
    };
    let is_policy = |path: &Path| policy == Some(real_path(path).as_path());
    if user.symlink_metadata().is_ok() && !is_policy(user) {
        let text = read_text(user, limits::POLICY_BYTES, Code::PolicyUnreadable)?;
        add(LayerKind::User, real_path(user), text)?;
    }
    let path = workspace_layer(workspace.path());
    if !is_policy(&path)
        && let Some(text) = workspace_text(workspace)?
    {
        add(LayerKind::Workspace, path, text)?;
    }
    Ok(found)
}

/// The text at the workspace's place.
fn workspace_text(workspace: &Workspace) -> Result<Option<String>, CodedError> {
    let failed = |why: String| {
        let message = format!("the workspace's `{WORKSPACE_LAYER_PATH}` cannot be read: {why}");
        CodedError::new(Code::PolicyUnreadable, message).with_suggestion(
            "it could be a layer, so that nothing is decided; see what stands there",
        )
    };
    let most = limits::POLICY_BYTES;
    let Some(bytes) = workspace.read_plain(WORKSPACE_LAYER_PATH, most).map_err(failed)? else {
        return Ok(None);
    };
    if bytes.len() > most {
        return Err(failed(format!("it has more than {most} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| failed("it is not UTF-8".into()))
}

/// How the place of a layer is shown: from the workspace, or from the home folder.
pub(crate) fn display_path(kind: LayerKind, path: &str, workspace: &str, home: &str) -> String {
    let (above, sign) = match kind {
        LayerKind::Workspace => (workspace, ""),
        LayerKind::User => (home, "~/"),
    };
    let inner = path.strip_prefix(above.trim_end_matches('/'));
    match inner.and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) => format!("{sign}{rest}"),
        None => path.to_owned(),
    }
}
