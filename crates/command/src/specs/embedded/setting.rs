//! `NAME=VALUE` among the words of a build: some names say which command is run, and a value goes into the
//! lines that a shell reads.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::specs::path_use::PathUse;
use crate::specs::{CommandLine, Effect, Effects, ParsedArgv, base_name, matches_wildcard};
use crate::variables::{VariableKind, variable_kind_with_value};

/// Names by which builds call a command; `*` stands for any characters.
const COMMANDS: &str = "CC CXX CPP LD AR AS FC F77 NM RANLIB STRIP OBJCOPY OBJDUMP HOSTCC HOSTCXX HOSTLD SHELL .SHELLFLAGS MAKE RM CP MV \
    LN MKDIR INSTALL LEX YACC FLEX BISON AWK SED GREP TAR CURL WGET SSH SCP GIT PYTHON PYTHON2 PYTHON3 PERL RUBY NODE NPM NPX \
    YARN PNPM PIP PIP3 PYTEST GO GOFMT CARGO RUSTC JAVA JAVAC DOCKER PODMAN CMAKE CTEST NINJA MESON PKG_CONFIG EDITOR PAGER \
    BROWSER SUDO CMD COMMAND RUNNER RUN EXEC *_CMD *_COMMAND *_RUNNER *_LAUNCHER *_WRAPPER *_TOOL *_PROGRAM *_EXEC *_EXE \
    *_COMPILER *_SHELL *_EDITOR *_HOOK *CMD";

/// The effects that a target or a setting of a build adds.
pub(super) fn effects(text: &str) -> Vec<(Effect, &'static str)> {
    // A runner puts a word of its command line into the lines that a shell reads.
    let setting = text.split_once('=');
    let is_told = |(name, value): (&str, &str)| name.ends_with('!') || value.contains(['(', ')']);
    if text.contains(['$', '`', ';', '|', '&', '<', '>', '\n']) || setting.is_some_and(is_told) {
        return alloc::vec![(Effect::Code, "puts a text into what a shell runs")];
    }
    let Some((name, value)) = setting else { return command_of_text("", text) };
    let name = name.trim_end_matches([':', '?', '+', ' ']);
    let mut found = command_of_text(name, value);
    if COMMANDS.split_ascii_whitespace().any(|text| matches_wildcard(text, name)) {
        found.extend(command(name, value));
    } else if variable_kind_with_value(name, value) != VariableKind::Plain {
        found.push((Effect::Code, "sets a variable that decides what is run"));
    }
    found
}

/// The effects of a definition that no shell reads by itself: `cmake -DX=..`.
pub(super) fn defined(text: &str) -> Vec<(Effect, &'static str)> {
    text.split_once('=').map(|(name, value)| command_of_text(name, value)).unwrap_or_default()
}

/// The paths that a command line names which stands in a target or in the value of a setting.
pub(super) fn paths(text: &str) -> Vec<PathUse> {
    let value = text.split_once('=').map_or(text, |(_, value)| value);
    let Some(words) = words_of_command(value) else { return Vec::new() };
    let line = CommandLine::parse(&words, None, false);
    let lines = line.with_nested();
    let named =
        lines.iter().flat_map(|line| line.parsed_argvs()).flat_map(|argv| argv.paths.clone());
    // What a compiler is told by its options lies outside of the workspace on every machine.
    named.filter(|named| !named.is_option_value).collect()
}

/// The program of a command line that stands so.
pub(super) fn program(text: &str) -> Option<String> {
    let value = text.split_once('=').map_or(text, |(_, value)| value);
    Some(base_name(words_of_command(value)?.first()?).to_string())
}

/// The words of a text that reads as a command line: at least two, the first of which is a program that is
/// known. What a makefile writes before a command is left out, and so are variables.
fn words_of_command(text: &str) -> Option<Vec<String>> {
    let plain = |word: &str| word.replace(['\'', '"', '\\'], "");
    let is_variable = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let text = text.trim_start_matches(['@', '-', '+', ' ', '\t', '\'', '"']);
    // A list of CMake becomes the words of a command.
    let words = text.split([' ', '\t', '\n', '\r', ';']).filter(|part| !part.is_empty());
    let words: Vec<String> = words.map(plain).skip_while(is_variable).collect();
    let is_known =
        CommandLine::parse(words.get(..1)?, None, false).parsed_argvs().any(ParsedArgv::known);
    (words.len() > 1 && is_known).then_some(words)
}

