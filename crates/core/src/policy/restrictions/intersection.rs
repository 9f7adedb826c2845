//! The bounds of a call that a policy and a layer over it both allow: what both allow, and nothing
//! else.

use alloc::boxed::Box;
use alloc::sync::Arc;

use crate::policy::commands::EnvironmentRule;
use crate::policy::model::Policy;
use crate::policy::restrictions::{PathScope, Restrictions};

impl Restrictions {
    /// What both allow. These are the policy's own: what they ask on the way, they ask of all of its
    /// layers. `top` is that policy.
    pub(crate) fn intersect(self, other: Self, top: &Arc<Policy>) -> Self {
        match (self, other) {
            (
                Self::Listing { results, clamped, timeout_ms, scope: sight },
                Self::Listing { results: most, clamped: too, timeout_ms: time, .. },
            ) => Self::Listing {
                results: results.min(most),
                clamped: clamped || too,
                timeout_ms: timeout_ms.min(time),
                scope: sight,
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
            (one @ Self::Fetch { .. }, other @ Self::Fetch { .. }) => intersect_fetch(one, &other),
            (one @ Self::Git { .. }, other @ Self::Git { .. }) => intersect_git(one, &other),
            (one @ Self::Run { .. }, other @ Self::Run { .. })
            | (one @ Self::Unconfined { .. }, other @ Self::Unconfined { .. }) => {
                intersect_run(one, other, top)
            }
            _ => Self::Nothing,
        }
    }
}

fn intersect_fetch(one: Restrictions, other: &Restrictions) -> Restrictions {
    match (one, other) {
        (
            Restrictions::Fetch { egress: reach, bytes_max, inflated_max, redirects, timeout_ms },
            Restrictions::Fetch {
                bytes_max: bytes,
                inflated_max: inflated,
                redirects: hops,
                timeout_ms: time,
                ..
            },
        ) => Restrictions::Fetch {
            egress: reach,
            bytes_max: bytes_max.min(*bytes),
            inflated_max: inflated_max.min(*inflated),
            redirects: redirects.min(*hops),
            timeout_ms: timeout_ms.min(*time),
        },
        _ => Restrictions::Nothing,
    }
}

fn intersect_git(one: Restrictions, other: &Restrictions) -> Restrictions {
    match (one, other) {
        (
            Restrictions::Git { confinement, results, clamped, bytes, contents },
            Restrictions::Git {
                confinement: walls, results: most, clamped: too, bytes: few, ..
            },
        ) => Restrictions::Git {
            confinement: confinement.intersect(*walls),
            results: results.min(*most),
            clamped: clamped || *too,
            bytes: bytes.min(*few),
            contents,
        },
        _ => Restrictions::Nothing,
    }
}

fn intersect_run(one: Restrictions, other: Restrictions, top: &Arc<Policy>) -> Restrictions {
    match (one, other) {
        (
            Restrictions::Run { confinement, clamped, environment, reads, writes, hosts },
            Restrictions::Run {
                confinement: walls,
                clamped: too,
                environment: other,
                reads: seen,
                writes: changed,
                hosts: reached,
            },
        ) => Restrictions::Run {
            confinement: confinement.intersect(walls),
            clamped: clamped || too,
            environment: Box::new(environment.intersect(&other)),
            // Where only the layer has one, it would ask the layer alone.
            reads: PathScope::intersect_optional(reads, seen).map(|scope| scope.under_policy(top)),
            // Without a scope nothing is changed, so both must have one.
            writes: writes.zip(changed).map(|(one, other)| one.intersect(other)),
            // The scope asks the policy and all of its layers.
            hosts: hosts.zip(reached).map(|(one, _)| one),
        },
        (
            Restrictions::Unconfined { limits, clamped, environment },
            Restrictions::Unconfined { limits: fewer, clamped: too, environment: other },
        ) => Restrictions::Unconfined {
            limits: limits.combine(fewer, u64::min),
            clamped: clamped || too,
            environment: Box::new(environment.intersect(&other)),
        },
        _ => Restrictions::Nothing,
    }
}

impl PathScope {
    fn under_policy(self, top: &Arc<Policy>) -> Self {
        Self { policy: Arc::clone(top), ..self }
    }

    fn intersect(mut self, other: Self) -> Self {
        self.extra_paths.retain(|path| other.extra_paths.contains(path));
        self.alternatives.extend(other.alternatives);
        self
    }
}

impl EnvironmentRule {
    /// What both hand on. A layer sets nothing: a value of its own could be the looser one.
    fn intersect(self, other: &Self) -> Self {
        let narrower = other.accept.iter().filter(|accept| self.covers_entry(accept));
        let mut accept: alloc::vec::Vec<_> =
            self.accept.iter().filter(|accept| other.covers_entry(accept)).collect();
        accept.extend(narrower);
        accept.sort_unstable();
        accept.dedup();
        let accept = accept.into_iter().cloned().collect();
        let Self { mut pass, set, .. } = self;
        pass.retain(|name| other.pass.contains(name));
        Self { pass, set, accept }
    }
}
