//! The words of enums.

/// The words of an enum's values, all of it from one list: every value, every word, the word of a value, the value of
/// a word, and how it is shown. With `(..)` behind the name, the words of values that hold something, and nothing else.
#[macro_export]
macro_rules! words {
    ($type:ident::$name:ident(..): $($value:ident = $word:literal,)+) => {
        impl $type {
            /// The word.
            #[must_use]
            pub const fn $name(&self) -> &'static str {
                match self {
                    $(Self::$value { .. } => $word,)+
                }
            }
        }
    };
    ($type:ident::$name:ident: $($value:ident = $word:literal,)+) => {
        impl ::core::fmt::Display for $type {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.$name())
            }
        }

        impl $type {
            /// Every value.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];
            /// The words of all values.
            pub const WORDS: [&'static str; [$($word),+].len()] = [$($word),+];

            /// The word.
            #[must_use]
            pub const fn $name(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            /// The value of a word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.$name() == word)
            }
        }
    };
}
