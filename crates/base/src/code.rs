//! Every code that a user can meet, in one table.
//!
//! A code is a readable slug that stays what it is for ever. The table says whose move it is, how a
//! run ends that met it, what it means, what usually causes it and what to do next. The command
//! `capsule explain-code`, the reference page and the exit status all come from here.

use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::exit::Exit;

/// Who has to act so that it goes better next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Responsible {
    /// Whoever asked: the call, the plan or the policy text is wrong.
    Caller,
    /// The policy's author: the policy rules it out.
    Policy,
    /// A person: they declined, or nobody was there.
    Person,
    /// The outside: a file, a program or a host did not do what was hoped.
    Environment,
    /// The machine's owner: something that the runtime needs is missing or broken.
    Machine,
    /// Us: a fault in this program.
    Capsule,
    /// Nobody: nothing went wrong.
    NoOne,
}

impl Responsible {
    /// Who that is, in words.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Caller => "whoever asked",
            Self::Policy => "the policy's author",
            Self::Person => "a person",
            Self::Environment => "the world outside",
            Self::Machine => "the machine's owner",
            Self::Capsule => "Capsule: a fault in this program",
            Self::NoOne => "nobody",
        }
    }
}

/// The three ways in which a call can fail, as models, users and reports see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// Ruled out by the policy or declined by a person; nothing was done.
    Denied,
    /// The tool could not do it.
    ToolError,
    /// The runtime could not do it.
    RuntimeError,
}

macro_rules! codes {
    ($( $variant:ident = $slug:literal, $whose:ident, $exit:ident,
        $meaning:literal, $cause:literal, $next:literal; )*) => {
        /// A code. See the module's table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $( #[doc = $meaning] $variant, )* }

        impl Code {
            /// Every code, in the table's order.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The stable name.
            #[must_use]
            pub const fn slug(self) -> &'static str {
                match self { $( Self::$variant => $slug, )* }
            }

            /// Whose move it is.
            #[must_use]
            pub const fn responsible(self) -> Responsible {
                match self { $( Self::$variant => Responsible::$whose, )* }
            }

            /// How a run ends that met this code and did not expect it.
            #[must_use]
            pub const fn exit(self) -> Exit {
                match self { $( Self::$variant => Exit::$exit, )* }
            }

            /// What the code means, in a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$variant => $meaning, )* }
            }

            /// What usually causes it.
            #[must_use]
            pub const fn cause(self) -> &'static str {
                match self { $( Self::$variant => $cause, )* }
            }

            /// What to do next.
            #[must_use]
            pub const fn next_step(self) -> &'static str {
                match self { $( Self::$variant => $next, )* }
            }
        }
    };
}

