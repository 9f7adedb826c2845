//! Every fuzz target on its seeds, and on inputs that are made of them: the short form of `fuzz/run`, which
//! needs no libFuzzer. The inputs are the same each time.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use capsule_core::journal::Entry;
use capsule_testkit::Numbers;
use fuzz::targets::{TARGETS, Target};

/// Inputs that are made of the seeds of one target, and the time after which no more are made.
const INPUTS: usize = 2_000;
const TIME: Duration = Duration::from_secs(3);
/// The longest input, in bytes: a little more than a URL may have.
const MAX_BYTES: usize = 9_000;

#[test]
fn properties_hold_for_seeds_and_what_is_made_of_them() {
    for target in TARGETS {
        let seeds = read_seeds(target);
        assert!(!seeds.is_empty(), "{} has no seed", target.name);
        seeds.iter().for_each(|seed| try_input(target, seed));
        let (mut numbers, began) = (Numbers(1), Instant::now());
        for _ in 0..INPUTS {
            if began.elapsed() > TIME {
                break;
            }
            let input = change(&seeds, &mut numbers);
            try_input(target, &input);
        }
    }
}

/// Records as they were written before are read to the very bytes: a field that was added to an event since has to be left out
/// where it is not set.
#[test]
fn entries_that_were_written_before_are_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/events");
    for name in ["decided", "ended", "finished", "opened", "proposed", "sealed", "started"] {
        let bytes = fs::read(directory.join(format!("{name}.json"))).unwrap();
        let entry = Entry::from_bytes(&bytes).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(String::from_utf8_lossy(&entry.to_bytes()), String::from_utf8_lossy(&bytes));
    }
}

fn read_seeds(target: &Target) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target.name);
    let mut paths: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn try_input(target: &Target, input: &[u8]) {
    let ran = std::panic::catch_unwind(|| (target.run)(input));
    assert!(ran.is_ok(), "{} fails for {:?}", target.name, String::from_utf8_lossy(input));
}

/// A seed with a few pieces taken out, doubled, replaced by one of another seed, or by a random byte.
fn change(seeds: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut input = seeds[numbers.below(seeds.len())].clone();
    for _ in 0..=numbers.below(4) {
        let start = numbers.below(input.len() + 1);
        let end = (start + numbers.below(16)).min(input.len());
        let piece = match numbers.below(4) {
            0 => Vec::new(),
            1 => input[start..end].repeat(2),
            2 => {
                let other = &seeds[numbers.below(seeds.len())];
                let from = numbers.below(other.len() + 1);
                other[from..(from + numbers.below(32)).min(other.len())].to_vec()
            }
            _ => vec![u8::try_from(numbers.below(256)).unwrap()],
        };
        input.splice(start..end, piece);
    }
    input.truncate(MAX_BYTES);
    input
}
