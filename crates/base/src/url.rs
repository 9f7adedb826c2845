//! URLs, parsed as browsers parse them (WHATWG), and the patterns that policies name them by.
//!
//! Nothing is matched as text: `allowed.com.evil.com`, `user@evil` and `http://evil/?u=allowed.com`
//! have other hosts than a reader in a hurry sees.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use ::url::{Host, Url};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::code::Code;
use crate::glob::{Glob, GlobError};
use crate::limits;
use crate::net::{self, ReservedAddress};

/// A parsed `http` or `https` URL without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl(Url);

/// The host of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostName {
    /// A name, in lower case, in Punycode, without a dot at its end.
    Name(String),
    /// An address, whatever way it was written.
    Ip(IpAddr),
}

impl HttpUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`Code::NetUrl`], [`Code::NetScheme`] or [`Code::NetUserinfo`].
    pub fn parse(asked: &str) -> Result<Self, Code> {
        if asked.len() > limits::URL_BYTES || asked.chars().any(char::is_control) {
            return Err(Code::NetUrl);
        }
        let url = Url::parse(asked).map_err(|_| Code::NetUrl)?;
        Self::checked(url)
    }

    /// Whether a command line names, as programs read it (the scheme may be missing), the service that
    /// tells a machine of a cloud its settings, and hands out its credentials to whoever asks.
    ///
    /// Source: the documentation of the instance metadata services of AWS, Azure, Google Cloud, Oracle
    /// Cloud, DigitalOcean and Alibaba Cloud. Most are at `169.254.169.254`, beside others of that block.
    #[must_use]
    pub fn is_metadata_service(word: &str) -> bool {
        const HOSTS: &str = "instance-data instance-data.ec2.internal metadata metadata.azure.internal metadata.goog \
            metadata.google.internal 100.100.100.200 192.0.0.192 fd00:ec2::254";
        let is_named = |host: &str| HOSTS.split(' ').any(|named| named == host);
        let whole = if word.contains("://") { word.into() } else { format!("http://{word}") };
        let Some(address) = Url::parse(&whole).ok().filter(Url::has_host).map(Self) else {
            return false;
        };
        match address.host() {
            HostName::Name(name) => is_named(name.trim_end_matches('.')),
            HostName::Ip(addr) => {
                is_named(&addr.to_string())
                    || net::reserved(addr) == Some(ReservedAddress::LinkLocal)
            }
        }
    }

    /// Where a redirect from here leads.
    ///
    /// # Errors
    /// The same as [`HttpUrl::parse`].
    pub fn join_redirect(&self, location: &str) -> Result<Self, Code> {
        let url = self.0.join(location).map_err(|_| Code::NetUrl)?;
        Self::checked(url)
    }

    fn checked(mut url: Url) -> Result<Self, Code> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Code::NetScheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Code::NetUserinfo);
        }
        url.set_fragment(None);
        // One dot at the end of a name makes it absolute; it names the same host.
        if let Some(Host::Domain(name)) = url.host()
            && let Some(stripped) = name.strip_suffix('.')
        {
            let stripped = stripped.to_string();
            url.set_host(Some(&stripped)).map_err(|_| Code::NetUrl)?;
        }
        let address = Self(url);
        let named = match address.host() {
            HostName::Name(name) => !name.is_empty() && !name.split('.').any(str::is_empty),
            HostName::Ip(_) => true,
        };
        // What is written with escapes can be longer than what was asked.
        let fits = address.as_str().len() <= limits::URL_BYTES;
        // A server that decodes `..%2f` would leave the path that the policy named.
        let climbs = address.path_components().iter().any(|part| hides_parent_component(part));
        if named && fits && !climbs { Ok(address) } else { Err(Code::NetUrl) }
    }

    /// `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> HostName {
        match self.0.host() {
            Some(Host::Domain(name)) => HostName::Name(name.to_string()),
            Some(Host::Ipv4(ip)) => HostName::Ip(IpAddr::V4(ip)),
            Some(Host::Ipv6(ip)) => HostName::Ip(IpAddr::V6(ip)),
            None => HostName::Name(String::new()),
        }
    }

    /// The port, also where it is the scheme's own.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(0)
    }

    /// Host and port: `registry.example.org:443`.
    #[must_use]
    pub fn host_and_port(&self) -> String {
        alloc::format!("{}:{}", self.host(), self.port())
    }

    /// Host and path, for a line on a screen.
    #[must_use]
    pub fn display_short(&self) -> String {
        let port = self.0.port().map(|port| alloc::format!(":{port}")).unwrap_or_default();
        alloc::format!("{}{port}{}", self.host(), self.0.path())
    }

    /// Whether scheme, host and port are the same.
    #[must_use]
    pub fn same_origin(&self, other: &Self) -> bool {
        self.scheme() == other.scheme()
            && self.host() == other.host()
            && self.port() == other.port()
    }

    /// The whole URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    fn path_components(&self) -> Vec<&str> {
        self.0.path().split('/').filter(|part| !part.is_empty()).collect()
    }

    /// Whether every server takes the path for the one that is spelled. Some decode once more than others,
    /// drop what stands behind a semicolon, or take one character for another.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.0.path().contains("//") && self.path_components().into_iter().all(is_plain)
    }
}

