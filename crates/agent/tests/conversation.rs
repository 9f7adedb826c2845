//! Conversations with a scripted model, over a real workspace, policy and record.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use capsule_agent::{
    AnswerPiece, Conversation, ConversationEvent, ConversationObserver, Message, Model,
    ModelAnswer, ModelCall, RequestError, ScriptedModel, TaskEnd, TaskLimits, Until,
};
use capsule_base::code::Code;
use capsule_base::exit::Exit;
use capsule_core::capability::Capabilities;
use capsule_core::journal::{Event, RunKind};
use capsule_core::outcome::CodedError;
use capsule_runtime::{
    BoundPolicy, Cancel, CommandRunner, LiveRunOptions, ModelSession, ModelTool, NoPrompt,
    NullObserver, NullSink, Observer, PolicyLoadOptions, PolicySource, QuestionPrompt,
    ReplaySource, SessionChoice, SessionRequest, TokenCount, WrittenEvent, replay,
};
use capsule_store::{Store, StoreError};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

const POLICY: &str = "version: 1
name: talk
sandbox: { workspace: direct }
tools:
  fs.list: allow
  fs.read: { decision: allow, paths: { allow: [\"docs/**\"] } }
  fs.edit: { decision: allow, paths: { allow: [\"docs/**\"] } }
  fs.write: { decision: deny, paths: { allow: [\"**\"] } }
";

const SECRET: &str = "ghp_9fA2kLm3Qr5Tv7Xz1Bc4De6Fg8Hj0NpSuWyA";

/// A workspace with a store beside it.
struct Place {
    directory: TempDir,
    policy: BoundPolicy,
}

impl Place {
    fn new() -> Self {
        Self::under(POLICY)
    }

    fn under(policy: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("ws");
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("docs/a.txt"), "if a < b && c {}\n").unwrap();
        fs::write(root.join("docs/long.txt"), "a line of text\n".repeat(3_000)).unwrap();
        fs::write(root.join("secret.txt"), "of no concern").unwrap();
        fs::write(directory.path().join("policy.yaml"), policy).unwrap();
        let policy = BoundPolicy::load(&PolicyLoadOptions {
            source: &PolicySource::File(directory.path().join("policy.yaml")),
            workspace: Some(&root),
            shell_cwd: None,
            cwd: directory.path(),
            home: Path::new("/home/user"),
            own_files: &[directory.path().join("store.db")],
            user_layer: &directory.path().join("home/policy.yaml"),
            profile: None,
        });
        Self { policy: policy.unwrap(), directory }
    }

    fn store(&self) -> PathBuf {
        self.directory.path().join("store.db")
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join("ws").join(name)).unwrap()
    }

    /// Works in the session of this name.
    fn session<T>(
        &self,
        watching: &mut dyn Observer,
        work: impl FnOnce(ModelSession<'_>) -> T,
    ) -> T {
        let options = LiveRunOptions {
            policy: &self.policy,
            store: &self.store(),
            kind: RunKind::Chat,
            subject: None,
            name: "talk".into(),
            plan: None,
            steps: 0,
            inputs: json!({}),
            command_runner: CommandRunner::default(),
            capabilities: Capabilities::NONE,
            cancel: Cancel::default(),
            sink: Rc::new(NullSink),
            why_not_disposable: Box::new(|| Ok(())),
            is_isolated: || false,
            env: Box::new(|_| None),
            accepts_layer: false,
            is_gate: false,
            agent_host: None,
            for_agent: false,
            observer: watching,
            prompt: Box::new(NoPrompt),
        };
        let choice = SessionChoice::Named("talk".to_owned());
        let idle = Duration::from_secs(3_600);
        let request = SessionRequest { choice: &choice, policy: &self.policy, idle };
        work(ModelSession::open(options, request).unwrap())
    }

    fn only_run(&self) -> String {
        Store::open(&self.store()).unwrap().runs_with_prefix("r-").unwrap().pop().unwrap()
    }

    /// The events of the only run, as they are stored, and a replay of it to the same bytes.
    fn replay(&self, times: u32) {
        for _ in 0..times {
            let store = Store::open(&self.store()).unwrap();
            let run = self.only_run();
            let source = ReplaySource { store, run: &run, plan: None, keep_going: false };
            let _ = replay(source, &mut NullObserver).unwrap();
        }
    }

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let store = Store::open(&self.store()).unwrap();
        let visited = store.visit::<StoreError>(&self.only_run(), |stored| {
            events.push(stored.entry.event);
            Ok(())
        });
        visited.unwrap();
        events
    }
}

/// A model that does what a function says of each request's body.
struct Playing<F> {
    play: RefCell<F>,
    bodies: Rc<RefCell<Vec<Value>>>,
    /// When the last piece of a text came.
    came: Rc<Cell<Option<Instant>>>,
    window: u64,
}

type Played = Result<(ModelAnswer, TokenCount), RequestError>;

impl<F: FnMut(&Value, usize) -> Played> Playing<F> {
    fn new(play: F) -> Self {
        let (bodies, came) = (Rc::default(), Rc::default());
        Self { play: RefCell::new(play), bodies, came, window: 128_000 }
    }
}

impl<F: FnMut(&Value, usize) -> Played> Model for Playing<F> {
    fn endpoint(&self) -> &'static str {
        "test:"
    }

    fn name(&self) -> &'static str {
        "m"
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn body(&self, instructions: &str, tools: &[ModelTool], messages: &[Message]) -> Value {
        let sent: Vec<Value> = messages.iter().map(shown).collect();
        let tools: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
        json!({ "instructions": instructions, "tools": tools, "messages": sent })
    }

    fn ask(
        &self,
        body: &[u8],
        until: &Until<'_>,
        on_piece: &mut dyn FnMut(AnswerPiece<'_>),
    ) -> Played {
        until.check()?;
        let body: Value = serde_json::from_slice(body).unwrap();
        let number = self.bodies.borrow().len();
        self.bodies.borrow_mut().push(body.clone());
        let (answer, tokens) = (self.play.borrow_mut())(&body, number)?;
        // In pieces of odd sizes.
        let mut rest = answer.text.as_str();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.ceil_char_boundary(7.min(rest.len())));
            self.came.set(Some(Instant::now()));
            on_piece(AnswerPiece::Text(piece));
            rest = behind;
        }
        Ok((answer, tokens))
    }
}

fn shown(message: &Message) -> Value {
    match message {
        Message::User(text) => json!({ "user": text }),
        Message::Model(answer) => {
            let calls = answer.calls.iter().map(|call| json!([call.id, call.tool, call.args]));
            json!({ "model": answer.text, "calls": calls.collect::<Vec<_>>() })
        }
        Message::ToolResult { id, text } => json!({ "result": text, "of": id }),
    }
}

fn say(text: &str) -> ModelAnswer {
    ModelAnswer { text: text.to_owned(), calls: Vec::new() }
}

fn call(tool: &str, args: &Value) -> ModelAnswer {
    let call = ModelCall { id: String::new(), tool: tool.to_owned(), args: args.to_string() };
    ModelAnswer { text: String::new(), calls: vec![call] }
}

fn scripted(answers: Vec<ModelAnswer>) -> Playing<impl FnMut(&Value, usize) -> Played> {
    let mut answers = VecDeque::from(answers);
    Playing::new(move |_, _| Ok((answers.pop_front().unwrap(), TokenCount::default())))
}

/// Keeps what a screen would show.
#[derive(Default)]
struct Watching {
    text: String,
    seen: Vec<String>,
}

impl ConversationObserver for Watching {
    fn on_conversation(&mut self, event: &ConversationEvent<'_>) {
        match event {
            ConversationEvent::Requested { turn } => self.seen.push(format!("requested {turn}")),
            ConversationEvent::Text(piece) => self.text.push_str(piece),
            ConversationEvent::TextDropped => self.text.clear(),
            ConversationEvent::Answered { text, calls } => {
                assert_eq!(*text, self.text);
                self.text.clear();
                self.seen.push(format!("answered {calls}"));
            }
            ConversationEvent::CallProposed { tool, .. } => self.seen.push((*tool).to_owned()),
            ConversationEvent::CallFinished { answer, .. } => {
                let results: Value = serde_json::from_str(&answer.text).unwrap_or_default();
                self.seen.push(results["status"].as_str().unwrap_or("?").to_owned());
            }
        }
    }
}

/// What is shown while it comes is the text that is recorded, also where a credential comes in pieces; the key words of
/// the screen come in order.
#[test]
fn the_text_that_is_shown_is_the_text_that_is_recorded() {
    let place = Place::new();
    let text = format!("größer – the token is {SECRET}, and «that» is all\n");
    let model = scripted(vec![
        ModelAnswer { text: text.clone(), ..call("fs_list", &json!({ "path": "docs" })) },
        say(&text),
    ]);
    let bodies = Rc::clone(&model.bodies);
    let mut watching = Watching::default();
    let end = place.session(&mut NullObserver, |mut session| {
        let mut conversation = Conversation::new(Box::new(model), TaskLimits::default());
        let end = conversation
            .say(&mut session, "what is there?", &Cancel::default(), &mut watching)
            .unwrap();
        let _ = session.end(end.exit()).unwrap();
        end
    });
    let TaskEnd::Answered { text, lacked_approval: false } = end else { panic!("{end:?}") };
    assert!(text.starts_with("größer – the token is «") && !text.contains(SECRET), "{text}");
    let expected = ["requested 1", "answered 1", "fs_list", "ok", "requested 2", "answered 0"];
    assert_eq!(watching.seen, expected);
    assert!(!bodies.borrow()[1].to_string().contains(SECRET));
    place.replay(often(5, 100));
}

/// Measures how long the pieces of a text take from the model to the screen.
struct Timing(Rc<Cell<Option<Instant>>>, Vec<Duration>);

impl ConversationObserver for Timing {
    fn on_conversation(&mut self, event: &ConversationEvent<'_>) {
        if let ConversationEvent::Text(_) = event {
            self.1.extend(self.0.take().map(|came| came.elapsed()));
        }
    }
}

/// The first piece of a text is on the screen within five milliseconds.
#[test]
fn a_text_is_shown_at_once() {
    let place = Place::new();
    let model = scripted((0..20).map(|_| say("one word after the other")).collect());
    let mut timing = Timing(Rc::clone(&model.came), Vec::new());
    place.session(&mut NullObserver, |mut session| {
        let mut conversation = Conversation::new(Box::new(model), TaskLimits::default());
        for _ in 0..20 {
            let _ =
                conversation.say(&mut session, "talk", &Cancel::default(), &mut timing).unwrap();
        }
        let _ = session.end(Exit::Ok).unwrap();
    });
    assert!(timing.1.len() >= 20);
    // Another process may have taken the time of some of them.
    let least = timing.1.iter().min().unwrap();
    assert!(*least < Duration::from_millis(5), "{:?}", timing.1);
}

/// Edits in a text are calls like others, and a block that is none is explained.
#[test]
fn edits_in_a_text_are_made() {
    let place = Place::new();
    let edit = "<edit path=\"docs/a.txt\">\n<search>if a < b && c</search>\n<replace>if a <= b && c</replace>\n</edit>";
    let broken = "<edit path=\"docs/a.txt\">\n<search>if</search>\n</edit>";
    let model = scripted(vec![say(&format!("I edit:\n{edit}\n")), say(broken), say("done")]);
    let bodies = Rc::clone(&model.bodies);
    place.session(&mut NullObserver, |mut session| {
        let mut conversation = Conversation::new(Box::new(model), TaskLimits::default());
        let end =
            conversation.say(&mut session, "edit", &Cancel::default(), &mut NullObserver).unwrap();
        assert!(matches!(end, TaskEnd::Answered { .. }), "{end:?}");
        let _ = session.end(Exit::Ok).unwrap();
    });
    assert_eq!(place.file("docs/a.txt"), "if a <= b && c {}\n");
    let last = bodies.borrow()[2].to_string();
    assert!(last.contains("edit.malformed") && last.contains("has no `<replace>`"), "{last}");
    let proposed =
        place.events().iter().filter(|event| matches!(event, Event::CallProposed(_))).count();
    assert_eq!(proposed, 1);
    place.replay(1);
}

/// A person with answers.
struct Answers(RefCell<VecDeque<Option<String>>>, RefCell<Vec<Vec<String>>>);

impl QuestionPrompt for Answers {
    fn ask(&self, _: &str, choices: &[String]) -> Option<String> {
        self.1.borrow_mut().push(choices.to_vec());
        self.0.borrow_mut().pop_front().unwrap()
    }
}

/// A question is asked, its answer recorded and masked, and given to the model; where no person can answer, the model
/// learns so.
#[test]
fn a_question_is_answered_by_the_user() {
    let place = Place::new();
    let ask = |question: &str| {
        call("user_ask", &json!({ "question": question, "choices": ["yes", "no"] }))
    };
    let answers =
        vec![ask("first?"), ask("second?"), ask(""), call("user.ask", &json!({})), say("done")];
    let model = scripted(answers);
    let bodies = Rc::clone(&model.bodies);
    let prompt = Rc::new(Answers(
        RefCell::new(VecDeque::from([Some(format!("no, use {SECRET}")), None])),
        RefCell::default(),
    ));
    place.session(&mut NullObserver, |mut session| {
        session.set_question_prompt(prompt.clone());
        let mut conversation = Conversation::new(Box::new(model), TaskLimits::default());
        let end =
            conversation.say(&mut session, "do it", &Cancel::default(), &mut NullObserver).unwrap();
        assert!(matches!(end, TaskEnd::Answered { .. }), "{end:?}");
        let _ = session.end(Exit::Ok).unwrap();
    });
    let asked = prompt.1.borrow();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0], ["yes", "no"]);
    let bodies = bodies.borrow();
    assert!(bodies[0]["tools"].to_string().contains("user_ask"));
    let results: Vec<String> = bodies[4]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["result"].as_str().map(str::to_owned))
        .collect();
    assert!(results[0].contains("no, use «") && !results[0].contains(SECRET), "{results:?}");
    assert!(results[1].contains("no answer"), "{results:?}");
    assert!(results[2].contains("`question` is empty"), "{results:?}");
    assert!(results[3].contains("needs `question`"), "{results:?}");
    let answered =
        place.events().iter().filter(|event| matches!(event, Event::UserAnswered { .. })).count();
    assert_eq!(answered, 2);
    place.replay(5);

    let place = Place::new();
    let model = scripted(vec![ask("anyone?"), say("done")]);
    let bodies = Rc::clone(&model.bodies);
    place.session(&mut NullObserver, |mut session| {
        let mut conversation = Conversation::new(Box::new(model), TaskLimits::default());
        let _ =
            conversation.say(&mut session, "do it", &Cancel::default(), &mut NullObserver).unwrap();
        let _ = session.end(Exit::Ok).unwrap();
    });
    let bodies = bodies.borrow();
    assert!(!bodies[0]["tools"].to_string().contains("user_ask"));
    assert!(bodies[1].to_string().contains("no person can answer"), "{}", bodies[1]);
}

/// A process that takes a session up has the conversation of the one before, also after results were cut and messages
/// left out; both conversations replay to the same bytes.
#[test]
fn a_conversation_goes_on_in_another_process() {
    for window in [128_000, 6_000] {
        let place = Place::new();
        let play = |_: &Value, number: usize| {
            let tokens = TokenCount { input: Some(10), output: Some(1) };
            let answer = match number {
                0..=5 => {
                    call("fs_read", &json!({ "path": "docs/long.txt", "limit": 9_000 + number }))
                }
                6 => say("that was long"),
                _ => say("still there"),
            };
            Ok((answer, tokens))
        };
        let first = Playing { window, ..Playing::new(play) };
        let bodies = Rc::clone(&first.bodies);
        place.session(&mut NullObserver, |mut session| {
            let mut conversation = Conversation::new(Box::new(first), TaskLimits::default());
            let cancel = Cancel::default();
            for text in ["read it", "and now?"] {
                let end = conversation.say(&mut session, text, &cancel, &mut NullObserver).unwrap();
                assert!(matches!(end, TaskEnd::Answered { .. }), "{end:?}");
            }
            let _ = session.leave(Exit::Ok).unwrap();
        });
        let last = bodies.borrow().last().unwrap()["messages"].as_array().unwrap().clone();
        let second = Playing {
            window: 128_000,
            ..Playing::new(|_, _| Ok((say("yes"), TokenCount::default())))
        };
        let bodies = Rc::clone(&second.bodies);
        place.session(&mut NullObserver, |mut session| {
            assert_eq!(session.turns(), 8);
            let limits = TaskLimits::default();
            let mut conversation =
                Conversation::resume(Box::new(second), limits, &session).unwrap();
            assert_eq!(conversation.tokens(), 88);
            let cancel = Cancel::default();
            let _ = conversation.say(&mut session, "go on", &cancel, &mut NullObserver).unwrap();
            let _ = session.end(Exit::Ok).unwrap();
        });
        let body = bodies.borrow()[0].clone();
        let messages = body["messages"].as_array().unwrap();
        let (before, added) = messages.split_at(last.len());
        assert_eq!(before, last, "window {window}");
        assert_eq!(
            added,
            [json!({ "model": "still there", "calls": [] }), json!({ "user": "go on" })]
        );
        if window == 6_000 {
            assert!(body.to_string().contains("left out here to save room"), "{body}");
        }
        place.replay(5);
    }
}

/// A result that the policy does not vouch for marks the calls of the process that goes on, too.
#[test]
fn untrusted_content_is_remembered() {
    let place = Place::under(&POLICY.replace("fs.read: { ", "fs.read: { output: untrusted, "));
    let args = json!({ "path": "docs/a.txt" });
    let cancel = Cancel::default();
    let limits = TaskLimits::default();
    place.session(&mut NullObserver, |mut session| {
        let model = scripted(vec![call("fs_read", &args), say("read")]);
        let mut conversation = Conversation::new(Box::new(model), limits);
        let _ = conversation.say(&mut session, "read", &cancel, &mut NullObserver).unwrap();
        let _ = session.leave(Exit::Ok).unwrap();
    });
    place.session(&mut NullObserver, |mut session| {
        let model = scripted(vec![call("fs_list", &json!({ "path": "docs" })), say("listed")]);
        let mut conversation = Conversation::resume(Box::new(model), limits, &session).unwrap();
        let _ = conversation.say(&mut session, "list", &cancel, &mut NullObserver).unwrap();
        let _ = session.end(Exit::Ok).unwrap();
    });
    let tainted: Vec<bool> = place
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::CallProposed(proposed) => Some(!proposed.tainted.is_empty()),
            _ => None,
        })
        .collect();
    assert_eq!(tainted, [false, true]);
    place.replay(1);
}

