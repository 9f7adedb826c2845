//! Rules for pages.

use std::collections::BTreeSet;

use capsule_core::decision::Verdict;
use capsule_core::policy::{Constraint, UrlRule};
use capsule_core::tool::ToolName;
use serde_json::json;

use super::ladder::{Ground, Group, Rung, Sample, escaped, folder, inherited};
use super::splice::Wanted;
use super::wishes::What;

impl Ground<'_> {
    pub(super) fn pages(
        &self,
        origin: &str,
        group: &Group,
        word: Verdict,
        because: &str,
    ) -> Result<Vec<Rung>, String> {
        let tool = ToolName::unchecked("http.get");
        let pages = group.wishes.iter().filter_map(|wish| match &wish.what {
            What::Page(_, path) => Some(path.as_str()),
            _ => None,
        });
        let pages: Vec<&str> = pages.collect();
        let others = self.named(&tool)?;
        let others: Vec<&str> = others.iter().map(|rule| rule.id.as_str()).collect();
        let host = origin.split_once("://").map_or(origin, |(_, host)| host);
        // The narrowest has the most rules, so there is a name for each of any.
        let ids: Vec<String> = pages.iter().map(|_| self.free_id(&tool, host, &others)).collect();
        let samples = samples(&tool, origin, &pages);
        let rung = |urls: Vec<String>| {
            let rules = urls.iter().zip(&ids).map(|(url, id)| {
                Wanted::map([
                    ("id", Wanted::word(id.as_str())),
                    ("url", Wanted::word(url.as_str())),
                    ("decision", Wanted::word(word.keyword())),
                    ("because", Wanted::word(because)),
                ])
            });
            let list = Wanted::List(rules.collect());
            let names = ids.iter().take(urls.len()).map(|id| format!("{tool}/{id}"));
            Rung {
                rule: names.collect::<Vec<_>>().join(", "),
                wanted: self.beneath(&tool, list.beneath(&["urls", "allow"])),
                opens: urls,
                samples: samples.clone(),
            }
        };
        Ok(steps(origin, &pages).into_iter().map(rung).collect())
    }

    /// The rules that the policy has for addresses, where more of them can be put into its own text.
    fn named(&self, tool: &ToolName) -> Result<&[UrlRule], String> {
        let allow = match self.policy.tool(tool).map(|rule| &rule.constraint) {
            Some(Constraint::Fetch(fetch)) => fetch.allow.as_slice(),
            _ => &[],
        };
        let own = self.own(tool).and_then(|own| own.get("urls"));
        let has_own = own.is_some_and(|own| own.is_list() || own.get("allow").is_some());
        let place = format!("{}:", self.law.text.name);
        match has_own || allow.iter().all(|rule| rule.source.at.starts_with(&place)) {
            true => Ok(allow),
            false => Err(inherited(tool, "urls")),
        }
    }
}

/// The patterns, the narrowest first: the pages themselves, their folders, the whole host.
fn steps(origin: &str, pages: &[&str]) -> Vec<Vec<String>> {
    let folders: BTreeSet<&str> = pages.iter().map(|path| folder(path)).collect();
    let folders = folders.into_iter().filter(|own| !own.is_empty());
    let mut steps = vec![
        pages.iter().map(|path| format!("{origin}/{}", escaped(path))).collect::<Vec<_>>(),
        folders.map(|own| format!("{origin}/{}/**", escaped(own))).collect(),
        vec![format!("{origin}/**")],
    ];
    steps.retain(|step| !step.is_empty());
    steps.dedup();
    steps
}

/// Each of the pages, and one beside them.
fn samples(tool: &ToolName, origin: &str, pages: &[&str]) -> Vec<Sample> {
    let sample = |path: &str, name: &str| Sample {
        name: format!("learned: {origin}/{path}{name}"),
        tool: tool.as_str().to_owned(),
        args: json!({ "url": format!("{origin}/{path}") }),
    };
    let above = pages.first().map_or("", |path| folder(path));
    let beside =
        if above.is_empty() { "not-learned".to_owned() } else { format!("{above}/not-learned") };
    let all = pages.iter().map(|path| sample(path, ""));
    all.chain([sample(&beside, " is as before")]).collect()
}