/// Whether a component of a path means to every server what it spells.
fn is_plain(component: &str) -> bool {
    let mut decoded: Vec<u8> = Vec::new();
    let mut bytes = component.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let both =
                    digit().zip(digit()).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
                // What needs no escape is escaped to be something else; the others lead elsewhere.
                match both
                    .filter(|byte| !byte.is_ascii_alphanumeric() && !b"-._~/\\%;?#".contains(byte))
                {
                    Some(byte) => decoded.push(byte),
                    None => return false,
                }
            }
            b';' | b'\\' => return false,
            byte => decoded.push(byte),
        }
    }
    let is_unlike = |letter: char| !letter.is_control() && !is_like_a_sign(letter);
    // Some cut blanks and dots at the end of a name, so that `.. ` and `...` climb.
    let is_name = |text: &str| text.is_empty() || text.contains(|c| c != '.' && c != ' ');
    core::str::from_utf8(&decoded).is_ok_and(|text| is_name(text) && text.chars().all(is_unlike))
}

/// Whether a server that maps characters to plainer ones could make `.`, `/`, `\`, `%` or `;` of it: by
/// compatibility (Unicode 15, NFKC), or as the nearest in an older code page.
const fn is_like_a_sign(letter: char) -> bool {
    matches!(letter,
        '\u{37e}' | '\u{2024}'..='\u{2026}' | '\u{2044}' | '\u{2100}' | '\u{2101}' | '\u{2105}' | '\u{2106}'
        | '\u{2215}' | '\u{2216}' | '\u{2488}'..='\u{249b}' | '\u{29f5}' | '\u{29f8}' | '\u{33c2}' | '\u{33c7}'
        | '\u{33d8}' | '\u{fe14}' | '\u{fe19}' | '\u{fe30}' | '\u{fe52}' | '\u{fe54}' | '\u{fe68}' | '\u{fe6a}'
        | '\u{ff05}' | '\u{ff0e}' | '\u{ff0f}' | '\u{ff1b}' | '\u{ff3c}' | '\u{1f100}')
}

fn hides_parent_component(component: &str) -> bool {
    let lower = component.to_ascii_lowercase();
    let decoded = lower.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    decoded.split(['/', '\\']).any(|part| part == "..")
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V4(ip)) => write!(f, "{ip}"),
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

impl Serialize for HttpUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for HttpUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

/// What a policy names: `https://*.example.org:8443/docs/**`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPattern {
    text: String,
    scheme: String,
    host: HostPattern,
    /// None for any port.
    port: Option<u16>,
    /// None for every path, whatever a server makes of it.
    path: Option<Glob>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Exact(HostName),
    /// `*.example.org`: any name below, not the name itself.
    Subdomains(String),
}