/// Messages that a process did not send any more are in the requests of the next one: results of calls, and files that the user
/// attached.
#[test]
fn results_that_were_not_sent_are_sent_by_the_next_process() {
    let place = Place::new();
    let letter = place.directory.path().join("letter.txt");
    fs::write(&letter, format!("Dear Ada, {SECRET}")).unwrap();
    let limits = TaskLimits { turns: 1, ..TaskLimits::default() };
    let cancel = Cancel::default();
    let read = |path: &str| {
        let args = json!({ "path": path }).to_string();
        ModelCall { id: format!("id of {path}"), tool: "fs_read".into(), args }
    };
    let mut calls = vec![read("docs/a.txt"), read("secret.txt")];
    calls.push(ModelCall { id: "broken".into(), tool: "fs_read".into(), args: "{".into() });
    calls.push(read("docs/none.txt"));
    let texts: Vec<String> = place.session(&mut NullObserver, |mut session| {
        let model = scripted(vec![ModelAnswer { text: "reading".into(), calls }]);
        let mut conversation = Conversation::new(Box::new(model), limits);
        let mut told = Told::default();
        let end = conversation.say(&mut session, "read", &cancel, &mut told).unwrap();
        assert!(matches!(end, TaskEnd::Failed(_)), "{end:?}");
        let attached = conversation.attach(&mut session, letter.to_str().unwrap(), &mut told);
        assert!(attached.unwrap().is_ok());
        let _ = session.leave(Exit::Ok).unwrap();
        told.0
    });
    fs::remove_file(&letter).unwrap();
    let model = scripted(vec![say("done")]);
    let bodies = Rc::clone(&model.bodies);
    place.session(&mut NullObserver, |mut session| {
        let mut conversation = Conversation::resume(Box::new(model), limits, &session).unwrap();
        let _ = conversation.say(&mut session, "go on", &cancel, &mut NullObserver).unwrap();
        let _ = session.end(Exit::Ok).unwrap();
    });
    let sent = bodies.borrow()[0]["messages"].as_array().unwrap().clone();
    let results: Vec<&str> = sent.iter().filter_map(|message| message["result"].as_str()).collect();
    for at in [0, 1, 3] {
        assert_eq!(results[at], texts[at], "{at}");
    }
    assert!(results[2].contains("the turn ended before"), "{}", results[2]);
    let attached = sent[sent.len() - 2].to_string();
    assert!(attached.contains("Dear Ada, «") && !attached.contains(SECRET), "{attached}");
    assert!(attached.contains("letter.txt"), "{attached}");
    place.replay(2);
}

