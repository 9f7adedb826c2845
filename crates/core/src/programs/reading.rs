//! Reads a command line with what is known about its program.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::programs::{Command, Effect, PathUse, Word, word};

/// A command line, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The program first, then its subcommand, then that one's.
    pub levels: Vec<Level>,
    /// Whether an option of unknown arity stands before a word that could be a subcommand.
    pub ambiguous: bool,
    /// The words that stand for paths.
    pub paths: Vec<PathUse>,
    /// A word that names files in a way that cannot be judged.
    pub unclear: Option<String>,
    /// The folder that an option made the paths behind it start from.
    folder: Option<String>,
    /// The strongest effect of the command and its options; none if the program is not known.
    pub effect: Option<Effect>,
}

/// A program or subcommand on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its name as written.
    pub name: String,
    /// Whether it is known.
    pub known: bool,
    /// Its options.
    pub flags: Vec<Flag>,
    /// Its words that are neither options nor a subcommand.
    pub operands: Vec<String>,
}

/// An option on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Its name as written, without a value: `--out`, `-o`, `-rf`.
    pub spelled: String,
    /// All its names, where the program is known to have it.
    pub names: Vec<String>,
    /// Its value, where it is known to have one.
    pub value: Option<String>,
    /// What it adds, and why, where that is known.
    pub effect: Option<(Effect, String)>,
}

impl Flag {
    /// Whether this could be the option `name`: by one of its names, as the beginning of a long
    /// name, or as a letter among several behind one dash. Used where a match denies.
    #[must_use]
    pub fn could_be(&self, name: &str) -> bool {
        if !self.names.is_empty() {
            return self.names.iter().any(|own| own == name);
        }
        self.spelled == name
            || (self.spelled.starts_with("--") && name.starts_with(&self.spelled))
            || self.letters().any(|letter| name.strip_prefix('-') == Some(letter))
            || self.letters().next().is_some() && attached_value(&self.spelled, name)
    }

    /// Whether this surely is the option `name`. Used where a match allows.
    #[must_use]
    pub fn surely_is(&self, name: &str) -> bool {
        if self.names.is_empty() {
            self.spelled == name
        } else {
            self.names.iter().any(|own| own == name)
        }
    }

    /// The letters of `-rf`, each as text.
    fn letters(&self) -> impl Iterator<Item = &str> {
        let cluster = match self.spelled.strip_prefix('-') {
            Some(cluster) if !cluster.starts_with('-') && cluster.len() > 1 => cluster,
            _ => "",
        };
        cluster.split("").filter(|letter| !letter.is_empty())
    }
}

/// Whether `-ofile` could be `-o` with its value attached.
fn attached_value(spelled: &str, name: &str) -> bool {
    name.len() == 2 && name.starts_with('-') && spelled.starts_with(name)
}

impl Reading {
    /// Reads a command line. With `knowledge` the arity of options is known; without it every word
    /// that begins with a dash is an option and may or may not take the next word.
    #[must_use]
    pub fn of(argv: &[String], knowledge: Option<&Command>, expect_subcommands: bool) -> Self {
        let (name, rest) = match argv.split_first() {
            Some((name, rest)) => (name.clone(), rest),
            None => (String::new(), argv),
        };
        let mut reading = Self {
            levels: Vec::new(),
            ambiguous: false,
            paths: Vec::new(),
            unclear: None,
            folder: None,
            effect: knowledge.map(|command| command.effect),
        };
        let known = knowledge.is_some();
        let level = Level { name, known, flags: Vec::new(), operands: Vec::new() };
        reading.level(level, rest, knowledge, expect_subcommands);
        reading
    }

    /// Whether the program is known.
    #[must_use]
    pub fn known(&self) -> bool {
        self.levels.first().is_some_and(|level| level.known)
    }

    /// The last level: the subcommand if there is one, else the program.
    #[must_use]
    pub fn last(&self) -> Option<&Level> {
        self.levels.last()
    }

    fn level(
        &mut self,
        mut level: Level,
        words: &[String],
        knowledge: Option<&Command>,
        mut subcommand_next: bool,
    ) {
        if let Some(command) = knowledge {
            subcommand_next = !command.subcommands.is_empty();
            self.effect = self.effect.map(|effect| match subcommand_next {
                true => effect,
                false => effect.max(command.effect),
            });
        }
        let mut words = words.iter();
        let mut uncertain = false;
        let mut options_end = false;
        while let Some(word) = words.next() {
            if !options_end && word == "--" {
                options_end = true;
                continue;
            }
            let is_option = word.len() > 1 && word.starts_with('-');
            if is_option && (!options_end || knowledge.is_none()) {
                uncertain |= self.option(&mut level, word, &mut words, knowledge);
                continue;
            }
            if subcommand_next && !options_end {
                self.ambiguous |= uncertain;
                self.levels.push(level);
                return self.subcommand(word, words.as_slice(), knowledge);
            }
            self.operand(&mut level, word, knowledge, options_end);
        }
        self.levels.push(level);
    }

