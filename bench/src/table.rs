//! The result: one table for people, one file for programs. Absolute times stand only beside the
//! ratio that gives them a meaning.

use std::path::Path;

use serde_json::{Value, json};

use crate::Answer;
use crate::options::Options;
use crate::pairs::Spread;
use crate::row::Row;

const HEAD: [&str; 7] = ["id", "what", "ours", "reference", "ratio", "target", "verdict"];

/// Prints the table, and the notes below it.
pub(crate) fn print(rows: &[Row]) {
    let mut lines: Vec<Vec<String>> = vec![HEAD.iter().map(|cell| (*cell).to_owned()).collect()];
    lines.extend(rows.iter().map(cells));
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(|column| width(column).unwrap_or(0)).collect();
    for line in &lines {
        let padded: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        println!("{}", padded.join("  ").trim_end());
    }
    println!();
    for row in rows {
        if let Err(why) = &row.pairs {
            println!("{} not measured: {why}", row.id);
        }
        row.notes.iter().for_each(|note| println!("{} {}: {note}", row.id, row.what));
    }
    println!("ratios are medians of pairs taken in turn, with the least and the most in brackets");
}

fn cells(row: &Row) -> Vec<String> {
    let (ours, reference) = match &row.pairs {
        Ok(pairs) => (
            row.unit.show(pairs.ours().median),
            format!("{} {}", row.unit.show(pairs.theirs().median), row.reference),
        ),
        Err(_) => ("-".to_owned(), row.reference.clone()),
    };
    let ratio = row.ratio().map_or_else(|| "-".to_owned(), ratio);
    vec![
        row.id.to_owned(),
        row.what.clone(),
        ours,
        reference,
        ratio,
        row.wanted(),
        row.verdict().to_owned(),
    ]
}

fn ratio(spread: Spread) -> String {
    let digits = if spread.median < 0.1 { 4 } else { 2 };
    let Spread { median, least, most } = spread;
    if most.is_nan() {
        return format!("{median:.digits$} ({least:.digits$}-unmeasured)");
    }
    format!("{median:.digits$} ({least:.digits$}-{most:.digits$})")
}

/// Writes the file.
pub(crate) fn write(rows: &[Row], options: &Options, place: &Path) -> Answer<()> {
    let rows: Vec<Value> = rows.iter().map(record).collect();
    let all = json!({ "version": 2, "quick": options.quick, "rows": rows });
    let text = format!("{all:#}\n");
    std::fs::write(place, text).map_err(|error| format!("{}: {error}", place.display()))
}

fn record(row: &Row) -> Value {
    let spread = |spread: Spread| json!({ "median": spread.median, "min": spread.least, "max": spread.most });
    let pairs = row.pairs.as_ref().ok();
    json!({
        "id": row.id,
        "what": row.what,
        "reference": row.reference,
        "ratio": row.ratio().map(spread),
        "target": row.wanted(),
        "verdict": row.verdict(),
        "unit": row.unit.word(),
        "ours": pairs.map(|pairs| spread(pairs.ours())),
        "theirs": pairs.map(|pairs| spread(pairs.theirs())),
        "pairs": pairs.map(crate::pairs::Pairs::count),
        "missing": row.pairs.as_ref().err(),
        "notes": row.notes,
    })
}