codes! {
    // ---- decisions -------------------------------------------------------------------------------
    Allowed = "policy.allowed", NoOne, Ok,
        "A rule of the policy allows the call.", "The rule that is named with it.",
        "Nothing: the call went on.";
    Asked = "policy.asked", Person, ApprovalNeeded,
        "The policy wants a person to approve the call.", "The rule says `ask`, or the profile does.",
        "Approve it where you are asked.";
    Never = "policy.never", Policy, Denied,
        "A `never` rule forbids the call; no profile, grant or approval lifts it.",
        "The call touches what the rule protects.",
        "Do without it, and tell the person what it was for.";
    BaseDenied = "policy.base-denied", Policy, Denied,
        "The built-in base policy denies this program.",
        "Network programs are denied while commands have no network.",
        "Let the person do it from the host; `http.get` fetches an address that the policy names.";
    NoRule = "policy.no-rule", Policy, Denied,
        "No rule of the policy names this, and what is not named is denied.",
        "The tool, program or subcommand is missing from the policy.",
        "Use what the policy names, or tell the person what is missing.";
    RuleDenied = "policy.denied", Policy, Denied,
        "The rule that matches says `deny`.", "The policy's author decided so.",
        "Do without it, or tell the person what it is for.";
    ProfileDenied = "profile.denied", Policy, Denied,
        "The profile denies what the call needs, whatever the rule says.",
        "A stricter profile than the rule was written for.",
        "Do without it, or tell the person what it is for.";
    RiskBlocked = "risk.blocked", Policy, Denied,
        "The call costs more, if it goes wrong, than the policy lets anybody approve.",
        "What it does cannot be brought back, or the program is not the one that is pinned.",
        "Let the person do it.";
    ToolUnknown = "tool.unknown", Caller, Denied,
        "There is no tool of that name.", "A spelling, or a tool that this build does not carry.",
        "Use a name as the reference lists it, for example `fs.read`.";
    HookInput = "hook.input", Caller, Denied,
        "A hook cannot read what the agent passes.",
        "An agent of another version, another event than the one before a call, or a text that is too long.",
        "Tell the user: `capsule connect` writes the settings of the agent anew, `capsule doctor` tries them.";
    HookUnjudged = "hook.unjudged", Caller, Denied,
        "A tool of the agent does what cannot be judged beforehand.",
        "It names no file, searches through a directory, or edits a text that is not in its file.",
        "Do it by a command, which runs confined, or by a tool that names one file.";
    HookDeadline = "hook.deadline", Environment, Denied,
        "A hook did not come to an answer in time.",
        "The agent did not finish its input, the machine is very busy, or another call holds the session.",
        "Make the same call again later.";
    ApprovalNeeded = "approval.needed", Person, ApprovalNeeded,
        "An approval was needed and nobody could be asked.",
        "The rule says `ask`, and this run has no person in front of it.",
        "Run it where a person can answer, or leave the step out.";
    ApprovalDenied = "approval.denied", Person, Denied,
        "A person said no.", "They saw the call and did not want it.",
        "Do without it, and go by what they said.";
    ApprovalStopped = "approval.stopped", Person, Denied,
        "A person said no, and ended the run.", "They saw the call and wanted nothing after it.",
        "Ask them what they want instead before a new run.";
    ApprovalExpired = "approval.expired", Person, ApprovalNeeded,
        "Nobody answered in time.", "The question waited, and its time was over.",
        "Submit the call again when somebody is there.";
    ApprovalWithdrawn = "approval.withdrawn", Person, ApprovalNeeded,
        "The question was put off or taken back, so the call did not run.",
        "Somebody pressed Esc, the run was interrupted, the screen went away, or the arguments were changed.",
        "Submit the call again if it is still wanted.";
    ApprovalWaiting = "approval.waiting", Person, ApprovalNeeded,
        "The call waits for an answer, and its run is suspended.",
        "The rule says `ask`, nobody answered, and the profile says `unattended: wait`.",
        "Answer with `capsule approvals answer`, then go on with `capsule resume`.";
    ApprovalNotWaiting = "approval.not-waiting", Caller, BadUsage,
        "No question waits under this name.",
        "The run came to its end, or the number is that of another call.",
        "`capsule approvals list` shows what waits.";
    ApprovalAnswered = "approval.answered", Caller, BadUsage,
        "The question was answered before.", "Somebody was quicker, or it was you.",
        "Go on with `capsule resume`, or take the answer back with `capsule grants revoke`.";
    ApprovalNotOffered = "approval.not-offered", Caller, BadUsage,
        "The card does not offer this.",
        "The policy offers other scopes, the call is asked each time, or something in it cannot be shown.",
        "Allow it once; `capsule approvals show` lists what is offered.";
    GrantUnknown = "grant.unknown", Caller, BadUsage,
        "No live grant has this name.", "It was used up, it ended, or its run is over.",
        "`capsule grants list` shows those that are alive.";
    ResumeChanged = "resume.changed", Caller, BadUsage,
        "The run cannot be resumed: something that it started with has changed.",
        "The plan, the policy, the workspace or the staged changes are not what they were.",
        "Put it back as it was, or run the plan anew.";
    ResumeAgain = "resume.again", Caller, BadUsage,
        "The run was already resumed.", "`capsule resume` was called twice.",
        "Look at the run that went on with it; `capsule show-run` names it.";
    ModelNotConfigured = "model.not-configured", Machine, BadUsage,
        "No model can be asked: none is configured, or its URL or key cannot be used.",
        "The variables that name a provider are not set.",
        "Set OPENAI_BASE_URL and OPENAI_API_KEY, or ANTHROPIC_API_KEY, or start Ollama, and name the model with `--model`.";
    ModelKeyRefused = "model.key-refused", Machine, BadUsage,
        "The model's server refused the key.", "The key is missing, wrong, or has no access to the model.",
        "Check the variable that holds the key.";
    ModelUnknown = "model.unknown", Machine, BadUsage,
        "The model's server has no such model, or nothing at that URL.",
        "The model's name or the base URL is wrong.",
        "Check `--model` and the base URL.";
    ModelRateLimited = "model.rate-limited", Environment, RuntimeError,
        "The model's server refused the request because there were too many.", "A limit of the account was reached.",
        "Wait, and give the task again.";
    ModelContextFull = "model.context-full", Environment, RuntimeError,
        "The conversation is longer than the model can read.",
        "Large results of calls, or a model with a small window.",
        "Give a smaller task, or use a model with a larger window.";
    ModelUnavailable = "model.unavailable", Environment, RuntimeError,
        "The model's server did not answer.", "It is not running, not reachable, or failed.",
        "Check that the server runs and that its URL is right.";
    ModelProtocol = "model.protocol", Environment, RuntimeError,
        "The model's server answered in a form that cannot be used.",
        "The stream was cut, or the server speaks another format than its URL says.",
        "Check the base URL; give the task again.";
    TaskLimit = "task.limit", Person, BudgetUsedUp,
        "A task came to one of its limits before the model was done.",
        "Too many requests, tokens or refusals, too much time, or the same call again and again.",
        "Look at what was done, and give a smaller task.";
    UserNoAnswer = "user.no-answer", Person, ToolFailed,
        "A question of the model has no answer.", "The user gave none, or no person can be asked here.",
        "Go on with the likeliest reading, and say in the end what was taken for granted.";
    AttachedUnfit = "user.attached-unfit", Person, ToolFailed,
        "A file that the user attached cannot be given to a model.",
        "The file is no text, is too large, or belongs to the record of Capsule.",
        "Attach a text of at most 200 KB.";
    SessionUnknown = "session.unknown", Caller, BadUsage,
        "No open session has this name.", "It ended, or the name is that of another run.",
        "`capsule session list` shows those that are open; `capsule session start` opens one.";
    SessionBusy = "session.busy", Environment, RuntimeError,
        "Another process works in the session.", "Its call takes longer than this one waits.",
        "Wait for its end, or use `--session none` for a run of its own.";
    SessionChanged = "session.changed", Caller, BadUsage,
        "The session was opened with another policy, profile, workspace or set of tools.",
        "One of them was changed since, or another one is named.",
        "End the session with `capsule session end`, or leave `--session` out.";
    ApprovalChangedAfter = "approval.changed-after", Environment, Denied,
        "What was judged is no longer what is there.",
        "The file or program was replaced between the decision and the run.",
        "Submit the call again; it will be judged afresh.";

    // ---- arguments -------------------------------------------------------------------------------
    ArgsInvalid = "args.invalid", Caller, ToolFailed,
        "The arguments do not fit the tool.", "A missing, unknown or wrongly typed argument.",
        "Compare the call with the tool's reference page.";
    ArgsDuplicateKey = "args.duplicate-key", Caller, ToolFailed,
        "The arguments name one key twice.",
        "Two values for one key: a policy and a tool could read different ones.",
        "Send each key once.";
    ArgsTooLarge = "args.too-large", Caller, ToolFailed,
        "The arguments are larger than a call may be.", "A whole file in one argument.",
        "Split the call, or write a file and name it.";
    ArgsTooDeep = "args.too-deep", Caller, ToolFailed,
        "The arguments are nested deeper than a call may be.", "Generated JSON.",
        "Flatten the arguments.";
    ArgsNumber = "args.number", Caller, ToolFailed,
        "A number cannot be represented exactly.", "An integer beyond 2^53.",
        "Send it as a string.";

    // ---- paths -----------------------------------------------------------------------------------
    PathOutside = "path.outside-workspace", Policy, Denied,
        "The path leads out of the workspace.",
        "An absolute path, `..` above the root, `~`, or a link that points outside.",
        "Name a path relative to the workspace.";
    PathInvalid = "path.invalid", Caller, Denied,
        "The path is not one that can be used.", "An empty path, a control character, or `..` behind a folder that a program would follow first.",
        "Name the file plainly.";
    PathTooLong = "path.too-long", Caller, Denied,
        "The path is longer than the system allows.", "A component over 255 bytes, or 4,096 in all.",
        "Shorten the path.";
    PathOrders = "path.orders-unknown", Environment, ToolFailed,
        "It cannot be told which files of the workspace the host takes orders from, so nothing is changed there.",
        "A configuration of git that cannot be read, very many protected links, or links to very large folders.",
        "Mend what the message names, or take it away; a program tells its user.";
    PathNotAllowed = "path.not-allowed", Policy, Denied,
        "The policy does not open this path to the tool.", "`paths.allow` does not cover it, or `paths.deny` does.",
        "Use a path that the policy allows.";
    PathHidden = "path.hidden", Policy, Denied,
        "The path is hidden, and the policy denies hidden files.",
        "A component that begins with a dot.",
        "Leave hidden files alone.";
    PathSymlink = "path.symlink", Policy, Denied,
        "The path goes through a symbolic link, and the policy denies links.",
        "`symlinks: deny`.", "Name the real path.";

    // ---- files -----------------------------------------------------------------------------------
    FileNotFound = "fs.not-found", Environment, ToolFailed,
        "There is nothing at that path.", "A spelling, or the file was never made.",
        "Check the spelling, and which names there are.";
    FileNotRegular = "fs.not-a-file", Environment, ToolFailed,
        "What is there is not a regular file.", "A folder, pipe, socket or device.",
        "A folder is listed; the others are not read.";
    FileNotFolder = "fs.not-a-folder", Environment, ToolFailed,
        "What is there is not a folder.", "A file was named where a folder is needed.",
        "Name the folder.";
    FilePermission = "fs.permission", Environment, ToolFailed,
        "The system does not let this user do that.", "File permissions.",
        "Ask the person to change the permissions.";
    FileExists = "fs.exists", Environment, ToolFailed,
        "The file is there already.", "`mode: create` never replaces a file.",
        "Use `mode: overwrite` or `append`.";
    FileUndoTooLarge = "fs.undo-too-large", Environment, ToolFailed,
        "What would be replaced or deleted is too large to be kept for an undo.",
        "Appending to a very large file, or one that grew after the call was judged.",
        "Write a new file instead, or let the person do it.";
    UndoUnkept = "undo.unkept", Machine, ToolFailed,
        "What the call changes could not be kept for an undo, so nothing was changed.",
        "A full disk beside the store, or more that is kept than there is room for.",
        "Make room where the store lies, and submit the call again.";
    FileSystem = "fs.system", Environment, ToolFailed,
        "The file system refused.", "A full or failing disk, or a file system without the feature.",
        "Read the message; it carries the system's own words.";

    FileNotEmpty = "fs.not-empty", Environment, ToolFailed,
        "The folder is not empty.", "`fs.delete` of a folder without `recursive`.",
        "If all of it is to go, say `recursive: true`.";
    FileTooMany = "fs.too-many-entries", Environment, ToolFailed,
        "The folder holds more entries than are deleted at once.",
        "A folder of build results or dependencies.",
        "Delete its parts one by one, or tell the user what to remove.";

    // ---- edits -----------------------------------------------------------------------------------
    EditNotFound = "edit.not-found", Environment, ToolFailed,
        "What was searched for is not in the file.",
        "The file was changed since it was read, or the text was written from memory.",
        "Read the file again, and copy the lines as they are.";
    EditAmbiguous = "edit.ambiguous", Environment, ToolFailed,
        "What was searched for is in the file more than once.", "A search that is too short.",
        "Search for more of the lines around it, or say with `count` how often it is expected.";
    EditCount = "edit.count", Environment, ToolFailed,
        "What was searched for is in the file more or less often than was expected.",
        "`count` is not how often it is there.",
        "Correct `count`, or search for more of the lines around it.";
    EditEmpty = "edit.empty", Caller, ToolFailed,
        "The edit searches for nothing.", "An empty `search`.",
        "Search for the lines beside which something is to be added, and repeat them in `replace`.";
    EditNoChange = "edit.no-change", Caller, ToolFailed,
        "The edit would leave the file as it is.",
        "`replace` says what is there already, or differs only in how the file ends.",
        "Leave the call out, or correct `replace`.";
    EditOmission = "edit.omission", Caller, ToolFailed,
        "A line of the new text is in place of text that was left out.",
        "`// ... existing code ...`, or a line like it.",
        "Write all of the new text, or replace only the lines that change.";
    EditTooLarge = "edit.too-large", Environment, ToolFailed,
        "The file is larger than an edit may be, or what is searched for takes too long to find.",
        "`limits.bytes_max`, or very many equal lines.",
        "Search for fewer lines, or raise the limit.";
    EditBinary = "edit.binary", Environment, ToolFailed,
        "The file is not text.", "A NUL byte, or bytes that no encoding explains.",
        "Write the whole file anew.";
    EditEncoding = "edit.encoding", Caller, ToolFailed,
        "The file's encoding cannot say the replacement.",
        "A character that Latin-1 does not have, in a file that is not UTF-8.",
        "Use characters that the file's encoding has.";
    EditMalformed = "edit.malformed", Caller, ToolFailed,
        "The `<edit>` block cannot be read for sure.",
        "A missing tag, or a tag of an edit within its own text.",
        "Put such text in `<![CDATA[`..`]]>`, or call `fs.edit` with JSON.";

    // ---- network ---------------------------------------------------------------------------------
    NetUrl = "net.url-invalid", Caller, Denied,
        "The URL cannot be parsed.", "A missing scheme or host.", "Write `https://host/path`.";
    NetScheme = "net.scheme", Policy, Denied,
        "Only http and https are fetched.", "`file:`, `ftp:`, `data:` and their like.",
        "Name an address that begins with `https://` or `http://`.";
    NetUserinfo = "net.userinfo", Policy, Denied,
        "The URL carries a user name or password.", "`https://user@host/`.",
        "Leave the credentials out.";
    NetNotAllowed = "net.not-allowed", Policy, Denied,
        "The policy does not name this address.",
        "`urls.allow`, or `sandbox.network.hosts` for commands, has no rule that covers it; the name was not looked up.",
        "Use an address that the policy names; its author can name others.";
    NetPrivate = "net.private-address", Policy, Denied,
        "The address is private, local or reserved.",
        "A name that resolves to loopback, link-local, private or metadata addresses.",
        "Use an address that is open to everybody; the policy's author names others: `private_ips: { allow: [10.0.0.0/8] }`.";
    NetHeader = "net.header", Policy, Denied,
        "The header may not be set by a call.", "`Host`, `Cookie`, `Authorization` and their like.",
        "Leave the header out.";
    MaskInContent = "redaction.mask-in-content", Caller, Denied,
        "A mask stands in what is to be written; the file would get it in place of its secret.",
        "The content was made from what was shown, where secrets are masked.",
        "Leave lines with masks out: `fs.edit` what stands around them. A policy with \
         `redaction: { returned_masks: resolve }` puts back what the same line of the file held.";
    SecretUnavailable = "secrets.unavailable", Machine, RuntimeError,
        "The value of a secret is not there, or cannot be one.",
        "Its variable is not set where the run began, has fewer than 8 characters, or holds something \
         else than printable ASCII.",
        "Set the variable before the run, and check its value.";
    NetRedirect = "net.redirect-denied", Policy, Denied,
        "A redirect leads where the policy does not.", "The server answered with another address.",
        "Ask for the final address if the policy names it.";
    NetServerName = "net.server-name", Policy, Denied,
        "A connection over TLS asked for another server than the host that was judged.",
        "A program reached one host and named another one inside of the tunnel.",
        "Ask for the host that the server is to be.";
    NetTooManyConnections = "net.too-many-connections", Policy, BudgetUsedUp,
        "The command holds as many connections at once, or made as many in all, as one may.",
        "A program that opens connections without end, or keeps them all open.",
        "Close connections before opening others, or do the work in several commands.";
    NetTooManyRedirects = "net.too-many-redirects", Environment, ToolFailed,
        "The server redirects more often than is followed.", "A redirect loop.",
        "Ask for the final address.";
    NetResolve = "net.resolve", Environment, ToolFailed,
        "The name could not be resolved.", "A spelling, or no network.", "Check the name.";
    NetConnect = "net.connect", Environment, ToolFailed,
        "The connection failed.", "Nobody listens there, or a firewall.", "Try again later.";
    NetProtocol = "net.protocol", Environment, ToolFailed,
        "The answer is not proper HTTP or TLS.", "A broken server or an unknown certificate.",
        "Check the address and the server's certificate.";
    NetTimeout = "net.timeout", Environment, ToolFailed,
        "The answer did not come in time.", "A slow server.", "Raise `limits.timeout`, or ask for less.";

    // ---- commands --------------------------------------------------------------------------------
    ExecNotAllowed = "exec.not-allowed", Policy, Denied,
        "The policy does not allow this program.", "`executables` does not name it.",
        "Use a program that the policy names.";
    ExecSubcommand = "exec.subcommand-denied", Policy, Denied,
        "The policy does not allow this subcommand.", "`subcommands` does not name it, or denies it, or it is not one that the program is known to have.",
        "Use a subcommand that the policy names.";
    ExecFlag = "exec.flag-denied", Policy, Denied,
        "The policy denies this flag.", "`flags` or `global_flags` denies it, or does not list it.",
        "Leave the flag out.";
    ExecFlagEffect = "exec.flag-effect", Policy, Denied,
        "The flag makes the program do more than its rule says, or it is not known what the flag does.",
        "An option such as `--ext-diff` or `--output` of git, or one that the program is not known to have.",
        "Leave the flag out.";
    ExecAmbiguous = "exec.ambiguous", Policy, Denied,
        "It cannot be told which word is the subcommand, or which files a word names.",
        "An option before the subcommand that is not known to take a value or not; a pathspec such as `:(icase)x`.",
        "Put the option behind the subcommand; name files plainly.";
    ExecToken = "exec.token-denied", Policy, Denied,
        "The policy denies this word.", "`denied_tokens` lists it.", "Leave the word out.";
    PathWorkspace = "path.whole-workspace", Policy, Denied,
        "The command would remove the whole workspace.",
        "`rm -rf .`, `rm -rf *`, or another command that names the workspace as what shall go.",
        "Name the files or the folder that shall go.";
    ExecForm = "exec.form-denied", Policy, Denied,
        "The policy takes commands as a list of words only.",
        "A call with `command`, under a policy without `form: command`.",
        "Send `argv`: the program and each argument as a word of its own.";
    ExecVariable = "exec.variable-denied", Policy, Denied,
        "The policy does not let a command line set this variable.",
        "`NAME=value program` or `env NAME=value program`, and `env.accept` does not list the name.",
        "Leave the variable out.";
    ExecArgv = "exec.argv-invalid", Caller, Denied,
        "The command line cannot be run.", "An empty argv, a NUL byte, or too many words.",
        "Send `argv` as a list of plain words.";
    ExecNotInLanguage = "exec.not-in-language", Caller, Denied,
        "The text holds something that is not of the command language, so nothing of it was run.",
        "A function, arithmetic, `eval`, a variable without a value, a group in the background, or an open quote.",
        "Write it as the suggestion says; the page `language` of the reference has every form.";
    ExecNotFound = "exec.not-found", Environment, ToolFailed,
        "The program is not installed where programs are looked for.",
        "It is missing, or lies outside the system's folders.",
        "Install it, or name its place with `path:` in the policy.";
    ExecNoNetwork = "exec.no-network", Policy, Denied,
        "The command would contact another computer, and commands have no network here.",
        "It fetches, sends or asks a service; the policy asks about such commands.",
        "Let the person run it on the host; `http.get` fetches an address that the policy names; packages that are \
         here already may do, by an option such as `--offline`, or a variable such as `GOPROXY=off`.";
    ExecFailed = "exec.exit-nonzero", Environment, ToolFailed,
        "The program ended with a status other than 0.", "It says so on its standard error.",
        "Read its output.";
    ExecSignal = "exec.killed", Environment, ToolFailed,
        "The program was ended by a signal.", "A crash, or a kernel limit.", "Read its output.";
    ExecTimeout = "exec.timeout", Environment, ToolFailed,
        "The program ran longer than it may and was ended with all it started.",
        "`limits.timeout`.", "Ask for less, or raise the limit.";
    ExecMemory = "exec.memory", Environment, ToolFailed,
        "The program used more memory than it may and was ended.", "`limits.memory`.",
        "Ask for less, or raise the limit.";
    ExecCancelled = "exec.cancelled", Person, Interrupted,
        "The call was cancelled.", "Ctrl+C, or the run ended.", "Run it again.";

    // ---- repositories and tests ------------------------------------------------------------------
    GitNone = "git.no-repository", Environment, ToolFailed,
        "The workspace is not the root of a repository.", "It has no folder `.git`.",
        "Look at the files themselves, or open the repository's root as the workspace.";
    GitElsewhere = "git.elsewhere", Environment, ToolFailed,
        "The repository lies somewhere else than in the workspace's own folder `.git`.",
        "A linked worktree or submodule that is to be changed, or a file that sends git to another folder.",
        "Open the main worktree as the workspace.";
    GitDrivers = "git.too-many-drivers", Environment, ToolFailed,
        "The repository's configuration is too large to be switched off entry by entry.",
        "Very many filters or remotes.", "Tell the user; the configuration is theirs.";
    GitFailed = "git.failed", Environment, ToolFailed,
        "Git could not answer.", "A broken repository, or one in a format that it does not know.",
        "Read the message, and tell the user.";
    TestFilter = "test.filter-denied", Policy, Denied,
        "The policy does not let a call pick tests.", "`test.run` has no `filter` in the policy.",
        "Run all tests: leave `filter` out.";

    // ---- changes of commands ---------------------------------------------------------------------
    ChangeRefused = "change.refused", Policy, Denied,
        "The command changed something that it may not change; nothing of it can be applied.",
        "A path that `writes` does not name, or that an invariant protects.",
        "Drop it with `capsule discard`, after a look at it with `capsule changes`; a person makes the change that is meant.";
    ChangeAsked = "change.asked", Person, ApprovalNeeded,
        "Programs of this machine may take orders from what was changed; a person says whether it is meant.",
        "A new hidden file at the root, a program where the shell looks for programs, instructions for agents.",
        "Look at `capsule changes RUN --diff`, then `capsule apply RUN --with PATH`, or `--without PATH` for the rest.";
    ChangeProtected = "change.protected", Policy, Denied,
        "Something that an invariant protects was made or changed in the workspace while a command ran; it is there.",
        "A command that changes the workspace itself, where nothing keeps a new name from being made; or somebody else who changed it meanwhile.",
        "Look at what stands there, and remove it if it is not meant. `sandbox.workspace: staged` keeps new names out.";
    ChangeTooMany = "change.too-many", Environment, ToolFailed,
        "The command changed more paths, or wrote more, than a run may stage.",
        "A build in the workspace, or a program that fills the disk.",
        "Change less at once, or raise `sandbox.changes` of the policy.";
    ChangeConflict = "change.conflict", Environment, ToolFailed,
        "The workspace is not what it was when the command ran.",
        "Somebody changed the same paths meanwhile.",
        "Discard the changes and run it again.";
    ChangeNone = "change.none", Caller, BadUsage,
        "The run has no staged changes.",
        "Its policy stages none, or they were applied or discarded before.",
        "`capsule changes` lists what waits in the workspace.";

    // ---- undoing ---------------------------------------------------------------------------------
    UndoNone = "undo.none", Caller, BadUsage,
        "There is nothing that could be undone.",
        "The run changed nothing in the workspace itself, or it is not known what it left.",
        "`capsule show-run RUN` says what the run did; staged changes are dropped by `capsule discard`.";
    UndoConflict = "undo.conflict", Environment, ToolFailed,
        "Something was changed since the call that is to be undone, so nothing was undone.",
        "A later call, a program or a person changed the same paths.",
        "Undo what came later first, or put the path back as the call left it.";
    UndoGone = "undo.gone", Environment, ToolFailed,
        "What stood there before is not kept any more.",
        "Only so much is kept, and the oldest is dropped first; or somebody removed it.",
        "Bring it back from version control or a backup.";
    UndoDamaged = "undo.damaged", Machine, IntegrityFailed,
        "What was kept for the undo is not what the record says, so nothing was undone.",
        "Somebody changed a file beside the store.",
        "Find out who can write there. Bring the file back from version control or a backup.";

    // ---- quotas ----------------------------------------------------------------------------------
    QuotaCalls = "quota.calls", Policy, BudgetUsedUp,
        "The tool has been called as often as this run may.", "`quota.calls`.",
        "Combine calls, or ask the person.";
    QuotaBytes = "quota.bytes", Policy, BudgetUsedUp,
        "The tool has moved as many bytes as this run may.", "`quota.bytes`.",
        "Ask for less, or ask the person.";
    QuotaWall = "quota.wall", Policy, BudgetUsedUp,
        "The tool has run as long as this run may.", "`quota.wall`.",
        "Ask for less, or ask the person.";
    QuotaPerHost = "quota.per-host", Policy, BudgetUsedUp,
        "The host has been asked as often as this run may.", "`quota.per_host`.",
        "Combine requests, or ask the person.";

    BudgetCalls = "budget.calls", Policy, BudgetUsedUp,
        "The run has made as many calls as it may.", "`budgets.run.calls`.",
        "Combine calls, or ask the person.";
    BudgetWall = "budget.wall", Policy, BudgetUsedUp,
        "The calls of the run have taken as long as they may.", "`budgets.run.wall`.",
        "Ask for less, or ask the person.";
    BudgetWritten = "budget.written", Policy, BudgetUsedUp,
        "The run would write more than it may.", "`budgets.run.written`.",
        "Write less, or ask the person.";
    BudgetFetched = "budget.fetched", Policy, BudgetUsedUp,
        "The run has fetched as much as it may.", "`budgets.run.fetched`.",
        "Fetch less, or ask the person.";
    BudgetLlmTokens = "budget.llm-tokens", Policy, BudgetUsedUp,
        "The model has read and written as many tokens as the run may use.", "`budgets.run.llm_tokens`.",
        "Begin another chat with a smaller task.";
    BudgetLlmCost = "budget.llm-cost", Policy, BudgetUsedUp,
        "The model has cost as much as the run may spend.", "`budgets.run.llm_cost_usd`.",
        "Begin another chat with a smaller task.";
    BudgetSameCall = "budget.same-call", Policy, BudgetUsedUp,
        "The same call was made as often as it may be.", "A loop; `budgets.loops.same_call`.",
        "Do something else: the same call will say the same.";
    BudgetDeniedInARow = "budget.denied-in-a-row", Policy, BudgetUsedUp,
        "So many calls were denied one after the other that the run ends.",
        "Trying another way to do what is denied; `budgets.loops.denied_in_a_row`.",
        "Read the first denial, and ask the person for what is needed.";
    BudgetDeniedTotal = "budget.denied-total", Policy, BudgetUsedUp,
        "So many calls were denied that the run ends.", "`budgets.loops.denied_total`.",
        "Read the denials, and ask the person for what is needed.";

    // ---- sandbox ---------------------------------------------------------------------------------
    SandboxBelowFloor = "sandbox.below-floor", Machine, SandboxBelowFloor,
        "The sandbox that this machine can give is weaker than the policy requires.",
        "User namespaces, Landlock or seccomp are missing.",
        "Run `capsule doctor`; it names the missing layer and how to get it.";
    ProfileRequires = "profile.requires", Machine, SandboxBelowFloor,
        "The profile wants more than this machine or the policy gives, so the run did not begin.",
        "`autonomous` without an enforced sandbox, or in a workspace that is neither staged nor a clean copy of a repository.",
        "Set `sandbox.workspace: staged`, commit and push what is open, run `capsule doctor`, or choose another profile.";
    SandboxFailed = "sandbox.failed", Machine, SandboxBelowFloor,
        "The sandbox could not be set up, so the command was not run.",
        "A kernel or container setting that forbids a step.",
        "Run `capsule doctor`; it names the step.";
    SandboxUnsupportedPlatform = "sandbox.unsupported-platform", Machine, SandboxBelowFloor,
        "Capsule has no sandbox for this system yet, so no command is run.",
        "Another system than Linux.",
        "Use tools that start no program, or run Capsule on Linux, for example in a virtual machine.";
    SandboxTooManyMasks = "sandbox.too-many-masks", Machine, SandboxBelowFloor,
        "More files must be hidden from commands than can be.",
        "A `never` pattern that matches thousands of files.",
        "Narrow the pattern to the folder that holds them.";

    // ---- plans and policies as text --------------------------------------------------------------
    PolicyMissing = "policy.missing", Caller, BadUsage,
        "There is no policy file at that place.", "A spelling, or no `--policy`.",
        "Name one with `--policy`, or write a starter with `capsule init`.";
    PolicyUnreadable = "policy.unreadable", Caller, BadUsage,
        "The policy file cannot be read.", "Permissions, a folder, a special file or its size.",
        "Make it a regular file that you can read.";
    PolicyEmpty = "policy.empty", Caller, BadUsage,
        "The policy file is empty; everything is denied.", "A file with comments only.",
        "Start from `version: 1` and `tools:`.";
    PolicyVersion = "policy.unknown-version", Caller, BadUsage,
        "This build does not know that version of the policy language.", "A newer policy, or none named.",
        "Write `version: 1`.";
    PolicySyntax = "policy.syntax", Caller, BadUsage,
        "The policy is not proper YAML.", "Indentation, a tab or an open quote.",
        "Look at the marked place.";
    PolicyYaml = "policy.yaml-feature", Caller, BadUsage,
        "Policies use plain YAML only.", "A tag, an anchor, an alias or a merge key.",
        "Write the value out.";
    PolicyDuplicateKey = "policy.duplicate-key", Caller, BadUsage,
        "A key stands twice.", "Two values for one key: only one of them could count.",
        "Keep one of them.";
    PolicyUnknownKey = "policy.unknown-key", Caller, BadUsage,
        "The policy language has no such key there.", "A spelling, or the key belongs elsewhere.",
        "Look at the suggestion beside the marked place.";
    PolicyNotYetSupported = "policy.not-yet-supported", Caller, BadUsage,
        "This build does not enforce that key yet, so it refuses it.",
        "A policy written for a later version.", "Remove the key until a build enforces it.";
    PolicyMissingKey = "policy.missing-key", Caller, BadUsage,
        "A key that is needed is not there.", "It was forgotten.", "Add the key.";
    PolicyType = "policy.wrong-type", Caller, BadUsage,
        "The value is of another kind than the key wants.", "A list for a map, a word for a number.",
        "Look at the marked place.";
    PolicyValue = "policy.unknown-value", Caller, BadUsage,
        "The value is not one that the key knows.", "A spelling.",
        "Use one of the values that are listed beside the marked place.";
    PolicyUnit = "policy.unit", Caller, BadUsage,
        "A size or a duration needs a number with its unit.", "`10` for `10s`, or `50k` for `50KB`.",
        "Write for example `50KB`, `1MiB`, `500ms`, `10s`, `5m`.";
    PolicyLift = "policy.lift-not-yours", Caller, BadUsage,
        "The policy drops a rule of the base policy, and lies in the workspace.",
        "`lift:` in a file that came with the workspace.",
        "Leave `lift:` out of a file that comes with a workspace.";
    PolicyToolchain = "policy.toolchain", Caller, BadUsage,
        "A policy names a toolchain that cannot be shown to commands.",
        "A directory that others may change, that holds credentials, the home directory or the workspace, or a name that is not known.",
        "Name a known toolchain (`capsule doctor` lists those that are there), or a directory that only you may change.";
    PolicyLayer = "policy.layer", Caller, BadUsage,
        "A layer stands where a policy is needed, or says what no layer may say.",
        "`layer:` in a file that `--policy` names, or `lift:` in a layer.",
        "Name the policy that the layer tightens; leave out of the layer what tightens nothing.";
    PolicyWeaker = "policy.layer-weaker", Caller, BadUsage,
        "The workspace's layer is gone, or says less than when a run met it last.",
        "Another branch, a pulled change, or somebody who wants less to be denied.",
        "Look at what is gone; if it is meant, say so once with `--accept-layer`.";
    PolicyMilder = "policy.milder-profile", Caller, BadUsage,
        "The command line chooses a built-in profile that is milder than the policy's own.",
        "`--profile autonomous` over a policy that is supervised.",
        "Choose a profile that the policy defines, or a stricter one.";
    PolicyProfile = "policy.unknown-profile", Caller, BadUsage,
        "The policy has no such profile, and none of that name is built in.", "A spelling.",
        "Use one of the profiles that are listed beside it.";
    PolicyGlob = "policy.glob", Caller, BadUsage,
        "The pattern is not one that can be matched.", "An open bracket, braces, or `..`.",
        "Write patterns relative to the workspace with `*`, `?`, `[a-z]` and `**`.";
    PolicyUrl = "policy.url", Caller, BadUsage,
        "The URL pattern is not one that can be matched.", "A missing scheme, or a wildcard inside a name.",
        "Write for example `https://*.example.org/docs/**`.";
    PolicyRegex = "policy.regex", Caller, BadUsage,
        "The regular expression cannot be compiled.", "An open group or class.",
        "Look at the marked place.";
    PolicyEnv = "policy.env-dangerous", Caller, BadUsage,
        "The variable changes which code a program runs, so it is never passed on.",
        "`LD_PRELOAD`, `GIT_*`, `NODE_OPTIONS` and their like.", "Remove the name.";
    PolicyTest = "policy.test-failed", Caller, BadUsage,
        "A test of the policy is decided otherwise than it says.",
        "The rule or the test is wrong.", "Ask `capsule policy explain` which check decided.";
    PolicyExample = "policy.example-failed", Caller, BadUsage,
        "An example of the policy is decided otherwise than it says.",
        "The rule or the example is wrong.", "Ask `capsule policy explain` which check decided.";
    PolicyMutant = "policy.mutant-survived", Caller, BadUsage,
        "A rule of the policy can be another one, and no example or test notices.",
        "A rule without an example, or one that decides nothing.",
        "Add an example or a test that this rule decides, or leave the rule out.";
    PolicyInUse = "policy.in-use", Caller, BadUsage,
        "The policy file is not written now.",
        "A run goes on under it, somebody changed it meanwhile, or a confined process asks for it.",
        "Wait for the run's end and try again, or take the patch with `-o` and apply it yourself.";
    PolicyLint = "policy.lint", Caller, Ok,
        "The policy says something that its author probably did not mean.",
        "An unreachable rule, two rules that overlap, or an interpreter that is allowed.",
        "Read the note; the policy works as written.";
    PlanUnreadable = "plan.unreadable", Caller, BadUsage,
        "The plan file cannot be read.", "A spelling, permissions or its size.",
        "Name a regular file that you can read.";
    PlanSyntax = "plan.syntax", Caller, BadUsage,
        "The plan is not proper YAML.", "Indentation, a tab or an open quote.",
        "Look at the marked place.";
    PlanYaml = "plan.yaml-feature", Caller, BadUsage,
        "Plans use plain YAML only.", "A tag, an anchor, an alias or a merge key.",
        "Write the value out.";
    PlanDuplicateKey = "plan.duplicate-key", Caller, BadUsage,
        "A key stands twice.", "Two values for one key.", "Keep one of them.";
    PlanVersion = "plan.unknown-version", Caller, BadUsage,
        "This build does not know that version of the plan language.", "A newer plan.",
        "Write `version: 1`.";
    PlanUnknownKey = "plan.unknown-key", Caller, BadUsage,
        "The plan language has no such key there.", "A spelling, or the key belongs elsewhere.",
        "Look at the suggestion beside the marked place.";
    PlanMissingKey = "plan.missing-key", Caller, BadUsage,
        "A key that is needed is not there.", "It was forgotten.", "Add the key.";
    PlanType = "plan.wrong-type", Caller, BadUsage,
        "The value is of another kind than the key wants.", "A list for a map, a word for a number.",
        "Look at the marked place.";
    PlanValue = "plan.unknown-value", Caller, BadUsage,
        "The value is not one that the key knows.", "A spelling.",
        "Use one of the values that are listed beside the marked place.";
    PlanUnit = "plan.unit", Caller, BadUsage,
        "A size or a duration needs a number with its unit.", "`10` for `10s`.",
        "Write for example `64KiB`, `500ms`, `10s`.";
    PlanTool = "plan.unknown-tool", Caller, BadUsage,
        "The step names a tool that there is not.", "A spelling.",
        "Use the tool that is suggested.";
    PlanArgument = "plan.argument", Caller, BadUsage,
        "The step's arguments do not fit its tool.", "A missing, unknown or wrongly typed argument.",
        "Compare the step with the tool's reference page.";
    PlanFunction = "plan.function", Caller, BadUsage,
        "The `$`-function is not used as it can be.", "A spelling, or a function in the wrong place.",
        "Use `$ref`, `$concat`, `$url`, `$template`, `$lines`, `$default`, `$not_empty` or `$spread`.";
    PlanRef = "plan.ref-unknown", Caller, BadUsage,
        "The reference leads nowhere.", "A step that comes later, a skipped step, or a field that its tool does not have.",
        "Refer to an earlier step and a field of its result.";
    PlanRefTruncated = "plan.ref-truncated", Caller, ToolFailed,
        "The reference leads to text that was cut.", "The output was longer than its limit.",
        "Raise the limit, or ask for less.";
    PlanEvaluation = "plan.evaluation", Caller, ToolFailed,
        "The step's arguments could not be made.", "A value of another kind than the place wants.",
        "Look at the step and the values it refers to.";
    PlanInput = "plan.input", Caller, BadUsage,
        "An input is missing or does not fit.", "`--input` was not given, or has another form.",
        "Give it as `--input name=value`.";
    PlanStep = "plan.step", Caller, BadUsage,
        "The steps do not fit together.", "Two steps with one id, or a step that needs a later one.",
        "Look at the marked place.";
    PlanExpectation = "plan.expectation", Environment, ToolFailed,
        "The step did not give what the plan expects.", "The world is not as the plan's author thought.",
        "Compare the result with `expect`.";

    // ---- runs, records, replay -------------------------------------------------------------------
    Usage = "usage", Caller, BadUsage,
        "The command line is not one that this program knows.", "A spelling.",
        "See `capsule help`.";
    WorkspaceRefused = "workspace.refused", Caller, BadUsage,
        "This folder is not taken as a workspace unless it is named.",
        "The home folder or `/` would give tools everything.",
        "Name the folder you mean with `--workspace`.";
    WorkspaceMissing = "workspace.missing", Caller, BadUsage,
        "The workspace is not a folder that can be opened.", "A spelling.", "Name an existing folder.";
    RunUnknown = "run.unknown", Caller, BadUsage,
        "The store holds no such run.", "A spelling, or another store.",
        "See `capsule list-runs`.";
    RunAmbiguous = "run.ambiguous", Caller, BadUsage,
        "More than one run begins so.", "The prefix is too short.", "Write one character more.";
    StoreOpen = "store.open", Machine, RuntimeError,
        "The store cannot be opened.", "Permissions, a full disk, or another program's file.",
        "Read the message; `capsule doctor` checks the store.";
    StoreVersion = "store.unknown-version", Machine, RuntimeError,
        "The store was written by a newer version.", "An older program on a newer store.",
        "Use the newer program.";
    StoreWrite = "store.write", Machine, RuntimeError,
        "The record could not be written, so nothing more is run.",
        "A full or failing disk, a store that is read-only, or another process that has it locked.",
        "Read the message: it says which of these it is, and what to do.";
    Integrity = "store.integrity", Machine, IntegrityFailed,
        "The record is not what was written.", "A changed, missing or added row or payload.",
        "Keep the file as it is, and compare it with a copy.";
    AuditNoKey = "audit.no-key", Machine, BadUsage,
        "What should be signed cannot be: there is no key next to the store.",
        "A policy with `audit.checkpoint` or `audit.anchors`, on a machine where nobody made a key.",
        "Make one with `capsule init`; it prints the public line that others verify with.";
    AuditKey = "audit.key", Machine, RuntimeError,
        "The key beside the store is there and cannot be used, so nothing was run.",
        "A changed file, or rights that others have to it.",
        "Read the message. If nobody else has read the key, `chmod 600` its file; else put it away, and \
         `capsule init` makes another.";
    AuditAnchor = "audit.anchor", Machine, RuntimeError,
        "An anchor could not be written or read.",
        "A folder that nobody may write to, a full disk, or a file that holds something else.",
        "Read the message; name another file in `audit.anchors`, or put this one away.";
    AuditNeeded = "audit.needed", Caller, BadUsage,
        "The run is still needed, so nothing of it was erased.",
        "It goes on, waits for an answer, or has changes that nobody applied or discarded.",
        "Bring it to its end first.";
    ReplayDiverged = "replay.diverged", Caller, ReplayDiverged,
        "The replay met something that is not in its recording.",
        "The plan, its arguments or their order changed.",
        "Read the cause; run the plan anew if the change is meant.";
    ReplayIncomplete = "replay.incomplete", Caller, ReplayDiverged,
        "The recording does not hold everything that a replay needs.",
        "A run that crashed, or payloads that were not kept.",
        "Only a sealed run with `audit.payloads: full` can be replayed.";
    EnginePanicked = "engine.panicked", Capsule, RuntimeError,
        "A tool of ours failed in a way it must not.", "A fault in this program.",
        "Please report it with the output of `capsule doctor`.";
    EngineFault = "engine.fault", Capsule, RuntimeError,
        "The runtime met a state that it must not be in.", "A fault in this program.",
        "Please report it with the output of `capsule doctor`.";
}