/// The time that a person takes for an answer is no time of the task.
#[test]
fn a_persons_time_is_not_the_tasks() {
    struct Slow;
    impl QuestionPrompt for Slow {
        fn ask(&self, _: &str, _: &[String]) -> Option<String> {
            thread::sleep(Duration::from_secs(3));
            Some("yes".to_owned())
        }
    }
    let place = Place::under(&format!("{POLICY}budgets: {{ run: {{ wall: 1s }} }}\n"));
    let ask = call("user_ask", &json!({ "question": "may I?" }));
    let model = scripted(vec![ask, call("fs_list", &json!({ "path": "docs" })), say("done")]);
    let limits = TaskLimits { time: Duration::from_secs(2), ..TaskLimits::default() };
    place.session(&mut NullObserver, |mut session| {
        session.set_question_prompt(Rc::new(Slow));
        let mut conversation = Conversation::new(Box::new(model), limits);
        let mut told = Told::default();
        let end = conversation.say(&mut session, "do it", &Cancel::default(), &mut told).unwrap();
        assert!(matches!(end, TaskEnd::Answered { .. }), "{end:?}");
        assert!(told.0.iter().all(|text| text.contains("\"ok\"")), "{:?}", told.0);
        let _ = session.end(Exit::Ok).unwrap();
    });
    place.replay(1);
}

