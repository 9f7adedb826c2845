//! The exit codes, as the help and the manual page list them.

/// What stands below the list of commands.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
    0  ok
    1  a tool failed
    2  bad usage, policy or plan
    3  denied by the policy
    4  an approval is needed and nobody is there, or nobody answered in time
    5  a replay diverged
    6  the record is not what was written
    7  a budget is used up
    8  the sandbox is missing, or weaker than required
   10  runtime error
  130  interrupted

Where several apply, the first of 130, 6, 8, 10, 5, 2, 3, 4, 7, 1 counts. `exec` ends with the
command's own status when the command ran.";

#[cfg(test)]
mod tests {
    use capsule_base::exit::Exit;

    use super::*;

    #[test]
    fn every_exit_code_is_listed() {
        for exit in [
            Exit::Ok,
            Exit::ToolFailed,
            Exit::BadUsage,
            Exit::Denied,
            Exit::ApprovalNeeded,
            Exit::ReplayDiverged,
            Exit::IntegrityFailed,
            Exit::BudgetUsedUp,
            Exit::SandboxBelowFloor,
            Exit::RuntimeError,
            Exit::Interrupted,
        ] {
            let code = exit.status().to_string();
            let is_listed =
                EXIT_CODES.lines().any(|line| line.split_whitespace().next() == Some(&code));
            assert!(is_listed, "{code}");
        }
    }
}