impl Code {
    /// The code with this slug.
    #[must_use]
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.slug() == slug)
    }

    /// Whether the budget of the whole run is used up, so that nothing more may be done in it.
    #[must_use]
    pub const fn is_budget(self) -> bool {
        matches!(
            self,
            Self::BudgetCalls
                | Self::BudgetWall
                | Self::BudgetWritten
                | Self::BudgetFetched
                | Self::BudgetLlmTokens
                | Self::BudgetLlmCost
                | Self::BudgetSameCall
                | Self::BudgetDeniedInARow
                | Self::BudgetDeniedTotal
        )
    }

    /// The class in which users and models see it.
    #[must_use]
    pub const fn class(self) -> FailureClass {
        match (self.responsible(), self.exit()) {
            (_, Exit::Denied | Exit::ApprovalNeeded | Exit::BudgetUsedUp) => FailureClass::Denied,
            (Responsible::Machine | Responsible::Capsule, _) => FailureClass::RuntimeError,
            _ => FailureClass::ToolError,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.slug())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Slug;
        impl de::Visitor<'_> for Slug {
            type Value = Code;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the slug of a code")
            }
            fn visit_str<E: de::Error>(self, slug: &str) -> Result<Code, E> {
                Code::from_slug(slug).ok_or_else(|| E::custom("unknown code"))
            }
        }
        deserializer.deserialize_str(Slug)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    #[test]
    fn slugs_are_unique_and_readable() {
        let mut seen = BTreeSet::new();
        for code in Code::ALL {
            let slug = code.slug();
            assert!(seen.insert(slug), "{slug} stands twice");
            assert!(
                slug.bytes().all(|b| b.is_ascii_lowercase() || b == b'-' || b == b'.'),
                "{slug} is not a readable slug"
            );
            assert_eq!(Code::from_slug(slug), Some(*code));
        }
    }

    /// A denial never advises to open more: its next step is what the model is told.
    #[test]
    fn no_denial_advises_to_open_more() {
        const OPENING: [&str; 12] = [
            "widen",
            "raise",
            "let the policy",
            "under `",
            "`path:`",
            "change the rule",
            "add the",
            "add a",
            "--profile",
            "decision `allow`",
            "set `",
            "in the policy",
        ];
        for code in Code::ALL.iter().filter(|code| code.class() == FailureClass::Denied) {
            let step = code.next_step().to_lowercase();
            let advice = OPENING.iter().find(|words| step.contains(*words));
            assert_eq!(advice, None, "{code}: {step}");
        }
    }

    #[test]
    fn every_text_is_a_sentence() {
        for code in Code::ALL {
            for text in [code.meaning(), code.cause(), code.next_step()] {
                assert!(text.ends_with('.'), "{code}: {text}");
            }
        }
    }

    #[test]
    fn a_denial_ends_a_run_as_a_denial() {
        assert_eq!(Code::PathOutside.class(), FailureClass::Denied);
        assert_eq!(Code::FileNotFound.class(), FailureClass::ToolError);
        assert_eq!(Code::SandboxBelowFloor.class(), FailureClass::RuntimeError);
        assert_eq!(Code::QuotaCalls.class(), FailureClass::Denied);
    }
}