/// A policy may deny a model its questions: the tool is not offered, and a call of it asks no person.
#[test]
fn a_policy_denies_questions() {
    let place = Place::under(&format!("{POLICY}  user.ask: deny\n"));
    let ask = call("user_ask", &json!({ "question": "may I?" }));
    let model = scripted(vec![ask, say("done")]);
    let bodies = Rc::clone(&model.bodies);
    let prompt = Rc::new(Answers(RefCell::default(), RefCell::default()));
    place.session(&mut NullObserver, |mut session| {
        session.set_question_prompt(prompt.clone());
        let mut conversation = Conversation::new(Box::new(model), TaskLimits::default());
        let _ =
            conversation.say(&mut session, "do it", &Cancel::default(), &mut NullObserver).unwrap();
        let _ = session.end(Exit::Ok).unwrap();
    });
    assert!(prompt.1.borrow().is_empty());
    let bodies = bodies.borrow();
    assert!(!bodies[0]["tools"].to_string().contains("user_ask"));
    assert!(bodies[1].to_string().contains("policy.denied"), "{}", bodies[1]);
    place.replay(1);
}

/// The texts that a model is given for its calls.
#[derive(Default)]
struct Told(Vec<String>);

impl ConversationObserver for Told {
    fn on_conversation(&mut self, event: &ConversationEvent<'_>) {
        if let ConversationEvent::CallFinished { answer, .. } = event {
            self.0.push(answer.text.clone());
        }
    }
}

