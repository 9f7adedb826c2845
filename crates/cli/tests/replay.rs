//! Replays that do not end as their recording: every cause of a divergence, and every part of a
//! recording that can be missing.
//!
//! A record that was edited does not verify, and is not replayed. These records are valid: they are
//! written anew, through the store, with other content, as another build or a faulty one would.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use capsule_core::journal::{Durability, Event, Journal, PayloadRef};
use capsule_core::policy::PayloadRetention;
use capsule_store::Store;
use capsule_testkit::recorded_run::{PLAN, RecordedRun};
use capsule_testkit::{Capsule, HttpServer};
use rusqlite::Connection;
use serde_json::{Value, json};

fn capsule() -> Capsule {
    Capsule::new(env!("CARGO_BIN_EXE_capsule"))
}

/// A record that can be changed and written anew.
struct Record {
    /// The entries, as JSON.
    events: Vec<Value>,
    /// What the payloads hold, by their commitments.
    payloads: BTreeMap<String, Vec<u8>>,
    /// The commitments of those that are erased once they are written.
    erased: BTreeSet<String>,
}

impl Record {
    /// The newest run of a store.
    fn of(store: &Path) -> Self {
        let store = Store::open_read_only(store).unwrap();
        let run = store.find("latest").unwrap();
        let (mut events, mut payloads) = (Vec::new(), BTreeMap::new());
        let visit = |stored: capsule_store::StoredEvent| {
            for (reference, payload) in store.payloads(stored.leaf, &stored.entry.event)? {
                payloads.insert(reference.commit.to_string(), payload.bytes.unwrap());
            }
            events.push(json!(stored.entry));
            Ok::<_, capsule_store::StoreError>(())
        };
        store.visit(&run, visit).unwrap();
        Self { events, payloads, erased: BTreeSet::new() }
    }

    /// Where the event of this kind and number stands.
    fn place(&self, kind: &str, number: usize) -> usize {
        let mut places = (0..self.events.len()).filter(|at| self.events[*at]["kind"] == kind);
        places.nth(number).unwrap()
    }

    /// What this event says.
    fn body(&mut self, kind: &str, number: usize) -> &mut Value {
        let at = self.place(kind, number);
        &mut self.events[at]["body"]
    }

    /// Leaves an event out.
    fn leave_out(&mut self, kind: &str, number: usize) {
        self.events.remove(self.place(kind, number));
    }

    /// Leaves everything out that was written of a call and its step.
    fn leave_out_call(&mut self, call: usize) {
        let from = self.place("call.proposed", call);
        self.events.drain(from..=self.place("step.ended", call));
    }

    /// The commitment to the payload in this field of an event.
    fn commitment(&self, kind: &str, number: usize, field: &str) -> String {
        let body = &self.events[self.place(kind, number)]["body"];
        body.pointer(field).unwrap()["commit"].as_str().unwrap().to_owned()
    }

    /// What the payload in this field of an event holds.
    fn payload(&mut self, kind: &str, number: usize, field: &str) -> &mut Vec<u8> {
        let commitment = self.commitment(kind, number, field);
        self.payloads.get_mut(&commitment).unwrap()
    }

    /// Replaces a part of a payload.
    fn replace(&mut self, kind: &str, number: usize, field: &str, from: &str, to: &str) {
        let payload = self.payload(kind, number, field);
        let text = String::from_utf8(payload.clone()).unwrap();
        assert!(text.contains(from), "{from} is not in {text}");
        *payload = text.replace(from, to).into_bytes();
    }

    /// Erases a payload.
    fn erase(&mut self, kind: &str, number: usize, field: &str) {
        self.erased.insert(self.commitment(kind, number, field));
        // Only where a run does not keep payloads does a record verify without them.
        self.body("run.opened", 0)["payloads"] = json!("digest");
    }

