//! The Merkle tree of RFC 6962 (section 2.1), kept by its right edge.
//!
//! A tree of any size is a row of complete subtrees, largest first; their roots are all that is
//! needed to add a leaf and to state the root. They are kept in a cache beside the events and can
//! be made again from them at any time.

use capsule_base::digest::Digest;

/// The hash of a leaf: `SHA-256(0x00 ‖ bytes)`.
#[must_use]
pub fn leaf_hash(bytes: &[u8]) -> Digest {
    Digest::of_parts(&[&[0], bytes])
}

fn node_hash(left: &Digest, right: &Digest) -> Digest {
    Digest::of_parts(&[&[1], &left.0, &right.0])
}

/// The right edge of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    /// The roots of the complete subtrees, largest first: one for each bit of the size.
    peaks: Vec<Digest>,
}

impl Frontier {
    /// The number of leaves.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf.
    pub fn push(&mut self, leaf: Digest) {
        let mut node = leaf;
        // Each trailing one of the size is a complete subtree that the new leaf completes further.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.peaks.push(node);
        self.size += 1;
    }

    /// The largest complete subtrees that a tree of this size, which is no larger, has as well.
    #[must_use]
    pub fn subtrees_of(&self, size: u64) -> Self {
        // Sizes that begin with the same bits are made of the same subtrees so far.
        let other = (self.size ^ size).checked_ilog2().map_or(0, |bit| u64::MAX >> (63 - bit));
        let common = self.size & !other;
        let count = usize::try_from(common.count_ones()).unwrap_or(0);
        Self { size: common, peaks: self.peaks.iter().take(count).copied().collect() }
    }

    /// The root; that of an empty tree is the hash of nothing.
    #[must_use]
    pub fn root(&self) -> Digest {
        let mut peaks = self.peaks.iter().rev();
        let Some(last) = peaks.next() else { return Digest::of(b"") };
        peaks.fold(*last, |right, left| node_hash(left, &right))
    }

    /// The bytes for the cache: the peaks, one after the other.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.peaks.iter().flat_map(|peak| peak.0).collect()
    }

    /// Reads the cache; none if it does not fit the size.
    #[must_use]
    pub fn from_bytes(size: u64, bytes: &[u8]) -> Option<Self> {
        let (peaks, rest) = bytes.as_chunks::<32>();
        let fits = rest.is_empty() && u32::try_from(peaks.len()) == Ok(size.count_ones());
        fits.then(|| Self { size, peaks: peaks.iter().map(|peak| Digest(*peak)).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of RFC 6962, word by word.
    fn root_by_definition(leaves: &[&[u8]]) -> Digest {
        match leaves {
            [] => Digest::of(b""),
            [leaf] => leaf_hash(leaf),
            _ => {
                let split = leaves.len().next_power_of_two() / 2;
                let (left, right) = leaves.split_at(split);
                node_hash(&root_by_definition(left), &root_by_definition(right))
            }
        }
    }

    #[test]
    fn agrees_with_the_published_tree() {
        // The eight leaves that implementations of RFC 6962 test with.
        let leaves: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let mut tree = Frontier::default();
        for leaf in leaves {
            tree.push(leaf_hash(leaf));
        }
        assert_eq!(
            tree.root().to_string(),
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
        );
    }

    #[test]
    fn agrees_with_the_definition_at_every_size() {
        let leaves: Vec<[u8; 1]> = (0..200).map(|n| [n]).collect();
        let leaves: Vec<&[u8]> = leaves.iter().map(<[u8; 1]>::as_slice).collect();
        let mut tree = Frontier::default();
        for size in 0..=leaves.len() {
            assert_eq!(tree.root(), root_by_definition(&leaves[..size]), "size {size}");
            let read = Frontier::from_bytes(tree.size(), &tree.to_bytes());
            assert_eq!(read.as_ref(), Some(&tree));
            if let Some(leaf) = leaves.get(size) {
                tree.push(leaf_hash(leaf));
            }
        }
    }

    #[test]
    fn a_smaller_tree_is_made_of_subtrees_of_the_larger_one() {
        let leaves: Vec<Digest> = (0..70_u8).map(|n| leaf_hash(&[n])).collect();
        let grown = |from: Frontier, size: usize| {
            let begin = usize::try_from(from.size()).unwrap();
            leaves[begin..size].iter().fold(from, |mut tree, leaf| {
                tree.push(*leaf);
                tree
            })
        };
        for large in 0..=leaves.len() {
            let tree = grown(Frontier::default(), large);
            for small in 0..=large {
                let common = tree.subtrees_of(small as u64);
                assert!(common.size() <= small as u64);
                assert_eq!(
                    grown(common, small),
                    grown(Frontier::default(), small),
                    "{large} {small}"
                );
            }
        }
        assert_eq!(grown(Frontier::default(), 70).subtrees_of(66).size(), 64);
    }

    #[test]
    fn a_cache_that_does_not_fit_is_refused() {
        assert_eq!(Frontier::from_bytes(2, &[0; 64]), None);
        assert_eq!(Frontier::from_bytes(1, &[0; 31]), None);
    }
}
