//! Two bytes that say how a text is cut, and the text. Masking ends, however hostile the text is, and
//! leaves what it does not mask as it stands; masking again comes to rest; it makes no difference in what
//! pieces the text comes; what is found is what is masked; and a part of the text shows nothing that is
//! masked in the whole.

use std::sync::LazyLock;

use capsule_redact::{CustomPattern, MaskingStream, Redactor, Secret, TextPiece, excerpt, masks};
use serde_json::Value;
use zeroize::Zeroizing;

/// The shipped rules, and one of each kind that a policy adds.
static REDACTORS: LazyLock<[Redactor; 2]> = LazyLock::new(|| {
    let secret = Secret::new("NAME", Zeroizing::new("horse/batt".into()));
    let custom = CustomPattern::parse("own", "acme_[A-Za-z0-9]{4,20}|a[b-d]{3,9}e");
    let more = Redactor::with(&[secret.expect("it is long enough")], &[custom.expect("it ends")]);
    [Redactor::builtin(), more]
});

/// How often a text is masked at most until masking it again changes nothing. Once is enough for what people
/// and programs write, which the tests of the crate hold; what stands beside a mask may look otherwise
/// than it did with what was masked.
const ROUNDS: usize = 5;

pub(super) fn run(bytes: &[u8]) {
    let Some(([size, start], text)) = bytes.split_first_chunk::<2>() else { return };
    let [builtin, _] = &*REDACTORS;
    for redactor in REDACTORS.iter() {
        masked(redactor, text, usize::from(*size % 97) + 1);
    }
    let start = usize::from(*start).min(text.len());
    let piece = TextPiece {
        bytes: text.to_vec(),
        window: start..text.len(),
        cut_before: true,
        cut_after: true,
    };
    let mut count = 0;
    let shown = builtin.piece(&piece, &mut count);
    assert!(count > 0 || *shown == text[start..]);
    if let Ok(text) = std::str::from_utf8(text) {
        let _ = (excerpt(text, start), excerpt(text, 0));
        let value =
            serde_json::json!({ "password": text, "list": [text, "-p", text], "x": { "y": text } });
        let more = |last: &Value| Some(builtin.value(last.clone(), &mut 0));
        let mut rounds = std::iter::successors(more(&value), more).take(ROUNDS);
        let rests = |last: Value| builtin.value(last.clone(), &mut 0) == last;
        assert!(rounds.any(rests), "masking a value does not come to rest");
    }
}

fn masked(redactor: &Redactor, text: &[u8], size: usize) {
    let mut count = 0;
    let whole = redactor.bytes(text, &mut count).into_owned();
    if count == 0 {
        assert_eq!(whole, text);
    }
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut stream = MaskingStream::with_findings(redactor.clone());
    let mut out = Vec::new();
    for piece in text.chunks(size) {
        stream.push(piece, &mut out);
    }
    stream.finish(false, &mut out);
    assert_eq!(told(&out), told(&whole), "in pieces of {size}");
    assert_eq!(stream.masked(), count);
    let findings = stream.take_findings();
    assert_eq!(findings.len() as u64, count);
    let mut end = 0;
    for found in &findings {
        assert!(found.offset >= end && found.length > 0, "{found:?}");
        end = found.offset + found.length;
    }
    assert!(end <= text.len() as u64);
    assert!(masks(&whole).count() as u64 >= count, "a mask that is none");
    let rests = |last: &Vec<u8>| redactor.bytes(last, &mut 0) == *last;
    let more = |last: &Vec<u8>| Some(redactor.bytes(last, &mut 0).into_owned());
    let mut rounds = std::iter::successors(Some(whole.clone()), more).take(ROUNDS);
    assert!(rounds.any(|last| rests(&last)), "masking does not come to rest");
    if redactor.restore_masks(&whole, text).is_ok_and(|made| made != text) {
        // Where lines are alike, the first of them is meant.
        assert!(masks(text).next().is_some() || count > 0);
    }
}
