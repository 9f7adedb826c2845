//! The keys of a specification of a program, and the words that they take.

use capsule_base::yaml::{KeySpec, key};

use crate::specs::command_spec::{ArgKind, OptionStyle};

/// The keys of a program, and of a subcommand.
pub(super) const PROGRAM: &[KeySpec] = &[
    key("program"),
    key("also"),
    key("about"),
    key("effect"),
    key("why"),
    key("instead"),
    key("touches"),
    key("style"),
    key("operands"),
    key("last"),
    key("options"),
    key("groups"),
    key("uses"),
    key("subcommands"),
    key("abbreviates"),
    key("negates"),
    key("prefix"),
    key("bare"),
    key("beyond"),
    key("targets"),
    key("feeds"),
    key("ends"),
    key("lenient"),
    key("walks"),
    key("plain"),
];
/// The keys of an option.
pub(super) const OPTION: &[KeySpec] = &[
    key("value"),
    key("attached"),
    key("until"),
    key("effect"),
    key("why"),
    key("instead"),
    key("touches"),
    key("only"),
    key("offline"),
    key("targets"),
    key("first"),
    key("changes"),
    key("narrows"),
    key("ends"),
    key("except"),
];
/// The keys of what an option adds to the program.
pub(super) const ADDS: &[KeySpec] = &[key("effect"), key("why"), key("instead"), key("touches")];
/// How options are written.
pub(super) const STYLES: &[(&str, OptionStyle)] = &[
    ("gnu", OptionStyle::Gnu),
    ("words", OptionStyle::SingleDash),
    ("bundle", OptionStyle::Bundle),
];
/// What an argument is.
pub(super) const WORDS: &[(&str, ArgKind)] = &[
    ("text", ArgKind::Text),
    ("literal", ArgKind::Literal),
    ("setting", ArgKind::Setting),
    ("define", ArgKind::Define),
    ("argument", ArgKind::Argument),
    ("path", ArgKind::Path),
    ("written", ArgKind::WrittenPath),
    ("deleted", ArgKind::DeletedPath),
    ("maybe-path", ArgKind::MaybePath),
    ("folder", ArgKind::Directory),
    ("range", ArgKind::LineRange),
    ("script", ArgKind::Script),
    ("module", ArgKind::Module),
    ("code", ArgKind::Code),
    ("command", ArgKind::Command),
    ("assignments", ArgKind::Assignments),
    ("sed", ArgKind::Sed),
    ("awk", ArgKind::Awk),
    ("sql", ArgKind::Sql),
    ("url", ArgKind::Url),
    ("carried", ArgKind::Carried),
    ("sent", ArgKind::Sent),
    ("sent-named", ArgKind::SentNamed),
    ("sent-form", ArgKind::SentForm),
    ("upload", ArgKind::Upload),
    ("name", ArgKind::Name),
];
