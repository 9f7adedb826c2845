//! What the tools of the hosts mean in ours: the table by which a call of a host becomes calls of ours.

/// The names under which a host may pass one argument.
pub(crate) type Names = &'static [&'static str];

/// A tool of a host.
#[derive(Debug)]
pub(crate) struct HostTool {
    /// Its names.
    pub(crate) names: Names,
    /// What it does.
    pub(crate) meaning: Meaning,
}

/// What a tool of a host does, and where its arguments are.
#[derive(Debug)]
pub(crate) enum Meaning {
    /// Runs the text of a command, in a directory if one is named.
    Command {
        /// The text; changed when the command is confined.
        text: &'static str,
        /// The directory.
        directory: Names,
        /// Whether it goes on while other calls are made.
        background: Names,
    },
    /// Does what a tool of ours does: each argument of it, and where the host has it.
    Tool(&'static str, &'static [(&'static str, Names)]),
    /// Puts a text of a file in the place of another, everywhere if `all` is true, else as often as it says.
    Edit(EditArgs),
    /// Several such edits of one file, in the list of this name.
    Edits(&'static str, EditArgs),
    /// Finds files by a pattern of their names: the pattern, and the directory.
    FindFiles(&'static str, Names),
    /// Shows lines of files that match: of one file it is reading.
    SearchText(Names),
    /// Changes files by the text of a patch.
    Patch(Names),
    /// Changes nothing outside of the host.
    Internal,
}

/// Where the arguments of an edit are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EditArgs {
    /// The file.
    pub(crate) path: Names,
    /// What is searched for.
    pub(crate) old: Names,
    /// What replaces it.
    pub(crate) new: Names,
    /// How often.
    pub(crate) all: Names,
}

const fn tool(names: Names, meaning: Meaning) -> HostTool {
    HostTool { names, meaning }
}

const SNAKE_EDIT: EditArgs = EditArgs {
    path: &["file_path"],
    old: &["old_string"],
    new: &["new_string"],
    all: &["replace_all"],
};

/// Those of Claude Code.
pub(crate) static CLAUDE_CODE_TOOLS: &[HostTool] = &[
    tool(
        &["Bash"],
        Meaning::Command { text: "command", directory: &[], background: &["run_in_background"] },
    ),
    tool(&["Read"], Meaning::Tool("fs.read", &[("path", &["file_path"])])),
    tool(
        &["Write"],
        Meaning::Tool("fs.write", &[("path", &["file_path"]), ("content", &["content"])]),
    ),
    tool(&["Edit"], Meaning::Edit(SNAKE_EDIT)),
    tool(&["MultiEdit"], Meaning::Edits("edits", SNAKE_EDIT)),
    tool(&["Glob"], Meaning::FindFiles("pattern", &["path"])),
    tool(&["Grep"], Meaning::SearchText(&["path"])),
    tool(&["LS"], Meaning::Tool("fs.list", &[("path", &["path"])])),
    tool(&["WebFetch"], Meaning::Tool("http.get", &[("url", &["url"])])),
    tool(
        &[
            "TodoWrite",
            "TodoRead",
            "TaskCreate",
            "TaskUpdate",
            "TaskGet",
            "TaskList",
            "TaskOutput",
            "TaskStop",
            "Task",
            "Agent",
            "BashOutput",
            "KillShell",
            "EnterPlanMode",
            "ExitPlanMode",
            "AskUserQuestion",
            "ToolSearch",
            "StructuredOutput",
        ],
        Meaning::Internal,
    ),
];

/// Those of Codex.
pub(crate) static CODEX_TOOLS: &[HostTool] = &[
    tool(&["Bash"], Meaning::Command { text: "command", directory: &[], background: &[] }),
    tool(&["apply_patch"], Meaning::Patch(&["command", "input", "patch"])),
    tool(&["view_image"], Meaning::Tool("fs.read", &[("path", &["path"])])),
    tool(&["update_plan"], Meaning::Internal),
];

/// Those of Gemini CLI.
pub(crate) static GEMINI_TOOLS: &[HostTool] = &[
    tool(
        &["run_shell_command"],
        Meaning::Command {
            text: "command",
            directory: &["dir_path", "directory"],
            background: &["is_background"],
        },
    ),
    tool(&["read_file"], Meaning::Tool("fs.read", &[("path", &["file_path", "absolute_path"])])),
    tool(
        &["write_file"],
        Meaning::Tool("fs.write", &[("path", &["file_path"]), ("content", &["content"])]),
    ),
    tool(
        &["replace"],
        Meaning::Edit(EditArgs { all: &["allow_multiple", "expected_replacements"], ..SNAKE_EDIT }),
    ),
    tool(&["list_directory"], Meaning::Tool("fs.list", &[("path", &["dir_path", "path"])])),
    tool(&["glob"], Meaning::FindFiles("pattern", &["dir_path", "path"])),
    tool(&["search_file_content", "grep_search"], Meaning::SearchText(&["dir_path", "path"])),
    tool(&["write_todos", "ask_user"], Meaning::Internal),
];

/// Those of opencode.
pub(crate) static OPENCODE_TOOLS: &[HostTool] = &[
    tool(&["bash"], Meaning::Command { text: "command", directory: &["workdir"], background: &[] }),
    tool(&["read"], Meaning::Tool("fs.read", &[("path", &["filePath"])])),
    tool(
        &["write"],
        Meaning::Tool("fs.write", &[("path", &["filePath"]), ("content", &["content"])]),
    ),
    tool(
        &["edit"],
        Meaning::Edit(EditArgs {
            path: &["filePath"],
            old: &["oldString"],
            new: &["newString"],
            all: &["replaceAll"],
        }),
    ),
    tool(&["apply_patch", "patch"], Meaning::Patch(&["patchText"])),
    tool(&["list"], Meaning::Tool("fs.list", &[("path", &["path"])])),
    tool(&["glob"], Meaning::FindFiles("pattern", &["path"])),
    tool(&["grep"], Meaning::SearchText(&["path"])),
    tool(&["webfetch"], Meaning::Tool("http.get", &[("url", &["url"])])),
    tool(&["todowrite", "todoread", "task", "question"], Meaning::Internal),
];