impl UrlPattern {
    /// Reads a pattern: a scheme, a host or `*.` and a host, a port or `*`, and a glob for the path.
    /// Without a path every path matches. A query cannot be named.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.starts_with('!') {
            return Err("`!` takes nothing out of a list; name the address under `urls.deny`");
        }
        let (scheme, rest) = text.split_once("://").ok_or("it has no `https://`")?;
        if !matches!(scheme, "http" | "https") {
            return Err("only `http` and `https` are fetched");
        }
        let (authority, path) = match rest.find('/').and_then(|at| rest.split_at_checked(at)) {
            Some((authority, path)) => (authority, Some(path)),
            None => (rest, None),
        };
        if rest.contains('#') || authority.contains(['@', '?']) {
            return Err("credentials, queries and fragments cannot be named");
        }
        let (below, authority) = match authority.strip_prefix("*.") {
            Some(authority) => (true, authority),
            None => (false, authority),
        };
        let (authority, any_port) = match authority.strip_suffix(":*") {
            Some(authority) => (authority, true),
            None => (authority, false),
        };
        if authority.contains('*') {
            return Err("a wildcard stands for whole names in front: `*.example.org`");
        }
        let base = HttpUrl::parse(&alloc::format!("{scheme}://{authority}/"))
            .map_err(|_| "its host cannot be parsed")?;
        let host = match (base.host(), below) {
            (HostName::Name(name), true) if name.contains('.') => HostPattern::Subdomains(name),
            (_, true) => return Err("a wildcard needs a name with a dot behind it"),
            (host, false) => HostPattern::Exact(host),
        };
        let path = match path {
            None => None,
            Some("/") => Some("."),
            Some(path) if path.contains('?') => return Err("a query cannot be named"),
            Some(path) => Some(path),
        };
        let regex = |path: &str| {
            path.split('/').any(|part| matches!(part, ".*" | ".+")) || path.ends_with('$')
        };
        if path.is_some_and(regex) {
            return Err("regular expressions are not understood; `**` stands for any path");
        }
        let path = path.map(Glob::parse).transpose().map_err(GlobError::why)?;
        let port = (!any_port).then(|| base.port());
        Ok(Self { text: text.into(), scheme: scheme.into(), host, port, path })
    }

    /// The pattern for every page of a host over https.
    ///
    /// # Errors
    /// Says what is wrong with the name.
    pub fn domain(name: &str) -> Result<Self, &'static str> {
        if name.contains(['/', '@', '?', '#']) {
            return Err("a domain is a name such as `api.example.org`");
        }
        Self::parse(&alloc::format!("https://{name}"))
    }

    /// Whether nobody on the way can listen: it is over TLS, or to this machine itself.
    #[must_use]
    pub fn is_confidential(&self) -> bool {
        let is_here =
            matches!(&self.host, HostPattern::Exact(HostName::Ip(ip)) if ip.is_loopback());
        self.scheme == "https" || is_here
    }

    /// Whether the address is surely one of those named. A wildcard stands for no component of a path that
    /// a server may take for another; the pattern has to spell it.
    #[must_use]
    pub fn matches(&self, address: &HttpUrl) -> bool {
        let path = self.path.as_ref();
        let is_named = |path: &Glob| {
            let components = address.path_components();
            let whole = !address.0.path().contains("//");
            whole && path.matches_components_by(&components, is_plain)
        };
        self.matches_origin(address) && path.is_none_or(is_named)
    }

    /// Whether the address may be one of those named: what a stricter word is about.
    #[must_use]
    pub fn could_match(&self, address: &HttpUrl) -> bool {
        self.matches(address) || self.matches_origin(address) && !address.is_plain()
    }

    fn matches_origin(&self, address: &HttpUrl) -> bool {
        self.scheme == address.scheme()
            && self.port.is_none_or(|port| port == address.port())
            && self.matches_host(&address.host())
    }

    fn matches_host(&self, host: &HostName) -> bool {
        match (&self.host, host) {
            (HostPattern::Exact(name), other) => name == other,
            (HostPattern::Subdomains(text), HostName::Name(other)) => {
                other.strip_suffix(text.as_str()).is_some_and(|head| head.ends_with('.'))
            }
            (HostPattern::Subdomains(_), HostName::Ip(_)) => false,
        }
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, url: &str, expected: bool) {
        let pattern = UrlPattern::parse(pattern).unwrap();
        let matched = HttpUrl::parse(url).is_ok_and(|address| pattern.matches(&address));
        assert_eq!(matched, expected, "{} {url}", pattern.as_str());
    }

    /// However a program may be told of it.
    #[test]
    fn services_that_hand_out_credentials_are_known() {
        for word in [
            "http://169.254.169.254/latest/meta-data/",
            "169.254.169.254/latest",
            "http://2852039166/",
            "http://0xA9FEA9FE/",
            "http://0251.0376.0251.0376/",
            "http://[fd00:ec2::254]/latest/meta-data/",
            "http://[::ffff:169.254.169.254]/",
            "http://169.254.170.2/v2/credentials",
            "metadata.google.internal/computeMetadata/v1/",
            "http://METADATA.google.internal./",
            "http://100.100.100.200/latest/meta-data/",
        ] {
            assert!(HttpUrl::is_metadata_service(word), "{word}");
        }
        for word in [
            "https://example.org/169.254.169.254",
            "http://localhost:8000",
            "x.json",
            "",
            "-",
            "http://",
        ] {
            assert!(!HttpUrl::is_metadata_service(word), "{word}");
        }
    }

    #[test]
    fn hosts_are_parsed_not_read() {
        for (url, expected) in [
            ("https://allowed.com/", true),
            ("https://ALLOWED.com./x", true),
            ("https://allowed.com:443/x?y=z", true),
            ("https://allowed.com.evil.com/", false),
            ("https://evilallowed.com/", false),
            ("https://allowed.com@evil.com/", false),
            ("https://evil.com/?u=allowed.com", false),
            ("https://evil.com/#allowed.com", false),
            ("https://allowed.com\\@evil.com/", true),
            ("http://allowed.com/", false),
            ("https://allowed.com:8443/", false),
            ("https://sub.allowed.com/", false),
        ] {
            check("https://allowed.com/**", url, expected);
        }
    }

    #[test]
    fn wildcards_stand_for_whole_names() {
        check("https://*.example.org/**", "https://a.example.org/x", true);
        check("https://*.example.org/**", "https://a.b.example.org/x", true);
        check("https://*.example.org/**", "https://example.org/x", false);
        check("https://*.example.org/**", "https://evilexample.org/x", false);
        for bad in
            ["https://*/", "https://a.*.org/", "https://*.org", "ftp://x/", "x.org", "https://"]
        {
            assert!(UrlPattern::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_stay_within_their_pattern() {
        let pattern = "https://api.example.org/repos/acme/**";
        check(pattern, "https://api.example.org/repos/acme/app/issues?state=closed", true);
        check(pattern, "https://api.example.org/repos/other/app", false);
        check(pattern, "https://api.example.org/repos/acme/../other", false);
        check(pattern, "https://api.example.org/repos/acme/%2e%2e/other", false);
        check(pattern, "https://api.example.org/repos/acme/..%2fother", false);
        check(pattern, "https://api.example.org/repos/acme/x%2Fy", false);
        check("https://api.example.org/p/a%2Fb/**", "https://api.example.org/p/a%2Fb/issues", true);
        check("https://api.example.org/p/*/x", "https://api.example.org/p/a%2Fb/x", false);
        check("https://x.org", "https://x.org/any/thing", true);
        check("https://x.org/", "https://x.org/any", false);
        check("http://127.0.0.1:*/**", "http://127.0.0.1:8080/", true);
    }

    /// L4: what a path means that is decoded once more, cut at a semicolon or mapped to other characters,
    /// only the server knows.
    #[test]
    fn a_wildcard_stands_for_no_path_that_a_server_may_take_for_another() {
        for path in [
            "..;/x",
            "a/..;v=1/x",
            "%252e%252e/x",
            "%25252e/x",
            ".%2e",
            "x%2fy",
            "x%5cy",
            "x%255cy",
            "a;b",
            "a%3bb",
            "/x",
            "a//b",
            "a//",
            "%61dmin",
            "%u002e%u002e/x",
            "a%",
            "a%2",
            "%c0%ae%c0%ae/x",
            "%ff",
            "%ef%bc%8e%ef%bc%8e/x",
            "\u{ff0e}\u{ff0e}/x",
            "x\u{ff0f}y",
            "x\u{2215}y",
            "\u{2025}/x",
            "%00",
            "a%0ab",
            "x%23y",
            "x%3fy",
            "%e2%80%a5/x",
            "x\u{ff05}2e",
            "..%20/x",
            "%20..%20/x",
            ".%20./x",
            ".../x",
        ] {
            let url = alloc::format!("https://x.org/docs/{path}");
            check("https://x.org/docs/**", &url, false);
            check("https://x.org/*/**", &url, false);
            // A denial counts where it could be meant.
            // `.%2e` is a `..` to everybody.
            if let Some(address) = HttpUrl::parse(&url).ok().filter(|url| !url.is_plain()) {
                assert!(
                    UrlPattern::parse("https://x.org/admin/**").unwrap().could_match(&address),
                    "{url}"
                );
            }
        }
        for path in [
            "a",
            "a/b.html",
            "a%20b",
            "caf%C3%A9",
            "caf\u{e9}",
            "a+b",
            "a@b",
            "a:b",
            "%E6%97%A5/x",
            "a,b",
            "(x)",
            "%5Bx%5D",
            "a/",
            "v1.2.3",
            "~me",
            "a=b",
            "%22x%22",
        ] {
            check("https://x.org/docs/**", &alloc::format!("https://x.org/docs/{path}"), true);
        }
        check("https://x.org", "https://x.org/projects/a%2Fb", true);
        let deny = UrlPattern::parse("https://x.org/admin/**").unwrap();
        assert!(!deny.could_match(&HttpUrl::parse("https://x.org/docs/a").unwrap()));
        assert!(!deny.could_match(&HttpUrl::parse("https://y.org/docs/a;b").unwrap()));
    }

    #[test]
    fn odd_addresses_are_seen_as_what_they_are() {
        for (text, host) in [
            ("http://2130706433/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://127.1/", "127.0.0.1"),
            ("http://[::ffff:127.0.0.1]/", "[::ffff:127.0.0.1]"),
            ("http://①②⑦.0.0.1/", "127.0.0.1"),
        ] {
            let address = HttpUrl::parse(text).unwrap();
            assert_eq!(address.host().to_string(), host, "{text}");
            assert!(matches!(address.host(), HostName::Ip(_)));
        }
    }

    #[test]
    fn other_urls_are_refused_with_a_code() {
        let grows = alloc::format!("http://x.org/?{}", "é".repeat(limits::URL_BYTES / 2 - 20));
        assert_eq!(HttpUrl::parse(&grows), Err(Code::NetUrl), "longer than it may be, as written");
        for (text, code) in [
            ("file:///etc/passwd", Code::NetScheme),
            ("ftp://x/", Code::NetScheme),
            ("gopher://x/", Code::NetScheme),
            ("data:text/plain,x", Code::NetScheme),
            ("unix:/var/run/docker.sock", Code::NetScheme),
            ("https://user:pw@x.org/", Code::NetUserinfo),
            ("//x.org/", Code::NetUrl),
            ("https://", Code::NetUrl),
            ("https://x..org/", Code::NetUrl),
            ("https://x.org/\u{0}", Code::NetUrl),
        ] {
            assert_eq!(HttpUrl::parse(text).err(), Some(code), "{text}");
        }
    }
}
