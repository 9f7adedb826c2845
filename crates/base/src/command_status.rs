//! The exit status of a process that stands for one command.

use serde_json::Value;

use crate::code::Code;
use crate::exit::Exit;

impl Exit {
    /// The status of a process that stands for one command, in a run that ended so: the command's own where
    /// it ran to its end, as a shell gives it, and nothing went wrong around it. `code` says what came of
    /// the command, `result` what it gave.
    #[must_use]
    pub fn of_command(self, code: Code, result: Option<&Value>) -> u8 {
        let field = |name| result.and_then(|result| result.get(name)?.as_u64());
        let number = match code {
            _ if self <= Self::RuntimeError => None,
            Code::ExecFailed | Code::Allowed => field("exit_code"),
            Code::ExecSignal => field("signal").map(|signal| 128 + signal),
            _ => None,
        };
        number.and_then(|number| u8::try_from(number).ok()).unwrap_or_else(|| self.status())
    }
}
