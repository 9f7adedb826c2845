//! Secrets whose value is known: wherever one comes back, it is masked, as it is and as what programs
//! make of it.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::anchors::{Try, WIDTH};
use crate::forms;
use crate::found::{Found, Label, SECRET};
use crate::secret::Secret;
use crate::view::{Read, View};

/// A secret, and every form in which it is looked for, the longest first.
#[derive(Clone)]
pub(super) struct Known {
    name: String,
    forms: Vec<Zeroizing<Vec<u8>>>,
}

impl core::fmt::Debug for Known {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Known({})", self.name)
    }
}

impl Known {
    pub(super) fn of(secret: &Secret) -> Self {
        let value = secret.expose().as_bytes();
        let mut forms = forms::of(value);
        forms.retain(|form| form.len() >= WIDTH);
        forms.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        forms.dedup();
        Self { name: secret.name().into(), forms }
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What its forms begin with, each once.
    pub(super) fn beginnings(&self) -> BTreeSet<&[u8]> {
        self.forms.iter().filter_map(|form| form.get(..WIDTH)).collect()
    }

    /// The secret, if one of its forms stands here.
    pub(super) fn find(
        &self,
        view: &View<'_>,
        at: usize,
        own: Try,
        floor: usize,
    ) -> Read<Option<Found>> {
        let start = at.saturating_sub(usize::from(own.back)).max(floor);
        view.hold(start);
        for form in &self.forms {
            let rest = view.bytes(start..start + form.len());
            let begins = form.get(..rest.len()).is_some_and(|own| own == rest);
            if rest.len() < form.len() && begins {
                view.at(start + rest.len())?;
            }
            if begins && (rest.len() == form.len() || view.is_cut(start + rest.len())) {
                let label = Label { kind: SECRET, rule: Cow::Owned(self.name.clone()) };
                return Ok(Some(Found::whole(label, start..start + rest.len())));
            }
        }
        Ok(None)
    }
}
