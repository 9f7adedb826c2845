use capsule_core::lifecycle::Permit;
use capsule_core::policy::Restrictions;

fn forge(restrictions: &Restrictions) -> Permit<'_> {
    Permit { restrictions, at: 0, once: std::marker::PhantomData }
}

fn main() {}
