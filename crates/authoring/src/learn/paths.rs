//! Rules for paths.

use std::collections::BTreeSet;

use capsule_base::path::WorkspacePath;
use capsule_core::decision::Verdict;
use capsule_core::policy::FileRule;
use capsule_core::tool::ToolName;
use serde_json::{Value, json};

use super::generalize::{
    MissingRuleGroup, RuleCandidate, RuleGenerator, SHELL_TOOL, Sample, directory, escape_pattern,
    inherited_problem,
};
use super::missing_rule::RuleSubject;
use super::yaml_edit::YamlInsertion;

/// Paths of one folder that a tool is to be open for.
struct PathGroup<'p> {
    tool: &'p ToolName,
    paths: Vec<&'p WorkspacePath>,
    verdict: Verdict,
    because: &'p str,
    /// What a rule of its own is called.
    rule_id: String,
}

impl RuleGenerator<'_> {
    pub(super) fn path_rules(
        &self,
        tool: &ToolName,
        group: &MissingRuleGroup,
        word: Verdict,
        because: &str,
    ) -> Result<Vec<RuleCandidate>, String> {
        let places = group.missing.iter().filter_map(|wish| match &wish.subject {
            RuleSubject::Path(_, path) => Some(path),
            _ => None,
        });
        let places: Vec<&WorkspacePath> = places.collect();
        let above = places.first().map_or("", |path| directory(path.as_str()));
        let rules =
            self.policy.file_rule(tool).map(|files| files.rules.as_slice()).unwrap_or_default();
        let others: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
        let group = PathGroup {
            tool,
            verdict: word,
            because,
            rule_id: self.free_id(tool, above, &others),
            paths: places,
        };
        let samples = group.path_samples(above);
        let candidate = |patterns: Vec<String>| {
            let (rule, inner) = self.path_rule(&group, &patterns)?;
            let wanted = self.nest_under_tool(tool, inner);
            Ok(RuleCandidate {
                rule,
                allows: patterns,
                insertion: wanted,
                samples: samples.clone(),
            })
        };
        group.pattern_steps(above).into_iter().map(candidate).collect()
    }

    /// A rule for some paths: one of its own where the tool is named, else the tool's.
    fn path_rule(
        &self,
        paths: &PathGroup<'_>,
        patterns: &[String],
    ) -> Result<(String, YamlInsertion), String> {
        let tool = paths.tool;
        let named = format!("{tool}/{}", paths.rule_id);
        let rules = YamlInsertion::map([(
            "rules",
            YamlInsertion::List(vec![paths.rule_insertion(patterns)]),
        )]);
        let Some(files) = self.policy.file_rule(tool) else {
            let binds = ["fs.read", "fs.write", "fs.delete"].contains(&tool.as_str());
            if binds && self.policy.exec_rule(&ToolName::unchecked(SHELL_TOOL)).is_some() {
                // What a tool closes it closes to commands as well, and nothing was closed to them.
                let closed = YamlInsertion::map([
                    ("decision", YamlInsertion::scalar(Verdict::Deny.keyword())),
                    ("hidden", YamlInsertion::scalar(Verdict::Allow.keyword())),
                ]);
                return Ok((named, closed.merge(rules)));
            }
            let whole = YamlInsertion::map([
                ("decision", YamlInsertion::scalar(paths.verdict.keyword())),
                ("paths", YamlInsertion::map([("allow", YamlInsertion::list(patterns))])),
                ("because", YamlInsertion::scalar(paths.because)),
            ]);
            return Ok((tool.as_str().to_owned(), whole));
        };
        let opened = self.allow_insertion(files, paths, patterns);
        // What is only to be open has the tool's own word then.
        let has_word =
            self.policy.tool(tool).is_some_and(|rule| rule.decision == Some(paths.verdict));
        match opened {
            Some(opened) if has_word => return Ok((tool.as_str().to_owned(), opened)),
            _ if files.rules.is_empty() || self.has_authored_key(tool, "rules") => {}
            _ => return Err(inherited_problem(tool, "rules")),
        }
        let inner = opened.map_or_else(|| rules.clone(), |opened| opened.merge(rules.clone()));
        Ok((named, inner))
    }

    /// The patterns in `paths.allow`, where not all of the paths are open.
    fn allow_insertion(
        &self,
        files: &FileRule,
        paths: &PathGroup<'_>,
        patterns: &[String],
    ) -> Option<YamlInsertion> {
        let is_open =
            |path: &&WorkspacePath| files.allow.iter().any(|pattern| pattern.matches(path));
        if paths.paths.iter().all(is_open) {
            return None;
        }
        let path = self.authored_rule(paths.tool).and_then(|path| path.get("paths"));
        let has_own = path.is_some_and(|path| path.is_list() || path.get("allow").is_some());
        // A list takes the place of an inherited one, so what that holds is said again.
        let before = files.allow.iter().map(|pattern| pattern.text.as_str()).filter(|_| !has_own);
        let all = before.chain(patterns.iter().map(String::as_str));
        Some(YamlInsertion::list(all).under_keys(&["paths", "allow"]))
    }

    /// Whether the author's own text says something about a tool.
    fn has_authored_key(&self, tool: &ToolName, key: &str) -> bool {
        self.authored_rule(tool).is_some_and(|path| path.get(key).is_some())
    }
}

