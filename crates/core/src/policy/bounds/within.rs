//! The bounds of a call that a policy and a layer over it both allow: what both allow, and nothing
//! else.

use alloc::boxed::Box;
use alloc::sync::Arc;

use crate::policy::bounds::{Bounds, Scope};
use crate::policy::commands::Environment;
use crate::policy::model::Policy;

impl Bounds {
    /// What both allow. These are the policy's own: what they ask on the way, they ask of all of its
    /// layers. `top` is that policy.
    pub(crate) fn within(self, other: Self, top: &Arc<Policy>) -> Self {
        match (self, other) {
            (
                Self::Look { results, clamped, timeout_ms, sight },
                Self::Look { results: most, clamped: too, timeout_ms: time, .. },
            ) => Self::Look {
                results: results.min(most),
                clamped: clamped || too,
                timeout_ms: timeout_ms.min(time),
                sight,
            },
            (
                Self::Read { bytes, clamped, timeout_ms },
                Self::Read { bytes: most, clamped: too, timeout_ms: time },
            ) => Self::Read {
                bytes: bytes.min(most),
                clamped: clamped || too,
                timeout_ms: timeout_ms.min(time),
            },
            (Self::Write { timeout_ms }, Self::Write { timeout_ms: time }) => {
                Self::Write { timeout_ms: timeout_ms.min(time) }
            }
            (
                Self::Edit { bytes, quotes, timeout_ms },
                Self::Edit { bytes: most, timeout_ms: time, .. },
            ) => Self::Edit {
                bytes: bytes.min(most),
                // A layer that closes the file to `fs.read` denied the edit; one that is silent closes nothing.
                quotes,
                timeout_ms: timeout_ms.min(time),
            },
            (Self::Delete { path, timeout_ms }, Self::Delete { path: same, timeout_ms: time })
                if path == same =>
            {
                Self::Delete { path, timeout_ms: timeout_ms.min(time) }
            }
            (one @ Self::Fetch { .. }, other @ Self::Fetch { .. }) => fetch(one, &other),
            (one @ Self::Git { .. }, other @ Self::Git { .. }) => git(one, &other),
            (one @ Self::Run { .. }, other @ Self::Run { .. })
            | (one @ Self::Unconfined { .. }, other @ Self::Unconfined { .. }) => {
                run(one, other, top)
            }
            _ => Self::Nothing,
        }
    }
}

fn fetch(one: Bounds, other: &Bounds) -> Bounds {
    match (one, other) {
        (
            Bounds::Fetch { reach, bytes_max, inflated_max, redirects, timeout_ms },
            Bounds::Fetch {
                bytes_max: bytes,
                inflated_max: inflated,
                redirects: hops,
                timeout_ms: time,
                ..
            },
        ) => Bounds::Fetch {
            reach,
            bytes_max: bytes_max.min(*bytes),
            inflated_max: inflated_max.min(*inflated),
            redirects: redirects.min(*hops),
            timeout_ms: timeout_ms.min(*time),
        },
        _ => Bounds::Nothing,
    }
}

fn git(one: Bounds, other: &Bounds) -> Bounds {
    match (one, other) {
        (
            Bounds::Git { confinement, results, clamped, bytes, contents },
            Bounds::Git { confinement: walls, results: most, clamped: too, bytes: few, .. },
        ) => Bounds::Git {
            confinement: confinement.within(*walls),
            results: results.min(*most),
            clamped: clamped || *too,
            bytes: bytes.min(*few),
            contents,
        },
        _ => Bounds::Nothing,
    }
}

fn run(one: Bounds, other: Bounds, top: &Arc<Policy>) -> Bounds {
    match (one, other) {
        (
            Bounds::Run { confinement, clamped, environment, reads, writes },
            Bounds::Run {
                confinement: walls,
                clamped: too,
                environment: other,
                reads: seen,
                writes: changed,
            },
        ) => Bounds::Run {
            confinement: confinement.within(walls),
            clamped: clamped || too,
            environment: Box::new(environment.within(&other)),
            // Where only the layer has one, it would ask the layer alone.
            reads: Scope::both(reads, seen).map(|own| own.under(top)),
            // Without a scope nothing is changed, so both must have one.
            writes: writes.zip(changed).map(|(one, other)| one.within(other)),
        },
        (
            Bounds::Unconfined { limits, clamped, environment },
            Bounds::Unconfined { limits: fewer, clamped: too, environment: other },
        ) => Bounds::Unconfined {
            limits: limits.within(fewer),
            clamped: clamped || too,
            environment: Box::new(environment.within(&other)),
        },
        _ => Bounds::Nothing,
    }
}

impl Scope {
    fn under(self, top: &Arc<Policy>) -> Self {
        Self { policy: Arc::clone(top), ..self }
    }

    fn within(mut self, other: Self) -> Self {
        self.also.retain(|path| other.also.contains(path));
        self.readings.extend(other.readings);
        self
    }
}

impl Environment {
    /// What both hand on. A layer sets nothing: a value of its own could be the looser one.
    fn within(self, other: &Self) -> Self {
        let narrower = other.accept.iter().filter(|own| self.covers(own));
        let mut accept: alloc::vec::Vec<_> =
            self.accept.iter().filter(|own| other.covers(own)).collect();
        accept.extend(narrower);
        accept.sort_unstable();
        accept.dedup();
        let accept = accept.into_iter().cloned().collect();
        let Self { mut pass, set, .. } = self;
        pass.retain(|name| other.pass.contains(name));
        Self { pass, set, accept }
    }
}
