//! From a text to a policy that is bound to a workspace.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::capability::{Capabilities, Capability};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::digest::Digest;
use crate::policy::base;
use crate::policy::model::{Constraint, Never, Policy, Source};
use crate::policy::parse;
use crate::policy::patterns::PathPattern;
use crate::tool::Catalogue;

/// A policy that was read and is not bound to a workspace yet. It cannot decide.
#[derive(Clone, Debug)]
pub struct Draft {
    policy: Policy,
}

/// Where a policy is bound to.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// The real path of the workspace.
    pub workspace: String,
    /// The real paths of the runtime's own files: the store, the policy, keys. Out of reach of
    /// every tool, wherever they lie.
    pub own: Vec<String>,
}

impl Draft {
    /// Reads a policy. `name` is how its place is shown; `home` is the folder that `~` stands for.
    ///
    /// # Errors
    /// Every problem of the text, in the order of their places; there is always at least one error.
    pub fn parse(
        text: &str,
        name: &str,
        home: &str,
        tools: Catalogue,
    ) -> Result<(Self, Diagnostics), Diagnostics> {
        let (policy, problems) = parse::policy(text, name, home, tools);
        match policy {
            Some(policy) if problems.iter().all(|p| p.severity == Severity::Warning) => {
                Ok((Self { policy }, problems))
            }
            _ => Err(problems),
        }
    }

    /// The folder that the policy names for a workspace, relative to its own place.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        self.policy.root.as_deref()
    }

    /// The same policy under the digest of the text that it was recorded from: credentials in the
    /// recorded text are masked, and do not change what it decides.
    #[must_use]
    pub fn recorded_as(mut self, sha256: Digest) -> Self {
        self.policy.digest = sha256;
        self
    }

    /// Adds the base policy and sees every pattern from the workspace.
    ///
    /// # Errors
    /// Names each `allow` pattern that lies outside of the workspace, and, should the base policy
    /// itself be broken, what is wrong with it.
    pub fn bind(self, roots: &Roots, home: &str, tools: Catalogue) -> Result<Policy, Diagnostics> {
        let mut policy = self.policy;
        let (base, mut problems) = parse::policy(base::TEXT, base::NAME, home, tools);
        if let Some(base) = base {
            policy.never.extend(base.never);
            policy.base_denials.extend(base.base_denials);
        }
        problems.retain(|problem| problem.severity == Severity::Error);
        policy.never.push(own_files(&roots.own));
        let root = roots.workspace.as_str();
        for never in policy.never.iter_mut().chain(&mut policy.base_denials) {
            for pattern in never.paths.iter_mut().chain(&mut never.except) {
                pattern.bind(root);
            }
        }
        for rule in policy.tools.values_mut() {
            if let Constraint::Exec(exec) = &mut rule.constraint {
                for program in &mut exec.programs {
                    for pattern in program.command.paths_mut() {
                        if !pattern.bind(root) {
                            problems.push(outside(pattern, root));
                        }
                    }
                }
            }
            let Constraint::Files(files) = &mut rule.constraint else { continue };
            for pattern in &mut files.deny {
                pattern.bind(root);
            }
            let nested = files.rules.iter_mut().flat_map(|rule| &mut rule.paths);
            for pattern in files.allow.iter_mut().chain(nested) {
                if !pattern.bind(root) {
                    problems.push(outside(pattern, root));
                }
            }
        }
        let own = policy.digest;
        policy.digest = Digest::of_parts(&[&own.0, &Digest::of(base::TEXT.as_bytes()).0]);
        if problems.is_empty() { Ok(policy) } else { Err(problems) }
    }
}

fn outside(pattern: &PathPattern, root: &str) -> Diagnostic {
    let message = alloc::format!("`{}` lies outside of the workspace `{root}`", pattern.text);
    Diagnostic::error(crate::code::Code::PolicyGlob, pattern.source.span.clone(), message)
        .hint("write it relative to the workspace, or choose another with `--workspace`")
}

fn own_files(own: &[String]) -> Never {
    let source = Source { at: base::NAME.to_string(), span: 0..0 };
    let paths = own.iter().map(|path| PathPattern::place(path, source.clone())).collect();
    Never {
        id: Never::OWN_FILES.to_string(),
        source,
        capabilities: Capabilities::of(Capability::FsMeta)
            .with(Capability::FsRead)
            .with(Capability::FsWrite)
            .with(Capability::FsDelete),
        paths,
        except: Vec::new(),
        tool: None,
        argv: Vec::new(),
        because: Some("A run must not read or change its own rules, record or keys".to_string()),
        suggest: Some("Tell the user what you need from there, and why".to_string()),
    }
}