/// The effects of a text that reads as a command line, beyond those of every build. A text of one word may be
/// the name of anything, and is judged where the name of its setting says that it is a command.
fn command_of_text(name: &str, text: &str) -> Vec<(Effect, &'static str)> {
    let Some(words) = words_of_command(text) else { return Vec::new() };
    let line = CommandLine::parse(&words, None, false);
    let does = line.effects();
    // `RM=rm -f` deletes nothing before the makefile says what.
    let first = words.first().map(String::as_str).unwrap_or_default();
    let is_whole = !first.eq_ignore_ascii_case(name)
        || line
            .parsed_argvs()
            .any(|argv| argv.last_level().is_some_and(|level| !level.operands.is_empty()));
    let told = STRICTER.iter().filter(|effect| does.contains(**effect));
    told.filter(|effect| **effect != Effect::Deletes || is_whole)
        .map(|effect| (*effect, "holds a command with this effect"))
        .collect()
}

/// Effects that no build has by itself.
const STRICTER: [Effect; 11] = [
    Effect::Deletes,
    Effect::Starts,
    Effect::Code,
    Effect::Network,
    Effect::Publishes,
    Effect::Sends,
    Effect::System,
    Effect::Destroys,
    Effect::Secrets,
    Effect::Shell,
    Effect::Plumbing,
];

/// What a build does of its own, and what else a command could add to it.
const OF_A_BUILD: Effects = Effects::of(Effect::Reads)
    .with(Effect::Opens)
    .with(Effect::Writes)
    .with(Effect::Deletes)
    .with(Effect::Runs);

