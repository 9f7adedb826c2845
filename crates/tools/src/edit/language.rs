//! Where blanks mean something in a file, by what its name ends with.

/// What a difference in the number of blanks inside a line may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// Anything between two tokens. `merged` takes signs that are written together for one sign, as
    /// it has to be where any of them may be an operator.
    Free { merged: bool },
    /// More or fewer where there are some; none beside an operator where both sides of it have none.
    Symmetric { dashes: bool },
    /// More or fewer where there are some.
    Runs,
    /// As `Runs`, and declarations.
    Styles,
    /// Behind the key or the dash of a line.
    Yaml,
    /// More or fewer between words of a paragraph.
    Markdown,
    /// More or fewer inside a line that is one tag.
    Markup,
    /// None.
    Verbatim,
}

/// A quoted text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// Whether it may hold ends of lines.
    pub(super) lines: bool,
    /// Whether a backslash takes the next character in.
    pub(super) escapes: bool,
}

/// What a single quote begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SingleQuote {
    /// A text, as one of the quotes.
    Text,
    /// One character, or a mark such as that of a lifetime.
    Character,
    /// A text, or an apostrophe where a word is before it.
    Unknown,
}

/// Texts that are written without one of the quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raw {
    None,
    /// `r#"..."#`
    Rust,
    /// `R"x(...)x"`
    Cpp,
    /// `@"..."`
    CSharp,
    /// `#"..."#`
    Swift,
    /// `[=[...]=]`
    Lua,
    /// `$x$...$x$`
    Sql,
    /// `r"(...)"`
    R,
    /// `%q(...)`
    Ruby,
    /// `~s(...)`
    Elixir,
}

/// How the lines of a file are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Language {
    pub(super) spacing: Spacing,
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comments: &'static [(&'static str, &'static str)],
    pub(super) nested_comments: bool,
    pub(super) quotes: &'static [Quote],
    pub(super) single: SingleQuote,
    pub(super) raw: Raw,
    /// Whether a backtick begins a text with expressions in it.
    pub(super) templates: bool,
    pub(super) regexes: bool,
    pub(super) heredocs: bool,
    /// Whether a line that begins with `#` is for the preprocessor.
    pub(super) preprocessor: bool,
    /// Whether elements with text may stand in the code.
    pub(super) elements: bool,
    /// Whether code stands only between `<?` and `?>`.
    pub(super) in_page: bool,
}

const fn quote(open: &'static str, lines: bool, escapes: bool) -> Quote {
    Quote { open, close: open, lines, escapes }
}

const DOUBLE: Quote = quote("\"", false, true);
const DOUBLE_LINES: Quote = quote("\"", true, true);
const SINGLE: Quote = quote("'", false, true);
const SINGLE_LINES: Quote = quote("'", true, true);
const SINGLE_RAW: Quote = quote("'", true, false);
const TRIPLE: Quote = quote("\"\"\"", true, true);
const TRIPLE_SINGLE: Quote = quote("'''", true, true);
const BACKTICK: Quote = quote("`", true, false);
const BACKTICK_ESCAPES: Quote = quote("`", true, true);
const TRIPLE_RAW: Quote = quote("'''", true, false);
const SINGLE_RAW_LINE: Quote = quote("'", false, false);
const DOUBLE_RAW: Quote = quote("\"", true, false);

