//! The certificate authorities that the user trusts besides those of the machine.

use std::path::PathBuf;

use capsule_sandbox::{Executor, SandboxBackend as _};

use crate::host::ToolHost;

/// Variables that name a file of certificate authorities, where the user trusts others than the machine does: those of
/// OpenSSL, Node, curl, Python's requests, pip, Cargo, git and npm.
const CERTIFICATE_VARIABLES: [&str; 8] = [
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "GIT_SSL_CAINFO",
    "npm_config_cafile",
];

/// The files of certificate authorities that the user's variables name, each with its variable. What lies in a directory
/// that commands have for themselves cannot be shown.
pub(super) fn certificate_files(host: &dyn ToolHost) -> Vec<(&'static str, PathBuf)> {
    let file = |name| {
        let path = PathBuf::from(host.variable(name)?).canonicalize().ok()?;
        let is_shown = path.is_file() && Executor::private_directory(&path).is_none();
        is_shown.then_some((name, path))
    };
    CERTIFICATE_VARIABLES.into_iter().filter_map(file).collect()
}
