//! Whether a mask in a command line hides what a person has to see.

use crate::names_secret;

/// What a mask hides in a word of a command line, as far as a person has to see it. What a policy finds by
/// a pattern may be anything, and so may what stands where some program takes a password: this one may
/// take a path there. What counts is a name that says it is a secret, in a word that is no program text: `last`,
/// the word before, says whether it is one, and is empty where there is none.
#[must_use]
pub fn masked_argument(word: &str, last: &str) -> Option<&'static str> {
    let (lead, rest) = word.split_once('«').unwrap_or((word, ""));
    if word.starts_with('-') && !lead.contains(['=', ':', ' ']) {
        return Some("an option");
    }
    if lead.ends_with('/') || word.contains("»/") {
        return Some("a path");
    }
    let is_text = last.starts_with('-')
        && (last.ends_with(['c', 'e', 'E', 'r']) && !last.starts_with("--")
            || ["--eval", "--command", "--exec", "--execute", "--expression"].contains(&last));
    let behind_option = lead.is_empty() && last.starts_with("--") && names_secret(last);
    let names_secret = behind_option || is_setting(lead) || is_header(lead) || is_login(lead, rest);
    (!names_secret || is_text || word.contains("«pattern:")).then_some("a word")
}

/// `DB_PASSWORD=`, `--api-token=`.
fn is_setting(lead: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    lead.strip_suffix('=').is_some_and(|name| name.chars().all(plain) && names_secret(name))
}

/// `Authorization: Bearer `, also behind `--header=`.
fn is_header(lead: &str) -> bool {
    const SCHEMES: [&str; 5] = ["", "Bearer ", "Basic ", "Token ", "Digest "];
    const NAMES: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];
    let lead = lead.strip_prefix("--header=").unwrap_or(lead);
    let Some((name, scheme)) = lead.split_once(": ") else { return false };
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let known = NAMES.iter().any(|text| text.eq_ignore_ascii_case(name)) || names_secret(name);
    plain && known && SCHEMES.iter().any(|text| text.eq_ignore_ascii_case(scheme))
}

/// `https://user:`, and the host behind the mask.
fn is_login(lead: &str, rest: &str) -> bool {
    let behind = rest.split_once('»').map_or("", |(_, behind)| behind);
    lead.split_once("://").is_some_and(|(_, user)| {
        user.ends_with(':') && !user.contains(['/', '?', '#', '@', ' ']) && behind.starts_with('@')
    })
}
