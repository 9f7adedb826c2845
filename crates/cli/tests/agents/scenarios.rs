//! The scenarios of the requirement text, for every backend.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use capsule_testkit::{Capsule, CommandOutput, run_in_parallel};

/// One scenario: what the agent does, and what it sees.
pub(crate) struct Row {
    /// The requirement and the scenario of the text.
    scenario: &'static str,
    /// Arguments of `capsule sandbox`, before the command.
    options: &'static [&'static str],
    /// The agent: a line of a shell.
    line: &'static str,
    status: i32,
    /// Texts of its standard output.
    shows: &'static [&'static str],
    /// Texts of its standard error.
    says: &'static [&'static str],
    /// Whether a container of Docker has it otherwise.
    is_for_namespaces: bool,
}

const fn row(scenario: &'static str, line: &'static str, shows: &'static [&'static str]) -> Row {
    Row { scenario, options: &[], line, status: 0, shows, says: &[], is_for_namespaces: false }
}

const fn fails(scenario: &'static str, line: &'static str, says: &'static [&'static str]) -> Row {
    Row { scenario, options: &[], line, status: 1, shows: &[], says, is_for_namespaces: false }
}

const NO_TMP: &[&str] = &["--no-tmp"];
const CLOSED: &[&str] = &["--network", "none"];

