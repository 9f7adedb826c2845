//! Every limit of the runtime, with its name and its reason.
//!
//! Bounds are decimal (50 KB is 50,000 bytes) as the requirements write them. A policy may lower a
//! bound, and may raise a default up to the ceiling that stands beside it; nothing raises a ceiling.

use core::time::Duration;

// ---- texts that come in -------------------------------------------------------------------------

/// The largest policy file. A thousand rules take 200 KB.
pub const POLICY_BYTES: usize = 1_000_000;
/// The largest plan file.
pub const PLAN_BYTES: usize = 1_000_000;
/// How deep YAML may nest. The deepest policy key lies nine levels down.
pub const YAML_DEPTH: usize = 32;
/// How many values a YAML file may hold; stops a file that is small on disk and huge in memory.
pub const YAML_NODES: usize = 100_000;
/// How many problems of one file are reported before the reader stops.
pub const DIAGNOSTICS: usize = 50;
/// The largest arguments of a call, as JSON. Holds the largest `fs.write` in base64.
pub const ARGUMENT_BYTES: usize = 4_000_000;
/// How many characters of an argument a message quotes.
pub const QUOTED_CHARS: usize = 200;
/// How deep JSON arguments may nest.
pub const ARGUMENT_DEPTH: usize = 64;
/// The largest integer that every JSON reader keeps exact: 2^53 (RFC 8259, section 6).
pub const EXACT_INTEGER: u64 = 1 << 53;
/// The most steps of a plan.
pub const PLAN_STEPS: usize = 10_000;
/// The largest text that a plan's `$template` or `$concat` may make.
pub const PLAN_TEXT_BYTES: usize = 4_000_000;
/// The largest list or map that a plan may make of results, and the most that its outputs may hold
/// together.
pub const PLAN_VALUE_BYTES: usize = 64_000_000;
/// The most retries of a step.
pub const PLAN_RETRIES: u64 = 10;
/// The longest pause between two retries.
pub const PLAN_BACKOFF: Duration = Duration::from_secs(300);
/// The most digits of a number with a unit; more cannot be a size that anyone means.
pub const UNIT_DIGITS: usize = 15;
/// The longest duration: a hundred years. A time so far from now is still a number that JSON has exactly.
pub const LONGEST_DURATION: Duration = Duration::from_secs(100 * 365 * 86_400);
/// The most slips of its author that are tried on a policy, each of which is a policy of its own.
pub const POLICY_MUTANTS: usize = 2_000;
/// How many of the last runs under a policy are asked which of its rules they needed.
pub const POLICY_RUNS: usize = 20;
/// How few of them say nothing about that.
pub const POLICY_RUNS_MIN: usize = 5;
/// The most rules that are learned at once; a person reads each.
pub const LEARNED_RULES: usize = 50;
/// The longest glob, and the most components of one.
pub const GLOB_BYTES: usize = 1_024;
/// The largest compiled regular expression of a policy, in bytes.
pub const REGEX_BYTES: usize = 1 << 20;

/// The most events between two checkpoints that a policy may ask for.
pub const CHECKPOINT_EVERY: u64 = 1_000_000;
/// The most anchors of a policy; each is written to, and waited for, at every checkpoint.
pub const ANCHORS: usize = 8;
/// The longest that payloads are kept where a policy has them erased: a hundred years, in seconds.
pub const RETENTION_SECONDS: u64 = 100 * 365 * 86_400;
/// The largest signed note that is read. The format wants room for 16 signatures at least.
pub const NOTE_BYTES: usize = 100_000;
/// The longest name of a log.
pub const ORIGIN_BYTES: usize = 100;
/// The largest file of public keys.
pub const KEY_FILE_BYTES: usize = 100_000;
/// The largest anchor file: some 300,000 checkpoints. Then it is to be put away.
pub const ANCHOR_FILE_BYTES: usize = 64_000_000;

// ---- names --------------------------------------------------------------------------------------

/// The longest name of a plan, a step, a policy or a profile, in characters. It stands in lists and in events.
pub const NAME_CHARS: usize = 200;

/// The fewest characters of a run's label: 20 bits, enough to be read aloud.
pub const RUN_LABEL_MIN: usize = 4;
/// The longest path, as Linux has it (`PATH_MAX`).
pub const PATH_BYTES: usize = 4_096;
/// The longest component of a path, as Linux has it (`NAME_MAX`).
pub const NAME_BYTES: usize = 255;

