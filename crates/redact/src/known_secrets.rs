//! Secrets whose value is known: wherever one comes back, it is masked, as it is and as what programs
//! make of it.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::encodings;
use crate::matches::{MaskLabel, SECRET, SecretMatch};
use crate::prefilter::{Candidate, NEEDLE_BYTES};
use crate::secret::Secret;
use crate::text_window::{Lookahead, TextWindow};

/// A secret, and every form in which it is looked for, the longest first.
#[derive(Clone)]
pub(super) struct KnownSecret {
    name: String,
    encodings: Vec<Zeroizing<Vec<u8>>>,
}

impl core::fmt::Debug for KnownSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Known({})", self.name)
    }
}

impl KnownSecret {
    pub(super) fn of(secret: &Secret) -> Self {
        let value = secret.expose().as_bytes();
        let mut forms = encodings::all_encodings(value);
        forms.retain(|form| form.len() >= NEEDLE_BYTES);
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        forms.dedup();
        Self { name: secret.name().into(), encodings: forms }
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What its forms begin with, each once.
    pub(super) fn prefixes(&self) -> BTreeSet<&[u8]> {
        self.encodings.iter().filter_map(|form| form.get(..NEEDLE_BYTES)).collect()
    }

    /// The secret, if one of its forms stands here.
    pub(super) fn find(
        &self,
        view: &TextWindow<'_>,
        at: usize,
        candidate: Candidate,
        floor: usize,
    ) -> Lookahead<Option<SecretMatch>> {
        let start = at.saturating_sub(usize::from(candidate.offset)).max(floor);
        view.set_undecided_from(start);
        for form in &self.encodings {
            let rest = view.bytes(start..start + form.len());
            let begins = form.get(..rest.len()).is_some_and(|item| item == rest);
            if rest.len() < form.len() && begins {
                view.at(start + rest.len())?;
            }
            if begins && (rest.len() == form.len() || view.is_cut(start + rest.len())) {
                let label = MaskLabel { kind: SECRET, rule: Cow::Owned(self.name.clone()) };
                return Ok(Some(SecretMatch::complete(label, start..start + rest.len())));
            }
        }
        Ok(None)
    }
}
