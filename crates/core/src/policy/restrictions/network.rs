//! The hosts and addresses that a call may reach.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::capability::{Capabilities, Capability};
use crate::confinement::NetworkAccess;
use crate::decision::{Decision, Verdict};
use crate::outcome::CodedError;
use crate::policy::decide::budget;
use crate::policy::decide::check::{Finding, PolicyInput, verdict_text};
use crate::policy::decide::fetch::{judge_address, judge_host, judge_url};
use crate::policy::model::Policy;
use crate::policy::secrets::SecretRule;
use crate::policy::usage::ToolUsage;
use crate::risk::Risk;
use crate::tool::ToolName;
use capsule_base::code::Code;
use capsule_base::net;
use capsule_base::url::{HostName, HttpUrl};

/// The addresses that a fetch may dial and follow.
#[derive(Clone, Debug)]
pub struct EgressScope {
    policy: Arc<Policy>,
    tool: ToolName,
}

impl EgressScope {
    pub(crate) const fn new(policy: Arc<Policy>, tool: ToolName) -> Self {
        Self { policy, tool }
    }

    /// The policies that have to agree, each with its rule of the tool.
    fn policies(&self) -> impl Iterator<Item = FetchPolicy<'_>> {
        self.policy.self_and_layers().map(|policy| FetchPolicy { policy, tool: &self.tool })
    }

    /// Judges an address that a name resolved to, before it is dialled.
    ///
    /// # Errors
    /// [`Code::NetPrivate`] where it is not public and the policy does not name it.
    pub fn check_address(&self, address: IpAddr) -> Result<(), CodedError> {
        self.policies().try_for_each(|policy| policy.check_address(address))
    }

    /// The secrets that are sent to an address, on the way from the one that was judged: each only
    /// where its own rule names both.
    pub fn secrets<'r>(
        &'r self,
        asked: &'r HttpUrl,
        to: &'r HttpUrl,
    ) -> impl Iterator<Item = &'r SecretRule> {
        let named = self.policy.secrets_sent_to(&self.tool, asked);
        named.filter(move |rule| {
            self.policy.secrets_sent_to(&self.tool, to).any(|other| core::ptr::eq(*rule, other))
        })
    }

    /// Judges where a redirect leads, before the name is looked up.
    ///
    /// # Errors
    /// [`Code::NetPrivate`] where it names an address that is not public, [`Code::ApprovalNeeded`]
    /// where somebody would have to be asked, which nobody can be in the middle of a call, and
    /// [`Code::NetRedirect`] where the policy would not have allowed a call to it.
    pub fn check_redirect(&self, from: &HttpUrl, to: &HttpUrl) -> Result<(), CodedError> {
        self.policies().try_for_each(|policy| policy.check_redirect(from, to))
    }
}

/// What the words of a command say of the network.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedHosts {
    /// The hosts that they name, each as an address over https.
    pub(crate) hosts: Vec<HttpUrl>,
    /// How many of its programs may do more than to read and change files.
    pub(crate) users: usize,
}

impl NamedHosts {
    pub(crate) fn add(&mut self, other: Self) {
        self.hosts.extend(other.hosts);
        self.users += other.users;
    }
}

/// The hosts that a command may reach through the proxy.
#[derive(Clone, Debug)]
pub struct HostScope {
    policy: Arc<Policy>,
    named: NamedHosts,
    /// Whether a person saw them, and said yes to the command.
    is_approved: bool,
    tool: ToolName,
    /// What the run used of the tool before.
    used: ToolUsage,
    /// The bytes that the run fetched before.
    fetched: u64,
}

impl HostScope {
    /// The hosts that a policy opens; none where its commands have no network, or its profile denies that power.
    pub(crate) fn of(
        policy: &Arc<Policy>,
        input: &PolicyInput<'_>,
        named: NamedHosts,
    ) -> Option<Box<Self>> {
        let egress = Capabilities::of(Capability::NetEgress);
        let is_open = policy.sandbox.network == NetworkAccess::Proxy
            && policy.profile.strictest_verdict(egress) != Verdict::Deny;
        let used = || input.usage.of_tool(input.tool).cloned().unwrap_or_default();
        is_open.then(|| {
            Box::new(Self {
                policy: Arc::clone(policy),
                named,
                is_approved: false,
                tool: input.tool.clone(),
                used: used(),
                fetched: budget::fetched(input),
            })
        })
    }

