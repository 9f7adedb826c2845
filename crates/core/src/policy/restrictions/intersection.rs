//! The bounds of a call that a policy and a layer over it both allow: what both allow, and nothing
//! else.

use alloc::sync::Arc;

use crate::policy::commands::EnvironmentRule;
use crate::policy::model::Policy;
use crate::policy::restrictions::{PathScope, Restrictions};

impl Restrictions {
    /// What both allow. These are the policy's own: what they ask on the way, they ask of all of its
    /// layers. `top` is that policy.
    pub(crate) fn intersect(mut self, other: Self, top: &Arc<Policy>) -> Self {
        match (&mut self, other) {
            (
                Self::Listing { results, clamped, timeout_ms, .. },
                Self::Listing { results: most, clamped: too, timeout_ms: time, .. },
            ) => {
                *clamped |= too;
                lower([(results, most), (timeout_ms, time)]);
            }
            (
                Self::Read { bytes, clamped, timeout_ms },
                Self::Read { bytes: most, clamped: too, timeout_ms: time },
            ) => {
                *clamped |= too;
                lower([(bytes, most), (timeout_ms, time)]);
            }
            (Self::Write { timeout_ms }, Self::Write { timeout_ms: time }) => {
                lower([(timeout_ms, time)]);
            }
            // A layer that closes the file to `fs.read` denied the edit; one that is silent closes nothing.
            (
                Self::Edit { bytes, timeout_ms, .. },
                Self::Edit { bytes: most, timeout_ms: time, .. },
            ) => lower([(bytes, most), (timeout_ms, time)]),
            (Self::Delete { path, timeout_ms }, Self::Delete { path: same, timeout_ms: time })
                if *path == same =>
            {
                lower([(timeout_ms, time)]);
            }
            (
                Self::Fetch { bytes_max, inflated_max: inflated, redirects, timeout_ms, .. },
                Self::Fetch {
                    bytes_max: bytes,
                    inflated_max,
                    redirects: hops,
                    timeout_ms: time,
                    ..
                },
            ) => {
                lower([(bytes_max, bytes), (inflated, inflated_max)]);
                lower([(redirects, hops), (timeout_ms, time)]);
            }
            (
                Self::Git { confinement, results, clamped, bytes, .. },
                Self::Git { confinement: other, results: most, clamped: too, bytes: few, .. },
            ) => {
                *confinement = confinement.intersect(other);
                *clamped |= too;
                lower([(results, most), (bytes, few)]);
            }
            (Self::Run { .. } | Self::Unconfined { .. }, other) => {
                return intersect_run(self, other, top);
            }
            _ => return Self::Nothing,
        }
        self
    }
}

/// Lowers each number to the other one, if that is the smaller.
fn lower<const N: usize>(numbers: [(&mut u64, u64); N]) {
    for (number, other) in numbers {
        *number = other.min(*number);
    }
}

fn intersect_run(mut one: Restrictions, other: Restrictions, top: &Arc<Policy>) -> Restrictions {
    match (&mut one, other) {
        (
            Restrictions::Run { confinement, clamped, environment, reads, writes, hosts },
            Restrictions::Run {
                confinement: sandbox,
                clamped: too,
                environment: variables,
                reads: seen,
                writes: changed,
                hosts: reached,
            },
        ) => {
            *confinement = confinement.intersect(sandbox);
            *clamped |= too;
            **environment = core::mem::take(&mut **environment).intersect(&variables);
            // Where only the layer has one, it would ask the layer alone.
            let both = PathScope::intersect_optional(reads.take(), seen);
            *reads = both.map(|scope| PathScope { policy: Arc::clone(top), ..scope });
            // Without a scope nothing is changed, so both must have one.
            *writes = writes.take().zip(changed).map(|(one, other)| one.intersect(other));
            // The scope asks the policy and all of its layers.
            *hosts = hosts.take().filter(|_| reached.is_some());
        }
        (
            Restrictions::Unconfined { limits, clamped, environment },
            Restrictions::Unconfined { limits: fewer, clamped: too, environment: variables },
        ) => {
            *limits = limits.combine(fewer, u64::min);
            *clamped |= too;
            **environment = core::mem::take(&mut **environment).intersect(&variables);
        }
        _ => return Restrictions::Nothing,
    }
    one
}

impl PathScope {
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
