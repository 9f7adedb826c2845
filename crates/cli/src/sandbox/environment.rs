//! Which variables of the user an agent in the sandbox gets, as data with a reason per entry.
//!
//! Nothing else is passed: a variable of the user may hold the password of anything. `--env` adds to it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// A group of variables, by name; a trailing `*` means any rest of a name.
struct PassedVariables {
    #[cfg_attr(not(test), expect(dead_code, reason = "written for readers; a test looks at it"))]
    why: &'static str,
    /// Whether they may hold a secret, so that the header counts them.
    is_secret: bool,
    names: &'static [&'static str],
}

const PASSED: &[PassedVariables] = &[
    PassedVariables {
        why: "keys of model providers",
        is_secret: true,
        names: &[
            "AI21_API_KEY",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANYSCALE_API_KEY",
            "AZURE_API_KEY",
            "AZURE_OPENAI_API_KEY",
            "CEREBRAS_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLOUDFLARE_API_KEY",
            "CLOUDFLARE_API_TOKEN",
            "CODEX_API_KEY",
            "COHERE_API_KEY",
            "CO_API_KEY",
            "DASHSCOPE_API_KEY",
            "DATABRICKS_TOKEN",
            "DEEPINFRA_API_KEY",
            "DEEPSEEK_API_KEY",
            "FIREWORKS_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "GROQ_API_KEY",
            "HF_TOKEN",
            "HUGGINGFACE_API_KEY",
            "LITELLM_API_KEY",
            "MINIMAX_API_KEY",
            "MISTRAL_API_KEY",
            "MOONSHOT_API_KEY",
            "NVIDIA_API_KEY",
            "OLLAMA_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
            "PERPLEXITYAI_API_KEY",
            "PERPLEXITY_API_KEY",
            "REPLICATE_API_TOKEN",
            "SAMBANOVA_API_KEY",
            "TOGETHERAI_API_KEY",
            "TOGETHER_API_KEY",
            "VERCEL_AI_GATEWAY_API_KEY",
            "WATSONX_APIKEY",
            "XAI_API_KEY",
            "ZAI_API_KEY",
            "ZHIPUAI_API_KEY",
        ],
    },
    PassedVariables {
        why: "the identity with which Bedrock is asked; profiles lie in files that an agent does not see",
        is_secret: true,
        names: &[
            "AWS_ACCESS_KEY_ID",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
        ],
    },
    PassedVariables {
        why: "where models are, and which one is asked",
        is_secret: false,
        names: &[
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_BEDROCK_BASE_URL",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL",
            "ANTHROPIC_DEFAULT_OPUS_MODEL",
            "ANTHROPIC_DEFAULT_SONNET_MODEL",
            "ANTHROPIC_MODEL",
            "ANTHROPIC_SMALL_FAST_MODEL",
            "ANTHROPIC_VERTEX_PROJECT_ID",
            "AWS_DEFAULT_REGION",
            "AWS_REGION",
            "AZURE_API_BASE",
            "AZURE_API_VERSION",
            "AZURE_OPENAI_API_VERSION",
            "AZURE_OPENAI_ENDPOINT",
            "CAPSULE_MODEL",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLOUDFLARE_ACCOUNT_ID",
            "CLOUD_ML_REGION",
            "DATABRICKS_HOST",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_GENAI_USE_VERTEXAI",
            "LITELLM_BASE_URL",
            "LM_STUDIO_API_BASE",
            "OLLAMA_API_BASE",
            "OLLAMA_HOST",
            "OPENAI_API_BASE",
            "OPENAI_BASE_URL",
            "OPENAI_MODEL",
            "OPENAI_ORGANIZATION",
            "OPENAI_ORG_ID",
            "OPENAI_PROJECT",
            "OPENROUTER_BASE_URL",
            "VERTEXAI_LOCATION",
            "VERTEXAI_PROJECT",
            "WATSONX_PROJECT_ID",
            "WATSONX_URL",
        ],
    },
    PassedVariables {
        why: "how hosts are reached, and which certificates count",
        is_secret: false,
        names: &[
            "ALL_PROXY",
            "CURL_CA_BUNDLE",
            "HTTPS_PROXY",
            "HTTP_PROXY",
            "NODE_EXTRA_CA_CERTS",
            "NO_PROXY",
            "REQUESTS_CA_BUNDLE",
            "SSL_CERT_DIR",
            "SSL_CERT_FILE",
            "all_proxy",
            "http_proxy",
            "https_proxy",
            "no_proxy",
        ],
    },
    PassedVariables {
        why: "the terminal, the language and the time of the user",
        is_secret: false,
        names: &[
            "CLICOLOR",
            "CLICOLOR_FORCE",
            "COLORFGBG",
            "COLORTERM",
            "FORCE_COLOR",
            "LANG",
            "LANGUAGE",
            "LC_*",
            "NO_COLOR",
            "TERM",
            "TERM_PROGRAM",
            "TERM_PROGRAM_VERSION",
            "TZ",
        ],
    },
];

/// What an agent finds where the user has set nothing: the server of local models is the host's.
pub(super) const DEFAULTS: &[(&str, &str)] =
    &[("OLLAMA_HOST", "http://host.docker.internal:11434")];

