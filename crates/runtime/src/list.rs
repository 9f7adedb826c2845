//! A command that is a list: judged as a whole first, and then its parts, each a call of its own when
//! it is reached, with what is found then.
//!
//! Nothing of a list runs unless all of it may. What a part finds may be otherwise than what the whole
//! found, since the parts before it have run: it is judged again, and where it may not run, the list
//! ends there.

use capsule_core::call::ToolCall;
use capsule_core::language::Join;
use capsule_core::limits;
use capsule_core::outcome::Status;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::delivered::Delivered;

/// The parts of a list.
pub(crate) struct List(Vec<Part>);

/// One part, as the call for the whole tells of it.
#[derive(Deserialize)]
struct Part {
    number: u64,
    join: Join,
    /// Whether anything runs; a part that only goes to another folder is done by those behind it.
    runs: bool,
}

impl List {
    /// The parts that the call for the whole found.
    pub(crate) fn of(whole: &Delivered) -> Option<Self> {
        let parts = whole.value.as_ref()?.get("parts")?;
        Vec::deserialize(parts).ok().map(Self)
    }

    /// Runs the parts one after the other, as they are joined.
    pub(crate) fn run<E>(
        self,
        call: &ToolCall,
        whole: Delivered,
        mut pass: impl FnMut(ToolCall) -> Result<Delivered, E>,
    ) -> Result<Delivered, E> {
        let mut sum = Sum::new(whole);
        for part in self.0 {
            let due = match part.join {
                Join::First | Join::Then => true,
                Join::And => sum.good,
                Join::Or => !sum.good,
            };
            if !due {
                continue;
            }
            if !part.runs {
                sum.good = true;
                continue;
            }
            let mut own = call.clone();
            if let Value::Object(args) = &mut own.args {
                args.insert("part".into(), part.number.into());
                // What the whole is given to read, the first program reads.
                if sum.reached {
                    args.remove("stdin");
                }
            }
            let done = pass(own)?;
            if !sum.add(done) {
                break;
            }
        }
        Ok(sum.delivered())
    }
}

/// What came of the parts so far.
struct Sum {
    whole: Delivered,
    value: Map<String, Value>,
    /// Whether the last part that ran ended with 0.
    good: bool,
    /// Whether any part ran.
    reached: bool,
}

/// What is put together of all parts.
const STREAMS: [&str; 2] = ["stdout", "stderr"];
/// What is added up.
const TOTALS: [&str; 4] =
    ["stdout_bytes_total", "stderr_bytes_total", "changes_total", "left_running"];

impl Sum {
    fn new(whole: Delivered) -> Self {
        Self { whole, value: Map::new(), good: true, reached: false }
    }

    /// Adds what came of a part; says whether the list goes on.
    fn add(&mut self, done: Delivered) -> bool {
        self.reached = true;
        self.good = done.status == Status::Ok;
        self.whole.status = done.status;
        self.whole.problem = done.problem;
        let Some(Value::Object(mut value)) = done.value else {
            // Nothing ran: why is what the whole ends with.
            self.whole.decision = done.decision;
            return false;
        };
        let mut cut = self.value.get("truncated") == Some(&Value::Bool(true));
        for name in STREAMS {
            // Bytes that are no text stand in the record of their own part.
            cut |= self.value.contains_key(&format!("{name}_base64"));
            let [before, before_tail] = texts(&self.value, name);
            let [own, own_tail] = texts(&value, name);
            let (text, tail) = joined((before, before_tail), (own, own_tail));
            value.extend(text.map(|text| (name.to_owned(), text.into())));
            value.extend(tail.map(|tail| (format!("{name}_tail"), tail.into())));
        }
        for name in TOTALS {
            let count = |map: &Map<String, Value>| map.get(name).and_then(Value::as_u64);
            if let Some(before) = count(&self.value) {
                let sum = before.saturating_add(count(&value).unwrap_or(0));
                value.insert(name.into(), sum.into());
            }
        }
        if let Some(Value::Array(mut changes)) = self.value.remove("changes") {
            let own = value.get("changes").and_then(Value::as_array);
            changes.extend(own.into_iter().flatten().cloned());
            changes.truncate(limits::STAGED_SHOWN);
            value.insert("changes".into(), changes.into());
        }
        if cut || too_long(&value) {
            value.insert("truncated".into(), true.into());
        }
        self.value = value;
        let ended = self.value.get("exit_code").is_some_and(Value::is_number);
        // What was cancelled or ran into a bound of the whole does not go on.
        ended || self.good
    }

    fn delivered(self) -> Delivered {
        let Self { mut whole, value, reached, .. } = self;
        whole.value = Some(match reached {
            true if !value.is_empty() => Value::Object(value),
            _ => json!({ "exit_code": 0, "stdout": "", "stderr": "" }),
        });
        whole
    }
}

/// What a result holds of a stream: the text, and the end of one that was cut.
fn texts(value: &Map<String, Value>, name: &str) -> [Option<String>; 2] {
    [name.to_owned(), format!("{name}_tail")]
        .map(|name| value.get(&name).and_then(Value::as_str).map(str::to_owned))
}

/// A text, and the end of one that was cut.
type HeadAndTail = (Option<String>, Option<String>);

/// Two outputs, one behind the other, up to the most that a command may give. Where the first was cut, all of
/// the other lies behind the gap.
fn joined((before, before_tail): HeadAndTail, (own, own_tail): HeadAndTail) -> HeadAndTail {
    let most = usize::try_from(limits::OUTPUT_BYTES_MAX).unwrap_or(usize::MAX);
    match before_tail {
        Some(first) => {
            (before, own_tail.or_else(|| Some(last(first + &own.unwrap_or_default(), most))))
        }
        None => {
            let text =
                before.map(|before| first(before + own.as_deref().unwrap_or_default(), most));
            (text.or(own), own_tail)
        }
    }
}

/// The first bytes of a text, as far as they are whole characters.
fn first(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}

/// The last ones.
fn last(mut text: String, most: usize) -> String {
    text.drain(..text.ceil_char_boundary(text.len().saturating_sub(most)));
    text
}

fn too_long(value: &Map<String, Value>) -> bool {
    STREAMS.iter().any(|name| {
        let length = value.get(*name).and_then(Value::as_str).map_or(0, str::len);
        u64::try_from(length).is_ok_and(|length| length >= limits::OUTPUT_BYTES_MAX)
    })
}