    /// That of two programs of a pipeline.
    pub(crate) fn union_optional(
        one: Option<Box<Self>>,
        other: Option<Box<Self>>,
    ) -> Option<Box<Self>> {
        match (one, other) {
            (Some(mut one), Some(other)) => {
                one.named.add(other.named);
                Some(one)
            }
            (one, other) => one.or(other),
        }
    }

    /// The bytes that the command may receive.
    #[must_use]
    pub fn bytes_left(&self) -> u64 {
        let budgets = self.policy.self_and_layers().filter_map(|policy| policy.budgets.fetched);
        budgets.min().map_or(u64::MAX, |limit| limit.saturating_sub(self.fetched))
    }

    /// The connections that the command may make to a host with its port.
    #[must_use]
    pub fn connections_left(&self, host: &str) -> u64 {
        let policies = self.policy.self_and_layers();
        let quotas = policies.filter_map(|policy| policy.tool(&self.tool)?.quota.per_host);
        let used = self.used.hosts.get(host).copied().unwrap_or(0);
        quotas.min().map_or(u64::MAX, |limit| limit.saturating_sub(used))
    }

    /// Has no question asked about the hosts that the words of the command name.
    pub(crate) const fn approve_named(&mut self) {
        self.is_approved = true;
    }

    /// The ports of the host's loopback that are reached: those that the policy and all of its layers name.
    #[must_use]
    pub fn loopback_ports(&self) -> Vec<u16> {
        let named = |port: &u16| {
            self.policy.self_and_layers().all(|policy| policy.hosts.loopback.contains(port))
        };
        self.policy.hosts.loopback.iter().copied().filter(named).collect()
    }

    /// Judges a host and its port, given as an address over https, before the name is looked up. The strictest word
    /// of the policy and its layers counts. A request by a method that `sends` something is asked about at least.
    ///
    /// # Errors
    /// [`Code::NetNotAllowed`] or the code of a rule where one of them denies the host.
    pub fn judge_host(
        &self,
        address: &HttpUrl,
        sends: Option<&str>,
    ) -> Result<HostJudgement, CodedError> {
        let (mut rules, mut strictest) = (Vec::new(), None::<Finding>);
        for policy in self.policy.self_and_layers() {
            let finding = judge_host(&policy.hosts, address);
            if finding.verdict == Verdict::Deny {
                let problem = CodedError::new(finding.code, finding.reason);
                return Err(CodedError { suggestion: finding.suggestion, ..problem });
            }
            rules.extend(finding.rule.clone());
            if strictest.as_ref().is_none_or(|strictest| finding.verdict > strictest.verdict) {
                strictest = Some(finding);
            }
        }
        let rules = rules.join(", ");
        let verdict = strictest.as_ref().map_or(Verdict::Allow, |finding| finding.verdict);
        // Which program of a pipeline sends is not seen, and a yes is one to what the words show.
        let is_shown = sends.is_none() || self.named.users <= 1;
        let is_approved = self.is_approved && self.named.hosts.contains(address) && is_shown;
        let finding = match (strictest, sends) {
            (Some(finding), _) if verdict == Verdict::AskEach => finding,
            (_, None) if verdict == Verdict::Allow => return Ok(HostJudgement::Allowed(rules)),
            _ if is_approved => return Ok(HostJudgement::Approved(rules)),
            (_, Some(method)) => {
                let host = address.host_and_port();
                let reason = format!("a request by `{method}` would send something to `{host}`");
                Finding::with_verdict(Verdict::AskEach, reason)
            }
            (Some(finding), None) => finding,
            (None, None) => return Ok(HostJudgement::Allowed(rules)),
        };
        let needed = Capabilities::of(Capability::ProcExec).with(Capability::NetEgress);
        // What is sent cannot be brought back, and a tunnel carries anything.
        let decision = Box::new(finding.decision(needed, Risk::High));
        Ok(HostJudgement::NeedsApproval(rules, HostQuestion { address: address.clone(), decision }))
    }

