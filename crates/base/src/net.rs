//! Which addresses are nobody's business: private, local, reserved and translated ones.
//!
//! Source: the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890 and successors),
//! plus the forms in which an IPv6 address carries an IPv4 one, which are judged by what they carry.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// Why an address is not a public one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReservedAddress {
    /// `127.0.0.0/8`, `::1`
    Loopback,
    /// `0.0.0.0/8`, `::`
    Unspecified,
    /// `10/8`, `172.16/12`, `192.168/16`, `fc00::/7`, and the retired `fec0::/10`
    Private,
    /// `169.254/16` (cloud metadata lives there), `fe80::/10`
    LinkLocal,
    /// `100.64.0.0/10`
    SharedByCarrier,
    /// Documentation, benchmarking, protocol assignments, future use, discard and dummy prefixes
    Special,
    /// `224.0.0.0/4`, `ff00::/8`, `255.255.255.255`
    Multicast,
}

crate::words! {
    ReservedAddress::description:
    Loopback = "loopback", Unspecified = "unspecified", Private = "private", LinkLocal = "link-local",
    SharedByCarrier = "shared by a carrier", Special = "reserved", Multicast = "multicast or broadcast",
}

/// Says why an address is not public; none if it is.
#[must_use]
pub fn reserved(address: IpAddr) -> Option<ReservedAddress> {
    match address {
        IpAddr::V4(address) => reserved_v4(address),
        IpAddr::V6(address) => reserved_v6(address),
    }
}

const fn reserved_v4(address: Ipv4Addr) -> Option<ReservedAddress> {
    Some(match address.octets() {
        [0, ..] => ReservedAddress::Unspecified,
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] => ReservedAddress::Private,
        [127, ..] => ReservedAddress::Loopback,
        [169, 254, ..] => ReservedAddress::LinkLocal,
        [100, 64..=127, ..] => ReservedAddress::SharedByCarrier,
        [192, 0, 0 | 2, _]
        | [192, 31, 196, _]
        | [192, 52, 193, _]
        | [192, 88, 99, _]
        | [192, 175, 48, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => ReservedAddress::Special,
        [224..=239, ..] | [255, 255, 255, 255] => ReservedAddress::Multicast,
        [240..=255, ..] => ReservedAddress::Special,
        _ => return None,
    })
}

fn reserved_v6(address: Ipv6Addr) -> Option<ReservedAddress> {
    let segments = address.segments();
    if address.is_loopback() {
        return Some(ReservedAddress::Loopback);
    }
    if address.is_unspecified() {
        return Some(ReservedAddress::Unspecified);
    }
    if let Some(carried) = embedded_v4(segments) {
        // Even a public address is refused in these wrappings: a translator that we do not see
        // decides where it leads.
        return Some(reserved_v4(carried).unwrap_or(ReservedAddress::Special));
    }
    Some(match segments {
        [0xff00..=0xffff, ..] => ReservedAddress::Multicast,
        [0xfe80..=0xfebf, ..] => ReservedAddress::LinkLocal,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => ReservedAddress::Private,
        // Only 2000::/3 is handed out at all.
        [0x2000..=0x3fff, ..] => match segments {
            // 2001::/23 protocol assignments (Teredo, ORCHID, benchmarking), documentation.
            [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => {
                ReservedAddress::Special
            }
            _ => return None,
        },
        _ => ReservedAddress::Special,
    })
}

/// The IPv4 address inside a mapped, compatible, translated (RFC 6052, RFC 8215), 6to4 or ISATAP
/// address.
fn embedded_v4(segments: [u16; 8]) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..]
        | [_, _, _, _, 0 | 0x0200, 0x5efe, high, low] => Some(join(high, low)),
        _ => None,
    }
}

/// A range of addresses: `10.0.0.0/8`, `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpRange {
    address: IpAddr,
    bits: u8,
}

impl IpRange {
    /// Reads an address, or an address and the length of its prefix.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let split = text.split_once('/');
        let (address, bits) = split.map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) if bits.bytes().all(|b| b.is_ascii_digit()) => bits.parse().ok()?,
            Some(_) => return None,
            None => width,
        };
        (bits <= width).then_some(Self { address, bits })
    }

    /// Whether the address lies in the range.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let leading = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let shared = (leading(self.address) ^ leading(address)).leading_zeros();
        self.address.is_ipv4() == address.is_ipv4() && shared >= u32::from(self.bits)
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_addresses_are_known() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "100::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2a00::5efe:7f00:1",
            "5f00::1",
        ] {
            assert!(reserved(text.parse().unwrap()).is_some(), "{text}");
        }
    }

    #[test]
    fn public_addresses_are_public() {
        for text in ["8.8.8.8", "1.1.1.1", "172.32.0.1", "192.1.0.1", "100.128.0.1", "2606:4700::1"]
        {
            assert_eq!(reserved(text.parse().unwrap()), None, "{text}");
        }
    }

    #[test]
    fn ranges_contain_their_own() {
        for (range, address, inside) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("::1", "::1", true),
            ("::/0", "127.0.0.1", false),
            ("fd00::/8", "fdff::1", true),
        ] {
            let got = IpRange::parse(range).unwrap().contains(address.parse().unwrap());
            assert_eq!(got, inside, "{range} {address}");
        }
        for bad in ["", "10.0.0.0/33", "10/8", "::/129", "1.2.3.4/-1", "1.2.3.4/+8"] {
            assert_eq!(IpRange::parse(bad), None, "{bad}");
        }
    }
}
