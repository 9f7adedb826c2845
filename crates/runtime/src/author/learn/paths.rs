//! Rules for paths.

use std::collections::BTreeSet;

use capsule_core::decision::Verdict;
use capsule_core::path::WorkspacePath;
use capsule_core::policy::FileRule;
use capsule_core::tool::ToolName;
use serde_json::{Value, json};

use super::ladder::{Ground, Group, Rung, SHELL, Sample, escaped, folder, inherited};
use super::splice::Wanted;
use super::wishes::{What, exec_of};

/// Paths of one folder that a tool is to be open for.
struct Paths<'p> {
    tool: &'p ToolName,
    places: Vec<&'p WorkspacePath>,
    word: Verdict,
    because: &'p str,
    /// What a rule of its own is called.
    id: String,
}

impl Ground<'_> {
    pub(super) fn paths(
        &self,
        tool: &ToolName,
        group: &Group,
        word: Verdict,
        because: &str,
    ) -> Result<Vec<Rung>, String> {
        let places = group.wishes.iter().filter_map(|wish| match &wish.what {
            What::Path(_, path) => Some(path),
            _ => None,
        });
        let places: Vec<&WorkspacePath> = places.collect();
        let above = places.first().map_or("", |path| folder(path.as_str()));
        let rules =
            self.policy.file_rule(tool).map(|files| files.rules.as_slice()).unwrap_or_default();
        let others: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
        let own = Paths { tool, word, because, id: self.free_id(tool, above, &others), places };
        let samples = own.samples(above);
        let rung = |patterns: Vec<String>| {
            let (rule, inner) = self.path_rule(&own, &patterns)?;
            let wanted = self.beneath(tool, inner);
            Ok(Rung { rule, opens: patterns, wanted, samples: samples.clone() })
        };
        own.steps(above).into_iter().map(rung).collect()
    }

    /// A rule for some paths: one of its own where the tool is named, else the tool's.
    fn path_rule(
        &self,
        paths: &Paths<'_>,
        patterns: &[String],
    ) -> Result<(String, Wanted), String> {
        let tool = paths.tool;
        let named = format!("{tool}/{}", paths.id);
        let rules = Wanted::map([("rules", Wanted::List(vec![paths.rule(patterns)]))]);
        let Some(files) = self.policy.file_rule(tool) else {
            let binds = ["fs.read", "fs.write", "fs.delete"].contains(&tool.as_str());
            if binds && exec_of(self.policy, &ToolName::unchecked(SHELL)).is_some() {
                // What a tool closes it closes to commands as well, and nothing was closed to them.
                let closed = Wanted::map([
                    ("decision", Wanted::word(Verdict::Deny.keyword())),
                    ("hidden", Wanted::word(Verdict::Allow.keyword())),
                ]);
                return Ok((named, closed.and(rules)));
            }
            let whole = Wanted::map([
                ("decision", Wanted::word(paths.word.keyword())),
                ("paths", Wanted::map([("allow", Wanted::words(patterns))])),
                ("because", Wanted::word(paths.because)),
            ]);
            return Ok((tool.as_str().to_owned(), whole));
        };
        let opened = self.opened(files, paths, patterns);
        // What is only to be open has the tool's own word then.
        let has_word = self.policy.tool(tool).is_some_and(|rule| rule.decision == Some(paths.word));
        match opened {
            Some(opened) if has_word => return Ok((tool.as_str().to_owned(), opened)),
            _ if files.rules.is_empty() || self.says(tool, "rules") => {}
            _ => return Err(inherited(tool, "rules")),
        }
        let inner = opened.map_or_else(|| rules.clone(), |opened| opened.and(rules.clone()));
        Ok((named, inner))
    }

    /// The patterns in `paths.allow`, where not all of the paths are open.
    fn opened(&self, files: &FileRule, paths: &Paths<'_>, patterns: &[String]) -> Option<Wanted> {
        let is_open = |path: &&WorkspacePath| files.allow.iter().any(|own| own.matches(path));
        if paths.places.iter().all(is_open) {
            return None;
        }
        let own = self.own(paths.tool).and_then(|own| own.get("paths"));
        let has_own = own.is_some_and(|own| own.is_list() || own.get("allow").is_some());
        // A list takes the place of an inherited one, so what that holds is said again.
        let before = files.allow.iter().map(|own| own.text.as_str()).filter(|_| !has_own);
        let all = before.chain(patterns.iter().map(String::as_str));
        Some(Wanted::words(all).beneath(&["paths", "allow"]))
    }

    /// Whether the author's own text says something about a tool.
    fn says(&self, tool: &ToolName, key: &str) -> bool {
        self.own(tool).is_some_and(|own| own.get(key).is_some())
    }
}

impl Paths<'_> {
    fn looks(&self) -> bool {
        matches!(self.tool.as_str(), "fs.list" | "fs.search")
    }

    fn rule(&self, patterns: &[String]) -> Wanted {
        Wanted::map([
            ("id", Wanted::word(self.id.as_str())),
            ("paths", Wanted::words(patterns)),
            ("decision", Wanted::word(self.word.keyword())),
            ("because", Wanted::word(self.because)),
        ])
    }

    /// The patterns, the narrowest first: the paths themselves, what ends as they do, the folder.
    fn steps(&self, above: &str) -> Vec<Vec<String>> {
        let exact = || self.places.iter().map(|path| path.as_str());
        let tree = |folder: &str| format!("{}/**", escaped(folder));
        let mut steps: Vec<Vec<String>> = Vec::new();
        if self.looks() {
            // A folder that may be listed without what is in it shows nothing.
            steps.push(exact().map(tree).collect());
        } else {
            steps.push(exact().map(escaped).collect());
            let endings: BTreeSet<Option<&str>> = exact().map(ending).collect();
            if let (1, Some(Some(ending))) = (endings.len(), endings.first()) {
                let head = if above.is_empty() { String::new() } else { escaped(above) + "/" };
                steps.push(vec![format!("{head}*.{}", escaped(ending))]);
            }
        }
        if !above.is_empty() {
            steps.push(vec![tree(above)]);
        }
        steps.dedup();
        steps
    }

    /// One of the paths, and one beside them.
    fn samples(&self, above: &str) -> Vec<Sample> {
        let sample = |path: &str, name: &str| Sample {
            name: format!("learned: {} {path}{name}", self.tool),
            tool: self.tool.as_str().to_owned(),
            args: arguments(self.tool, path),
        };
        let beside = match self.looks() || above.is_empty() {
            true => "not-learned".to_owned(),
            false => format!("{above}/not-learned"),
        };
        let first = self.places.first().map(|path| sample(path.as_str(), ""));
        first.into_iter().chain([sample(&beside, " is as before")]).collect()
    }
}

fn ending(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map(|(_, ending)| ending).filter(|own| !own.is_empty())
}

fn arguments(tool: &ToolName, path: &str) -> Value {
    match tool.as_str() {
        "fs.write" => json!({ "path": path, "content": "x" }),
        "fs.edit" => json!({ "path": path, "search": "a", "replace": "b" }),
        _ => json!({ "path": path }),
    }
}