    /// Judges an address that a name resolved to, before it is dialled.
    ///
    /// # Errors
    /// [`Code::NetPrivate`] where it is not public and the policy does not name it.
    pub fn check_address(&self, address: IpAddr) -> Result<(), CodedError> {
        let mut policies = self.policy.self_and_layers();
        policies.try_for_each(|policy| judge_address(&policy.hosts.private, address))
    }
}

/// The judgement on a host that a command wants to reach.
#[derive(Clone, Debug)]
pub enum HostJudgement {
    /// It may be reached, by these rules.
    Allowed(String),
    /// A person is asked by these rules, and said yes to the command, whose words name it.
    Approved(String),
    /// A person is asked first, by these rules.
    NeedsApproval(String, HostQuestion),
}

/// A host that a person is asked about while a command waits for it.
#[derive(Clone, Debug)]
pub struct HostQuestion {
    /// The host and the port, as an address over https.
    pub address: HttpUrl,
    /// The decision that asks.
    pub decision: Box<Decision>,
}

impl HostQuestion {
    /// Whether the answer is for one connection alone.
    #[must_use]
    pub fn is_asked_each_time(&self) -> bool {
        self.decision.verdict == Verdict::AskEach
    }

    /// The question of a connection that is on record, of which all but its answer is in the past.
    #[must_use]
    pub fn recorded(address: HttpUrl) -> Self {
        let problem = CodedError::new(Code::Asked, "it was asked then");
        Self { address, decision: Box::new(Decision::reject_invalid(problem)) }
    }
}

/// The rule of one policy about a fetch.
#[derive(Clone, Copy)]
struct FetchPolicy<'s> {
    policy: &'s Policy,
    tool: &'s ToolName,
}

impl FetchPolicy<'_> {
    fn default_verdict(&self) -> Verdict {
        let verdict = self.policy.tool(self.tool).and_then(|rule| rule.decision);
        verdict.unwrap_or_else(|| {
            self.policy.profile.strictest_verdict(Capabilities::of(Capability::NetEgress))
        })
    }

    fn check_address(&self, address: IpAddr) -> Result<(), CodedError> {
        let private: &[net::IpRange] =
            self.policy.fetch_rule(self.tool).map_or(&[], |rule| &rule.private);
        judge_address(private, address)
    }

    fn check_redirect(&self, from: &HttpUrl, to: &HttpUrl) -> Result<(), CodedError> {
        let refused = |verdict: Verdict, why: &str| {
            let (code, word) = match verdict {
                Verdict::Ask | Verdict::AskEach => (Code::ApprovalNeeded, "needs an approval"),
                _ => (Code::NetRedirect, "is refused"),
            };
            let message = format!("the redirect to `{}` {word}: {why}", to.display_short());
            CodedError::new(code, message)
                .with_suggestion("ask for that address itself, if the policy names it")
        };
        let Some(rule) = self.policy.fetch_rule(self.tool) else {
            return Err(refused(Verdict::Deny, "the policy has no rule for it"));
        };
        if let HostName::Ip(address) = to.host() {
            self.check_address(address).map_err(|problem| CodedError {
                message: format!(
                    "the redirect to `{}` is refused: {}",
                    to.display_short(),
                    problem.message
                ),
                ..problem
            })?;
        }
        if !from.same_origin(to) && rule.cross_origin != Verdict::Allow {
            return Err(refused(rule.cross_origin, "it leads to another origin"));
        }
        let found = judge_url(rule, to);
        if let Some(finding) = found.iter().max_by_key(|finding| finding.verdict) {
            return match finding.verdict {
                Verdict::Allow => Ok(()),
                verdict => Err(refused(verdict, &finding.reason)),
            };
        }
        if !rule.allow.iter().any(|rule| rule.pattern.matches(to)) {
            return Err(refused(Verdict::Deny, "the policy does not name it"));
        }
        // Scope without a word of its own: what the tool's word would be for a call to it.
        match self.default_verdict() {
            Verdict::Allow => Ok(()),
            verdict => Err(refused(verdict, &verdict_text(verdict, "a call to it"))),
        }
    }
}