    /// Writes the record into a store of its own.
    fn write(&self, path: &Path) {
        let times: Vec<u64> =
            self.events.iter().map(|event| event["at"].as_u64().unwrap()).collect();
        let mut times = times.into_iter();
        let clock = Box::new(move || times.next().unwrap());
        let mut writer = Store::open(path).unwrap().begin(clock, PayloadRetention::Full).unwrap();
        let mut gone = Vec::new();
        for (number, event) in self.events.iter().enumerate() {
            let mut event = event.clone();
            let read = |event: &Value| serde_json::from_value::<Event>(event.clone()).unwrap();
            if event["kind"] == "run.sealed" {
                event["body"]["events"] = json!(number + 1);
            }
            for (old, class) in read(&event).payloads() {
                let commitment = old.commit.to_string();
                let new = writer.put_payload(class, &self.payloads[&commitment]).unwrap();
                renew(&mut event, &commitment, &new);
                if self.erased.contains(&commitment) {
                    gone.push(new.commit.to_string());
                }
            }
            writer.append(read(&event), Durability::CrashSafe).unwrap();
        }
        drop(writer);
        let store = Connection::open(path).unwrap();
        // As a run that keeps digests would have written them.
        let trigger = "SELECT sql FROM sqlite_schema WHERE name = 'payloads_stay'";
        let trigger: String = store.query_row(trigger, [], |row| row.get(0)).unwrap();
        store.execute_batch("DROP TRIGGER payloads_stay").unwrap();
        for commitment in gone {
            let forget = "UPDATE payloads SET bytes = NULL WHERE commitment = ?1";
            assert_eq!(store.execute(forget, [commitment]).unwrap(), 1);
        }
        store.execute_batch(&trigger).unwrap();
    }
}

/// Puts the new hold on a payload where the old one stood.
fn renew(value: &mut Value, old: &str, new: &PayloadRef) {
    match value {
        Value::Object(fields) if fields.get("commit").is_some_and(|commit| commit == old) => {
            *value = json!(new);
        }
        Value::Object(fields) => fields.values_mut().for_each(|value| renew(value, old, new)),
        _ => {}
    }
}

/// How the replay of a changed record has to end.
#[derive(PartialEq, Eq)]
enum Ends {
    /// As its recording says, with this status.
    Well(i32),
    /// It diverges, with this cause.
    Diverged(&'static str),
    /// The recording is not complete: this is missing.
    Incomplete(&'static str),
}
use Ends::{Diverged, Incomplete, Well};

/// A change of a record, or of the plan that it is compared with, and how the replay has to end.
struct Case {
    what: &'static str,
    ends: Ends,
    /// What standard error says besides.
    says: &'static [&'static str],
    /// What is replaced in the plan that is given, if one is given.
    plan: Option<&'static [(&'static str, &'static str)]>,
    keep_going: bool,
    change: fn(&mut Record),
}

/// A case in which the record is changed.
fn case(what: &'static str, ends: Ends, change: fn(&mut Record)) -> Case {
    Case { what, ends, says: &[], plan: None, keep_going: false, change }
}

impl Case {
    fn says(self, says: &'static [&'static str]) -> Self {
        Self { says, ..self }
    }

    fn with_plan(self, plan: &'static [(&'static str, &'static str)]) -> Self {
        Self { plan: Some(plan), ..self }
    }

    fn keep_going(self) -> Self {
        Self { keep_going: true, ..self }
    }

    /// Replays the changed record; says what is not as it has to be.
    fn run(&self, capsule: &Capsule, plan: &str) -> Option<String> {
        let folder = capsule.directory().join(self.what);
        fs::create_dir(&folder).unwrap();
        let mut record = Record::of(&capsule.store());
        (self.change)(&mut record);
        let store = folder.join("changed.db");
        record.write(&store);
        let store = store.to_string_lossy().into_owned();
        let _ = capsule.run(&["verify", "--store", &store]).exits(0);
        let mut line = vec!["replay", "latest", "--store", &store];
        let given = self.plan.map(|changes| {
            let changed = changes.iter().fold(plan.to_owned(), |text, (from, to)| {
                assert!(text.contains(from), "{}: {from} is not in the plan", self.what);
                text.replacen(from, to, 1)
            });
            capsule.write_plan(&changed)
        });
        line.extend(given.iter().flat_map(|plan| ["--plan", plan]));
        line.extend(self.keep_going.then_some("--keep-going"));
        let ran = capsule.run(&line);
        let (status, mut says) = match self.ends {
            Well(status) => (status, vec!["nothing was executed".to_owned()]),
            Diverged(cause) => (5, vec!["replay.diverged".to_owned(), format!("cause   {cause}")]),
            Incomplete(what) => (
                5,
                vec![
                    format!("the recording is not complete: {what}"),
                    "[replay.incomplete]".to_owned(),
                ],
            ),
        };
        says.extend(self.says.iter().map(|own| (*own).to_owned()));
        says.retain(|own| !ran.stderr.contains(own.as_str()));
        // Who did not change the plan is not told to run a changed one.
        let hint = ran.stderr.contains("run the changed plan anew");
        let hinted = hint == (self.ends == PLAN_CHANGED);
        let wrong = ran.status != status || !says.is_empty() || !hinted;
        wrong.then(|| {
            format!(
                "{}: {} and not {status}, without {says:?}\n{}",
                self.what, ran.status, ran.stderr
            )
        })
    }
}