    fn subcommand(&mut self, name: &str, words: &[String], knowledge: Option<&Command>) {
        let inner = knowledge.and_then(|command| command.subcommand(name));
        let known = inner.is_some();
        let level =
            Level { name: name.to_string(), known, flags: Vec::new(), operands: Vec::new() };
        match (knowledge, inner) {
            // An unknown subcommand of a known program could do anything.
            (Some(_), None) => self.level(level, words, Some(&Command::unknown()), false),
            _ => self.level(level, words, inner, false),
        }
    }

    /// Reads one option; says whether its arity is unknown.
    fn option(
        &mut self,
        level: &mut Level,
        word: &str,
        words: &mut core::slice::Iter<'_, String>,
        knowledge: Option<&Command>,
    ) -> bool {
        let (spelled, attached) = match word.split_once('=') {
            Some((spelled, value)) if word.starts_with("--") => (spelled, Some(value)),
            _ => (word, None),
        };
        let is_number = word.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        let exact = knowledge.and_then(|command| match is_number {
            true => command.option(word).or_else(|| command.option("-NUM")),
            false => command.option(spelled).or_else(|| command.abbreviated(spelled)),
        });
        if let (None, Some(command), false) = (exact, knowledge, word.starts_with("--")) {
            return self.cluster(level, word, words, command);
        }
        let Some(option) = exact else {
            if attached.is_none() && knowledge.is_some_and(|command| command.takes_back(spelled)) {
                level.flags.push(taken_back(spelled));
                return false;
            }
            level.flags.push(unknown(spelled, attached));
            self.unknown_effect(knowledge);
            return attached.is_none();
        };
        let value = match (attached, option.value) {
            (Some(value), _) => Some(value.to_string()),
            (None, Some(_)) if !option.attached => words.next().cloned(),
            _ => None,
        };
        self.understood(level, option, spelled, value);
        false
    }

    /// Reads `-xvf value`, `-n5` and their like.
    fn cluster(
        &mut self,
        level: &mut Level,
        word: &str,
        words: &mut core::slice::Iter<'_, String>,
        command: &Command,
    ) -> bool {
        let mut letters = word.strip_prefix('-').unwrap_or(word).chars();
        while let Some(letter) = letters.next() {
            let name = alloc::format!("-{letter}");
            let Some(option) = command.option(&name) else {
                level.flags.push(unknown(word, None));
                self.unknown_effect(Some(command));
                return true;
            };
            let rest = letters.as_str();
            let value = match option.value {
                None => None,
                Some(_) if !rest.is_empty() => Some(rest.to_string()),
                Some(_) if option.attached => None,
                Some(_) => words.next().cloned(),
            };
            let takes_rest = option.value.is_some();
            self.understood(level, option, &name, value);
            if takes_rest {
                break;
            }
        }
        false
    }

    fn understood(
        &mut self,
        level: &mut Level,
        option: &crate::programs::Opt,
        spelled: &str,
        value: Option<String>,
    ) {
        if let (Some(word), Some(value)) = (option.value, &value) {
            self.path(word, value);
        }
        if let Some(effect) = option.effect {
            self.effect = self.effect.map(|own| own.max(effect));
        }
        let why = || option.why.clone().unwrap_or_default();
        level.flags.push(Flag {
            spelled: spelled.to_string(),
            names: option.names.clone(),
            value,
            effect: option.effect.map(|effect| (effect, why())),
        });
    }

    /// An option that a known program is not known to have could do anything the program can.
    fn unknown_effect(&mut self, knowledge: Option<&Command>) {
        if knowledge.is_some() {
            self.effect = self.effect.map(|own| own.max(Effect::Runs));
        }
    }

    fn operand(
        &mut self,
        level: &mut Level,
        word: &str,
        knowledge: Option<&Command>,
        options_end: bool,
    ) {
        let kinds = knowledge.map(|command| command.operands.as_slice()).unwrap_or_default();
        if let Some(kind) = kinds.get(level.operands.len()).or(kinds.last()) {
            self.paths_of(word::Place::of(options_end), *kind, word);
        }
        level.operands.push(word.to_string());
    }

    fn path(&mut self, kind: Word, text: &str) {
        self.paths_of(word::Place::Option, kind, text);
    }