pub(crate) const ROWS: &[Row] = &[
    row("SBX-2: read file in workspace", "cat notes.txt", &["of the workspace"]),
    row("SBX-2: write file in workspace", "echo new > made.txt && cat made.txt", &["new"]),
    row(
        "SBX-2: traverse subdirectories",
        "cat deep/er/a.txt && echo x > deep/er/b.txt && mkdir deep/c && ls deep",
        &["deep down", "c", "er"],
    ),
    fails(
        "SBX-2: read file outside workspace",
        "cat $HOME/.aws/credentials || exit 1",
        &["No such file or directory"],
    ),
    fails(
        "SBX-2: read file outside workspace",
        "cat /etc/passwd || exit 1",
        &["No such file or directory"],
    ),
    fails(
        "SBX-2: read file outside workspace",
        "cat \"$OUTSIDE\" || exit 1",
        &["No such file or directory"],
    ),
    fails(
        "SBX-2: read file outside workspace",
        "cat ../secret || exit 1",
        &["No such file or directory"],
    ),
    fails(
        "SBX-2: a link of the workspace leads nowhere",
        "cat out || exit 1",
        &["No such file or directory"],
    ),
    fails(
        "SBX-2: write file outside workspace",
        "touch ../outside/file || exit 1",
        &["No such file or directory"],
    ),
    Row {
        options: NO_TMP,
        ..fails(
            "SBX-2: write file outside workspace",
            "touch /tmp/file || exit 1",
            &["No such file or directory"],
        )
    },
    Row {
        options: NO_TMP,
        is_for_namespaces: true,
        ..row(
            "SBX-2: shared memory without a /tmp",
            "echo x > /dev/shm/y && cat /dev/shm/y",
            &["x"],
        )
    },
    fails(
        "SBX-2: the system's programs are not written to",
        "touch /usr/bin/x || exit 1",
        &["Read-only file system"],
    ),
    row(
        "SBX-2: /tmp is private",
        "ls -A /tmp | grep -v \"^${HOME#/tmp/}\" | wc -l; echo x > /tmp/file && cat /tmp/file",
        &["x"],
    ),
    row("SBX-2: the home directory is private", "echo x > $HOME/file && cat $HOME/file", &["x"]),
    row(
        "SBX-2: no process of the host is seen",
        "cat /proc/1/comm; [ $(ls /proc | grep -c '^[0-9]') -lt 12 ] && echo few",
        &["few"],
    ),
    fails(
        "SBX-2: no setting of the kernel is written",
        "echo 4194304 > /proc/sys/kernel/pid_max || exit 1",
        &["/proc/sys/kernel/pid_max"],
    ),
    row(
        "SBX-3: read provider configuration",
        "cat $HOME/.config/capsule/providers.yaml",
        &["format: openai"],
    ),
    fails(
        "SBX-3: attempt to modify configuration",
        "echo x >> $HOME/.config/capsule/providers.yaml || exit 1",
        &["Read-only file system"],
    ),
    fails(
        "SBX-3: attempt to modify configuration",
        "touch $HOME/.config/capsule/new || exit 1",
        &["Read-only file system"],
    ),
    Row {
        is_for_namespaces: true,
        ..fails(
            "SBX-3: the configuration is not replaced",
            "mv $HOME/.config/capsule $HOME/x || exit 1",
            &["busy"],
        )
    },
    row("SBX-3: a .capsule of the workspace is read", "cat .capsule/mine", &["mine"]),
    fails(
        "SBX-3: a .capsule of the workspace is not written to",
        "echo x > .capsule/mine || exit 1",
        &["Read-only file system"],
    ),
    fails(
        "SBX-3: a .capsule of the workspace is not replaced",
        "mv .capsule other || exit 1",
        &["busy"],
    ),
    row(
        "SBX-4: process working directory",
        "pwd; readlink /proc/self/cwd",
        &["/workspace\n/workspace"],
    ),
    row(
        "SBX-4: relative path resolution",
        "cat ./notes.txt deep/er/a.txt",
        &["of the workspace", "deep down"],
    ),
    row(
        "SBX-4: session context file location",
        "echo session > \"$(pwd)/session_context.txt\"",
        &[],
    ),
    row(
        "SBX-7: DNS resolution",
        "grep -c . /etc/resolv.conf > /dev/null; getent hosts localhost",
        &["localhost"],
    ),
    Row {
        is_for_namespaces: true,
        ..row("SBX-7: the host by its name", "getent hosts host.docker.internal", &["127.0.0.1"])
    },
    row(
        "SBX-7: local models of the host",
        "getent hosts host.docker.internal",
        &["host.docker.internal"],
    ),
    Row {
        options: CLOSED,
        ..row(
            "SBX-7: a closed network",
            "cat /proc/net/dev | wc -l; getent hosts host.docker.internal || echo none",
            &["3", "none"],
        )
    },
    row(
        "SBX-8: default environment variables",
        "echo $OLLAMA_HOST",
        &["http://host.docker.internal:11434"],
    ),
    row(
        "SBX-8: access API keys",
        "echo $OPENROUTER_API_KEY $AWS_ACCESS_KEY_ID $AWS_SECRET_ACCESS_KEY $AWS_SESSION_TOKEN $AWS_REGION",
        &["key-1 key-2 key-3 key-4 eu-1"],
    ),
    row("SBX-8: other variables stay", "echo [$GITHUB_TOKEN$SSH_AUTH_SOCK]", &["[]"]),
    Row {
        options: &["--env", "OLLAMA_HOST=http://x:1", "--env", "MINE", "--env", "NEW=a b"],
        ..row(
            "SBX-8: override default settings",
            "echo $OLLAMA_HOST, $MINE, $NEW",
            &["http://x:1, of mine, a b"],
        )
    },
    row("SBX-8: keys of listed providers", "echo $FAR_KEY", &["far"]),
    Row { status: 3, ..row("SBX-9: error exit", "exit 3", &[]) },
    Row { status: 143, ..row("SBX-9: an end by a signal", "kill -TERM $$", &[]) },
    row("SBX-9: what it left running ends with it", "sleep 300 & echo ended", &["ended"]),
    row(
        "SBX-2: no capability but what sandboxes inside need",
        "grep -E '^Cap(Prm|Eff):' /proc/self/status | tr -d '\\t 0' | sed 's/:8$/:/' | sort -u",
        &["CapEff:"],
    ),
    row("SBX-2: no new privileges", "grep NoNewPrivs /proc/self/status", &["NoNewPrivs:\t1"]),
];

