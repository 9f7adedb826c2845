//! What is the same each time, and more of it at night.

/// Whether tests run in their long form.
#[must_use]
pub fn is_nightly() -> bool {
    std::env::var_os("CAPSULE_NIGHTLY").is_some()
}

/// Numbers that look random and are the same each time (xorshift), from a seed that is not 0.
#[derive(Clone, Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below the bound, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }
}