/// A server that says that the window is full is asked once more, with less.
#[test]
fn a_full_window_is_met_with_less() {
    let place = Place::new();
    let model = Playing::new(|body: &Value, number: usize| {
        if number < 3 {
            let args = json!({ "path": "docs/long.txt", "limit": 20_000 + number });
            return Ok((call("fs_read", &args), TokenCount::default()));
        }
        match body.to_string().len() < 40_000 {
            true => Ok((say("fits"), TokenCount::default())),
            false => {
                let problem = CodedError::new(Code::ModelContextFull, "too long");
                Err(RequestError::Failed(problem))
            }
        }
    });
    let bodies = Rc::clone(&model.bodies);
    place.session(&mut NullObserver, |mut session| {
        let mut conversation = Conversation::new(Box::new(model), TaskLimits::default());
        let end =
            conversation.say(&mut session, "read", &Cancel::default(), &mut NullObserver).unwrap();
        assert!(matches!(end, TaskEnd::Answered { .. }), "{end:?}");
        let _ = session.end(Exit::Ok).unwrap();
    });
    assert_eq!(bodies.borrow().len(), 5);
    place.replay(1);
}

/// Says to stop when the first piece of a text comes.
struct Stopping(std::sync::Arc<std::sync::atomic::AtomicBool>, String);

