//! What a list has come to between two of its programs: where it goes on, and directory, variables and status.
//!
//! Who runs a list and who looks ahead at how it may run go through the same elements in the same way; the one knows
//! how programs ended and what they printed, the other does not.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;

use serde::{Deserialize, Serialize};

use super::UnsupportedStep;
use crate::shell_syntax::{
    ElementKind, GroupScope, ListOperator, ListOption, OUTPUT_PLACEHOLDER, Script, ScriptElement,
    ShellWord, Value, ValueProblem, Values,
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
    pub(super) loops: BTreeMap<usize, LoopState>,
    /// How many bytes the variables take.
    bytes: usize,
    /// How much may still be done without a program. All copies of a state share it.
    quiet: Rc<Cell<usize>>,
}

/// How far a loop is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoopState {
    pub(super) items: Rc<[Value]>,
    pub(super) at: usize,
    pub(super) bytes: usize,
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
    bytes: usize,
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

/// The most elements that are visited, on all ways together, to find the programs of a list. Only loops of
/// assignments come to so many.
const QUIET_ELEMENTS: usize = 200_000;
/// So many bytes of values take as long as an element.
const QUIET_BYTES: usize = 16_000;

impl<F: Clone> ListState<F> {
    /// The beginning of a list.
    pub fn new(directory: F) -> Self {
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
            bytes: 0,
            quiet: Rc::new(Cell::new(QUIET_ELEMENTS)),
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

    /// How many bytes its values take, with those around its groups and those that loops go through.
    #[must_use]
    pub fn size(&self) -> usize {
        let output = |group: &GroupState<F>| group.output.as_ref().map_or(0, String::len);
        let groups = self.groups.iter().map(|group| group.bytes + output(group)).sum::<usize>();
        let loops = self.loops.values().map(|state| state.bytes).sum::<usize>();
        self.bytes + groups + loops
    }

    /// Takes from what may be done without a program an element that copies so many bytes.
    fn spend(&self, bytes: usize) -> Result<(), UnsupportedStep> {
        let left = self.quiet.get().checked_sub(1 + bytes / QUIET_BYTES);
        self.quiet.set(left.ok_or(UnsupportedStep::TooManyWays)?);
        Ok(())
    }

    /// Whether there is room for so many bytes of values more.
    pub(super) fn check_room(&self, bytes: usize) -> Result<(), UnsupportedStep> {
        if self.size().saturating_add(bytes) > limits::COMMAND_VALUE_BYTES {
            return Err(UnsupportedStep::Value(ValueProblem::TooLong));
        }
        self.spend(bytes)
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
        values.extend(self.special_values(working_directory));
        values
    }

    /// The values that no text assigns.
    fn special_values(&self, working_directory: Option<String>) -> Values {
        let status = alloc::format!("{}", self.status.unwrap_or(0));
        let mut values = Values::from([("?".into(), Value::text(&status))]);
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
    /// It has printed too much into a group whose output is kept.
    pub fn ended(
        &mut self,
        script: &Script,
        status: Option<u8>,
        output: Option<&str>,
    ) -> Result<(), UnsupportedStep> {
        self.status = status;
        if let Some(kept) = self.groups.iter_mut().rev().find_map(|group| group.output.as_mut()) {
            match output {
                Some(output) if kept.len() + output.len() > limits::STDIN_BYTES => {
                    return Err(UnsupportedStep::Value(ValueProblem::TooLong));
                }
                Some(output) => kept.push_str(output),
                None => *kept = OUTPUT_PLACEHOLDER.into(),
            }
        }
        let is_checked = script.elements.get(self.at).is_some_and(|element| element.is_checked);
        self.at += 1;
        if is_checked {
            self.check_status(script);
        }
        Ok(())
    }

    /// Ends the list where an option says that a failure does.
    fn check_status(&mut self, script: &Script) {
        let fails = self.status.is_some_and(|status| status != 0);
        if fails && self.has_option(ListOption::ErrorExit) {
            self.exit(script);
        }
    }

    /// Goes behind the innermost group that is a shell of its own, or to the end.
    fn exit(&mut self, script: &Script) {
        // Outside of all groups it is the end.
        let mut inner = usize::from(self.groups.is_empty());
        while let Some(element) = script.elements.get(self.at) {
            match element.kind {
                ElementKind::Enter { .. } => inner += 1,
                ElementKind::Leave(_) if inner == 0 => return,
                ElementKind::Leave(_) => inner -= 1,
                _ => {}
            }
            self.at += 1;
        }
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
        loop {
            self.spend(0)?;
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
                    let special = self.special_values(here());
                    self.assign(name, value.as_ref(), *is_exported, &special)?;
                    self.at += 1;
                    if !*keeps_status {
                        self.status = Some(0);
                    }
                    if element.is_checked {
                        self.check_status(script);
                    }
                }
                ElementKind::Items(number, words) => {
                    let items = self.items(*number, words, &self.special_values(here()))?;
                    let bytes = items.iter().map(Value::bytes).sum();
                    self.check_room(bytes)?;
                    let state = LoopState { items: items.into(), at: 0, bytes };
                    self.loops.insert(*number, state);
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
    }

    /// Goes past an element that says only how it goes on.
    fn step(&mut self, script: &Script, kind: &ElementKind) -> Result<(), UnsupportedStep> {
        self.at += 1;
        match kind {
            ElementKind::Enter { captures, scope } => self.enter(*captures, *scope)?,
            ElementKind::Leave(name) => {
                self.leave(name.as_deref())?;
                let index = self.at.saturating_sub(1);
                if script.elements.get(index).is_some_and(|element| element.is_checked) {
                    self.check_status(script);
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
                let next = self.loops.get_mut(number).and_then(|state| {
                    state.at += 1;
                    state.items.get(state.at.saturating_sub(1)).cloned()
                });
                match next {
                    Some(item) => self.set(name, item)?,
                    None => {
                        self.loops.remove(number);
                        self.at = *end;
                    }
                }
            }
            ElementKind::Lines { number, name, keeps_last } => {
                self.keep_lines(*number, name, *keeps_last)?;
            }
            ElementKind::EachLine { number, names, separators, end } => {
                match self.next_line(*number, names, separators.as_deref())? {
                    true => self.status = Some(0),
                    false => {
                        self.loops.remove(number);
                        self.at = *end;
                    }
                }
            }
            ElementKind::Option(option, on) => self.set_option(*option, *on),
            ElementKind::Exit(status) => {
                self.status = status.map_or(self.status, Some);
                self.exit(script);
            }
            _ => {}
        }
        Ok(())
    }

    fn enter(&mut self, captures: bool, scope: GroupScope) -> Result<(), UnsupportedStep> {
        self.check_room(self.bytes)?;
        self.groups.push(GroupState {
            scope,
            output: captures.then(String::new),
            directory: self.directory.clone(),
            values: self.values.clone(),
            programs: self.programs.clone(),
            options: self.options.clone(),
            bytes: self.bytes,
        });
        match scope {
            GroupScope::Shell => {
                // The files of groups around it stay open.
                self.values.retain(|name, value| value.is_exported || name.starts_with('|'));
                self.bytes =
                    self.values.iter().map(|(name, value)| name.len() + value.bytes()).sum();
                self.options.clear();
                self.status = Some(0);
            }
            GroupScope::Substitution => self.set_option(ListOption::ErrorExit, false),
            GroupScope::Subshell => {}
        }
        Ok(())
    }

    fn leave(&mut self, name: Option<&str>) -> Result<(), UnsupportedStep> {
        let Some(group) = self.groups.pop() else { return Ok(()) };
        self.directory = group.directory;
        self.values = group.values;
        self.programs = group.programs;
        self.options = group.options;
        self.bytes = group.bytes;
        if let Some((name, output)) = name.zip(group.output) {
            let text = output.trim_end_matches('\n');
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let is_opaque = name.starts_with('(') && !is_number;
            self.put(name, Value { is_opaque, ..Value::text(&output) })?;
        }
        Ok(())
    }

    fn assign(
        &mut self,
        name: &str,
        word: Option<&ShellWord>,
        exports: bool,
        special: &Values,
    ) -> Result<(), UnsupportedStep> {
        let value = match word {
            Some(word) => {
                let mut room = limits::ARGV_BYTES;
                word.value(&[special, &self.values], &mut room).map_err(UnsupportedStep::Value)?
            }
            None => {
                let value = special.get(name).or_else(|| self.values.get(name)).cloned();
                value.ok_or_else(|| UnsupportedStep::Value(ValueProblem::Unset(name.into())))?
            }
        };
        self.set(name, Value { is_exported: exports, ..value })
    }

    /// Sets a variable, which stays exported if it was.
    pub(super) fn set(&mut self, name: &str, value: Value) -> Result<(), UnsupportedStep> {
        let was = self.values.get(name).is_some_and(|value| value.is_exported);
        let is_exported = was || value.is_exported;
        self.put(name, Value { is_exported, ..value })
    }

    /// Puts a value in the place of the one before, if there is room.
    fn put(&mut self, name: &str, value: Value) -> Result<(), UnsupportedStep> {
        let bytes = name.len() + value.bytes();
        self.check_room(bytes)?;
        let before = self.values.insert(name.into(), value);
        let before = before.map_or(0, |value| name.len() + value.bytes());
        self.bytes = self.bytes.saturating_sub(before).saturating_add(bytes);
        Ok(())
    }

    /// The values that a loop goes through: names of files, where those are known, else their patterns.
    fn items(
        &self,
        number: usize,
        words: &[ShellWord],
        special: &Values,
    ) -> Result<Vec<Value>, UnsupportedStep> {
        let found = self.values.get(&alloc::format!("*{number}")).map(Value::unexpanded);
        if let Some(names) = found.filter(|names| names != OUTPUT_PLACEHOLDER) {
            // Which of the names a program printed is not known any more.
            let mut read = words.iter().flat_map(ShellWord::variables);
            let is_opaque =
                read.any(|name| self.values.get(name).is_some_and(|value| value.is_opaque));
            let item = |name: &str| Value { is_opaque, ..Value::text(name) };
            return Ok(names.split_terminator('\0').map(item).collect());
        }
        let (mut items, mut room) = (Vec::new(), limits::ARGV_BYTES);
        for word in words {
            let made = word.with_values(&[special, &self.values], &mut room);
            for made in made.map_err(UnsupportedStep::Value)? {
                // How many names match a pattern is not known: what one round leaves, the next one meets.
                let rounds = if made.as_glob().is_some() { 2 } else { 1 };
                let ShellWord { pieces, is_opaque, .. } = made;
                let item = Value { pieces, is_opaque, is_exported: false };
                items.extend(core::iter::repeat_n(item, rounds));
            }
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell_syntax::parse;

    fn advanced(text: &str) -> Result<NextStep, UnsupportedStep> {
        ListState::new(()).advance(&parse(text).unwrap(), &|()| None, &|(), _| None)
    }

    #[test]
    fn values_and_quiet_loops_come_to_an_end() {
        let too_long = Err(UnsupportedStep::Value(ValueProblem::TooLong));
        let big = alloc::format!("F={}; ", "x".repeat(900_000));
        let many: String = (0..50).map(|n| alloc::format!("V{n}=$F; ")).collect();
        let word = "$F".repeat(8);
        for text in [
            alloc::format!("{big}G={}; echo hi", "$F".repeat(300)),
            alloc::format!("{big}{many}echo hi"),
            alloc::format!("{big}for x in \"{word}\"; do echo hi; done"),
        ] {
            assert_eq!(advanced(&text), too_long, "{}", text.len());
        }
        let inner = "for b in {1..140}; do for c in {1..140}; do X=1; done; done";
        let text = alloc::format!("for a in {{1..250}}; do {inner}; done; echo hi");
        assert_eq!(advanced(&text), Err(UnsupportedStep::TooManyWays));
        assert!(advanced("F=x; for x in a $F; do Y=$x; done; echo hi").is_ok());
    }
}
