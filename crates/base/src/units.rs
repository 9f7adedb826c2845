//! Sizes and durations as people write them: a number with its unit.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use crate::limits;

/// Reads a size: `50KB`, `256KiB`, `1MiB`, `512B`. A number without a unit is refused.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor).filter(|bytes| *bytes <= limits::EXACT_INTEGER)
}

/// Reads a duration: `500ms`, `10s`, `5m`, `4h`, `30d`. A number without a unit is refused.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let duration = number.checked_mul(millis).map(Duration::from_millis);
    duration.filter(|duration| *duration <= limits::LONGEST_DURATION)
}

/// A duration in whole milliseconds, as limits are written down; the most there is if it is longer.
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a sum of US dollars with at most six decimals, such as `2.00`; gives millionths of a dollar.
#[must_use]
pub fn parse_usd(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let all = [whole, part].concat();
    let fits = matches!((whole.len(), part.len()), (1..=6, 1..=6));
    let is_number = fits && all.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("{whole}{part:0<6}").parse().ok()).flatten()
}

/// A sum in millionths of a US dollar for a screen, at least to the cent: `$2.00`, `$0.004`.
#[must_use]
pub fn show_usd(micros: u64) -> String {
    let text = format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let shown = text.trim_end_matches('0').len().max(text.len() - "0000".len());
    text.get(..shown).unwrap_or_default().into()
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    (number.len() <= limits::UNIT_DIGITS).then_some((number.parse().ok()?, unit))
}

/// A size for a screen: `812 B`, `2.1 KB`, `31 KB`, `1.8 MB`.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        let tenths = bytes.saturating_mul(10) / unit;
        if tenths < 100 {
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        } else {
            format!("{} {name}", tenths / 10)
        }
    };
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => scaled(1_000, "KB"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "MB"),
        _ => scaled(1_000_000_000, "GB"),
    }
}

/// A duration in microseconds for a screen: `412 ms`, `3.2 s`, `4 m 10 s`.
#[must_use]
pub fn show_duration(micros: u64) -> String {
    let millis = micros / 1_000;
    match millis {
        0 => String::from("<1 ms"),
        1..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => format!("{} m {} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}

/// A span in milliseconds as a policy says it, in the largest unit of which it is a whole number:
/// `4 h`, `30 min`, `90 s`, `250 ms`.
#[must_use]
pub fn show_span(millis: u64) -> String {
    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    match millis {
        0 => String::from("0 s"),
        whole if whole.is_multiple_of(HOUR) => format!("{} h", whole / HOUR),
        whole if whole.is_multiple_of(MINUTE) => format!("{} min", whole / MINUTE),
        whole if whole.is_multiple_of(1_000) => format!("{} s", whole / 1_000),
        other => show_duration(other.saturating_mul(1_000)),
    }
}

/// So many of something: `1 call`, `2 calls`.
#[must_use]
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_units() {
        for (text, bytes) in [
            ("50KB", Some(50_000)),
            ("5MiB", Some(5 << 20)),
            ("0B", Some(0)),
            ("50", None),
            ("50k", None),
            ("KB", None),
            ("-1KB", None),
            ("1.5MB", None),
            ("1 KB", None),
            ("9999999999999999KB", None),
            ("99999999999999GB", None),
            ("", None),
        ] {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
    }

    #[test]
    fn durations_need_units() {
        for (text, millis) in [
            ("10s", Some(10_000)),
            ("500ms", Some(500)),
            ("4h", Some(14_400_000)),
            ("10", None),
            ("10 s", None),
            ("1w", None),
        ] {
            assert_eq!(parse_duration(text), millis.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn dollars_are_read_and_shown() {
        for (text, micros, shown) in [
            ("2.00", Some(2_000_000), "$2.00"),
            ("3", Some(3_000_000), "$3.00"),
            ("0.15", Some(150_000), "$0.15"),
            ("0.000001", Some(1), "$0.000001"),
            ("0.0040", Some(4_000), "$0.004"),
            ("10", Some(10_000_000), "$10.00"),
            ("0.0000001", None, ""),
            ("1000000", None, ""),
            ("-1", None, ""),
            ("1e3", None, ""),
            ("1.", None, ""),
            (".5", None, ""),
            ("$1", None, ""),
        ] {
            assert_eq!(parse_usd(text), micros, "{text}");
            assert_eq!(micros.map(show_usd).unwrap_or_default(), shown, "{text}");
        }
    }

    #[test]
    fn sizes_and_durations_read_well() {
        assert_eq!(show_size(812), "812 B");
        assert_eq!(show_size(2_149), "2.1 KB");
        assert_eq!(show_size(31_400), "31 KB");
        assert_eq!(show_duration(900), "<1 ms");
        assert_eq!(show_duration(3_250_000), "3.2 s");
        assert_eq!(show_duration(250_000_000), "4 m 10 s");
        assert_eq!(show_span(14_400_000), "4 h");
        assert_eq!(show_span(5_400_000), "90 min");
        assert_eq!(show_span(10_000), "10 s");
    }
}
