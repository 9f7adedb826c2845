//! What is searched for, and how closely it has to match.

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditRequest<'r> {
    /// What is to be found.
    pub search: &'r str,
    /// What is to stand there instead.
    pub replace: &'r str,
    /// How often it is expected, where that was said; else once.
    pub count: Option<u64>,
    /// The file's path, by whose ending it is known where blanks have a meaning.
    pub path: &'r str,
}

impl EditRequest<'_> {
    /// What the file's name ends with, in small letters; the name itself where it has no ending.
    pub(super) fn extension(&self) -> String {
        let name = self.path.rsplit_once('/').map_or(self.path, |(_, name)| name);
        name.rsplit_once('.').map_or(name, |(_, extension)| extension).to_ascii_lowercase()
    }

    /// Whether two blanks at the end of a line may be a line break, as they are in Markdown: to lose
    /// one changes what is shown.
    pub(super) fn keeps_markdown_breaks(&self) -> bool {
        const MARKDOWN: [&str; 6] = ["md", "markdown", "mdown", "mdx", "qmd", "rmd"];
        MARKDOWN.contains(&self.extension().as_str())
    }
}

/// How far what was found may differ from what was searched for; each step takes in those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchTolerance {
    /// Not at all.
    Exact,
    /// In how lines end.
    LineEnds,
    /// In blanks at the ends of lines.
    TrailingSpace,
    /// In how characters are spelt: composed or not, and quotes, dashes and blanks that only look
    /// like those of a keyboard.
    Spelling,
    /// In tabs for spaces before the first word.
    Tabs,
    /// By an amount of indentation that is the same for the whole block.
    Indentation,
    /// In blank lines.
    BlankLines,
    /// In how many spaces are between words and signs, outside of quotes.
    InnerSpace,
}

impl MatchTolerance {
    /// Those with any tolerance, from the least on.
    pub(super) const LEVELS: [Self; 7] = [
        Self::LineEnds,
        Self::TrailingSpace,
        Self::Spelling,
        Self::Tabs,
        Self::Indentation,
        Self::BlankLines,
        Self::InnerSpace,
    ];

    /// The word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineEnds => "tolerant(line-ends)",
            Self::TrailingSpace => "tolerant(trailing-space)",
            Self::Spelling => "tolerant(spelling)",
            Self::Tabs => "tolerant(tabs)",
            Self::Indentation => "tolerant(indentation)",
            Self::BlankLines => "tolerant(blank-lines)",
            Self::InnerSpace => "tolerant(inner-space)",
        }
    }
}
