//! How the files of program knowledge lie in the binary: parsed when core was built, as values that
//! say how long they are before they begin.
//!
//! `-5:plain`, `"6:quoted`, `[2:` and two values, `{1:` and a key with its value. A length is that
//! of the text in bytes, a count that of the values, or of the pairs.

use alloc::vec::Vec;

use capsule_base::yaml::{YamlNode, YamlScalar, YamlValue};

/// The tree of a file. Its nodes have no places, since the file is not there.
pub(super) fn unpack(packed: &str) -> Option<YamlNode> {
    let mut rest = packed;
    let node = node(&mut rest)?;
    rest.is_empty().then_some(node)
}

fn node(rest: &mut &str) -> Option<YamlNode> {
    let (head, behind) = rest.split_once(':')?;
    *rest = behind;
    let count: usize = head.get(1..)?.parse().ok()?;
    let value = match head.as_bytes().first()? {
        b'[' => YamlValue::List((0..count).map(|_| node(rest)).collect::<Option<_>>()?),
        b'{' => {
            let pair = |_| Some((node(rest)?, node(rest)?));
            YamlValue::Map((0..count).map(pair).collect::<Option<Vec<_>>>()?)
        }
        mark => {
            let text = rest.get(..count)?;
            *rest = rest.get(count..)?;
            YamlValue::Scalar(YamlScalar { text: text.into(), plain: *mark == b'-' })
        }
    };
    Some(YamlNode { span: 0..0, value })
}
