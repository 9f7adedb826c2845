//! The styles of a terminal's text.

use anstyle::{AnsiColor, Style};

/// The style of a word that says that something went well.
pub(crate) const SUCCESS: Style = AnsiColor::Green.on_default();
/// The style of a word that says that something was denied or failed.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The style of a word that a person should look at.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
/// The style of details.
pub(crate) const DIMMED: Style = Style::new().dimmed();