impl PathGroup<'_> {
    fn is_read_only(&self) -> bool {
        matches!(self.tool.as_str(), "fs.list" | "fs.search" | "fs.grep")
    }

    fn rule_insertion(&self, patterns: &[String]) -> YamlInsertion {
        YamlInsertion::map([
            ("id", YamlInsertion::scalar(self.rule_id.as_str())),
            ("paths", YamlInsertion::list(patterns)),
            ("decision", YamlInsertion::scalar(self.verdict.keyword())),
            ("because", YamlInsertion::scalar(self.because)),
        ])
    }

    /// The patterns, the narrowest first: the paths themselves, what ends as they do, the folder.
    fn pattern_steps(&self, above: &str) -> Vec<Vec<String>> {
        let exact = || self.paths.iter().map(|path| path.as_str());
        let tree = |folder: &str| format!("{}/**", escape_pattern(folder));
        let mut steps: Vec<Vec<String>> = Vec::new();
        if self.is_read_only() {
            // A folder that may be listed without what is in it shows nothing.
            steps.push(exact().map(tree).collect());
        } else {
            steps.push(exact().map(escape_pattern).collect());
            let endings: BTreeSet<Option<&str>> = exact().map(path_suffix).collect();
            if let (1, Some(Some(ending))) = (endings.len(), endings.first()) {
                let head =
                    if above.is_empty() { String::new() } else { escape_pattern(above) + "/" };
                steps.push(vec![format!("{head}*.{}", escape_pattern(ending))]);
            }
        }
        if !above.is_empty() {
            steps.push(vec![tree(above)]);
        }
        steps.dedup();
        steps
    }

    /// One of the paths, and one beside them.
    fn path_samples(&self, above: &str) -> Vec<Sample> {
        let sample = |path: &str, name: &str| Sample {
            name: format!("learned: {} {path}{name}", self.tool),
            tool: self.tool.as_str().to_owned(),
            args: sample_arguments(self.tool, path),
        };
        let beside = match self.is_read_only() || above.is_empty() {
            true => "not-learned".to_owned(),
            false => format!("{above}/not-learned"),
        };
        let first = self.paths.first().map(|path| sample(path.as_str(), ""));
        first.into_iter().chain([sample(&beside, " is as before")]).collect()
    }
}

fn path_suffix(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map(|(_, ending)| ending).filter(|text| !text.is_empty())
}

fn sample_arguments(tool: &ToolName, path: &str) -> Value {
    match tool.as_str() {
        "fs.write" => json!({ "path": path, "content": "x" }),
        "fs.edit" => json!({ "path": path, "search": "a", "replace": "b" }),
        "fs.grep" => json!({ "path": path, "pattern": "a" }),
        _ => json!({ "path": path }),
    }
}