// ---- files --------------------------------------------------------------------------------------

/// `fs.read` without a limit (FR-12).
pub const READ_BYTES: u64 = 50_000;
/// The most that `fs.read` ever returns (FR-12).
pub const READ_BYTES_MAX: u64 = 200_000;
/// How much of a binary file is shown (FR-13).
pub const BINARY_PREVIEW_BYTES: u64 = 4_000;
/// How much of a file is looked at on both sides of what is read, so that a credential that reaches
/// into it is known for one. Holds every token, and the private key of any size in use.
pub const REDACTION_MARGIN: u64 = 16_000;
/// The largest content of one `fs.write`.
pub const WRITE_BYTES: u64 = 1_000_000;
/// The most that a policy may raise `fs.write` to.
pub const WRITE_BYTES_MAX: u64 = 2_500_000;
/// How many lines of a file an `fs.edit` may compare with those that it looks for. A file of the
/// largest size is compared with a block of a hundred lines well within it.
pub const EDIT_COMPARISONS: usize = 50_000_000;
/// The most places that one `fs.edit` may change.
pub const EDIT_COUNT: u64 = 10_000;
/// The most bytes that places may have together which share something: each is found by itself.
pub const EDIT_OVERLAP_BYTES: usize = 64_000_000;
/// The most characters of a call in the first line of its card; all of it is below.
pub const CARD_HEADLINE_CHARS: usize = 300;
/// How many of the lines where something was found are named.
pub const EDIT_SHOWN_PLACES: usize = 20;
/// How many lines of a file are shown that come closest to what was not found.
pub const EDIT_SHOWN_LINES: usize = 20;
/// How many bytes these lines may have together, unless one alone has more.
pub const EDIT_SHOWN_BYTES: usize = 2_000;
/// The longest text of an answer of a model, in which edits are looked for.
pub const MODEL_TEXT_BYTES: usize = ARGUMENT_BYTES;
/// The longest result of a call that a model is given: what `fs.read` gives at most (FR-12), and the words around it.
pub const MODEL_RESULT_BYTES: usize = 220_000;
/// The longest event of a model's stream: the arguments of one call in one piece, and room around them.
pub const MODEL_EVENT_BYTES: usize = 2 * ARGUMENT_BYTES;
/// The longest answer of a model, with the arguments of its calls.
pub const MODEL_ANSWER_BYTES: usize = 4 * ARGUMENT_BYTES;
/// How much is read of what a server says of a failed request.
pub const MODEL_ERROR_BYTES: u64 = 64_000;
/// The most calls of one answer of a model.
pub const MODEL_CALLS: usize = 64;
/// The most tokens of one answer, where the provider wants a number.
pub const MODEL_ANSWER_TOKENS: u64 = 8_192;
/// How many tokens a request and its answer have together at most, where the provider's settings say nothing.
pub const MODEL_WINDOW: u64 = 128_000;
/// The smallest window that settings may say, in tokens.
pub const MODEL_WINDOW_MIN: u64 = 2_000;
/// The largest one.
pub const MODEL_WINDOW_MAX: u64 = 100_000_000;
/// How long a model's server may take to accept a connection.
pub const MODEL_CONNECT: Duration = Duration::from_secs(10);
/// How long a model's server may send nothing, also before its first byte: a local model reads a long
/// conversation first.
pub const MODEL_SILENCE: Duration = Duration::from_secs(300);
/// How long events are waited for behind the end of an answer, such as its count of tokens.
pub const MODEL_LAST_EVENTS: Duration = Duration::from_secs(2);
/// How often a request is sent again that failed in a way which passes.
pub const MODEL_RETRIES: u32 = 2;
/// The longest that a model's server may ask to wait before the next request.
pub const MODEL_RETRY_WAIT: Duration = Duration::from_secs(60);
/// The largest file that a user attaches to a conversation: what `fs.read` gives at most (FR-12).
pub const ATTACHED_BYTES: u64 = READ_BYTES_MAX;
/// The longest question of a model to the user, and each choice of it, in characters.
pub const QUESTION_CHARS: usize = 2_000;
/// The most choices of a question of a model to the user.
pub const QUESTION_CHOICES: usize = 9;
/// The longest answer of the user to such a question, in bytes.
pub const QUESTION_ANSWER_BYTES: usize = 20_000;
/// How many bytes of requests are taken for a hundred tokens, until the server has counted some.
pub const MODEL_BYTES_PER_100_TOKENS: u64 = 300;
/// How much is left of an old result of a call where the window of the model is full, in bytes.
pub const MODEL_SHORTENED_BYTES: usize = 300;
/// The largest file of providers.
pub const PROVIDERS_BYTES: usize = 100_000;
/// The most requests for one task.
pub const TASK_TURNS: u64 = 100;
/// The most tokens of the requests and answers of one task.
pub const TASK_TOKENS: u64 = 5_000_000;
/// How long one task may take.
pub const TASK_TIME: Duration = Duration::from_secs(3_600);
/// The most refusals in a row before a task ends: the model does not adapt.
pub const TASK_DENIALS: u64 = 10;
/// The most answers in a row whose calls cannot be read.
pub const TASK_MALFORMED: u64 = 5;
/// How often in a row a model may make the same call.
pub const TASK_SAME_CALL: u64 = 5;
/// The largest task that is read from standard input.
pub const TASK_BYTES: usize = 1_000_000;
/// Requests of an MCP client that wait while one is served: a client that sends more is told to wait.
pub const MCP_WAITING: usize = 64;
/// How long the user of an MCP client is waited for; then the question waits for `capsule approvals`.
pub const MCP_ANSWER_TIME: Duration = Duration::from_secs(600);
/// The text of a question to the user of an MCP client: a form is no place for more.
pub const MCP_QUESTION_BYTES: usize = 20_000;
/// How often an MCP client hears that a call goes on; clients give up after a minute without a word.
pub const MCP_PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// Requests of MCP clients over HTTP that are read at a time; more are closed at once.
pub const MCP_REQUESTS: usize = 32;
/// The head of a request of an MCP client over HTTP.
pub const MCP_HEAD_BYTES: usize = 16 * 1024;
/// Its headers.
pub const MCP_HEADERS: usize = 64;
/// How long such a head may take, and a client over HTTP may say nothing or take nothing.
pub const MCP_PEER_TIME: Duration = Duration::from_secs(10);
/// How often an idle MCP server looks whether it is to end: some clients kill it a tenth of a second after they ask.
pub const MCP_POLL: Duration = Duration::from_millis(20);
/// The most edits in one text of a model.
pub const EDIT_BLOCKS: usize = 256;
/// The most entries of a folder that `fs.delete` removes with it: each is judged, recorded and shown.
pub const DELETE_ENTRIES: usize = 10_000;
/// The most bytes of files that are kept before one call replaces or deletes them. What is more cannot
/// be brought back, and is of high risk.
pub const UNDO_BYTES: u64 = 64_000_000;
/// The most bytes that are kept for undoing the calls of all runs of a store; beyond, those of the
/// oldest runs are dropped. Room for months of edits, and for the largest call sixteen times.
pub const UNDO_STORE_BYTES: u64 = 1 << 30;
/// How many later calls are looked at to tell who changed what an undo would bring back.
pub const UNDO_LATER_CALLS: usize = 1_000;
/// `fs.search` and `fs.list` without a limit (FR-8).
pub const RESULTS: u64 = 20;
/// The most results of `fs.search` (FR-8).
pub const RESULTS_MAX: u64 = 100;
/// `fs.list` without a limit. A listing is one folder, so it may be longer than a search.
pub const LIST_ENTRIES: u64 = 200;
/// The most entries of `fs.list`.
pub const LIST_ENTRIES_MAX: u64 = 1_000;
/// How many entries of folders `fs.list` looks at before it calls its answer partial.
pub const LIST_SCAN: usize = 200_000;
/// How deep `fs.list` may go.
pub const LIST_DEPTH_MAX: u64 = 8;
/// How long a search may take before it returns what it found (NFR-10).
pub const SEARCH_TIME: Duration = Duration::from_secs(2);
/// `fs.grep` without a limit: what a model reads in one go.
pub const GREP_LINES: u64 = 100;
/// The most lines that `fs.grep` gives.
pub const GREP_LINES_MAX: u64 = 1_000;
/// The most lines before and after one that `fs.grep` shows with it.
pub const GREP_CONTEXT: u64 = 10;
/// The most characters of a line that `fs.grep` shows; a minified file is one line.
pub const GREP_LINE_CHARS: usize = 400;
/// The most bytes of a line that are searched: a pattern may be slow on each.
pub const GREP_LINE_BYTES: usize = 64 * 1024;
/// The most bytes of lines that one `fs.grep` shows; as many as `fs.read` gives at most.
pub const GREP_SHOWN_BYTES: usize = 200_000;
/// The largest file that `fs.grep` opens; source files are smaller.
pub const GREP_FILE_BYTES: u64 = 4_000_000;
/// The most bytes of files that one `fs.grep` reads. Masking reads them first, some 100 MB a second.
pub const GREP_BYTES: u64 = 400_000_000;
/// The most files that one `fs.grep` opens.
pub const GREP_FILES: usize = 50_000;
/// The most directories that `fs.grep` says it left out.
pub const GREP_LEFT_OUT: usize = 20;
/// The longest pattern of `fs.grep`.
pub const GREP_PATTERN_BYTES: usize = 1_000;
/// The memory that a pattern of `fs.grep` may take, and so the steps that each byte of a file may cost.
pub const GREP_PROGRAM_BYTES: usize = 1_000_000;
/// How many links a path may go through, as Linux has it (`MAXSYMLINKS`).
pub const SYMLINK_HOPS: usize = 40;

