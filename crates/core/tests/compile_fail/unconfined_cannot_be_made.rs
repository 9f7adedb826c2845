use capsule_core::confinement::ProcessLimits;
use capsule_core::lifecycle::UnconfinedPermit;
use capsule_core::policy::EnvironmentRule;

fn forge<'a>(limits: &'a ProcessLimits, environment: &'a EnvironmentRule) -> UnconfinedPermit<'a> {
    UnconfinedPermit { limits, clamped: false, environment, once: std::marker::PhantomData }
}

fn main() {}