impl ConversationObserver for Stopping {
    fn on_conversation(&mut self, event: &ConversationEvent<'_>) {
        if let ConversationEvent::Text(piece) = event {
            self.1.push_str(piece);
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

/// A turn that the user ends leaves a conversation that goes on, from what was shown.
#[test]
fn a_turn_can_be_ended_in_a_text() {
    let place = Place::new();
    let long = "word ".repeat(2_000);
    let pace = Duration::from_millis(1);
    let model = ScriptedModel::new("demo", [say(&long), say("done")], pace);
    let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut stopping = Stopping(flag.clone(), String::new());
    place.session(&mut NullObserver, |mut session| {
        let mut conversation = Conversation::new(Box::new(model), TaskLimits::default());
        let cancel = Cancel::new(flag.clone());
        let began = Instant::now();
        let end = conversation.say(&mut session, "talk", &cancel, &mut stopping).unwrap();
        assert!(matches!(end, TaskEnd::Interrupted), "{end:?}");
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        flag.store(false, std::sync::atomic::Ordering::Relaxed);
        let end = conversation.say(&mut session, "go on", &cancel, &mut NullObserver).unwrap();
        assert!(matches!(end, TaskEnd::Answered { .. }), "{end:?}");
        let _ = session.end(Exit::Ok).unwrap();
    });
    assert!(stopping.1.starts_with("word") && stopping.1.len() < long.len());
    place.replay(1);
}

/// Notes the calls that ran, and the most events.
#[derive(Default)]
struct Ran(Vec<String>);

impl Observer for Ran {
    fn on_event(&mut self, note: &WrittenEvent<'_>) {
        if let Event::CallStarted(_) = note.event {
            self.0.push("started".to_owned());
        }
    }
}

/// How long the long forms of a test are.
fn often(short: u32, long: u32) -> u32 {
    if std::env::var_os("CAPSULE_NIGHTLY").is_some() { long } else { short }
}

/// The resident memory of this process, in bytes.
fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}

/// A thousand turns are held in constant memory: what the window has no room for is not kept.
#[test]
fn a_long_conversation_does_not_grow() {
    // In a process without the other tests, whose memory would count as well.
    const ALONE: &str = "CAPSULE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        converse_at_length();
    } else {
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "a_long_conversation_does_not_grow", "--nocapture"]).env(ALONE, "1");
        let done = test.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(String::from_utf8_lossy(&done.stdout).contains("1 passed"), "{done:?}");
    }
}

