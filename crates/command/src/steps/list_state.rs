//! What a list has come to between two of its programs: where it goes on, and directory, variables and status.
//!
//! Who runs a list and who looks ahead at how it may run go through the same elements in the same way; the one knows
//! how programs ended and what they printed, the other does not.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::UnsupportedStep;
use crate::shell_syntax::{
    ElementKind, GroupScope, ListOperator, ListOption, OUTPUT_PLACEHOLDER, Script, ScriptElement,
    ShellWord, Value, ValueProblem, Values, WordPiece,
};
use capsule_base::limits;

/// The state of a list whose directory is an `F`.
#[derive(Clone, Debug, PartialEq)]
pub struct ListState<F> {
    /// The index of the next element.
    pub at: usize,
    /// The status of what ran last, if that is known.
    pub status: Option<u8>,
    /// Where it is.
    pub directory: F,
    /// The variables, and what programs printed.
    pub values: Values,
    /// The directory whose programs come first, from the root of the workspace.
    pub programs: Option<String>,
    options: Vec<ListOption>,
    groups: Vec<GroupState<F>>,
    notes: BTreeMap<usize, Option<u8>>,
    /// What loops go through, and how far they are.
    loops: BTreeMap<usize, (Rc<[Value]>, usize)>,
}

/// What is around a group that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupState<F> {
    scope: GroupScope,
    /// What it printed so far, if that is kept.
    output: Option<String>,
    directory: F,
    values: Values,
    programs: Option<String>,
    options: Vec<ListOption>,
}

/// What a pipeline is reached with that is not in the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachedState {
    /// The values that its words need, and those that programs find in their environment.
    #[serde(default, skip_serializing_if = "Values::is_empty")]
    pub values: Values,
    /// The status before.
    #[serde(default)]
    pub status: u8,
    /// The directory whose programs come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<String>,
    /// Whether it fails with any of its programs.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub pipe_fail: bool,
}

/// What comes next in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The pipeline of the element with this index.
    Run(usize),
    /// How it goes on depends on a status that is not known.
    Unknown,
    /// Nothing.
    End,
}

/// The most elements without a program between them, which only a loop of assignments comes to.
const QUIET_ELEMENTS: usize = 100_000;

impl<F: Clone> ListState<F> {
    /// The beginning of a list.
    pub const fn new(directory: F) -> Self {
        Self {
            at: 0,
            status: Some(0),
            directory,
            values: Values::new(),
            programs: None,
            options: Vec::new(),
            groups: Vec::new(),
            notes: BTreeMap::new(),
            loops: BTreeMap::new(),
        }
    }

    /// Whether an option is on.
    #[must_use]
    pub fn has_option(&self, option: ListOption) -> bool {
        self.options.contains(&option)
    }

    /// Switches an option.
    pub fn set_option(&mut self, option: ListOption, on: bool) {
        self.options.retain(|item| *item != option);
        self.options.extend(on.then_some(option));
    }

    /// How many bytes its values take.
    #[must_use]
    pub fn size(&self) -> usize {
        let groups = self.groups.iter().map(|group| &group.values);
        let values = groups.chain([&self.values]).flat_map(BTreeMap::iter);
        let size = |piece: &WordPiece| match piece {
            WordPiece::Text(text) => text.len(),
            _ => size_of::<WordPiece>(),
        };
        values.map(|(name, value)| name.len() + value.pieces.iter().map(size).sum::<usize>()).sum()
    }

    /// Whether what is printed now becomes the value of a variable.
    #[must_use]
    pub fn captures(&self) -> bool {
        self.groups.iter().any(|group| group.output.is_some())
    }

    /// The values that words are read with, with those that no text assigns.
    #[must_use]
    pub fn values_here(&self, working_directory: Option<String>) -> Values {
        let mut values = self.values.clone();
        let status = alloc::format!("{}", self.status.unwrap_or(0));
        values.insert("?".into(), Value::text(&status));
        values.extend(working_directory.map(|path| ("PWD".into(), Value::text(&path))));
        values
    }

