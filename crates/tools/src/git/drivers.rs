//! What a repository's configuration names, by names of its own choosing.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use capsule_base::code::Code;
use capsule_base::limits;
use capsule_core::outcome::CodedError;
use capsule_sandbox::CapturedOutput;

use super::output::nul_fields;

/// A setting that means nothing to git. Where it is not listed with the others, none of them was
/// heeded.
pub(super) const HEED_CHECK: (&str, &str) = ("capsule.heeded", "true");

/// A section whose entries have names, and the settings that switch one off.
type Section = (&'static [u8], &'static [(&'static str, &'static str)]);

/// What has to be switched off for each name of a section, and how.
const SECTIONS: &[Section] = &[
    // A filter that must succeed and has nothing to run would be an error.
    (b"filter", &[("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")]),
    (b"diff", &[("command", ""), ("textconv", ""), ("cachetextconv", "false")]),
    // Nothing is fetched from it.
    (b"remote", &[("promisor", "false")]),
];

/// The sections, by where they stand in the list, and the names in them.
#[derive(Default)]
pub(super) struct Drivers(BTreeSet<(usize, Vec<u8>)>);

impl Drivers {
    /// Those that a listing of the whole configuration holds, with whatever it includes.
    ///
    /// # Errors
    /// When git did not heed our own settings, or there is more than can be switched off.
    pub(super) fn parse(listed: &CapturedOutput) -> Result<Self, CodedError> {
        let too_many = || {
            let message = "the repository's configuration names too many filters and remotes";
            CodedError::new(Code::GitDrivers, message)
        };
        if listed.truncated {
            return Err(too_many());
        }
        let mut found = BTreeSet::new();
        let mut heeded = false;
        for entry in nul_fields(listed) {
            let key = entry.split(|byte| *byte == b'\n').next().unwrap_or_default();
            heeded |= key == HEED_CHECK.0.as_bytes();
            let Some((section, name)) = section_and_name(key) else { continue };
            let place = SECTIONS.iter().position(|(item, _)| item.eq_ignore_ascii_case(section));
            found.extend(place.map(|place| (place, name.to_vec())));
        }
        if !heeded {
            let message = "this git takes no settings from its environment; 2.31 and later do";
            return Err(CodedError::new(Code::GitFailed, message));
        }
        if found.len() > limits::GIT_DRIVERS {
            return Err(too_many());
        }
        Ok(Self(found))
    }

    /// The settings that switch them off.
    pub(super) fn disabling_settings(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.0.iter().flat_map(|(place, name)| {
            let (section, settings) = SECTIONS.get(*place).copied().unwrap_or_default();
            settings.iter().map(move |(variable, value)| {
                let key = [section, name, variable.as_bytes()].join(&b'.');
                (OsStr::from_bytes(&key).to_owned(), OsString::from(value))
            })
        })
    }
}

/// The section of a key and the name in it; none for a key without a name. The name may hold dots.
fn section_and_name(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = key.iter().position(|byte| *byte == b'.')?;
    let last = key.iter().rposition(|byte| *byte == b'.')?;
    Some((key.get(..first)?, key.get(first + 1..last)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(text: &str) -> CapturedOutput {
        let total = u64::try_from(text.len()).unwrap();
        CapturedOutput { bytes: text.as_bytes().to_vec(), total, ..CapturedOutput::default() }
    }

    #[test]
    fn what_is_named_is_switched_off_by_its_name() {
        let text = "core.bare\nfalse\0capsule.heeded\ntrue\0filter.a.b=c.clean\nx\n.y\0\
                    filter.a.b=c.process\nz\0diff.lfs.textconv\nq\0user.name\nfilter.no.clean\0";
        let drivers = Drivers::parse(&listing(text)).unwrap();
        let keys: Vec<String> = drivers
            .disabling_settings()
            .map(|(key, value)| format!("{}={}", key.display(), value.display()))
            .collect();
        assert_eq!(
            keys,
            [
                "filter.a.b=c.clean=",
                "filter.a.b=c.smudge=",
                "filter.a.b=c.process=",
                "filter.a.b=c.required=false",
                "diff.lfs.command=",
                "diff.lfs.textconv=",
                "diff.lfs.cachetextconv=false",
            ]
        );
    }

    #[test]
    fn a_listing_without_our_own_settings_or_its_end_is_refused() {
        let code =
            |listed: &CapturedOutput| Drivers::parse(listed).err().map(|problem| problem.code);
        assert_eq!(code(&listing("core.bare\nfalse\0")), Some(Code::GitFailed));
        let cut = CapturedOutput { truncated: true, ..listing("capsule.heeded\ntrue\0") };
        assert_eq!(code(&cut), Some(Code::GitDrivers));
        let many: String =
            (0..=limits::GIT_DRIVERS).map(|name| format!("filter.{name}.clean\nx\0")).collect();
        let many = format!("capsule.heeded\ntrue\0{many}");
        assert_eq!(code(&listing(&many)), Some(Code::GitDrivers));
    }
}