    fn paths_of(&mut self, place: word::Place, kind: Word, text: &str) {
        match word::paths(place, kind, text) {
            Some(paths) => {
                let folder = self.folder.clone();
                self.paths.extend(paths.into_iter().map(|used| used.within(folder.as_deref())));
            }
            None => self.unclear = Some(text.to_string()),
        }
        if kind == Word::Folder {
            let outer = self.folder.take();
            self.folder = Some(word::joined(outer.as_deref(), text));
        }
    }
}

/// `--no-x`: known to do nothing of its own.
fn taken_back(spelled: &str) -> Flag {
    Flag {
        spelled: spelled.to_string(),
        names: alloc::vec![spelled.to_string()],
        value: None,
        effect: None,
    }
}

fn unknown(spelled: &str, value: Option<&str>) -> Flag {
    Flag {
        spelled: spelled.to_string(),
        names: Vec::new(),
        value: value.map(ToString::to_string),
        effect: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::known;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(String::from).collect()
    }

    fn read(line: &str) -> Reading {
        let argv = argv(line);
        Reading::of(&argv, known(&argv[0]), true)
    }

    #[test]
    fn paths_are_found_where_the_program_is_known() {
        for (line, paths) in [
            ("cat a b", &["a", "b"][..]),
            ("cat -n -- -x", &["-x"]),
            ("cat -", &[]),
            ("head -n 5 a", &["a"]),
            ("head -n5 a", &["a"]),
            ("head -5 a", &["a"]),
            ("head --lines=5 a", &["a"]),
            ("head --li 5 a", &["a"]),
            ("head -c 5 /etc/passwd", &["/etc/passwd"]),
            ("ls -la --color=auto /etc", &["/etc"]),
            ("ls -I pat x", &["x"]),
            ("git log v1.2.0..HEAD", &["v1.2.0..HEAD", "v1.2.0..HEAD"]),
            ("git -C /other status", &["/other"]),
            ("git -C a status -- b", &["a", "a/b"]),
            ("git diff --no-index /dev/null /etc/shadow", &["/etc/shadow", "/etc/shadow"]),
            ("git log -- docs", &["docs"]),
            ("git log -L1,2:docs/a", &["docs/a"]),
            ("git blame --contents=x -- y", &["x", "y"]),
            ("git merge-base a b", &[]),
            ("git diff --output=../x", &["../x"]),
        ] {
            let reading = read(line);
            let found: Vec<&str> = reading.paths.iter().map(|use_| use_.path.as_str()).collect();
            assert_eq!(found, paths, "{line}");
        }
    }

    #[test]
    fn subcommands_are_found_behind_options() {
        for (line, name) in [
            ("git log", "log"),
            ("git -c a=b push", "push"),
            ("git --git-dir x push", "push"),
            ("git --git-dir=x push origin", "push"),
            ("git --no-pager log", "log"),
        ] {
            let reading = read(line);
            assert_eq!(reading.last().unwrap().name, name, "{line}");
            assert!(!reading.ambiguous, "{line}");
        }
        assert!(read("git --made-up log").ambiguous);
        let unknown = Reading::of(&argv("tool --opt push"), None, true);
        assert!(unknown.ambiguous);
        assert_eq!(unknown.last().unwrap().name, "push");
    }

    #[test]
    fn a_denied_flag_is_found_in_every_spelling() {
        for (line, denied, found) in [
            ("tool --output=x", "--output", true),
            ("tool --outp x", "--output", true),
            ("tool --out-of-tune", "--output", false),
            ("tool -rf", "-f", true),
            ("tool -ofile", "-o", true),
            ("tool -- --output", "--output", true),
            ("git diff --ext-di", "--ext-diff", true),
            ("git log --output x", "--output", true),
            ("git -cx=y log", "-c", true),
            ("head -5 x", "-n", false),
        ] {
            let reading = read(line);
            let got =
                reading.levels.iter().any(|l| l.flags.iter().any(|flag| flag.could_be(denied)));
            assert_eq!(got, found, "{line} {denied}");
        }
    }

    #[test]
    fn effects_add_up() {
        assert_eq!(read("git log --oneline -5").effect, Some(Effect::Reads));
        assert_eq!(read("git log --output=x").effect, Some(Effect::Writes));
        assert_eq!(read("git diff --ext-diff").effect, Some(Effect::Runs));
        assert_eq!(read("git made-up").effect, Some(Effect::Network));
        assert_eq!(read("cat --made-up x").effect, Some(Effect::Runs));
        assert_eq!(read("tool x").effect, None);
    }
}