// ---- repositories -------------------------------------------------------------------------------

/// The most entries of `git.status`; more are a state that nobody reads entry by entry.
pub const STATUS_ENTRIES: u64 = 500;
/// `git.log` without a limit.
pub const LOG_ENTRIES: u64 = 20;
/// The most commits of `git.log`.
pub const LOG_ENTRIES_MAX: u64 = 200;
/// The most paths that `git.diff` and `git.log` take.
pub const GIT_PATHS: usize = 200;
/// The most files of one `git.diff`: each is named on git's command line.
pub const DIFF_FILES: usize = 500;
/// The most output of git that is read to be understood.
pub const GIT_OUTPUT_BYTES: u64 = 4_000_000;
/// The most drivers that a repository's configuration may name; each is switched off by its name.
pub const GIT_DRIVERS: usize = 256;

/// The largest object of a repository that is read to be compared. Larger ones are only hashed.
pub const GIT_OBJECT_BYTES: u64 = 64_000_000;
/// The most bytes that the objects may have together which one comparison reads.
pub const GIT_INFLATED_BYTES: u64 = 4 << 30;
/// The most packs of a repository; git joins fifty of them.
pub const GIT_PACKS: usize = 2_000;
/// The most references of a repository.
pub const GIT_REFS: usize = 200_000;
/// The largest file of one reference.
pub const GIT_REF_BYTES: u64 = 4_096;
/// The largest file of many, and of what references stood for.
pub const GIT_REFS_BYTES: u64 = 64_000_000;
/// The largest index; one of half a million files has 50 MB.
pub const GIT_INDEX_BYTES: u64 = 128_000_000;
/// The most commits that are looked at for what a protected path had, and for one that was there.
pub const GIT_HISTORY: usize = 20_000;
/// The most entries of trees that one comparison looks at.
pub const GIT_ENTRIES: usize = 4_000_000;

