//! Rules for pages.

use std::collections::BTreeSet;

use capsule_core::decision::Verdict;
use capsule_core::policy::{Constraint, UrlRule};
use capsule_core::tool::ToolName;
use serde_json::json;

use super::generalize::{
    MissingRuleGroup, RuleCandidate, RuleGenerator, Sample, directory, escape_pattern,
    inherited_problem,
};
use super::missing_rule::RuleSubject;
use super::yaml_edit::YamlInsertion;

impl RuleGenerator<'_> {
    pub(super) fn page_rules(
        &self,
        origin: &str,
        group: &MissingRuleGroup,
        word: Verdict,
        because: &str,
    ) -> Result<Vec<RuleCandidate>, String> {
        let tool = ToolName::unchecked("http.get");
        let pages = group.missing.iter().filter_map(|wish| match &wish.subject {
            RuleSubject::Page(_, path) => Some(path.as_str()),
            _ => None,
        });
        let pages: Vec<&str> = pages.collect();
        let others = self.url_rules(&tool)?;
        let others: Vec<&str> = others.iter().map(|rule| rule.id.as_str()).collect();
        let host = origin.split_once("://").map_or(origin, |(_, host)| host);
        // The narrowest has the most rules, so there is a name for each of any.
        let ids: Vec<String> = pages.iter().map(|_| self.free_id(&tool, host, &others)).collect();
        let samples = page_samples(&tool, origin, &pages);
        let candidate = |urls: Vec<String>| {
            let rules = urls.iter().zip(&ids).map(|(url, id)| {
                YamlInsertion::map([
                    ("id", YamlInsertion::scalar(id.as_str())),
                    ("url", YamlInsertion::scalar(url.as_str())),
                    ("decision", YamlInsertion::scalar(word.keyword())),
                    ("because", YamlInsertion::scalar(because)),
                ])
            });
            let list = YamlInsertion::List(rules.collect());
            let names = ids.iter().take(urls.len()).map(|id| format!("{tool}/{id}"));
            RuleCandidate {
                rule: names.collect::<Vec<_>>().join(", "),
                insertion: self.nest_under_tool(&tool, list.under_keys(&["urls", "allow"])),
                allows: urls,
                samples: samples.clone(),
            }
        };
        Ok(pattern_steps(origin, &pages).into_iter().map(candidate).collect())
    }

    /// The rules that the policy has for addresses, where more of them can be put into its own text.
    fn url_rules(&self, tool: &ToolName) -> Result<&[UrlRule], String> {
        let allow = match self.policy.tool(tool).map(|rule| &rule.constraint) {
            Some(Constraint::Fetch(fetch)) => fetch.allow.as_slice(),
            _ => &[],
        };
        let path = self.authored_rule(tool).and_then(|path| path.get("urls"));
        let has_own = path.is_some_and(|path| path.is_list() || path.get("allow").is_some());
        let place = format!("{}:", self.authored.loaded.text.name);
        match has_own || allow.iter().all(|rule| rule.source.at.starts_with(&place)) {
            true => Ok(allow),
            false => Err(inherited_problem(tool, "urls")),
        }
    }
}

/// The patterns, the narrowest first: the pages themselves, their folders, the whole host.
fn pattern_steps(origin: &str, pages: &[&str]) -> Vec<Vec<String>> {
    let folders: BTreeSet<&str> = pages.iter().map(|path| directory(path)).collect();
    let folders = folders.into_iter().filter(|folder| !folder.is_empty());
    let mut steps = vec![
        pages.iter().map(|path| format!("{origin}/{}", escape_pattern(path))).collect::<Vec<_>>(),
        folders.map(|own| format!("{origin}/{}/**", escape_pattern(own))).collect(),
        vec![format!("{origin}/**")],
    ];
    steps.retain(|step| !step.is_empty());
    steps.dedup();
    steps
}

/// Each of the pages, and one beside them.
fn page_samples(tool: &ToolName, origin: &str, pages: &[&str]) -> Vec<Sample> {
    let sample = |path: &str, name: &str| Sample {
        name: format!("learned: {origin}/{path}{name}"),
        tool: tool.as_str().to_owned(),
        args: json!({ "url": format!("{origin}/{path}") }),
    };
    let above = pages.first().map_or("", |path| directory(path));
    let beside =
        if above.is_empty() { "not-learned".to_owned() } else { format!("{above}/not-learned") };
    let all = pages.iter().map(|path| sample(path, ""));
    all.chain([sample(&beside, " is as before")]).collect()
}