/// The binary in its surroundings, and the file outside that is not seen inside.
pub(crate) fn capsule() -> (Capsule, PathBuf) {
    let mut capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("notes.txt", "of the workspace");
    capsule.write_file("deep/er/a.txt", "deep down");
    capsule.write_file(".capsule/mine", "mine");
    let outside = capsule.directory().join("secret");
    fs::write(&outside, "secret").unwrap();
    symlink(&outside, capsule.workspace().join("out")).unwrap();
    for (path, content) in [
        (".aws/credentials", "aws"),
        (
            ".config/capsule/providers.yaml",
            "version: 1\nproviders:\n  far: { format: openai, url: 'http://127.0.0.1:1/v1', model: m, key: FAR_KEY }\n",
        ),
    ] {
        let path = capsule.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    for (name, value) in [
        ("OPENROUTER_API_KEY", "key-1"),
        ("AWS_ACCESS_KEY_ID", "key-2"),
        ("AWS_SECRET_ACCESS_KEY", "key-3"),
        ("AWS_SESSION_TOKEN", "key-4"),
        ("AWS_REGION", "eu-1"),
        ("GITHUB_TOKEN", "no"),
        ("SSH_AUTH_SOCK", "no"),
        ("MINE", "of mine"),
        ("FAR_KEY", "far"),
    ] {
        capsule.set(name, value);
    }
    (capsule, outside)
}

/// The rows that do not hold behind a backend.
pub(crate) fn failures(backend: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    let is_docker = !backend.is_empty();
    let rows = ROWS.iter().filter(|row| !(is_docker && row.is_for_namespaces));
    let rows: Vec<&Row> = rows.collect();
    let failed = run_in_parallel(rows, |row| {
        let (mut capsule, outside) = capsule();
        variables.iter().for_each(|(name, value)| capsule.set(name, value));
        let line = row.line.replace("$OUTSIDE", &outside.display().to_string());
        let ran = run_line(&capsule, &[backend, row.options].concat(), &line);
        let shown = row.shows.iter().all(|text| ran.stdout.contains(text));
        let said = row.says.iter().all(|text| ran.stderr.contains(text));
        let holds = ran.status == row.status && shown && said;
        (!holds).then(|| format!("{}: `{line}`: {ran:?}", row.scenario))
    });
    failed.into_iter().flatten().collect()
}

/// Runs a line of a shell as an agent.
pub(crate) fn run_line(capsule: &Capsule, options: &[&str], line: &str) -> CommandOutput {
    let words = [&["sandbox"], options, &["--", "sh", "-c", line]].concat();
    capsule.run(&words)
}

/// The attempts of a hostile agent.
const WALLS: &str = include_str!("walls.pl");
/// An attempt that is understood and refused: not permitted, not there, denied, read-only, no such call, no such device
/// or family.
const REFUSALS: &[&str] = &["1", "2", "6", "13", "19", "30", "38", "93", "94", "95", "97"];

/// The attempts of [`WALLS`] that a backend does not refuse, but for its gaps; and the gaps that it refuses.
pub(crate) fn wall_failures(
    backend: &[&str],
    variables: &[(&str, &str)],
    gaps: &[(&str, &str)],
) -> Vec<String> {
    let (mut capsule, _) = capsule();
    variables.iter().for_each(|(name, value)| capsule.set(name, value));
    capsule.write_file("walls.pl", WALLS);
    let closed = [backend, &["--network", "none"]].concat();
    let ran = run_line(&capsule, &closed, "exec perl walls.pl").exits(0);
    let tried = ran.stdout.lines().filter_map(|line| line.rsplit_once(": "));
    let tried: Vec<(&str, &str)> = tried.collect();
    assert!(tried.len() > 50 && ran.stderr.lines().count() < 10, "{ran:?}");
    let is_gap = |name: &str| gaps.iter().any(|(gap, _)| *gap == name);
    let wrong = tried.iter().filter(|(name, ended)| REFUSALS.contains(ended) == is_gap(name));
    wrong.map(|(name, ended)| format!("{name}: {ended}")).collect()
}
