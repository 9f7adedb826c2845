//! `user.attach`: gives a model a file that the user chose, from wherever it is. It is behind a person's own command and
//! in no catalogue: no plan, no policy and no model can name it. A policy denies it by its capability.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use capsule_base::code::Code;
use capsule_base::digest::Digest;
use capsule_base::units::show_size;
use capsule_core::action::{Action, Facts};
use capsule_core::capability::Capability;
use capsule_core::journal::{HEADER_BYTES, is_store};
use capsule_core::lifecycle::{Operation, Permit};
use capsule_core::outcome::{CodedError, Outcome, Output};
use capsule_core::policy::{ATTACH_TOOL, Restrictions};
use capsule_core::tool::{ArgumentKind, ResultField, ToolArgument, ToolShape, ToolSignature};
use capsule_workspace::store_names;
use rustix::fs::OFlags;
use serde_json::{Map, Value};

use crate::fault::{wrong_action_problem, wrong_permit_outcome};
use crate::tool::args::{invalid_args, text_arg};
use crate::tool::prepare::FailedOperation;
use crate::tool::{DescribeContext, PreparedCall, Tool, ToolContext};

/// What `user.attach` is called, takes and gives. Not one of the tools that the reference lists.
static USER_ONLY_SIGNATURE: ToolSignature = ToolSignature {
    id: ATTACH_TOOL,
    model_name: "user_attach",
    aliases: &[],
    about: "Gives a model a file that the user chose.",
    shape: ToolShape::User,
    capabilities: &[Capability::DataUser],
    arguments: &[ToolArgument {
        name: "file",
        kind: ArgumentKind::Text,
        required: true,
        about: "the file, as an absolute path of the host",
    }],
    results: &[
        ResultField { name: "file", about: "the file" },
        ResultField { name: "text", about: "its text" },
        ResultField { name: "sha256", about: "the digest of its bytes" },
        ResultField { name: "bytes_total", about: "its size" },
    ],
};

/// Attaches a file.
#[derive(Clone, Copy, Debug)]
pub struct UserAttach;

impl Tool for UserAttach {
    fn signature(&self) -> &'static ToolSignature {
        &USER_ONLY_SIGNATURE
    }

    fn describe(
        &self,
        args: &Map<String, Value>,
        _: &DescribeContext<'_>,
    ) -> Result<Action, CodedError> {
        let file = text_arg(args, "file").unwrap_or_default();
        if !file.starts_with('/') {
            return Err(invalid_args("`file` is no absolute path"));
        }
        Ok(Action::Attach { file: file.to_owned() })
    }

    fn prepare(&self, action: &Action, _: &Value, context: &ToolContext<'_>) -> PreparedCall {
        let operation: Box<dyn Operation> = match action {
            Action::Attach { file } => {
                match open_file(Path::new(file), context.host.store_path()) {
                    Ok(opened) => Box::new(AttachOperation { file: file.clone(), opened }),
                    Err(problem) => Box::new(FailedOperation(problem)),
                }
            }
            _ => Box::new(FailedOperation(wrong_action_problem())),
        };
        PreparedCall { facts: Facts::default(), operation }
    }
}

/// Opens the file, without waiting where it is no file at all.
fn open_file(path: &Path, store: &Path) -> Result<File, CodedError> {
    let problem = |error: io::Error| {
        let shown = path.display();
        let (code, message) = match error.kind() {
            io::ErrorKind::NotFound => (Code::FileNotFound, format!("`{shown}` is not there")),
            io::ErrorKind::PermissionDenied => {
                (Code::FilePermission, format!("`{shown}`: {error}"))
            }
            _ => (Code::FileSystem, format!("`{shown}`: {error}")),
        };
        CodedError::new(code, message)
    };
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let real = path.canonicalize().map_err(problem)?;
    let opened = File::options().read(true).custom_flags(flags).open(&real).map_err(problem)?;
    if !opened.metadata().map_err(problem)?.is_file() {
        let message = format!("`{}` is no file", path.display());
        return Err(CodedError::new(Code::FileNotRegular, message));
    }
    match belongs_to_a_store(&real, store) {
        true => Err(unfit(path, "belongs to the record of Capsule")),
        false => Ok(opened),
    }
}

fn unfit(path: &Path, why: &str) -> CodedError {
    let message = format!("`{}` {why}", path.display());
    CodedError::new(Code::AttachedUnfit, message).with_suggestion(Code::AttachedUnfit.next_step())
}

/// Whether a file is a store, or is beside one or in a directory beside one by its name: keys, undo records and staged
/// files among them.
fn belongs_to_a_store(real: &Path, store: &Path) -> bool {
    let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let is_store_file = |path: &Path| {
        let mut header = [0; HEADER_BYTES];
        let is_file = path.metadata().is_ok_and(|found| found.is_file());
        let read =
            is_file && File::open(path).and_then(|mut file| file.read_exact(&mut header)).is_ok();
        path == store || (read && is_store(&header))
    };
    let is_beside = |path: &Path| {
        let name = path.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        let stores =
            store_names(name).map(|name| path.with_file_name(std::ffi::OsStr::from_bytes(name)));
        stores.collect::<Vec<PathBuf>>().iter().any(|store| is_store_file(store))
    };
    is_store_file(real) || real.ancestors().any(is_beside)
}

struct AttachOperation {
    file: String,
    opened: File,
}

impl Operation for AttachOperation {
    fn run(self: Box<Self>, permit: Permit<'_>) -> Outcome {
        let Restrictions::Read { bytes: most, .. } = *permit.restrictions() else {
            return wrong_permit_outcome();
        };
        let Self { file, opened } = *self;
        let path = Path::new(&file);
        let mut bytes = Vec::new();
        if let Err(error) = opened.take(most.saturating_add(1)).read_to_end(&mut bytes) {
            let message = format!("`{file}`: {error}");
            return Outcome::failed(CodedError::new(Code::FileSystem, message));
        }
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > most {
            let why =
                format!("has more than {}, which is the most of an attached file", show_size(most));
            return Outcome::failed(unfit(path, &why));
        }
        if std::str::from_utf8(&bytes).is_err() || bytes.contains(&0) {
            return Outcome::failed(unfit(path, "is no text in UTF-8"));
        }
        let digest = Digest::of(&bytes).to_string();
        let output = Output::default().with("file", file).with_bytes("text", "base64", bytes);
        Outcome::done(output.with("sha256", digest).with("bytes_total", size))
    }
}