/// What is started in place of a command: a known program by its plain name does what it does. One without a
/// word of its own may get any from the makefile, and is told by its name where that is the setting's.
fn command(name: &str, value: &str) -> Vec<(Effect, &'static str)> {
    let words: Vec<String> = value.split_ascii_whitespace().map(ToString::to_string).collect();
    let Some(first) = words.first() else { return Vec::new() };
    let line = CommandLine::parse(&words, None, false);
    let is_known = base_name(first) == first && line.parsed_argvs().any(ParsedArgv::known);
    let unknown = || alloc::vec![(Effect::Code, "names a command of which nothing is known")];
    if !is_known {
        return unknown();
    }
    let does = line.effects();
    if does.intersects(Effects::of(Effect::Shell)) {
        return alloc::vec![(Effect::Shell, "gives text to a shell")];
    }
    if words.len() == 1 {
        let odd = [Effect::Network, Effect::Publishes, Effect::System, Effect::Destroys];
        let is_odd = odd.into_iter().any(|effect| does.contains(effect))
            && !first.eq_ignore_ascii_case(name);
        return if is_odd { unknown() } else { Vec::new() };
    }
    if does.intersects(Effects::of(Effect::Code).with(Effect::Unknown)) {
        return unknown();
    }
    let more = Effect::ALL
        .into_iter()
        .filter(|effect| does.contains(*effect) && !OF_A_BUILD.contains(*effect));
    more.map(|effect| (effect, "names a command that does so")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_says_how_is_no_command() {
        for text in [
            "all",
            "V=1",
            "VERBOSE=1",
            "CC=gcc",
            "CC=clang",
            "CC=gcc -O2",
            "CFLAGS=-O2 -g",
            "PREFIX=/usr/local",
            "DESTDIR=out",
            "PYTHON=python3",
            "ARGS=-k foo",
            "TESTS=unit",
            "ARCH=arm",
            "CROSS_COMPILE=arm-none-eabi-",
            "RM=rm -f",
            "CURL=curl",
            "GIT=git",
            "INSTALL=install -m 755",
            "TEST_RUNNER=pytest -q",
            "CC=ccache gcc",
            "BUILD_TYPE:=Release",
            "TAGS+=x",
            "TEST=tests/a.py",
            "ARGS=--verbose x",
            "NAME=git",
            "TARGET=install",
            "CMAKE_BUILD_TYPE=Release",
            "TITLE=the tests of git push",
            "RM=rm -rf",
            "CXX=ccache g++ -std=c++20",
            "CHECK=ls -la src",
            "",
        ] {
            assert_eq!(effects(text), [], "{text}");
        }
    }

    #[test]
    fn a_command_in_a_setting_names_its_paths() {
        let named =
            |text| -> Vec<String> { paths(text).into_iter().map(|path| path.path).collect() };
        assert_eq!(named("VAR=rm -rf /etc/x"), ["/etc/x"]);
        assert_eq!(named("x=cp a ../b"), ["a", "../b"]);
        assert_eq!(named("CC=gcc -O2 -I/usr/include"), Vec::<String>::new());
        assert_eq!(named("PREFIX=/usr"), Vec::<String>::new());
        assert_eq!(program("x=/usr/bin/git push").as_deref(), Some("git"));
        assert_eq!(program("TARGET=install"), None);
    }

    #[test]
    fn a_definition_is_judged_where_it_reads_as_a_command() {
        for text in
            ["X=a;b", "LIBS=clang;lld", "PYTHON_EXECUTABLE=python3", "P=$x/a", "CC=/opt/cc", "NAME"]
        {
            assert_eq!(defined(text), [], "{text}");
        }
        for (text, effect) in [
            ("CMD=git push", Effect::Publishes),
            ("CMD:STRING=git push", Effect::Publishes),
            ("CMD=git;push", Effect::Publishes),
            ("CMAKE_CXX_COMPILER_LAUNCHER=sh -c id", Effect::Shell),
            ("CMD=rm -rf src", Effect::Deletes),
        ] {
            assert!(defined(text).iter().any(|(own, _)| *own == effect), "{text}");
        }
    }

    #[test]
    fn what_names_a_command_is_told() {
        for (text, effect) in [
            ("CC=sh -c id", Effect::Shell),
            ("SHELL=/bin/bash", Effect::Code),
            ("SHELL=bash", Effect::Shell),
            ("CC=./x", Effect::Code),
            ("CC=git push", Effect::Publishes),
            ("RUN=npm publish", Effect::Publishes),
            ("CMD=dropdb app", Effect::Destroys),
            ("CC=curl", Effect::Code),
            ("CC=curl -O x", Effect::Network),
            ("CC=/opt/cc", Effect::Code),
            ("PYTHON=bash x", Effect::Shell),
            ("PYTHON=python -c x", Effect::Code),
            ("TEST_RUNNER=evil", Effect::Code),
            ("X!=touch made", Effect::Code),
            ("X=$(shell id)", Effect::Code),
            ("X=`id`", Effect::Code),
            ("ARGS=a; id", Effect::Code),
            ("$(shell id)", Effect::Code),
            ("a; id", Effect::Code),
            ("LD_PRELOAD=./x.so", Effect::Code),
            ("MAKEFLAGS=--eval=x", Effect::Code),
            (".SHELLFLAGS=-c x;", Effect::Code),
            // Under any name.
            ("VAR=git push", Effect::Publishes),
            ("DEPLOY=git push", Effect::Publishes),
            ("x := git push", Effect::Publishes),
            ("VAR=@git push", Effect::Publishes),
            ("VAR='git' push", Effect::Publishes),
            ("VAR=/usr/bin/git push", Effect::Publishes),
            ("VAR=A=b git push", Effect::Publishes),
            ("VAR=env A=b git push", Effect::Publishes),
            ("VAR=sh -c id", Effect::Shell),
            ("VAR=sudo id", Effect::System),
            ("TOOL=sudo id", Effect::System),
            ("VAR=curl e", Effect::Network),
            ("VAR=python3 -c x", Effect::Code),
            ("VAR=dropdb app", Effect::Destroys),
            ("CC=rm -rf src", Effect::Deletes),
            ("RM=rm -rf src", Effect::Deletes),
            ("ANY=rm -rf", Effect::Deletes),
            ("VAR=git clean -fd", Effect::Deletes),
            ("git push", Effect::Publishes),
        ] {
            assert!(
                effects(text).iter().any(|(own, _)| *own == effect),
                "{text}: {:?}",
                effects(text)
            );
        }
    }
}
