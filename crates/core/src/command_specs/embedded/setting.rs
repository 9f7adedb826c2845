//! `NAME=VALUE` among the words of a build: some names say which command is run, and a value goes into the
//! lines that a shell reads.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::command_specs::{CommandLine, Effect, Effects, ParsedArgv, base_name, matches_wildcard};
use crate::policy::variables::{VariableKind, variable_kind_with_value};

/// Names by which builds call a command; `*` stands for any characters.
const COMMANDS: &str = "CC CXX CPP LD AR AS FC F77 NM RANLIB STRIP OBJCOPY OBJDUMP HOSTCC HOSTCXX HOSTLD SHELL .SHELLFLAGS MAKE RM CP MV \
    LN MKDIR INSTALL LEX YACC FLEX BISON AWK SED GREP TAR CURL WGET SSH SCP GIT PYTHON PYTHON2 PYTHON3 PERL RUBY NODE NPM NPX \
    YARN PNPM PIP PIP3 PYTEST GO GOFMT CARGO RUSTC JAVA JAVAC DOCKER PODMAN CMAKE CTEST NINJA MESON PKG_CONFIG EDITOR PAGER \
    BROWSER SUDO CMD COMMAND RUNNER RUN EXEC *_CMD *_COMMAND *_RUNNER *_LAUNCHER *_WRAPPER *_TOOL *_PROGRAM *_EXEC *_EXE \
    *_COMPILER *_SHELL *_EDITOR *_HOOK *CMD";

/// What a word adds that is a target or a setting.
pub(super) fn effects(text: &str) -> Vec<(Effect, &'static str)> {
    // A runner puts a word of its command line into the lines that a shell reads.
    let setting = text.split_once('=');
    let is_told = |(name, value): (&str, &str)| name.ends_with('!') || value.contains(['(', ')']);
    if text.contains(['$', '`', ';', '|', '&', '<', '>', '\n']) || setting.is_some_and(is_told) {
        return alloc::vec![(Effect::Code, "puts a text into what a shell runs")];
    }
    let Some((name, value)) = setting else { return Vec::new() };
    let name = name.trim_end_matches([':', '?', '+', ' ']);
    if COMMANDS.split_ascii_whitespace().any(|own| matches_wildcard(own, name)) {
        return command(name, value);
    }
    match variable_kind_with_value(name, value) {
        VariableKind::Plain => Vec::new(),
        _ => alloc::vec![(Effect::Code, "sets a variable that decides what is run")],
    }
}

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
        let is_odd =
            odd.into_iter().any(|own| does.contains(own)) && !first.eq_ignore_ascii_case(name);
        return if is_odd { unknown() } else { Vec::new() };
    }
    if does.intersects(Effects::of(Effect::Code).with(Effect::Unknown)) {
        return unknown();
    }
    let more =
        Effect::ALL.into_iter().filter(|own| does.contains(*own) && !OF_A_BUILD.contains(*own));
    more.map(|own| (own, "names a command that does so")).collect()
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
            "",
        ] {
            assert_eq!(effects(text), [], "{text}");
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
        ] {
            assert!(
                effects(text).iter().any(|(own, _)| *own == effect),
                "{text}: {:?}",
                effects(text)
            );
        }
    }
}
