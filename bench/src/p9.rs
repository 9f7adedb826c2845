//! P9: masking the secrets of mixed logs, against ripgrep with the same credential_kinds of credential as one
//! alternation. Ripgrep only counts what it finds; ours also looks for what no form tells (passwords
//! behind their names, in addresses, headers and command lines) and writes the whole text again.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Answer;
use crate::options::Options;
use crate::pairs::{Pairs, seconds};
use crate::peer::RIPGREP;
use crate::row::{Row, Target};

/// How much of the logs is written at once, and then again and again.
const BLOCK: usize = 8 << 20;

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let blocks = options.pick(128, 16);
    let rounds = options.pick(7, 3);
    let place = options.fresh("p9")?;
    let (logs, size) =
        logs(&place, blocks).map_err(|error| format!("{}: {error}", place.display()))?;
    let forms = place.join("forms.txt");
    let all: Vec<&str> = capsule_redact::credential_kinds().map(|own| own.pattern).collect();
    let written = std::fs::write(&forms, all.join("|"));
    written.map_err(|error| format!("{}: {error}", forms.display()))?;
    let binary = options.folder.join("dist").join("capsule");
    let ripgrep = RIPGREP.find()?;
    let open = || File::open(&logs).map_err(|error| format!("{}: {error}", logs.display()));
    let pairs = Pairs::take(
        rounds,
        Duration::from_millis(100),
        || {
            let mut command = Command::new(&binary);
            command.arg("redact").stdin(open()?).stdout(Stdio::null());
            seconds(|| succeeds(&mut command))
        },
        || {
            let mut command = Command::new(&ripgrep);
            command.args(["--no-config", "--text", "--no-unicode", "--count-matches", "--file"]);
            command.arg(&forms).arg("--").arg(&logs);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            seconds(|| succeeds(&mut command))
        },
    );
    let pairs = pairs?;
    let megabytes = size >> 20;
    let rate = |time: f64| f64::from(u32::try_from(megabytes).unwrap_or(u32::MAX)) / time;
    let (ours, theirs) = (rate(pairs.ours().median), rate(pairs.theirs().median));
    let what = format!("masking {megabytes} MiB of mixed logs, through a pipe of files");
    let row = Row::new(
        "P9",
        what,
        "ripgrep, the credential_kinds as one alternation",
        pairs,
        Target::TimeAtMost(2.0),
    )
    .note(format!(
        "{} credential_kinds; ours {ours:.0} MiB/s, ripgrep {theirs:.0} MiB/s",
        all.len()
    ));
    let _ = std::fs::remove_file(&logs);
    Ok(vec![row])
}

fn succeeds(command: &mut Command) -> Answer<()> {
    let status =
        command.stderr(Stdio::null()).status().map_err(|error| format!("{command:?}: {error}"))?;
    status.success().then_some(()).ok_or_else(|| format!("{command:?} ended with {status}"))
}

/// A generator of numbers that is the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }

    fn of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        let at = usize::try_from(self.below(words.len() as u64)).unwrap_or(0);
        words.get(at).copied().unwrap_or("")
    }

    fn text(&mut self, alphabet: &str, length: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let pick = |at: u64| letters.get(usize::try_from(at).unwrap_or(0)).copied().unwrap_or('x');
        (0..length).map(|_| pick(self.below(letters.len() as u64))).collect()
    }
}

const HEX: &str = "0123456789abcdef";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const WORDS: &[&str] = &[
    "request",
    "cache",
    "worker",
    "session",
    "token",
    "handler",
    "started",
    "finished",
    "key",
    "user",
    "connection",
    "retry",
    "timeout",
    "index",
    "the",
    "of",
    "is",
    "for",
    "with",
    "from",
    "queue",
];
const PATHS: &[&str] =
    &["/api/v1/items", "/login", "/static/app.js", "/health", "/api/v2/users/search"];

/// Puts the logs down; says where, and how much that is.
fn logs(place: &Path, blocks: usize) -> std::io::Result<(PathBuf, usize)> {
    let mut block = String::with_capacity(BLOCK + 1024);
    let mut numbers = Numbers(20);
    while block.len() < BLOCK {
        line(&mut numbers, &mut block);
        block.push('\n');
    }
    let file = place.join("logs.txt");
    let mut out = BufWriter::new(File::create(&file)?);
    for _ in 0..blocks {
        out.write_all(block.as_bytes())?;
    }
    out.flush()?;
    Ok((file, blocks * block.len()))
}

fn time(numbers: &mut Numbers) -> String {
    let (day, hour, minute) = (1 + numbers.below(28), numbers.below(24), numbers.below(60));
    let (second, millis) = (numbers.below(60), numbers.below(1000));
    format!("2026-03-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// One line: a server's, a program's, a build's, a lock file's, of JSON, a page of hex; one in three
/// hundred holds a credential.
fn line(numbers: &mut Numbers, out: &mut String) {
    let sentence = |numbers: &mut Numbers, count: u64| {
        let words: Vec<&str> = (0..count).map(|_| numbers.of(WORDS)).collect();
        words.join(" ")
    };
    let kind = numbers.below(300);
    let time = time(numbers);
    let made = match kind {
        0 => match numbers.below(3) {
            0 => format!(
                "{time} INFO clone https://x:ghp_{}@github.com/a/b",
                numbers.text(LETTERS, 36)
            ),
            1 => format!("{time} DEBUG env DB_PASSWORD={}", numbers.text(LETTERS, 18)),
            _ => format!("{time} DEBUG header authorization: Bearer {}", numbers.text(LETTERS, 43)),
        },
        1..=90 => format!(
            "10.{}.{}.{} - - [{time}] \"GET {}?page={} HTTP/1.1\" 200 {} \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"",
            numbers.below(256),
            numbers.below(256),
            numbers.below(256),
            numbers.of(PATHS),
            numbers.below(100),
            numbers.below(100_000)
        ),
        91..=180 => {
            let count = 6 + numbers.below(10);
            format!(
                "{time} {} [worker-{}] {}",
                numbers.of(&["INFO", "WARN", "DEBUG"]),
                numbers.below(32),
                sentence(numbers, count)
            )
        }
        181..=230 => format!(
            "{{\"ts\":\"{time}\",\"level\":\"info\",\"id\":\"{}-{}-4{}-a{}-{}\",\"msg\":\"{}\",\"ms\":{}}}",
            numbers.text(HEX, 8),
            numbers.text(HEX, 4),
            numbers.text(HEX, 3),
            numbers.text(HEX, 3),
            numbers.text(HEX, 12),
            sentence(numbers, 5),
            numbers.below(5000)
        ),
        231..=260 => format!(
            "   Compiling {}-{} v{}.{}.{}",
            numbers.of(WORDS),
            numbers.of(WORDS),
            numbers.below(9),
            numbers.below(30),
            numbers.below(30)
        ),
        261..=280 => format!("checksum = \"{}\"", numbers.text(HEX, 64)),
        _ => format!("{}  {}  |................|", numbers.text(HEX, 8), numbers.text(HEX, 32)),
    };
    out.push_str(&made);
}
