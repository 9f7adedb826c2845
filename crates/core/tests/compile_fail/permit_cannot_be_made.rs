use capsule_core::evidence::Permit;
use capsule_core::policy::Bounds;

fn forge(bounds: &Bounds) -> Permit<'_> {
    Permit { bounds, at: 0, once: std::marker::PhantomData }
}

fn main() {}