    /// What the next pipeline is reached with.
    #[must_use]
    pub fn reached(&self, element: &ScriptElement) -> ReachedState {
        let names: Vec<&str> =
            element.pipeline.stages.iter().flat_map(|stage| stage.variable_names()).collect();
        let is_needed =
            |(name, value): &(&String, &Value)| value.is_exported || names.contains(&name.as_str());
        let values = self.values.iter().filter(is_needed);
        ReachedState {
            values: values.map(|(name, value)| (name.clone(), value.clone())).collect(),
            status: self.status.filter(|_| names.contains(&"?")).unwrap_or(0),
            programs: self.programs.clone(),
            pipe_fail: element.pipeline.stages.len() > 1 && self.has_option(ListOption::PipeFail),
        }
    }

    /// Notes how the pipeline ended that was next, and what it printed, if that is known.
    ///
    /// # Errors
    /// The list ends in a group whose output would be lost.
    pub fn ended(
        &mut self,
        script: &Script,
        status: Option<u8>,
        output: Option<&str>,
    ) -> Result<(), UnsupportedStep> {
        self.status = status;
        if let Some(kept) = self.groups.iter_mut().rev().find_map(|group| group.output.as_mut()) {
            match output {
                Some(output) => kept.push_str(output),
                None => *kept = OUTPUT_PLACEHOLDER.into(),
            }
        }
        let is_checked = script.elements.get(self.at).is_some_and(|element| element.is_checked);
        self.at += 1;
        if is_checked { self.check_status(script) } else { Ok(()) }
    }

    /// Ends the list where an option says that a failure does.
    fn check_status(&mut self, script: &Script) -> Result<(), UnsupportedStep> {
        let fails = self.status.is_some_and(|status| status != 0);
        if fails && self.has_option(ListOption::ErrorExit) { self.exit(script) } else { Ok(()) }
    }