/// Every case that does not end as it has to is told.
fn check(capsule: &Capsule, plan: &str, cases: &[Case]) {
    let wrong: Vec<String> = cases.iter().filter_map(|case| case.run(capsule, plan)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The plan of [`PLAN`], all of whose steps end as they are to: calls 0 `read`, 1 `denied`,
/// 2 `broken`, 3 `write`, 4 `wrong`, 5 `never`. All but `denied` are started.
fn plan() -> String {
    PLAN.replace("text: other", "text: \"hello \"")
}

/// Checks cases of a run of [`plan`].
fn check_plan(cases: &[Case]) {
    let RecordedRun { capsule, exit, .. } = RecordedRun::record(capsule(), &plan());
    assert_eq!(exit, 0);
    check(&capsule, &plan(), cases);
}

/// Checks cases of a run of one `fs.read`.
fn check_call(args: &Value, exit: i32, cases: &[Case]) {
    let RecordedRun { capsule, policy, .. } = RecordedRun::record(capsule(), PLAN);
    let args = args.to_string();
    let _ = capsule.run(&["call", "fs.read", "--policy", &policy, "--args", &args]).exits(exit);
    check(&capsule, PLAN, cases);
}

const PLAN_CHANGED: Ends = Diverged("the plan changed");
const ENGINE_BUG: Ends = Diverged("engine bug (same inputs, other bytes)");
const OTHER_TOOLS: Ends = Diverged("tool version changed");

/// CAP-10: a plan that was changed in its steps diverges at the first that differs, and the place
/// of that step is told in both plans.
#[test]
fn other_steps_are_a_changed_plan() {
    const READ: &str = "  - { id: read, tool: fs.read, args: { path: a.txt } }\n";
    const NEVER: &str = "  - { id: never, tool: fs.list, args: { path: . } }\n";
    check_plan(&[
        case("nothing", Well(0), |_| {}),
        case("the same plan", Well(0), |_| {}).with_plan(&[]),
        case("a step at the end", PLAN_CHANGED, |_| {})
            .with_plan(&[(
                "outputs:",
                "  - { id: new, tool: fs.list, args: { path: out } }\noutputs:",
            )])
            .says(&["at step `new` (6 of 6 served)", "plan.yaml:13", "which is new", ":6"]),
        case("a step in between, like one before", PLAN_CHANGED, |_| {})
            .with_plan(&[(
                "  - { id: denied",
                "  - { id: new, tool: fs.read, args: { path: a.txt } }\n  - { id: denied",
            )])
            .says(&["at step `new` (1 of 6 served)", "plan.yaml:6, which is new", ":1"]),
        case("no last step", PLAN_CHANGED, |_| {})
            .with_plan(&[(NEVER, "")])
            .says(&["at step `never` (5 of 6 served)", "it was plan.yaml:12"]),
        case("no step in between", PLAN_CHANGED, |_| {})
            .with_plan(&[("args: { path: nothing }", "when: \"\", args: { path: nothing }")])
            .says(&[
                "at step `broken` (2 of 6 served)",
                "recorded  call.proposed",
                "now       step.ended",
            ]),
        case("another order", PLAN_CHANGED, |_| {})
            .with_plan(&[
                (READ, ""),
                (
                    "  - id: write",
                    "  - { id: read, tool: fs.read, args: { path: a.txt } }\n  - id: write",
                ),
            ])
            .says(&[
                "at step `denied` (0 of 6 served)",
                "(step), was plan.yaml:6",
                "now       denied",
                ":2",
            ]),
        case("other outputs, listed", PLAN_CHANGED, |_| {})
            .with_plan(&[("file:", "other:")])
            .keep_going()
            .says(&["outputs.file", "outputs.other", "(6 of 6 served)"]),
        case("another plan than one that nobody reads", PLAN_CHANGED, |record| {
            *record.payload("run.opened", 0, "/plan/text") = b"version: 99\n".to_vec();
        })
        .with_plan(&[(NEVER, "")])
        .says(&["the plan changed\n"]),
        case("another path than in a plan that nobody reads", PLAN_CHANGED, |record| {
            *record.payload("run.opened", 0, "/plan/text") = b"version: 99\n".to_vec();
        })
        .with_plan(&[("path: a.txt", "path: b.txt")])
        .says(&["cause   the plan changed: plan.yaml:5 (args.path)\n"]),
        case("a difference, and less than the recording needs behind it", PLAN_CHANGED, |record| {
            record.erase("call.finished", 2, "/output");
        })
        .with_plan(&[("path: nothing", "path: nowhere")])
        .keep_going()
        .says(&["args.path", "recorded  nothing", "now       nowhere"]),
    ]);
}

/// CAP-10: where the plan is the recorded one, calls that are others than the recorded ones are
/// told as what they are.
#[test]
fn other_calls_diverge() {
    check_plan(&[
        case("other arguments", Diverged("arguments changed"), |record| {
            record.replace("call.proposed", 0, "/args", "a.txt", "b.txt");
        })
        .says(&[
            "at step `read` (0 of 6 served)",
            "args.path",
            "recorded  b.txt",
            "now       a.txt",
        ]),
        case("another tool", Diverged("order changed"), |record| {
            record.body("call.proposed", 0)["tool"] = json!("fs.list");
        })
        .says(&["  tool\n", "recorded  fs.list", "now       fs.read"]),
        case("a call is gone", Diverged("order changed"), |record| record.leave_out_call(3))
            .says(&["at step `write` (3 of 5 served)", "recorded  wrong", "now       write"]),
        case("the last call is gone", Diverged("extra call"), |record| record.leave_out_call(5))
            .says(&["at step `never` (5 of 5 served)", "recorded  run.sealed"]),
        case("the last calls are gone", Diverged("extra call"), |record| {
            record.leave_out_call(5);
            record.leave_out_call(4);
        })
        .says(&["at step `wrong` (4 of 4 served)", "the nearest is r-", ":1\n"]),
        case("a call more", Diverged("missing call"), |record| {
            let last = record.events[record.place("call.proposed", 5)..].to_vec();
            let seal = record.events.len() - 1;
            record.events.splice(seal..seal, last[..last.len() - 1].to_vec());
        })
        .says(&["at step `never` (6 of 7 served)", "now       run.sealed"]),
    ]);
    check_call(
        &json!({ "path": "a.txt" }),
        0,
        &[
            case("nothing", Well(0), |_| {}),
            case("a second call", Diverged("missing call"), |record| {
                let call = record.events[1..record.events.len() - 1].to_vec();
                record.events.splice(1..1, call);
            })
            .says(&["(1 of 2 served)"]),
        ],
    );
}

/// CAP-10: a decision that is another one is a changed policy, unless another build made
/// the record; where the decision is the same and its words are not, it is our fault.
#[test]
fn other_decisions_diverge() {
    const POLICY_CHANGED: Ends = Diverged("policy changed");
    check_plan(&[
        case("another rule", POLICY_CHANGED, |record| {
            record.body("call.decided", 0)["rule"] = json!("mine");
        })
        .says(&[
            "  rule\n",
            "recorded  mine",
            "now       fs.read",
            "at step `read` (0 of 6 served)",
        ]),
        case("no rule", POLICY_CHANGED, |record| {
            record.body("call.decided", 0)["rule"] = Value::Null;
        })
        .says(&["recorded  (nothing)"]),
        case("another decision", POLICY_CHANGED, |record| {
            let decided = record.body("call.decided", 1);
            decided["decision"] = json!("allow");
            decided["code"] = json!("policy.allowed");
        })
        .says(&[
            "  decision\n",
            "recorded  allow",
            "now       deny",
            "  code\n",
            "at step `denied` (1 of 6 served)",
        ]),
        case("another risk, and on", POLICY_CHANGED, |record| {
            record.body("call.decided", 0)["risk"] = json!("high");
        })
        .keep_going(),
        case("other words", ENGINE_BUG, |record| {
            record.replace("call.decided", 1, "/text", "reason", "REASON");
        }),
        case("another rule of another build", OTHER_TOOLS, |record| {
            record.body("run.opened", 0)["engine"] = json!("capsule 0.0.1 x86_64-linux");
            record.body("call.decided", 0)["rule"] = json!("mine");
        })
        .says(&["  rule\n"]),
    ]);
}

/// CAP-10: what follows from what was recorded, and is not what was recorded, is told: as the other
/// tools of another build, else as a fault of ours.
#[test]
fn other_ends_diverge() {
    check_plan(&[
        case("other tools", OTHER_TOOLS, |record| {
            record.body("run.opened", 0)["tools"] = json!("0".repeat(64));
            record.body("step.ended", 0)["ending"] = json!("skipped");
        }),
        case("other tools, and the same for all that", Well(0), |record| {
            record.body("run.opened", 0)["tools"] = json!("0".repeat(64));
        }),
        case("another beginning of a call", ENGINE_BUG, |record| {
            record.body("call.started", 0)["effects"] = json!(true);
        })
        .says(&["at step `read` (1 of 6 served)"]),
        case("another end of a call", ENGINE_BUG, |record| {
            record.body("call.finished", 1)["status"] = json!("ok");
        })
        .says(&["at step `broken` (3 of 6 served)"]),
        case("neither beginning nor end of a call", ENGINE_BUG, |record| {
            record.leave_out("call.finished", 0);
            record.leave_out("call.started", 0);
        })
        .says(&["at step `read`", "recorded  step.ended", "now       call.started"]),
        case("another ending of a step", ENGINE_BUG, |record| {
            record.body("step.ended", 0)["ending"] = json!("skipped");
        })
        .says(&[
            "at step `read` (1 of 6 served)",
            "  ending\n",
            "recorded  skipped",
            "now       ok",
        ]),
        case("another step", ENGINE_BUG, |record| {
            record.body("step.ended", 0)["step"] = json!("mine");
        })
        .says(&["  step\n", "recorded  mine", "now       read"]),
        case("a step more", ENGINE_BUG, |record| {
            let (last, seal) = (record.place("step.ended", 5), record.events.len() - 1);
            record.events.insert(seal, record.events[last].clone());
        })
        .says(&[
            "at step `never` (6 of 6 served)",
            "recorded  step.ended",
            "now       run.sealed",
        ]),
        case("a step that ends it", ENGINE_BUG, |record| {
            record.body("step.ended", 2)["goes_on"] = json!(false);
        })
        .says(&["  goes on\n", "recorded  false", "now       true"]),
        case("another note", ENGINE_BUG, |record| {
            record.replace("step.ended", 2, "/note", "nothing", "something");
        })
        .says(&["  note\n", "something", "nothing"]),
        case("no note", ENGINE_BUG, |record| {
            record.body("step.ended", 2)["note"] = Value::Null;
        })
        .says(&["  note\n", "recorded  (nothing)"]),
        case("a note too many", ENGINE_BUG, |record| {
            let note = record.body("step.ended", 2)["note"].clone();
            record.body("step.ended", 0)["note"] = note;
        })
        .says(&["  note\n", "now       (nothing)"]),
        case("another exit", ENGINE_BUG, |record| {
            record.body("run.sealed", 0)["exit"] = json!("denied");
        })
        .says(&["  exit\n", "recorded  3", "now       0", "(6 of 6 served)"]),
        case("another count", ENGINE_BUG, |record| {
            record.body("run.sealed", 0)["calls"] = json!(7);
        })
        .says(&["  calls\n", "recorded  7", "now       6"]),
        case("other outputs", ENGINE_BUG, |record| {
            record.replace("run.sealed", 0, "/outputs", "out/b.txt", "out/c.txt");
        })
        .says(&["outputs.file", "recorded  out/c.txt", "now       out/b.txt"]),
        case("no outputs", ENGINE_BUG, |record| {
            record.body("run.sealed", 0)["outputs"] = Value::Null;
        })
        .says(&["outputs.file", "recorded  (nothing)", "now       out/b.txt"]),
    ]);
}

/// CAP-10, CAP-12: where something that a replay needs was not kept or is not there, the replay ends
/// and says what it is; nothing else is put in its place.
#[test]
fn an_incomplete_recording_is_not_replayed() {
    check_plan(&[
        case("no policy", Incomplete("the policy was not kept"), |record| {
            record.erase("run.opened", 0, "/policy/text");
        }),
        case("no plan", Incomplete("the plan was not kept"), |record| {
            record.erase("run.opened", 0, "/plan/text");
        }),
        case("no plan, and another", Incomplete("a text that the run began with"), |record| {
            record.erase("run.opened", 0, "/plan/text");
        })
        .with_plan(&[("path: nothing", "path: nowhere")]),
        case("no inputs", Incomplete("the inputs were not kept"), |record| {
            record.erase("run.opened", 0, "/inputs");
        }),
        case(
            "a newer policy",
            Incomplete("this build does not read the recorded policy"),
            |record| {
                *record.payload("run.opened", 0, "/policy/text") = b"version: 99\n".to_vec();
            },
        ),
        case("a newer plan", Incomplete("this build does not read the recorded plan"), |record| {
            *record.payload("run.opened", 0, "/plan/text") = b"version: 99\n".to_vec();
        }),
        case(
            "no arguments",
            Incomplete("a payload of event 2 (arguments) was not kept"),
            |record| {
                record.erase("call.proposed", 0, "/args");
            },
        ),
        case("no decision", Incomplete("the decision on a call is missing"), |record| {
            record.leave_out("call.decided", 0);
        }),
        case("no action", Incomplete("what a call meant is missing"), |record| {
            record.erase("call.decided", 0, "/action");
        }),
        case("no words", Incomplete("a payload of event 3 (text) was not kept"), |record| {
            record.erase("call.decided", 0, "/text");
        }),
        case("no beginning", Incomplete("what kept a call from beginning is missing"), |record| {
            record.leave_out("call.started", 0);
        }),
        case("no end", Incomplete("the end of a call is missing"), |record| {
            record.leave_out("call.finished", 0);
        }),
        case("no result", Incomplete("the result of a call is missing"), |record| {
            record.erase("call.finished", 0, "/output");
        }),
        case("no problem", Incomplete("what went wrong in a call is missing"), |record| {
            record.erase("call.finished", 1, "/problem");
        }),
        case("no note", Incomplete("a payload of event 14 (text) was not kept"), |record| {
            record.erase("step.ended", 2, "/note");
        }),
        case("no outputs", Incomplete("a payload of event 30 (output) was not kept"), |record| {
            record.erase("run.sealed", 0, "/outputs");
        }),
    ]);
    check_call(
        &json!({ "path": "a.txt" }),
        0,
        &[
            case("no arguments", Incomplete("the call's arguments were not kept"), |record| {
                record.erase("call.proposed", 0, "/args");
            }),
            case("no call", Incomplete("the call is missing"), |record| {
                record.leave_out("call.proposed", 0);
            }),
        ],
    );
    check_call(
        &json!({ "pth": 1 }),
        1,
        &[case("no reason", Incomplete("the reason of a denial is missing"), |record| {
            record.erase("call.decided", 0, "/text")
        })],
    );
}

/// CAP-10: a run that was written out replays without what is private, which such a file does not hold.
#[test]
fn a_run_without_what_is_private_replays() {
    let RecordedRun { capsule, policy, plan, .. } = RecordedRun::record(capsule(), &plan());
    let out = capsule.directory().join("run.db").to_string_lossy().into_owned();
    let line = ["run", &plan, "--policy", &policy, "--input", "who=you", "--out", &out];
    let _ = capsule.run(&line).exits(0);
    let private =
        "SELECT count(*) FROM payloads WHERE class IN ('key', 'undo') AND bytes IS NOT NULL";
    let kept = |store: &Path| -> i64 {
        Connection::open(store).unwrap().query_row(private, [], |row| row.get(0)).unwrap()
    };
    assert!(kept(Path::new(&capsule.store())) > 0 && kept(Path::new(&out)) == 0);
    let _ = capsule.run(&["verify", "--store", &out]).exits(0);
    let _ = capsule.run(&["replay", "latest", "--store", &out]).exits(0);
}

/// CAP-10: a call that ended before it began replays so, and what stood in its way is needed.
#[test]
fn a_call_that_never_began_replays() {
    let text = "version: 1
inputs: { who: { default: world } }
steps: [{ id: write, tool: fs.write, args: { path: out/old, content: x, mode: overwrite } }]
";
    let before = capsule();
    before.write_file("out/old", "old");
    // What is replaced has nowhere to be kept.
    fs::create_dir_all(before.store().parent().unwrap()).unwrap();
    fs::write(before.store().with_file_name("store.db.undo"), "").unwrap();
    let RecordedRun { capsule, exit, transcript, .. } = RecordedRun::record(before, text);
    assert!(exit == 1 && transcript.contains("undo.unkept"), "{transcript}");
    assert_eq!(fs::read(capsule.workspace().join("out/old")).unwrap(), b"old");
    check(
        &capsule,
        text,
        &[
            case("nothing", Well(1), |_| {}),
            case(
                "no problem",
                Incomplete("what kept a call from beginning is missing"),
                |record| {
                    record.erase("call.finished", 0, "/problem");
                },
            ),
        ],
    );
}

/// CAP-10: a run that was interrupted replays to where it was, and is interrupted there.
#[test]
fn an_interruption_replays() {
    fn interrupt(record: &mut Record, calls: u64) {
        let sealed = record.body("run.sealed", 0);
        sealed["exit"] = json!("interrupted");
        sealed["calls"] = json!(calls);
    }
    check_plan(&[
        case("between steps", Well(130), |record| {
            let (from, to) = (record.place("step.ended", 1), record.place("run.sealed", 0));
            record.events.drain(from + 1..to);
            interrupt(record, 2);
            record.body("run.sealed", 0)["outputs"] = Value::Null;
        }),
        case("at the end", Well(130), |record| interrupt(record, 6)),
        case("between steps that are others", PLAN_CHANGED, |record| {
            let (from, to) = (record.place("step.ended", 1), record.place("run.sealed", 0));
            record.events.drain(from + 1..to);
            interrupt(record, 2);
            record.body("run.sealed", 0)["outputs"] = Value::Null;
        })
        .with_plan(&[("path: .env", "path: .netrc")]),
    ]);
    check_call(
        &json!({ "path": "a.txt" }),
        0,
        &[
            case("before the call", Well(130), |record| {
                let to = record.place("run.sealed", 0);
                record.events.drain(1..to);
                interrupt(record, 0);
            }),
            case("behind the call", Well(130), |record| interrupt(record, 1)),
        ],
    );
}

/// A policy that allows everything on a server.
fn fetching(capsule: &Capsule, server: &HttpServer) -> String {
    capsule.write_policy(&format!(
        "version: 1\ntools:\n  http.get:\n    decision: allow\n    urls: [\"http://127.0.0.1:{}/**\"]\n    \
         private_ips: {{ allow: [127.0.0.1] }}\n",
        server.port()
    ))
}

/// CAP-10: a run that goes on is not replayed, and neither is one whose process was killed.
#[test]
fn a_run_without_an_end_is_not_replayed() {
    let capsule = capsule();
    let server = HttpServer::start(|_, _| {
        loop {
            thread::park()
        }
    });
    let policy = fetching(&capsule, &server);
    let plan = capsule.write_plan(&format!(
        "- {{ id: get, tool: http.get, args: {{ url: \"{}\" }} }}\n",
        server.url("/")
    ));
    let mut child = capsule
        .command(&["run", &plan, "--policy", &policy])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while server.requests().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "nothing was asked for");
        thread::sleep(Duration::from_millis(10));
    }
    let said = |says: &str| {
        let stderr = capsule.run(&["replay", "latest"]).exits(5).stderr;
        assert!(stderr.contains("[replay.incomplete]") && stderr.contains(says), "{stderr}");
    };
    said("the run goes on");
    child.kill().unwrap();
    child.wait().unwrap();
    said("the run ended before it was sealed");
}

/// CAP-10: of a URL that differs in its query only, the query is told.
#[test]
fn another_query_is_told() {
    let capsule = capsule();
    let server = HttpServer::fixed("200 OK", "", "yes");
    let policy = fetching(&capsule, &server);
    let text = format!(
        "- {{ id: get, tool: http.get, args: {{ url: \"{}\" }} }}\n",
        server.url("/x?page=1")
    );
    let plan = capsule.write_plan(&text);
    let _ = capsule.run(&["run", &plan, "--policy", &policy]).exits(0);
    check(
        &capsule,
        &text,
        &[
            case("another page", PLAN_CHANGED, |_| {}).with_plan(&[("page=1", "page=2")]).says(&[
                "  url.query\n",
                "recorded  page=1",
                "now       page=2",
            ]),
            case("another path", PLAN_CHANGED, |_| {}).with_plan(&[("/x?", "/y?")]).says(&[
                "  args.url\n",
                "/x?page=1",
                "/y?page=1",
            ]),
        ],
    );
    assert_eq!(server.requests().len(), 1, "a replay asks for nothing");
}
