//! What to do instead of a command with an effect, where no tool of ours does it.

use capsule_command::specs::Effect;

/// Words for the model.
pub(super) const fn instead_of(effect: Effect) -> &'static str {
    match effect {
        Effect::Reads | Effect::Opens => "tell the user which file, and what for",
        Effect::Writes => {
            "`fs.edit` or `fs.write` would do it, and the policy opens neither: tell the user what to change"
        }
        Effect::Deletes => "name what is to be deleted, and let the user decide",
        Effect::Runs => "run the project's own tests or build by their usual command",
        Effect::Starts => "leave the option out; the program does its own work without it",
        Effect::Code => "write the program to a file of the project, and run that",
        Effect::Interactive => "use a command that asks nothing and ends by itself",
        Effect::Network => "ask the user to fetch it",
        Effect::Publishes | Effect::Sends => "say what is ready; the user sends it from the host",
        Effect::System => "tell the user what has to be changed on the machine, and why",
        Effect::Destroys => "tell the user what would be lost, and let them do it",
        Effect::Secrets => "ask the user for the one value that is needed",
        Effect::Shell => "run the program itself; pipelines and lists need no shell",
        Effect::Unknown => "use a program and options that are known",
        Effect::Plumbing => "change the files, and let `git add` and `git commit` record them",
    }
}
