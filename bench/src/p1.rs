//! P1: one confined command, cold: the whole process, against bubblewrap with the same namespaces
//! and binds plus one durable commit.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;

use crate::Answer;
use crate::binary::{Binary, quiet};
use crate::options::Options;
use crate::pairs::{Pairs, seconds};
use crate::peer::{self, Peer};
use crate::row::{Row, Target};

const POLICY: &str = r#"version: 1
name: one-command
tools:
  shell.run:
    executables:
      "true": { decision: allow }
"#;

/// How long the kernel is given to take namespaces apart.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let bwrap = peer::BWRAP.find()?;
    let files = options.fresh("p1")?;
    let workspace = options.fresh("p1-workspace")?;
    let binary = Binary::new(options, &files, &workspace, POLICY)?;
    let mut sql = peer::database(&files.join("reference.db"), "FULL", "bytes BLOB NOT NULL")?;
    let count = options.pick(101, 11);
    let against_both = Pairs::take(
        count,
        PAUSE,
        || seconds(|| quiet(&mut binary.command(&["exec"], &["--", "true"]))),
        || {
            seconds(|| {
                quiet(&mut confined(&bwrap, &workspace))?;
                commit(&mut sql)
            })
        },
    )?;
    let bare = Pairs::take(
        count,
        PAUSE,
        || seconds(|| quiet(&mut binary.command(&["exec"], &["--", "true"]))),
        || seconds(|| quiet(&mut Command::new("/bin/true"))),
    )?;
    let what = "capsule exec -- true, whole process";
    let mut rows = vec![
        Row::new("P1", what, "bwrap + 1 durable commit", against_both, Target::TimeAtMost(1.0)),
        Row::new("P1", what, "bare spawn of true", bare, Target::None),
    ];
    for (name, peer, words, target) in OTHERS {
        let program = match peer.find() {
            Ok(program) => program,
            Err(why) => {
                eprintln!("P1: {name} is not measured: {why}");
                continue;
            }
        };
        let mut theirs = Command::new(program);
        theirs.args(*words).current_dir(&workspace);
        let pairs = Pairs::take(
            options.pick(21, 5),
            PAUSE,
            || seconds(|| quiet(&mut binary.command(&["exec"], &["--", "true"]))),
            || seconds(|| quiet(&mut theirs)),
        )?;
        rows.push(Row::new("P1", what, *name, pairs, *target));
    }
    Ok(rows)
}

/// Sandboxes that are measured where they are installed: how they run `true`, and what is to be
/// reached.
const OTHERS: &[(&str, Peer, &[&str], Target)] = &[
    ("codex sandbox", peer::CODEX, &["sandbox", "--", "/bin/true"], Target::TimeAtMost(0.2)),
    ("sandbox-runtime", peer::SRT, &["/bin/true"], Target::TimeAtMost(0.05)),
    (
        "firejail",
        peer::FIREJAIL,
        &["--quiet", "--noprofile", "--net=none", "/bin/true"],
        Target::None,
    ),
    (
        "sandlock, which records nothing",
        peer::SANDLOCK,
        &["run", "-r", "/usr", "-r", "/bin", "-r", "/lib", "-r", "/lib64", "--", "/bin/true"],
        Target::None,
    ),
];

/// Bubblewrap with the namespaces and binds that Capsule gives a command.
fn confined(bwrap: &Path, workspace: &Path) -> Command {
    let mut command = Command::new(bwrap);
    command.args(["--unshare-all", "--die-with-parent", "--new-session"]);
    command.args(["--ro-bind", "/usr", "/usr"]);
    for name in ["bin", "sbin", "lib", "lib64"] {
        let place = format!("/{name}");
        command.args(["--symlink", &format!("usr/{name}"), &place]);
    }
    command.args(["--ro-bind", "/etc", "/etc"]);
    command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    command.arg("--ro-bind").arg(workspace).arg("/workspace");
    command.args(["--chdir", "/workspace", "/bin/true"]);
    command
}

fn commit(sql: &mut Connection) -> Answer<()> {
    let written = sql.execute("INSERT INTO calls (bytes) VALUES (?1)", [[7_u8; 400]]);
    written.map(|_| ()).map_err(|error| format!("the reference cannot commit: {error}"))
}
