//! The programs that are known, by every name that they go by.

use alloc::boxed::Box;

use once_cell::race::OnceBox;

use crate::specs::command_spec::CommandSpec;
use crate::specs::packed::unpack;
use crate::specs::spec_parser::parse_spec;

/// Where a text stands in `SPEC_TEXTS`: its first byte, and the one behind its last.
#[derive(Clone, Copy)]
struct Span(u32, u32);

impl Span {
    fn text(self) -> &'static str {
        let at = |place: u32| usize::try_from(place).unwrap_or(usize::MAX);
        SPEC_TEXTS.get(at(self.0)..at(self.1)).unwrap_or_default()
    }
}

/// What is known of one program: what its file says.
struct File {
    name: Span,
    packed: Span,
}

// `FILES`: every file under `programs/`; `NAMES`: every name of a program, in order, with the place
// of its file; `SPEC_TEXTS`: their texts (see `build.rs`).
include!(concat!(env!("OUT_DIR"), "/programs.rs"));

/// What the files mean, once that was asked for.
static PARSED: [OnceBox<CommandSpec>; FILES.len()] = [const { OnceBox::new() }; FILES.len()];

/// The names of all programs that are known.
pub fn program_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| name.text())
}

/// What is known about a program. Its file is read once: several rules of every decision ask.
#[must_use]
pub fn find_spec(name: &str) -> Option<&'static CommandSpec> {
    let found = NAMES.binary_search_by_key(&name, |(span, _)| span.text()).ok()?;
    let at = usize::from(NAMES.get(found)?.1);
    let file = FILES.get(at)?;
    // A test reads every file, so that what cannot be read is never built into a program.
    let read = || {
        let root = unpack(file.packed.text()).ok_or(())?;
        parse_spec(file.name.text(), &root).map(Box::new).map_err(drop)
    };
    PARSED.get(at)?.get_or_try_init(read).ok()
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;
    use capsule_base::yaml::POLICY_DIALECT;
    use capsule_base::yaml::{self, YamlNode, YamlValue};

    /// A tree without places.
    fn placeless(node: YamlNode) -> YamlNode {
        let value = match node.value {
            YamlValue::List(items) => YamlValue::List(items.into_iter().map(placeless).collect()),
            YamlValue::Map(entries) => {
                let pair = |(key, value)| (placeless(key), placeless(value));
                YamlValue::Map(entries.into_iter().map(pair).collect())
            }
            scalar @ YamlValue::Scalar(_) => scalar,
        };
        YamlNode { span: 0..0, value }
    }

    #[test]
    fn every_file_can_be_read() {
        let mut wrong = Vec::new();
        for (file, text) in FILES.iter().zip(TEXTS) {
            let program = match yaml::parse(text, &POLICY_DIALECT) {
                Ok(Some(root)) => parse_spec(file.name.text(), &root),
                Ok(None) => Err(Vec::new()),
                Err(problem) => Err(alloc::vec![problem]),
            };
            if let Err(problems) = program {
                wrong.push(format!("{}: {problems:#?}", file.name.text()));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_name_of_a_file_finds_it() {
        let mut all = Vec::new();
        for (index, file) in FILES.iter().enumerate() {
            let root = unpack(file.packed.text()).unwrap();
            let also = match root.get("also").map(|also| (&also.value, also)) {
                Some((YamlValue::List(items), _)) => items.clone(),
                Some((_, one)) => alloc::vec![one.clone()],
                None => Vec::new(),
            };
            all.push((String::from(file.name.text()), index));
            all.extend(also.iter().map(|name| (name.text().unwrap().into(), index)));
        }
        all.sort();
        let names: Vec<_> =
            NAMES.iter().map(|(name, at)| (String::from(name.text()), usize::from(*at))).collect();
        assert_eq!(all, names);
        assert!(names.iter().all(|(name, _)| find_spec(name).is_some()));
        assert!(find_spec("no-such-program").is_none());
    }

    #[test]
    fn what_is_packed_is_what_the_files_say() {
        for (file, text) in FILES.iter().zip(TEXTS) {
            let parsed = yaml::parse(text, &POLICY_DIALECT).unwrap().map(placeless);
            assert_eq!(unpack(file.packed.text()), parsed, "{}", file.name.text());
        }
    }

    #[test]
    fn what_is_cut_or_longer_is_not_unpacked() {
        let whole = "{1:-1:a[2:-1:b\"0:";
        assert!(unpack(whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(whole.get(..length).and_then(unpack), None);
        }
        assert_eq!(unpack(&(String::from(whole) + "-")), None);
        assert_eq!(unpack("-2:é-"), None);
        assert_eq!(unpack("-1:é"), None);
    }
}
