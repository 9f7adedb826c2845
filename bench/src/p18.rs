//! P18: sessions. Their hundredth command beside the first and the second, each a process of its own that changes a
//! file; and the memory of a process that serves one session, after 10,000 calls beside 1,000.

use crate::Answer;
use crate::binary::{Binary, quiet};
use crate::options::Options;
use crate::p13;
use crate::pairs::{Pairs, seconds};
use crate::row::{Row, Target};

const POLICY: &str = r#"version: 1
name: session
budgets: { run: { calls: 1000000 } }
tools:
  shell.run:
    executables:
      touch: { decision: allow, capabilities: [proc.exec, fs.write], writes: ["**"] }
"#;

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let mut rows = commands(options)?;
    rows.push(memory(options)?);
    Ok(rows)
}

fn commands(options: &Options) -> Answer<Vec<Row>> {
    let workspace = options.fresh("p18-workspace")?;
    let binary = Binary::new(options, &options.fresh("p18")?, &workspace, POLICY)?;
    let [mut first, mut second, mut last] = [const { Vec::new() }; 3];
    for round in 0..options.pick(21, 3) {
        let session = format!("job:{round}");
        for number in 1..=100 {
            let file = format!("f{number}");
            let words = ["--", "touch", &file];
            let mut command = binary.command(&["exec", "--session", &session], &words);
            let time = seconds(|| quiet(&mut command))?;
            match number {
                1 => first.push(time),
                2 => second.push(time),
                100 => last.push(time),
                _ => {}
            }
        }
    }
    let row = |reference, theirs, target| {
        let pairs = Pairs::of(last.clone(), theirs);
        Row::new("P18", "the hundredth command of a session", reference, pairs, target)
    };
    Ok(vec![
        row("its first", first, Target::TimeAtMost(1.2)),
        row("its second", second, Target::None),
    ])
}

fn memory(options: &Options) -> Answer<Row> {
    let few = options.pick(1_000, 100);
    let workspace = options.fresh("p18-served")?;
    let binary = Binary::new(options, &options.fresh("p18-server")?, &workspace, p13::POLICY)?;
    let paths = p13::files(&workspace)?;
    let mut client = p13::ours(&binary)?;
    client.read(&paths, (few, 1), p13::MARK)?;
    let before = client.memory()?;
    client.read(&paths, (9 * few, 1), p13::MARK)?;
    let pairs = Pairs::of(vec![client.memory()?], vec![before]);
    let what = format!("memory after {} calls of one session", 10 * few);
    let reference = format!("after {few}");
    Ok(Row::new("P18", what, reference, pairs, Target::TimeAtMost(1.05)).in_bytes())
}