/// A thousand turns in the long form, and what they hold.
fn converse_at_length() {
    let place = Place::new();
    let (mut sizes, mut messages) = (Vec::new(), 0);
    let model = Playing::new(|_: &Value, number: usize| {
        let args = json!({ "path": "docs/long.txt", "offset": number, "limit": 20_000 });
        Ok((call("fs_read", &args), TokenCount::default()))
    });
    let model = Playing { window: 20_000, ..model };
    // What the model was sent is not kept here.
    let bodies = Rc::clone(&model.bodies);
    place.session(&mut NullObserver, |mut session| {
        let limits = TaskLimits { turns: 100, ..TaskLimits::default() };
        let mut conversation = Conversation::new(Box::new(model), limits);
        for _ in 0..often(4, 10) {
            let end = conversation
                .say(&mut session, "read on", &Cancel::default(), &mut NullObserver)
                .unwrap();
            assert!(
                matches!(&end, TaskEnd::Failed(problem) if problem.code == Code::TaskLimit),
                "{end:?}"
            );
            messages = bodies
                .borrow()
                .iter()
                .map(|body| body["messages"].as_array().unwrap().len())
                .max()
                .unwrap();
            bodies.borrow_mut().clear();
            sizes.push(resident_bytes());
        }
        let _ = session.end(Exit::Ok).unwrap();
    });
    assert!(messages < 100, "{messages} messages");
    let (first, last) = (sizes[1], sizes[sizes.len() - 1]);
    assert!(last < first + 8_000_000, "{sizes:?}");
}

