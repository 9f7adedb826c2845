//! The connections of a running command: written down before they are dialled, and asked about where the
//! policy says so.

use alloc::string::ToString;
use alloc::vec::Vec;

use serde_json::{Map, Value, json};

use crate::action::{Action, Facts, ParsedUrl, UrlTarget};
use crate::approval::{ApprovalAnswer, ApprovalRoute, Approver, Card};
use crate::call::ToolCall;
use crate::confinement::Confinement;
use crate::decision::Decision;
use crate::journal::{
    ConnectionClosed, ConnectionRequested, Durability, Event, GrantUsed, Journal, PayloadClass,
};
use crate::lifecycle::approval::{answer_event, refusal_problem, shown_event};
use crate::lifecycle::redacted::RedactedCall;
use crate::lifecycle::run::{AllowedBy, ConnectionRecord, EndWriter, RunningCall};
use crate::outcome::CodedError;
use crate::policy::HostQuestion;
use capsule_base::json;

impl<J: Journal> EndWriter<'_, J> {
    /// Writes down what happened to a connection.
    pub(super) fn record_connection(
        &mut self,
        record: ConnectionRecord<'_>,
    ) -> Result<(), J::Error> {
        let call = self.number;
        let (event, durability) = match record {
            ConnectionRecord::Requested(connection, target, refused) => {
                let target = self.redactor.value(json!(target), &mut 0);
                let bytes = json::canonical_value(&target);
                let target = self.journal.put_payload(PayloadClass::Text, &bytes)?;
                let requested = ConnectionRequested { call, connection, refused, target };
                (Event::ConnectionRequested(requested), Durability::CrashSafe)
            }
            ConnectionRecord::Closed(connection, sent, received, cut) => {
                let closed = ConnectionClosed { call, connection, sent, received, cut };
                (Event::ConnectionClosed(closed), Durability::Deferred)
            }
        };
        self.journal.append(event, durability).map(|_| ())
    }

    /// Asks whether the command may reach a host. What a grant answers is not shown; where no person is there,
    /// the host is refused.
    pub(super) fn ask_about_host(
        &mut self,
        question: &HostQuestion,
        confinement: Option<Confinement>,
        running: &mut RunningCall<'_>,
    ) -> Result<Result<AllowedBy, CodedError>, J::Error> {
        let host = question.address.host_and_port();
        let args = self.redactor.value(question_arguments(&host, running.call), &mut 0);
        let url = UrlTarget { asked: host, parsed: ParsedUrl::Url(question.address.clone()) };
        let action = Action::Fetch { url, headers: Vec::new() };
        let facts = (action, Facts::default());
        let seen = RedactedCall::of(&running.call.tool, facts, running.policy, self.redactor);
        let seen = match seen {
            Ok(seen) => seen,
            Err(problem) => return Ok(Err(problem)),
        };
        let bound = self.journal.seal_arguments(&seen.binding(None))?;
        let judgement = (&*question.decision, confinement);
        let call = (self.number, running.call);
        let request = seen.approval_request(call, (&args, bound, None), judgement);
        match running.approver.resolve(&request) {
            ApprovalRoute::Granted(used) => {
                let (call, grant) = (self.number, used.id().to_string());
                let allowed = AllowedBy::Grant(grant.clone());
                let event = Event::GrantUsed(GrantUsed { call, grant, left: used.remaining() });
                self.journal.append(event, Durability::CrashSafe)?;
                Ok(Ok(allowed))
            }
            ApprovalRoute::Show(card) => match card.mask_secrets(self.redactor) {
                Some(card) => self.show_host(&card, running.approver),
                None => Ok(Err(unattended(question))),
            },
            // The command waits, so the question cannot.
            ApprovalRoute::NoApprover | ApprovalRoute::Wait(..) | ApprovalRoute::Outdated => {
                Ok(Err(unattended(question)))
            }
        }
    }

    fn show_host(
        &mut self,
        card: &Card,
        approver: &mut dyn Approver,
    ) -> Result<Result<AllowedBy, CodedError>, J::Error> {
        let shown = shown_event(self.number, card, self.journal)?;
        self.journal.append(Event::ConnectionShown(shown), Durability::CrashSafe)?;
        let given = approver.ask(card);
        let event = answer_event(self.number, &given, self.redactor, self.journal)?;
        self.journal.append(Event::ConnectionAnswered(event), Durability::CrashSafe)?;
        Ok(match given.answer {
            ApprovalAnswer::Approved(..) => Ok(AllowedBy::Person),
            other => Err(refusal_problem(other)),
        })
    }
}

/// The arguments of a question: the host, and the command as it was asked for.
fn question_arguments(host: &str, call: &ToolCall) -> Value {
    let mut args = Map::from_iter([("host".to_string(), json!(host))]);
    let words =
        |argv: &Vec<Value>| argv.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
    let argv = call.args.get("argv").and_then(Value::as_array);
    let command = call.args.get("command").cloned().or_else(|| argv.map(|argv| json!(words(argv))));
    args.extend(command.map(|command| ("command".to_string(), command)));
    Value::Object(args)
}

/// The refusal of a host where no person can be asked.
fn unattended(question: &HostQuestion) -> CodedError {
    Decision::clone(&question.decision).unattended().into()
}
