use capsule_core::confinement::ProcessLimits;
use capsule_core::evidence::Unconfined;
use capsule_core::policy::Environment;

fn forge<'a>(limits: &'a ProcessLimits, environment: &'a Environment) -> Unconfined<'a> {
    Unconfined { limits, clamped: false, environment, once: std::marker::PhantomData }
}

fn main() {}
