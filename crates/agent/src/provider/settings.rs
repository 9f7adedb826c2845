//! `providers.yaml`: the providers that the user listed. It names the variables that keys are in, and holds no key.

use std::path::Path;

use capsule_base::code::Code;
use capsule_base::diagnostic::{Diagnostic, Position};
use capsule_base::limits;
use capsule_base::yaml::{self, Dialect, Section, YamlNode, YamlReader, key};
use capsule_core::outcome::CodedError;
use capsule_runtime::read_text;

use super::kind::ProviderKind;
use crate::model::Prices;

/// A provider of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProviderSettings {
    pub(super) name: String,
    pub(super) kind: ProviderKind,
    /// The base URL.
    pub(super) url: String,
    pub(super) model: String,
    /// The variable that the key is in.
    pub(super) key: Option<String>,
    /// How many tokens a request and its answer may have together.
    pub(super) window: Option<u64>,
    pub(super) prices: Option<Prices>,
}

/// The providers of the file.
#[derive(Debug, Default)]
pub(super) struct ProviderList {
    providers: Vec<ProviderSettings>,
    default: Option<String>,
}

impl ProviderList {
    pub(super) fn named(&self, name: &str) -> Option<&ProviderSettings> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// The provider that counts where none is named: the default, or the only one.
    pub(super) fn chosen(&self) -> Option<&ProviderSettings> {
        match (&self.default, self.providers.as_slice()) {
            (Some(name), _) => self.named(name),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }

    /// The variables that keys are in.
    pub(super) fn keys(&self) -> Vec<String> {
        self.providers.iter().filter_map(|provider| provider.key.clone()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.providers.is_empty()
    }

    pub(super) fn names(&self) -> String {
        let names: Vec<&str> =
            self.providers.iter().map(|provider| provider.name.as_str()).collect();
        names.join("`, `")
    }
}

static DIALECT: Dialect = Dialect {
    syntax: Code::ModelNotConfigured,
    yaml: Code::ModelNotConfigured,
    duplicate_key: Code::ModelNotConfigured,
    unknown_key: Code::ModelNotConfigured,
    not_yet: Code::ModelNotConfigured,
    missing_key: Code::ModelNotConfigured,
    wrong_type: Code::ModelNotConfigured,
    unknown_value: Code::ModelNotConfigured,
    unit: Code::ModelNotConfigured,
};

/// Reads the file; an empty list where there is none.
///
/// # Errors
/// [`Code::ModelNotConfigured`] with the line of the first problem.
pub(super) fn read_providers(path: &Path) -> Result<ProviderList, CodedError> {
    if path.symlink_metadata().is_err() {
        return Ok(ProviderList::default());
    }
    let text = read_text(path, limits::PROVIDERS_BYTES, Code::ModelNotConfigured)?;
    parse_providers(&text).map_err(|problem| {
        let line = Position::of(&text, problem.span.start).line;
        let message = format!("`{}`, line {line}: {}", path.display(), problem.message);
        let error = CodedError::new(problem.code, message);
        match problem.hint {
            Some(hint) => error.with_suggestion(hint),
            None => error,
        }
    })
}

fn parse_providers(text: &str) -> Result<ProviderList, Diagnostic> {
    let mut reader = YamlReader::new(&DIALECT);
    let mut list = ProviderList::default();
    if let Some(root) = yaml::parse(text, &DIALECT)? {
        read_list(&mut reader, &root, &mut list);
    }
    match reader.problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(list),
    }
}

fn read_list(reader: &mut YamlReader, root: &YamlNode, list: &mut ProviderList) -> Option<()> {
    let keys = [key("version"), key("default"), key("providers")];
    let top = reader.section(root, "the file", &keys)?;
    let version = reader.required(&top, "version", "the file")?;
    if reader.number(version)? != 1 {
        reader.problem(wrong(version, "this build knows version 1"));
    }
    let named = reader.required(&top, "providers", "the file")?;
    let named = reader.map(named, "a map from names to providers")?;
    for (name, _, node) in named.entries() {
        if let Some(provider) = read_provider(reader, name, node) {
            list.providers.push(provider);
        }
    }
    if let Some(node) = top.get("default") {
        let name = reader.name(node)?;
        if list.named(&name).is_none() {
            reader.problem(wrong(node, "`default` names no provider of the file"));
        }
        list.default = Some(name);
    }
    Some(())
}

fn read_provider(reader: &mut YamlReader, name: &str, node: &YamlNode) -> Option<ProviderSettings> {
    let keys = ["format", "url", "model", "key", "window", "prices"].map(key);
    let section = reader.section(node, "a provider", &keys)?;
    let format = reader.required(&section, "format", "a provider")?;
    let kind = match reader.keyword(format, &["openai", "anthropic"])? {
        "anthropic" => ProviderKind::Anthropic,
        _ => ProviderKind::OpenAi,
    };
    let url = reader.required(&section, "url", "a provider")?;
    let url = reader.line(url)?;
    let model = reader.required(&section, "model", "a provider")?;
    let model = reader.name(model)?;
    let key = match section.get("key") {
        Some(node) => Some(variable_name(reader, node)?),
        None => None,
    };
    let window = match section.get("window") {
        Some(node) => Some(window(reader, node)?),
        None => None,
    };
    let prices = match section.get("prices") {
        Some(node) => Some(prices(reader, node)?),
        None => None,
    };
    Some(ProviderSettings { name: name.to_owned(), kind, url, model, key, window, prices })
}

/// The name of a variable. What it names is never shown: it may be a key that was put here by mistake.
fn variable_name(reader: &mut YamlReader, node: &YamlNode) -> Option<String> {
    let name = reader.text(node)?;
    let is_letter = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let is_name = name.starts_with(is_letter)
        && name.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit());
    if !is_name {
        let message = "`key` is no name of a variable, in capital letters";
        let hint = "put the key itself into a variable of the environment, and its name here";
        reader.problem(wrong(node, message).hint(hint));
    }
    is_name.then(|| name.to_owned())
}