/// Numbers that a seed leads to.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    /// One of these texts, with up to two bytes changed.
    fn mutated(&mut self, texts: &[&str]) -> String {
        let mut bytes = texts[self.below(texts.len())].as_bytes().to_vec();
        for _ in 0..self.below(5).saturating_sub(2) {
            if !bytes.is_empty() {
                let at = self.below(bytes.len());
                bytes[at] = u8::try_from(self.below(256)).unwrap();
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

const TEXTS: [&str; 4] = [
    "",
    "hello",
    "<edit path=\"docs/a.txt\"><search>a</search><replace>b</replace></edit>",
    "<edit path=\"secret.txt\"><search>of</search><replace>b</replace></edit>",
];

const TOOL_NAMES: [&str; 9] = [
    "fs_read",
    "fs_list",
    "fs_edit",
    "fs_write",
    "user_ask",
    "shell_run",
    "no_tool",
    "",
    "changes.apply",
];

const ARGUMENTS: [&str; 8] = [
    r#"{"path":"docs/a.txt"}"#,
    r#"{"path":"secret.txt"}"#,
    r#"{"path":"../store.db"}"#,
    r#"{"path":"docs/a.txt","search":"a","replace":"b"}"#,
    r#"{"path":"secret.txt","search":"of","replace":"b"}"#,
    r#"{"path":"b.txt","content":"x"}"#,
    r#"{"question":"which?","choices":["a"]}"#,
    "",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(often(1, 40)))]

    /// Whatever a model answers, nothing panics, the turn is bounded, and no call goes beyond the policy.
    #[test]
    fn mutated_replies_stay_within_the_policy(seed: u64) {
        let place = Place::new();
        let mut chance = Chance(seed);
        let model = Playing::new(move |_: &Value, _| {
            let text = chance.mutated(&TEXTS);
            let call = |chance: &mut Chance| ModelCall {
                id: chance.mutated(&["c", "", "call_1_0"]),
                tool: chance.mutated(&TOOL_NAMES),
                args: chance.mutated(&ARGUMENTS),
            };
            let calls = (0..chance.below(4)).map(|_| call(&mut chance)).collect();
            Ok((ModelAnswer { text, calls }, TokenCount::default()))
        });
        // Each turn ends after a few malformed or denied calls; many turns make many replies.
        let mut ran = Ran::default();
        place.session(&mut ran, |mut session| {
            let limits = TaskLimits { turns: 250, ..TaskLimits::default() };
            let mut conversation = Conversation::new(Box::new(model), limits);
            let mut turns = 0;
            while turns < 250 {
                let _ = conversation.say(&mut session, "go", &Cancel::default(), &mut NullObserver).unwrap();
                turns = session.turns();
            }
            let _ = session.end(Exit::Ok).unwrap();
        });
        prop_assert_eq!(place.file("secret.txt"), "of no concern");
        prop_assert!(!place.directory.path().join("ws/b.txt").exists());
        let mut denied_ran = 0;
        let mut proposed = std::collections::BTreeMap::new();
        for event in place.events() {
            match event {
                Event::CallDecided(decided) => drop(proposed.insert(decided.call, decided.decision)),
                Event::CallStarted(started) => {
                    let decision = proposed.get(&started.call).unwrap();
                    denied_ran += u32::from(*decision != capsule_core::decision::Verdict::Allow);
                }
                _ => {}
            }
        }
        prop_assert_eq!(denied_ran, 0);
        place.replay(1);
    }
}
