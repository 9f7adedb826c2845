//! P1: one confined command, cold: the whole process, against bubblewrap with the same namespaces
//! and binds plus one durable commit; and for comparison with one recursive bind, of the whole machine.
//!
//! Of this binary the best case is measured: `cargo xtask dist` has just laid it down in one piece, which the
//! machine's cache keeps until it needs the room (ADR 33). Started from a file that was read back, it takes about
//! a tenth more; the others are as their packages left them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::Answer;
use crate::binary::{Binary, printed, quiet};
use crate::options::Options;
use crate::pairs::{Pairs, seconds};
use crate::peer::{self, Peer};
use crate::row::{Row, Target};
use crate::same;

const POLICY: &str = r#"version: 1
name: one-command
tools:
  shell.run:
    executables:
      "true": { decision: allow }
      findmnt: { decision: allow }
"#;

/// A single bind: everything that the machine has, read-only.
const WHOLE: &[&str] = &["--ro-bind", "/", "/", "/bin/true"];

/// How long the kernel is given to take namespaces apart.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let bwrap = peer::BWRAP.find()?;
    let files = options.fresh("p1")?;
    let workspace = options.fresh("p1-workspace")?;
    let binary = Binary::new(options, &files, &workspace, POLICY)?;
    let sql = peer::commits(&files.join("reference.db"))?;
    let mounts = printed(&mut binary.command(&["exec"], &[&["--"], same::LIST].concat()))?;
    let empty = options.fresh("p1-empty")?;
    let mut theirs = same::confined(&bwrap, &mounts, (&workspace, &empty))?;
    let mut whole = Command::new(&bwrap);
    whole.args(same::NAMESPACES).args(WHOLE);
    let count = options.pick(101, 11);
    let against = |theirs: &mut Command| {
        Pairs::take(
            count,
            PAUSE,
            || seconds(|| quiet(&mut binary.command(&["exec"], &["--", "true"]))),
            || {
                seconds(|| {
                    quiet(theirs)?;
                    peer::commit(&sql)
                })
            },
        )
    };
    let against_same = against(&mut theirs)?;
    let against_whole = against(&mut whole)?;
    let bare = Pairs::take(
        count,
        PAUSE,
        || seconds(|| quiet(&mut binary.command(&["exec"], &["--", "true"]))),
        || seconds(|| quiet(&mut Command::new("/bin/true"))),
    )?;
    let what = "capsule exec -- true, whole process";
    let mut rows = vec![
        Row::new(
            "P1",
            what,
            "bwrap, the same binds, + 1 durable commit",
            against_same,
            Target::TimeAtMost(1.0),
        ),
        Row::new(
            "P1",
            what,
            "bwrap, one recursive bind, + 1 durable commit",
            against_whole,
            Target::None,
        ),
        Row::new("P1", what, "bare spawn of true", bare, Target::None),
    ];
    rows.extend(others(options, &binary, &workspace, what)?);
    Ok(rows)
}

/// The same against each of the others that is installed.
fn others(options: &Options, binary: &Binary, workspace: &Path, what: &str) -> Answer<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, peer, words, target) in OTHERS {
        let program = match peer.find() {
            Ok(program) => program,
            Err(why) => {
                eprintln!("P1: {name} is not measured: {why}");
                continue;
            }
        };
        let mut theirs = Command::new(program);
        theirs.args(*words).current_dir(workspace);
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
