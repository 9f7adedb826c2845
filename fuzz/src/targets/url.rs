//! Sixteen bytes and four lines: an IP address, a URL, a redirect, a pattern, and a range. No URL
//! that was read hides a name, a password or another scheme, and it reads back as itself; no
//! address that the standard library calls local is called public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capsule_base::limits;
use capsule_base::net::{IpRange, reserved};
use capsule_base::url::{HostName, HttpUrl, UrlPattern};

pub(super) fn run(bytes: &[u8]) {
    let Some((ip, text)) = bytes.split_first_chunk::<16>() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or("");
    let [v4 @ .., _, _, _, _, _, _, _, _, _, _, _, _] = *ip;
    let (v4, v6) = (Ipv4Addr::from(v4), Ipv6Addr::from(*ip));
    local(v4, v6);
    let (asked, location, pattern, range) = (next(), next(), next(), next());
    let pattern = UrlPattern::parse(pattern).ok();
    if let Ok(address) = HttpUrl::parse(asked) {
        readable(&address, pattern.as_ref());
        if let Ok(address) = address.join_redirect(location) {
            readable(&address, pattern.as_ref());
        }
    }
    let _ = UrlPattern::domain(asked);
    if let Some(range) = IpRange::parse(range) {
        assert_eq!(IpRange::parse(&range.to_string()), Some(range));
        let written = range.to_string();
        let own = written.split_once('/').and_then(|(own, _)| own.parse().ok());
        assert!(own.is_some_and(|own| range.contains(own)));
        let _ = (range.contains(v4.into()), range.contains(v6.into()));
    }
}

/// What the standard library knows about addresses; ours knows more.
fn local(v4: Ipv4Addr, v6: Ipv6Addr) {
    let known = v4.is_unspecified()
        || v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_multicast()
        || v4.is_broadcast()
        || v4.is_documentation();
    assert!(!known || reserved(v4.into()).is_some(), "{v4}");
    let known = v6.is_unspecified()
        || v6.is_loopback()
        || v6.is_unique_local()
        || v6.is_unicast_link_local()
        || v6.is_multicast()
        || v6.to_ipv4().is_some();
    assert!(!known || reserved(v6.into()).is_some(), "{v6}");
    assert!(reserved(v4.to_ipv6_mapped().into()).is_some());
    assert!(reserved(v4.to_ipv6_compatible().into()).is_some());
}

fn readable(address: &HttpUrl, pattern: Option<&UrlPattern>) {
    let text = address.as_str();
    assert_eq!(HttpUrl::parse(text).as_ref(), Ok(address), "{} bytes", text.len());
    assert!(text.len() <= limits::URL_BYTES && !text.chars().any(char::is_control));
    assert!(matches!(address.scheme(), "http" | "https"));
    assert!(!text.contains('#') && !text.split('/').nth(2).unwrap_or("").contains('@'));
    let host = address.host();
    match &host {
        HostName::Name(name) => assert!(name.parse::<IpAddr>().is_err() && !name.ends_with('.')),
        HostName::Ip(_) => {
            let again = HttpUrl::parse(&format!("{}://{host}/", address.scheme()));
            assert_eq!(again.map(|again| again.host()).as_ref(), Ok(&host));
        }
    }
    // A name that holds a `*` cannot be named, so nothing allows it.
    if !text.contains('*') {
        let origin = format!("{}://{host}:{}", address.scheme(), address.port());
        let exact = UrlPattern::parse(&origin).expect("an origin can be named");
        assert!(exact.matches(address), "{origin}");
    }
    let _ = (address.display_short(), pattern.is_some_and(|pattern| pattern.matches(address)));
}
