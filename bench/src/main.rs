//! Measures Capsule against references in the same run (`cargo xtask bench`).
//!
//! Absolute times on a shared machine mean nothing, so every number is a ratio: ours and the
//! reference are measured in turn, A B A B, and the median of the pairs' ratios counts. A target
//! that is not reached is no failure of the run; a measure that could not be taken is.

mod binary;
mod law;
mod least;
mod line;
mod mcp;
mod options;
mod origin;
mod p1;
mod p10;
mod p11;
mod p12;
mod p13;
mod p14;
mod p18;
mod p2;
mod p3;
mod p4;
mod p5;
mod p9;
mod pairs;
mod peer;
mod rmcp;
mod row;
mod same;
mod table;
mod tree;

use std::process::ExitCode;

use crate::options::Options;
use crate::row::Row;

/// What something gives, or why it could not be done.
pub(crate) type Answer<T> = Result<T, String>;

/// One measure: its id, and what takes it.
type Measure = (&'static str, fn(&Options) -> Answer<Vec<Row>>);

const MEASURES: &[Measure] = &[
    ("P1", p1::measure),
    ("P2", p2::measure),
    ("P3", p3::measure),
    ("P4", p4::measure),
    ("P5", p5::measure),
    ("P9", p9::measure),
    ("P10", p10::measure),
    ("P11", p11::measure),
    ("P12", p12::measure),
    ("P13", p13::measure),
    ("P14", p14::measure),
    ("P18", p18::measure),
];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::from(2)
        }
    }
}

/// Takes the measures that are wanted; says whether all of them could be taken.
fn run() -> Answer<bool> {
    if std::env::args().nth(1).as_deref() == Some(rmcp::WORD) {
        return rmcp::serve().map(|()| true);
    }
    let options = Options::parse(std::env::args().skip(1))?;
    let known: Vec<&str> = MEASURES.iter().map(|(id, _)| *id).collect();
    if let Some(id) = options.only.iter().flatten().find(|id| !known.contains(&id.as_str())) {
        return Err(format!("there is no measure {id}; there are {}", known.join(", ")));
    }
    let mut rows = Vec::new();
    let wanted = |id: &str| options.only.as_ref().is_none_or(|only| only.iter().any(|o| o == id));
    for (id, measure) in MEASURES.iter().filter(|(id, _)| wanted(id)) {
        eprintln!("{id} ...");
        match measure(&options) {
            Ok(more) => rows.extend(more),
            Err(why) => rows.push(Row::untaken(id, why)),
        }
    }
    table::print(&rows);
    let place = options.folder.join("bench.json");
    table::write(&rows, &options, &place)?;
    eprintln!("written {}", place.display());
    Ok(rows.iter().all(Row::was_taken))
}