// ---- network ------------------------------------------------------------------------------------

/// The most bytes of a response as it comes over the wire.
pub const FETCH_BYTES: u64 = 1_000_000;
/// The most that a policy may raise it to.
pub const FETCH_BYTES_MAX: u64 = 50_000_000;
/// The most bytes of a response after decompression.
pub const INFLATED_BYTES: u64 = 4_000_000;
/// The most that a policy may raise it to.
pub const INFLATED_BYTES_MAX: u64 = 50_000_000;
/// The most ports of the host's loopback that commands reach: a development server, a database, a model, and as many again.
pub const LOOPBACK_PORTS: usize = 16;
/// The most connections that a command holds through the proxy at once. Each takes a thread.
pub const PROXY_CONNECTIONS: usize = 1_024;
/// The most connections beyond those that are told why they are refused; the rest is closed.
pub const EXCESS_CONNECTIONS: usize = 64;
/// The most connections of one command that are recorded; those beyond are refused.
pub const RECORDED_CONNECTIONS: u64 = 10_000;
/// The most refused hosts of a command that its result names.
pub const REFUSED_HOSTS: usize = 16;
/// How many redirects are followed.
pub const REDIRECTS: u64 = 3;
/// The most that a policy may raise it to.
pub const REDIRECTS_MAX: u64 = 10;
/// The longest URL.
pub const URL_BYTES: usize = 8_192;
/// The most headers that a call may set.
pub const REQUEST_HEADERS: usize = 16;