/// The variables that an agent gets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PassedEnvironment {
    pub(super) variables: BTreeMap<OsString, OsString>,
    /// The names of those that may hold a secret, in order.
    pub(super) secrets: Vec<String>,
}

/// Chooses of the user's variables those that are listed, those that `keys` name, since a provider of the user's is
/// asked with them, and those that were asked for.
///
/// # Errors
/// A name that is asked for is no name, or is not set.
pub(super) fn choose(
    all: impl Iterator<Item = (OsString, OsString)>,
    keys: &[String],
    asked: &[String],
) -> Result<PassedEnvironment, String> {
    let all: BTreeMap<OsString, OsString> = all.collect();
    let mut passed = PassedEnvironment::default();
    for (name, value) in DEFAULTS {
        passed.variables.insert(name.into(), value.into());
    }
    for (name, value) in &all {
        let Some(text) = name.to_str() else { continue };
        let group =
            PASSED.iter().find(|group| group.names.iter().any(|listed| is_listed(text, listed)));
        let is_key = keys.iter().any(|key| key == text);
        if group.is_none() && !is_key {
            continue;
        }
        if is_key || group.is_some_and(|group| group.is_secret) || holds_password(text, value) {
            passed.secrets.push(text.to_owned());
        }
        passed.variables.insert(name.clone(), value.clone());
    }
    for text in asked {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.into())),
            None => (text.as_str(), all.get(&OsString::from(text)).cloned()),
        };
        if name.is_empty() || name.contains('\0') {
            return Err(format!("`--env {text}` names no variable"));
        }
        let Some(value) = value else {
            return Err(format!("`--env {name}` names a variable that is not set"));
        };
        if !passed.secrets.iter().any(|known| known == name) {
            passed.secrets.push(name.to_owned());
        }
        passed.variables.insert(name.into(), value);
    }
    passed.secrets.sort();
    Ok(passed)
}

/// Whether the address of a host in a variable has a name and a password before it, as that of a proxy may.
fn holds_password(name: &str, value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    let is_address = value.contains("://") || name.to_ascii_lowercase().ends_with("_proxy");
    is_address && value.contains('@')
}

fn is_listed(name: &str, listed: &str) -> bool {
    match listed.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == listed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        all: &[(&str, &str)],
        keys: &[&str],
        asked: &[&str],
    ) -> Result<PassedEnvironment, String> {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let all = all.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        choose(all, &owned(keys), &owned(asked))
    }

    #[test]
    fn every_group_has_a_reason_and_no_name_twice() {
        let mut names: Vec<&str> = PASSED.iter().flat_map(|group| group.names).copied().collect();
        assert!(PASSED.iter().all(|group| !group.why.is_empty()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    /// The names that the requirement text has, and those that belong to them.
    #[test]
    fn the_listed_pass_and_nothing_else() {
        let all = [
            ("OPENROUTER_API_KEY", "1"),
            ("AWS_ACCESS_KEY_ID", "2"),
            ("AWS_SECRET_ACCESS_KEY", "3"),
            ("AWS_SESSION_TOKEN", "4"),
            ("AWS_REGION", "5"),
            ("OLLAMA_HOST", "6"),
            ("LC_ALL", "7"),
            ("GITHUB_TOKEN", "no"),
            ("AWS_PROFILE", "no"),
            ("SSH_AUTH_SOCK", "no"),
            ("LD_PRELOAD", "no"),
            ("MINE", "8"),
            ("FAR_KEY", "9"),
        ];
        let passed = chosen(&all, &["FAR_KEY"], &["MINE", "NEW=x=y"]).unwrap();
        let mut values: Vec<&str> =
            passed.variables.values().map(|value| value.to_str().unwrap()).collect();
        values.sort_unstable();
        assert_eq!(values, ["1", "2", "3", "4", "5", "6", "7", "8", "9", "x=y"]);
        assert_eq!(
            passed.secrets,
            [
                "AWS_ACCESS_KEY_ID",
                "AWS_SECRET_ACCESS_KEY",
                "AWS_SESSION_TOKEN",
                "FAR_KEY",
                "MINE",
                "NEW",
                "OPENROUTER_API_KEY"
            ]
        );
    }

    #[test]
    fn an_address_with_a_password_counts_as_a_secret() {
        let all = [
            ("HTTPS_PROXY", "http://me:password@proxy:8080"),
            ("http_proxy", "me:password@proxy:8080"),
            ("HTTP_PROXY", "http://proxy:8080"),
            ("OPENAI_BASE_URL", "https://me:password@host/v1"),
            ("LANG", "de_DE@euro"),
        ];
        let passed = chosen(&all, &[], &[]).unwrap();
        assert_eq!(passed.secrets, ["HTTPS_PROXY", "OPENAI_BASE_URL", "http_proxy"]);
    }

    #[test]
    fn a_default_holds_where_nothing_is_set() {
        let passed = chosen(&[], &[], &[]).unwrap();
        let host = passed.variables.get(&OsString::from("OLLAMA_HOST")).unwrap();
        assert_eq!(host, "http://host.docker.internal:11434");
        assert!(passed.secrets.is_empty());
    }

    #[test]
    fn refusals_name_the_variable() {
        assert!(chosen(&[], &[], &["NOT_SET"]).unwrap_err().contains("not set"));
        assert!(chosen(&[], &[], &["=x"]).unwrap_err().contains("names no variable"));
    }
}