const C: Language = Language {
    spacing: Spacing::Free { merged: false },
    line_comments: &["//"],
    block_comments: &[("/*", "*/")],
    nested_comments: false,
    quotes: &[DOUBLE],
    single: SingleQuote::Character,
    raw: Raw::None,
    templates: false,
    regexes: false,
    heredocs: false,
    preprocessor: false,
    elements: false,
    in_page: false,
};
const CPP: Language = Language { raw: Raw::Cpp, preprocessor: true, ..C };
const JAVA: Language = Language { quotes: &[TRIPLE, DOUBLE], ..C };
const SCRIPT: Language = Language {
    quotes: &[DOUBLE, SINGLE],
    single: SingleQuote::Text,
    templates: true,
    regexes: true,
    ..C
};
const PYTHON: Language = Language {
    line_comments: &["#"],
    block_comments: &[],
    quotes: &[TRIPLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
    single: SingleQuote::Text,
    ..C
};
const STYLES: Language = Language {
    spacing: Spacing::Styles,
    quotes: &[DOUBLE, SINGLE],
    single: SingleQuote::Text,
    ..C
};
const SHELL: Language = Language {
    spacing: Spacing::Runs,
    line_comments: &["#"],
    block_comments: &[],
    quotes: &[DOUBLE_LINES, SINGLE_RAW, BACKTICK_ESCAPES],
    single: SingleQuote::Text,
    heredocs: true,
    ..C
};
const RUBY: Language = Language {
    spacing: Spacing::Symmetric { dashes: true },
    quotes: &[DOUBLE_LINES, SINGLE_LINES, BACKTICK_ESCAPES],
    raw: Raw::Ruby,
    regexes: true,
    ..SHELL
};
/// What may be anything: a sign that begins a text in any language begins one.
const UNKNOWN: Language = Language {
    spacing: Spacing::Symmetric { dashes: false },
    line_comments: &["//", "#"],
    quotes: &[TRIPLE, TRIPLE_SINGLE, DOUBLE_LINES, SINGLE_LINES, BACKTICK_ESCAPES],
    single: SingleQuote::Unknown,
    raw: Raw::Lua,
    regexes: true,
    heredocs: true,
    ..C
};
const VERBATIM: Language = Language { spacing: Spacing::Verbatim, ..UNKNOWN };

impl Language {
    /// How a file is read, by the ending of its name, else by its first line.
    pub(super) fn of(extension: &str, text: &str) -> Self {
        Self::free(extension).or_else(|| Self::other(extension)).unwrap_or_else(|| {
            let first = text.lines().next().filter(|line| line.starts_with("#!"));
            let program = |names: &[&str]| {
                first.is_some_and(|line| names.iter().any(|name| line.contains(name)))
            };
            match extension {
                _ if program(&["python"]) => PYTHON,
                _ if program(&["node", "deno", "bun"]) => SCRIPT,
                _ if program(&["ruby"]) => RUBY,
                _ if program(&["bash", "zsh", "/sh", " sh", "dash"]) => SHELL,
                _ if first.is_some() => VERBATIM,
                _ => UNKNOWN,
            }
        })
    }

    /// The languages in which blanks between tokens say nothing.
    fn free(extension: &str) -> Option<Self> {
        Some(match extension {
            "c" | "h" | "cc" | "cpp" | "cxx" | "hpp" | "hh" | "hxx" | "mm" | "ino" | "cu"
            | "glsl" | "hlsl" | "vert" | "frag" => CPP,
            "cs" => Language { raw: Raw::CSharp, preprocessor: true, ..JAVA },
            "java" | "graphql" | "gql" => JAVA,
            "proto" | "thrift" | "sol" => {
                Language { quotes: &[DOUBLE, SINGLE], single: SingleQuote::Text, ..C }
            }
            "kt" | "kts" => Language { nested_comments: true, ..JAVA },
            "dart" => Language {
                quotes: &[TRIPLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
                single: SingleQuote::Text,
                nested_comments: true,
                ..C
            },
            "go" => Language { quotes: &[DOUBLE, BACKTICK], ..C },
            "rs" => {
                Language { quotes: &[DOUBLE_LINES], raw: Raw::Rust, nested_comments: true, ..C }
            }
            "zig" => Language { spacing: Spacing::Free { merged: true }, ..C },
            "js" | "jsx" | "mjs" | "cjs" | "tsx" => Language { elements: true, ..SCRIPT },
            "ts" | "mts" | "cts" | "json" | "jsonc" | "json5" => SCRIPT,
            "py" | "pyi" | "pyw" | "pyx" | "bzl" | "bazel" | "star" => PYTHON,
            "toml" => Language { quotes: &[TRIPLE, TRIPLE_RAW, DOUBLE, SINGLE_RAW_LINE], ..PYTHON },
            "php" => Language {
                line_comments: &["//", "#"],
                quotes: &[DOUBLE_LINES, SINGLE_LINES, BACKTICK_ESCAPES],
                single: SingleQuote::Text,
                heredocs: true,
                in_page: true,
                ..C
            },
            "lua" => Language {
                line_comments: &["--"],
                block_comments: &[("--[[", "]]"), ("--[=[", "]=]")],
                quotes: &[DOUBLE, SINGLE],
                single: SingleQuote::Text,
                raw: Raw::Lua,
                ..C
            },
            "sql" => Language {
                spacing: Spacing::Free { merged: true },
                line_comments: &["--"],
                quotes: &[SINGLE_RAW, DOUBLE_RAW, BACKTICK],
                single: SingleQuote::Text,
                raw: Raw::Sql,
                ..C
            },
            _ => return None,
        })
    }

    /// The languages and formats in which some blanks say something.
    fn other(extension: &str) -> Option<Self> {
        let symmetric = Spacing::Symmetric { dashes: true };
        Some(match extension {
            "swift" => {
                Language { spacing: symmetric, raw: Raw::Swift, nested_comments: true, ..JAVA }
            }
            "scala" | "sc" => Language { spacing: symmetric, nested_comments: true, ..JAVA },
            "rb" | "rake" | "gemspec" | "gemfile" | "rakefile" => RUBY,
            "jl" => Language {
                spacing: symmetric,
                quotes: &[TRIPLE, DOUBLE_LINES, BACKTICK_ESCAPES],
                block_comments: &[("#=", "=#")],
                single: SingleQuote::Character,
                ..PYTHON
            },
            "r" => Language {
                spacing: symmetric,
                quotes: &[DOUBLE_LINES, SINGLE_LINES, BACKTICK],
                raw: Raw::R,
                ..PYTHON
            },
            "ex" | "exs" => Language {
                spacing: symmetric,
                quotes: &[TRIPLE, TRIPLE_SINGLE, DOUBLE_LINES, SINGLE_LINES],
                raw: Raw::Elixir,
                ..PYTHON
            },
            "sh" | "bash" | "zsh" | "ksh" | "bashrc" | "zshrc" | "profile" | "bash_profile"
            | "dockerfile" => SHELL,
            "css" => Language { line_comments: &[], ..STYLES },
            "scss" | "less" => STYLES,
            "yaml" | "yml" => Language { spacing: Spacing::Yaml, ..VERBATIM },
            "md" | "markdown" | "mdown" | "qmd" | "rmd" => {
                Language { spacing: Spacing::Markdown, ..VERBATIM }
            }
            "html" | "htm" | "xhtml" | "xml" | "svg" | "vue" | "svelte" => {
                Language { spacing: Spacing::Markup, ..VERBATIM }
            }
            "csv" | "tsv" | "psv" | "bat" | "cmd" | "ps1" | "tcl" | "tex" | "sty" | "bib"
            | "pl" | "pm" | "raku" | "po" | "pot" | "diff" | "patch" | "log" | "rst" | "adoc"
            | "org" | "ini" | "cfg" | "conf" | "env" | "properties" | "m" | "vb" | "vbs"
            | "bas" | "nix" | "mk" | "makefile" | "gnumakefile" | "sass" | "styl" | "pug"
            | "haml" | "slim" | "mdx" | "f" | "for" | "cob" | "cbl" | "s" | "asm" | "snap"
            | "hs" | "elm" | "ml" | "fs" | "nim" | "coffee" | "cr" | "ipynb" | "lock" | "eml"
            | "strings" | "feature" | "vim" | "el" | "lisp" | "clj" | "cljs" | "scm" | "rkt" => {
                VERBATIM
            }
            _ => return None,
        })
    }
}