// ---- commands -----------------------------------------------------------------------------------

/// How long any call may take unless the policy says otherwise (NFR-11).
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the project's tests may take unless the policy says otherwise.
pub const TEST_TIME: Duration = Duration::from_secs(120);
/// The longest word that picks tests.
pub const TEST_FILTER_BYTES: usize = 512;
/// The ceiling that a call can ask for without the policy naming a higher one (SAF-4).
pub const TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// The longest that a policy may allow.
pub const TIMEOUT_CEILING: Duration = Duration::from_secs(24 * 3600);
/// The most bytes of standard output that are kept, unless the policy says otherwise.
pub const STDOUT_BYTES: u64 = 256_000;
/// The most bytes of standard error that are kept, unless the policy says otherwise.
pub const STDERR_BYTES: u64 = 64_000;
/// The most output that a policy may keep of one stream (SAF-4: 10 MB).
pub const OUTPUT_BYTES_MAX: u64 = 10_000_000;
/// A command that goes on writing beyond this many bytes is ended: nobody will read them.
pub const OUTPUT_DISCARD_BYTES: u64 = 1_000_000_000;
/// Processes of one command (SAF-4).
pub const PROCESSES: u64 = 50;
/// The most processes that a policy may allow.
pub const PROCESSES_MAX: u64 = 4_096;
/// Memory of one command.
pub const MEMORY_BYTES: u64 = 1 << 30;
/// The least memory that a policy may allow: hardly a program starts in less.
pub const MEMORY_BYTES_MIN: u64 = 1_000_000;
/// The most memory that a policy may allow.
pub const MEMORY_BYTES_MAX: u64 = 64 << 30;
/// Processor time of all processes of a command together: as much as many processors have in the time that a
/// command usually gets. The kernel counts whole seconds; what a policy says is rounded up.
pub const CPU_TIME: Duration = Duration::from_secs(600);
/// Open files of one process of a command.
pub const OPEN_FILES: u64 = 1_024;
/// The largest file that a command may write: objects of a large build are smaller.
pub const FILE_BYTES: u64 = 1_000_000_000;
/// The size of `/tmp`, in which compilers build.
pub const TMP_BYTES: u64 = 1_000_000_000;
/// The most that a policy may say for either.
pub const TMP_BYTES_MAX: u64 = 64 << 30;
/// The most paths that a command's arguments may name; each is looked up before it is judged.
pub const COMMAND_PATHS: usize = 1_024;
/// How many command lines may stand in one another: `timeout 5 nice env A=b xargs ...`.
pub const WRAPPED_COMMANDS: usize = 8;
/// The most words of a command line, all programs of a pipeline together.
pub const ARGV_WORDS: usize = 4_096;
/// The most bytes of a command line; Linux gives a word 128 KiB and all of them a few MiB.
pub const ARGV_BYTES: usize = 1_000_000;
/// The longest text of a command. Holds the largest here-document with its command.
pub const COMMAND_BYTES: usize = 1_100_000;
/// The most bytes of a script of the workspace that is read in the command language: a person can still read it on a card.
pub const SCRIPT_BYTES: u32 = 64_000;
/// The most pipelines of a command; each is judged and recorded as an action of its own.
pub const COMMAND_ELEMENTS: usize = 256;
/// The most elements that a command comes to with what leads from one pipeline to another: loops, conditions and
/// groups take up to six each.
pub const COMMAND_ELEMENTS_ALL: usize = 2_048;
/// The most statements of a command in one another, as in a loop in a condition; people write up to four.
pub const STATEMENT_DEPTH: usize = 8;
/// The most substitutions in one another.
pub const SUBSTITUTION_DEPTH: usize = 3;
/// The most words that a loop is written over; each is judged by itself before the list runs.
pub const LOOP_WORDS: usize = 256;
/// The most pipelines that a list runs, its loops counted; each is recorded as a call of its own.
pub const COMMAND_RUNS: usize = 1_024;
/// The most parts of a list that run in the background; each has an executor, two pipes and a thread.
pub const BACKGROUND_JOBS: usize = 8;
/// The most states that are looked at to know how a list may run: twice as many as it may run pipelines. Looking costs
/// with their square.
pub const COMMAND_STATES: usize = 2_048;
/// The most bytes of the values that a list holds at a time, with those around its groups and those that loops go through.
pub const COMMAND_VALUE_BYTES: usize = 16_000_000;
/// The most folders that a part of a list may run in, as far as can be told before it runs; it is judged in
/// each. Every `cd` that may fail while the list goes on doubles them.
pub const COMMAND_FOLDERS: usize = 32;
/// The files that commands of a run wrote by their words and that are remembered by their names.
pub const WRITTEN_FILES: usize = 10_000;
/// The most programs of one pipeline; people write up to six. Each takes a process and a pipe.
pub const PIPELINE_STAGES: usize = 16;
/// The most redirections of one program; three streams, each led elsewhere a few times.
pub const STAGE_REDIRECTS: usize = 8;
/// The most variables that are set before one program.
pub const STAGE_VARIABLES: usize = 64;
/// The most words that the braces of one word make.
pub const BRACE_WORDS: usize = 1_024;
/// How often `**/` may stand in a word: each walks through what the one before has found.
pub const PATTERN_WALKS: usize = 3;
/// The most folders that the patterns of one command look into, all together: a decision waits for it.
pub const PATTERN_DIRECTORIES: usize = 20_000;
/// The most entries of one folder that are held against a pattern of a command.
pub const PATTERN_ENTRIES: usize = 100_000;
/// How deep braces may nest.
pub const BRACE_DEPTH: usize = 16;
/// The largest standard input that a call may give to a command.
pub const STDIN_BYTES: usize = 1_000_000;
/// The most paths that are hidden from commands one by one.
pub const HIDDEN_PATHS: usize = 4_096;
/// The most protected files that are known by their identity, so as to be found under other names.
pub const PROTECTED_FILES: usize = 1_000_000;
/// The most names by which the host may come to places of a workspace for its orders.
pub const PATH_ALIASES: usize = 10_000;
/// The most entries of such places, all together, that are looked at for what leads on.
pub const PATH_ALIAS_ENTRIES: usize = 1_000_000;
/// The most entries of directories outside of the workspace that are looked at for what leads into it.
pub const HOST_ENTRIES: usize = 200_000;
/// The largest file of git's configuration that is read; people's have a few thousand bytes.
pub const CONFIG_BYTES: u64 = 1_000_000;
/// The most files that the configuration of one repository may be made of.
pub const CONFIG_FILES: usize = 256;
/// How many bytes a hidden file seems to have, whatever it has. Git takes an empty one for changed.
pub const HIDDEN_FILE_BYTES: u32 = 1;
/// When a hidden file seems to be from, in seconds since 1970: older than every index of git, so that it is not read.
pub const HIDDEN_FILE_SECONDS: u32 = 1;
/// The most bytes of a user's preferences for git that commands get, and of patterns of ignored files.
pub const GIT_PREFERENCES_BYTES: usize = 64_000;
/// How deep they may include one another, as git has it.
pub const CONFIG_DEPTH: usize = 10;
/// The most paths that a run may change in its staged workspace; each is judged, recorded and shown. The
/// dependencies of an ordinary project are fewer.
pub const STAGED_PATHS: u64 = 50_000;
/// The most paths that a policy may say.
pub const STAGED_PATHS_MAX: u64 = 1_000_000;
/// How deep a path may be nested that a command changes.
pub const STAGED_DEPTH: usize = 128;
/// The most bytes of a staged workspace's changes.
pub const STAGED_BYTES: u64 = 1 << 30;
/// The most bytes that a policy may say.
pub const STAGED_BYTES_MAX: u64 = 64 << 30;
/// The most files that may come there meanwhile. More than anybody else makes on a disk beside a run, as
/// installing a large project's dependencies does.
pub const STAGING_DISK_FILES: u64 = 200_000;
/// The most paths of a workspace that is copied, where the kernel lays no changes over it.
pub const COPIED_PATHS: usize = 200_000;
/// The most bytes of such a workspace that are really copied; what a file system shares is not.
pub const COPIED_BYTES: u64 = 4 << 30;
/// The space that must stay free beside what is copied, for other programs and for what commands write.
pub const COPY_FREE_BYTES: u64 = 256 << 20;
/// How many changed paths a command's result names; the record names all.
pub const STAGED_SHOWN: usize = 100;
/// How long taking staged changes over may take.
pub const APPLY_TIME: Duration = Duration::from_secs(600);
/// How long the sandbox may take to be set up.
pub const SANDBOX_SETUP: Duration = Duration::from_secs(10);