fn window(reader: &mut YamlReader, node: &YamlNode) -> Option<u64> {
    let tokens = reader.number(node)?;
    let is_usable = (limits::MODEL_WINDOW_MIN..=limits::MODEL_WINDOW_MAX).contains(&tokens);
    if !is_usable {
        let (least, most) = (limits::MODEL_WINDOW_MIN, limits::MODEL_WINDOW_MAX);
        reader.problem(wrong(node, format!("`window` has from {least} to {most} tokens")));
    }
    is_usable.then_some(tokens)
}

fn prices(reader: &mut YamlReader, node: &YamlNode) -> Option<Prices> {
    let section = reader.section(node, "prices", &[key("input"), key("output")])?;
    Some(Prices {
        input: price(reader, &section, "input")?,
        output: price(reader, &section, "output")?,
    })
}

/// US dollars for a million tokens, in millionths.
fn price(reader: &mut YamlReader, section: &Section<'_>, name: &str) -> Option<u64> {
    let node = reader.required(section, name, "prices")?;
    reader.dollars(node)
}

fn wrong(node: &YamlNode, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::ModelNotConfigured, node.span.clone(), message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panics")]

    use super::*;

    const TEXT: &str = "version: 1
default: local
providers:
  local: { format: openai, url: 'http://127.0.0.1:8080/v1', model: qwen3, window: 32768 }
  far:
    format: anthropic
    url: https://api.example.org
    model: large-1
    key: FAR_KEY
    prices: { input: 3, output: 0.15 }
";

    #[test]
    fn providers_are_read() {
        let list = parse_providers(TEXT).unwrap();
        let local = list.chosen().unwrap();
        assert_eq!(
            (local.model.as_str(), local.window, &local.key),
            ("qwen3", Some(32_768), &None)
        );
        let far = list.named("far").unwrap();
        assert_eq!(list.keys(), ["FAR_KEY"]);
        assert_eq!(far.kind, ProviderKind::Anthropic);
        assert_eq!(far.prices, Some(Prices { input: 3_000_000, output: 150_000 }));
        assert_eq!(far.key.as_deref(), Some("FAR_KEY"));
        assert!(parse_providers("version: 1\nproviders: {}\n").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (change, line, expected) in [
            (("version: 1", "version: 2"), 1, "version 1"),
            (("default: local", "default: other"), 2, "`default`"),
            (("format: anthropic", "format: gemini"), 6, "gemini"),
            (("    model: large-1\n", ""), 6, "needs `model`"),
            (("key: FAR_KEY", "key: sk-secret-value"), 9, "no name of a variable"),
            (("input: 3", "input: -3"), 10, "US dollars"),
            (("input: 3", "input: 3.1234567"), 10, "US dollars"),
            (("0.15", "1e3"), 10, "US dollars"),
            (("key: FAR_KEY", "token: x"), 9, "no key `token`"),
            (("window: 32768", "window: 10"), 4, "`window`"),
            (("  far:", "  local:"), 5, "local"),
            (("default: local", "default: [local]"), 2, "needed"),
        ] {
            let text = TEXT.replacen(change.0, change.1, 1);
            let problem = parse_providers(&text).unwrap_err();
            assert_eq!(problem.code, Code::ModelNotConfigured);
            let found = Position::of(&text, problem.span.start).line;
            let message = &problem.message;
            assert!(
                message.contains(expected) && !message.contains("sk-secret"),
                "{change:?}: {message}"
            );
            assert_eq!(u64::try_from(found).unwrap(), line, "{change:?}: {message}");
        }
    }
}