    /// Goes behind the innermost group that is a shell of its own, or to the end.
    fn exit(&mut self, script: &Script) -> Result<(), UnsupportedStep> {
        if self.groups.last().is_some_and(|group| group.scope == GroupScope::Shared) {
            return Err(UnsupportedStep::EndsGroup);
        }
        if self.groups.is_empty() {
            self.at = script.elements.len();
            return Ok(());
        }
        let mut inner = 0_usize;
        while let Some(element) = script.elements.get(self.at) {
            match element.kind {
                ElementKind::Enter { .. } => inner += 1,
                ElementKind::Leave(_) if inner == 0 => return Ok(()),
                ElementKind::Leave(_) => inner -= 1,
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Goes on to the next pipeline. `working_directory` is the path of a directory as programs see it, and `programs` where
    /// a path leads that is named in one.
    ///
    /// # Errors
    /// Values cannot be put in, or nothing ends it.
    pub fn advance(
        &mut self,
        script: &Script,
        working_directory: &dyn Fn(&F) -> Option<String>,
        programs: &dyn Fn(&F, &str) -> Option<String>,
    ) -> Result<NextStep, UnsupportedStep> {
        for _ in 0..QUIET_ELEMENTS {
            let Some(element) = script.elements.get(self.at) else { return Ok(NextStep::End) };
            let wanted = match element.join {
                ListOperator::First | ListOperator::Then => None,
                ListOperator::And => Some(true),
                ListOperator::Or => Some(false),
            };
            match (wanted, self.status) {
                (None, _) => {}
                (Some(_), None) => return Ok(NextStep::Unknown),
                (Some(good), Some(status)) if good == (status == 0) => {}
                _ => {
                    self.at = element.otherwise;
                    continue;
                }
            }
            if element.kind == ElementKind::Run {
                return Ok(NextStep::Run(self.at));
            }
            let here = || working_directory(&self.directory);
            match &element.kind {
                ElementKind::Assign { name, value, is_exported, keeps_status } => {
                    let values = self.values_here(here());
                    self.assign(name, value.as_ref(), *is_exported, &values)?;
                    self.at += 1;
                    if !*keeps_status {
                        self.status = Some(0);
                    }
                    if element.is_checked {
                        self.check_status(script)?;
                    }
                }
                ElementKind::Items(number, words) => {
                    let items = self.items(*number, words, &self.values_here(here()))?;
                    self.loops.insert(*number, (items.into(), 0));
                    self.at += 1;
                }
                ElementKind::Activate(path) => {
                    self.programs = programs(&self.directory, path);
                    self.status = Some(0);
                    self.at += 1;
                }
                kind => self.step(script, kind)?,
            }
        }
        Err(UnsupportedStep::TooManyWays)
    }

    /// Goes past an element that says only how it goes on.
    fn step(&mut self, script: &Script, kind: &ElementKind) -> Result<(), UnsupportedStep> {
        self.at += 1;
        match kind {
            ElementKind::Enter { captures, scope } => self.enter(*captures, *scope),
            ElementKind::Leave(name) => {
                self.leave(name.as_deref());
                let index = self.at.saturating_sub(1);
                if script.elements.get(index).is_some_and(|element| element.is_checked) {
                    self.check_status(script)?;
                }
            }
            ElementKind::Jump(to) => self.at = *to,
            ElementKind::Succeed => self.status = Some(0),
            ElementKind::Negate => self.status = self.status.map(|status| u8::from(status == 0)),
            ElementKind::Note(number) => {
                self.notes.insert(*number, self.status);
            }
            ElementKind::Recall(number) => {
                self.status = self.notes.remove(number).unwrap_or(self.status);
            }
            ElementKind::Each { number, name, end } => {
                let next = self.loops.get_mut(number).and_then(|(items, at)| {
                    *at += 1;
                    items.get(at.saturating_sub(1)).cloned()
                });
                match next {
                    Some(item) => self.set(name, item),
                    None => {
                        self.loops.remove(number);
                        self.at = *end;
                    }
                }
            }
            ElementKind::Option(option, on) => self.set_option(*option, *on),
            ElementKind::Exit(status) => {
                self.status = status.map_or(self.status, Some);
                self.exit(script)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn enter(&mut self, captures: bool, scope: GroupScope) {
        self.groups.push(GroupState {
            scope,
            output: captures.then(String::new),
            directory: self.directory.clone(),
            values: self.values.clone(),
            programs: self.programs.clone(),
            options: self.options.clone(),
        });
        match scope {
            GroupScope::Shell => {
                self.values.retain(|_, value| value.is_exported);
                self.options.clear();
            }
            GroupScope::Substitution => self.set_option(ListOption::ErrorExit, false),
            GroupScope::Shared | GroupScope::Subshell => {}
        }
    }

    fn leave(&mut self, name: Option<&str>) {
        let Some(group) = self.groups.pop() else { return };
        if group.scope != GroupScope::Shared {
            self.directory = group.directory;
            self.values = group.values;
            self.programs = group.programs;
            self.options = group.options;
        }
        if let Some((name, output)) = name.zip(group.output) {
            let text = output.trim_end_matches('\n');
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let is_opaque = name.starts_with('(') && !is_number;
            self.values.insert(name.into(), Value { is_opaque, ..Value::text(&output) });
        }
    }

    fn assign(
        &mut self,
        name: &str,
        word: Option<&ShellWord>,
        exports: bool,
        values: &Values,
    ) -> Result<(), UnsupportedStep> {
        let value = match word {
            Some(word) => word.value(values).map_err(UnsupportedStep::Value)?,
            None => values
                .get(name)
                .cloned()
                .ok_or_else(|| UnsupportedStep::Value(ValueProblem::Unset(name.into())))?,
        };
        if value.unexpanded().len() > limits::ARGV_BYTES {
            return Err(UnsupportedStep::TooManyWays);
        }
        self.set(name, Value { is_exported: exports, ..value });
        Ok(())
    }

    /// Sets a variable, which stays exported if it was.
    fn set(&mut self, name: &str, value: Value) {
        let was = self.values.get(name).is_some_and(|value| value.is_exported);
        let is_exported = was || value.is_exported;
        self.values.insert(name.into(), Value { is_exported, ..value });
    }

    /// The values that a loop goes through: names of files, where those are known, else their patterns.
    fn items(
        &self,
        number: usize,
        words: &[ShellWord],
        values: &Values,
    ) -> Result<Vec<Value>, UnsupportedStep> {
        let found = values.get(&alloc::format!("*{number}")).map(Value::unexpanded);
        if let Some(names) = found.filter(|names| names != OUTPUT_PLACEHOLDER) {
            return Ok(names.split_terminator('\0').map(Value::text).collect());
        }
        let mut items = Vec::new();
        for word in words {
            for made in word.with_values(values).map_err(UnsupportedStep::Value)? {
                let ShellWord { pieces, is_opaque, .. } = made;
                items.push(Value { pieces, is_opaque, is_exported: false });
            }
        }
        Ok(items)
    }
}