// ---- approvals ----------------------------------------------------------------------------------

/// How many uses a grant has where the policy says nothing: enough for a task, few enough to notice.
pub const GRANT_USES: u64 = 20;
/// The most uses that a policy may give a grant.
pub const GRANT_USES_MAX: u64 = 1_000;
/// How long a grant lives where the policy says nothing: an afternoon.
pub const GRANT_TIME: Duration = Duration::from_secs(4 * 3600);
/// The longest that a policy may let a grant live.
pub const GRANT_TIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// The longest reason that a person may give.
pub const REASON_BYTES: usize = 4_000;
/// How long nothing may have happened to a card before it can be allowed: a key, a page, a new size of
/// the window. Nobody reads faster.
pub const CARD_ARMING: Duration = Duration::from_millis(500);
/// How long no other key may come behind a digit that allows or stops, and before one that stops: keys
/// of somebody who is typing something else come closer to each other.
pub const CARD_QUIET: Duration = Duration::from_millis(400);
/// The most lines of one argument that a card shows before it is opened.
pub const CARD_LINES: usize = 12;
/// The longest arguments that can be changed in a card.
pub const EDITED_ARGUMENT_BYTES: usize = 8_000;
/// The most files that were read before which a card names.
pub const CARD_READS: usize = 6;
/// The most earlier calls that a card lists below an offer.
pub const CARD_COVERED: usize = 20;
/// The most bytes, before and after, of a file of which a card shows what will differ.
pub const CARD_DIFF_BYTES: usize = 500_000;
/// The most bytes of program texts that a card shows; of longer ones it shows the digests.
pub const CARD_CODE_TEXT_BYTES: usize = 16_000;
/// How many earlier runs of a workspace a card is compared with.
pub const HISTORY_RUNS: u64 = 50;
/// How many earlier calls a card is compared with.
pub const HISTORY_CALLS: usize = 500;
/// How long a question waits that nobody was there to answer; after a week nobody knows any more what
/// it was about.
pub const QUESTION_TIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a session stays open that no process works in: a morning or an afternoon.
pub const SESSION_IDLE: Duration = Duration::from_secs(4 * 3600);
/// How long a call waits for the process that works in its session: as long as most commands take.
pub const SESSION_WAIT: Duration = Duration::from_secs(120);
/// The longest input of a hook: the largest arguments of a call, with the escapes of JSON.
pub const HOOK_INPUT_BYTES: usize = 2 * ARGUMENT_BYTES;
/// How long a hook takes for an answer; hosts wait for a minute and more, and go ahead then.
pub const HOOK_TIME: Duration = Duration::from_millis(9_500);
/// How long a hook that was told to stop takes to say why.
pub const HOOK_LAST_WORDS: Duration = Duration::from_millis(500);
/// The longest command line that a hook gives a host: Linux gives a word 128 KiB, and the host adds words of its own.
pub const HOOK_COMMAND_BYTES: usize = 120_000;
/// How long a session waits for the last executor of a process that was killed.
pub const EXECUTOR_END: Duration = Duration::from_secs(10);
/// The largest file of what a session remembers: a hundred thousand changed paths of usual length.
pub const SESSION_STATE_BYTES: u64 = 64_000_000;
/// Characters that nobody reads more of in a second: five times as many as most people do. Who says
/// yes sooner has not read what it was about.
pub const READING_CHARS_PER_SECOND: u64 = 100;
