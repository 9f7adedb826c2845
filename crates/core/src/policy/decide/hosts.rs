//! The hosts that a command names by the addresses that it is given, against the rules of hosts.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::confinement::NetworkAccess;
use crate::decision::Verdict;
use crate::policy::decide::check::Finding;
use crate::policy::decide::fetch::judge_host;
use crate::policy::model::Policy;
use crate::policy::restrictions::NamedHosts;
use capsule_base::code::Code;
use capsule_base::limits;
use capsule_base::url::HttpUrl;
use capsule_command::specs::{CommandLine, Effect, Effects, ParsedArgv};
use capsule_redact::excerpt;

/// The strictest word of the rules of hosts for what a command contacts. None where commands have no proxy and it
/// contacts more than their loopback, or where the addresses are not all that it contacts. Each connection is judged again when it is made, so a redirect or an
/// option that leads elsewhere opens nothing.
pub(super) fn check(policy: &Policy, argv: &ParsedArgv) -> Option<Finding> {
    let addresses = addresses(argv)?;
    let is_proxied = policy.sandbox.network == NetworkAccess::Proxy;
    let found = addresses.iter().map(|(text, address)| match address {
        Address::Web(host) if is_loopback(host) => {
            let is_open = is_proxied && policy.hosts.loopback.contains(&host.port());
            let rule = is_open.then(|| "sandbox.network.loopback".to_string());
            let reason = "no other computer is reached";
            Some(Finding { rule, ..Finding::with_verdict(Verdict::Allow, reason) })
        }
        _ if !is_proxied => None,
        Address::Web(host) => Some(judge_host(&policy.hosts, host)),
        // The proxy leads nowhere by another scheme, so no rule allows it.
        Address::Other(host) => Some(judge_host(&policy.hosts, host)).filter(is_denied),
        Address::Unclear => Some(unclear(text)),
        Address::None => None,
    });
    let is_complete = found.clone().all(|finding| finding.is_some());
    let strictest = found.flatten().max_by_key(|finding| finding.verdict);
    strictest.filter(|finding| is_complete || is_denied(finding))
}

/// Whether an address is of the loopback, which commands have to themselves but for ports that the policy opens, and reach
/// without the proxy.
fn is_loopback(address: &HttpUrl) -> bool {
    matches!(address.host().to_string().as_str(), "localhost" | "127.0.0.1")
}

fn is_denied(finding: &Finding) -> bool {
    finding.verdict == Verdict::Deny
}

fn unclear(text: &str) -> Finding {
    let shown = excerpt(text, limits::QUOTED_CHARS);
    let reason = format!("which host `{shown}` leads to depends on the program that reads it");
    Finding::deny(Code::NetUrl, reason)
        .with_suggestion(Some("write it as scheme, host and path: `https://example.org/path`"))
}

/// What the words of one program say of the network.
pub(super) fn of_line(line: &CommandLine<'_>) -> NamedHosts {
    let of_files = [Effect::Opens, Effect::Writes, Effect::Deletes].into_iter();
    let of_files = of_files.fold(Effects::of(Effect::Reads), Effects::with);
    let is_user = line.parsed_argvs().any(|argv| !argv.effects().is_subset_of(of_files));
    let web_hosts = |argv| -> Option<Vec<HttpUrl>> {
        let hosts = addresses(argv)?.into_iter();
        let hosts = hosts.map(|(_, address)| match address {
            Address::Web(host) => Some(host),
            _ => None,
        });
        hosts.collect()
    };
    let hosts = line.parsed_argvs().filter_map(web_hosts).flatten().collect();
    NamedHosts { hosts, users: usize::from(is_user) }
}

/// The addresses in the words of a command, if there are some. A program with subcommands has places of its own to
/// contact, such as a registry.
fn addresses(argv: &ParsedArgv) -> Option<Vec<(&str, Address)>> {
    let contacts = argv.argument_effects.iter().filter(|all| all.effects.contains(Effect::Network));
    let found = contacts.map(|all| (all.argument.as_str(), read_address(&all.argument)));
    let found: Vec<_> = found.collect();
    (!found.is_empty() && argv.levels.len() == 1).then_some(found)
}

/// What an address leads to. Hosts are with their ports, as addresses over https.
enum Address {
    /// A host, over http or https.
    Web(HttpUrl),
    /// A host, by another scheme.
    Other(HttpUrl),
    /// None that is a host: a file, or what another scheme makes of it.
    None,
    /// What programs read in different ways.
    Unclear,
}

/// Reads an address as every program does that can read it; the scheme may be missing. Programs differ in what ends a
/// host, in missing slashes, in wildcards, in escapes and in letters beyond ASCII, so none of those is taken.
fn read_address(text: &str) -> Address {
    let consists = |text: &str, of: &str| {
        text.chars().all(|letter| letter.is_ascii_alphanumeric() || of.contains(letter))
    };
    let parts = text.split_once("://").filter(|(scheme, _)| consists(scheme, "+-."));
    let (scheme, rest) = parts.unwrap_or(("http", text));
    let scheme = scheme.to_ascii_lowercase();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_web = matches!(scheme.as_str(), "http" | "https");
    // An option, or a text such as a statement of a database, which has its own effects.
    if scheme == "file" || text.starts_with('-') || text.contains([' ', '\'', '"']) {
        return Address::None;
    }
    let (user, host) = authority.split_once('@').unwrap_or(("", authority));
    let (name, port) = match host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((name, port)) => (name, port),
        None if scheme == "http" => (host, "80"),
        None => (host, "443"),
    };
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let is_host = inner.map_or_else(|| consists(name, "-._"), |inner| consists(inner, ":."));
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = is_host && is_port && consists(user, "-._~!$&'()*+,=:%");
    match HttpUrl::parse(&format!("https://{name}:{port}/")).ok().filter(|_| is_plain) {
        Some(url) if is_web => Address::Web(url),
        Some(url) => Address::Other(url),
        None if is_web => Address::Unclear,
        None => Address::None,
    }
}
