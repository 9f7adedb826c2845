//! The files from which programs of the host take orders: the table of them as code, and its page.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::TaskResult;
use crate::docs::markdown;
use crate::repository::Repository;

/// The table that people edit.
const TABLE: &str = "policies/control-files.toml";
/// How many directories beneath a place are searched for links where its entry says nothing.
const LEVELS: u8 = 4;
/// Variables of the XDG base directories, each with what it stands in for.
const BASES: [(&str, &str); 6] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_CONFIG_DIRS", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_DATA_DIRS", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_BIN_HOME", ".local/bin"),
];
/// Where the configuration lies that is the same for all users.
const SYSTEM_CONFIG: &str = "/etc/xdg";

const ABOUT: &str = "Files and directories from which programs of the host take orders, by program. \
`tree` names are protected in any directory of a workspace (rule `no-host-automation`), but for those of build servers in installed packages; those under `ask` \
are asked about before they are applied (`instructions-for-programs`). Those under `home` and `system`, and \
what variables name, lie outside of most workspaces: they are looked for on this machine, links, hard links and \
bind mounts are followed into the workspace, and what they lead to is protected there, whatever it is called \
(`no-host-configuration`). What lies in the workspace where the shell looks for programs (`PATH`), and what a \
hidden name of the home directory leads to that is not listed here, is asked about \
(`programs-on-the-path`, `unlisted-configuration`).";

const HARMLESS: &str = "\n## New hidden names that nobody is asked about\n\nA hidden name that is new at the \
root of a workspace is asked about before it is applied (`new-hidden-names`), unless it is one of these.\n\n";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    program: Vec<Program>,
    #[serde(default)]
    harmless: Vec<Harmless>,
}

/// A program, or several that share a reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    name: String,
    kind: String,
    why: String,
    source: String,
    #[serde(default)]
    tree: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    #[serde(default)]
    home: Vec<String>,
    #[serde(default)]
    system: Vec<String>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    #[serde(default)]
    commands: Vec<String>,
    #[serde(rename = "by")]
    _by: Option<String>,
    levels: Option<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Harmless {
    why: String,
    names: Vec<String>,
}

fn read(house: &Repository) -> TaskResult<Table> {
    let text = house.tree.text(TABLE).unwrap_or_default();
    let table: Table = toml::from_str(text).map_err(|error| format!("{TABLE}: {error}"))?;
    for Program { name, home, variables, .. } in &table.program {
        let lost =
            variables.values().find(|base| !home.iter().any(|text| below(text, base).is_some()));
        if let Some(base) = lost {
            return Err(format!(
                "{TABLE}: `{name}` has a variable for `{base}`, and nothing there"
            ));
        }
    }
    Ok(table)
}

/// The page.
pub(super) fn page(house: &Repository) -> TaskResult<String> {
    let table = read(house)?;
    let mut text = markdown::head("Files that programs of the host obey", ABOUT);
    let mut kinds: Vec<&str> = Vec::new();
    for program in &table.program {
        if !kinds.contains(&program.kind.as_str()) {
            kinds.push(&program.kind);
        }
    }
    for kind in kinds {
        text.push_str(&format!("\n## {kind}\n\n"));
        let rows = table.program.iter().filter(|program| program.kind == kind).map(row);
        let columns = ["program", "why", "tree", "ask", "home, system", "variables", "source"];
        text.push_str(&markdown::table(&columns, rows));
    }
    text.push_str(HARMLESS);
    let rows =
        table.harmless.iter().map(|harmless| vec![names(&harmless.names), harmless.why.clone()]);
    text.push_str(&markdown::table(&["names", "why"], rows));
    Ok(text)
}

fn row(program: &Program) -> Vec<String> {
    let home = program.home.iter().map(|home| format!("~/{home}"));
    let outside: Vec<String> = home.chain(program.system.iter().cloned()).collect();
    let variables: Vec<String> =
        program.variables.keys().chain(&program.commands).cloned().collect();
    vec![
        program.name.clone(),
        program.why.clone(),
        names(&program.tree),
        names(&program.ask),
        names(&outside),
        names(&variables),
        program.source.clone(),
    ]
}

fn names(all: &[String]) -> String {
    all.iter().map(|text| markdown::code(text)).collect::<Vec<_>>().join(", ")
}

const HEAD: &str = "\
//! Files from which programs of the host take orders. Made by `cargo xtask docs` from
//! `policies/control-files.toml`; edit that, not this.

/// Where something of the host is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The home directory.
    Home,
    /// The root of the system.
    Root,
    /// What a variable of the environment names: a file or a directory, or several with colons between.
    Variable(&'static str),
}

/// A place that a program of the host takes orders from.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Where it is looked for.
    pub from: From,
    /// Its path from there; empty where a variable names it.
    pub path: &'static str,
    /// The name that rules know it by.
    pub name: &'static str,
    /// How many directories beneath are searched for links; none for a file.
    pub levels: u8,
}
";

/// The kind of programs that look at the root of a repository alone.
const SERVERS: &str = "build server";
/// The directories of installed packages.
const PACKAGES: [&str; 3] = ["node_modules", "vendor", "site-packages"];

/// The table as code.
pub(super) fn code(house: &Repository) -> TaskResult<String> {
    let table = read(house)?;
    let everywhere = |text: &String| format!("**/{text}");
    let tree: Vec<String> =
        table.program.iter().flat_map(|one| &one.tree).map(everywhere).collect();
    let servers = table.program.iter().filter(|one| one.kind == SERVERS);
    let servers: Vec<&String> = servers.flat_map(|one| &one.tree).collect();
    let packaged = PACKAGES
        .iter()
        .flat_map(|directory| servers.iter().map(move |text| format!("**/{directory}/**/{text}")));
    let packaged: Vec<String> = packaged.collect();
    let ask: Vec<String> = table.program.iter().flat_map(|one| &one.ask).map(everywhere).collect();
    let mut text = String::from(HEAD);
    list(&mut text, "TREE", "Protected in any directory of a workspace.", &tree);
    list(
        &mut text,
        "PACKAGED",
        "Brought along by installed packages, where no build server looks.",
        &packaged,
    );
    list(&mut text, "ASK", "Asked about in any directory of a workspace.", &ask);
    let harmless: Vec<String> =
        table.harmless.iter().flat_map(|harmless| harmless.names.clone()).collect();
    list(&mut text, "HARMLESS", "Hidden names that may be new at the root.", &harmless);
    let commands: Vec<String> =
        table.program.iter().flat_map(|program| program.commands.clone()).collect();
    list(&mut text, "COMMANDS", "Variables whose value is a command line.", &commands);
    text.push_str("\n/// What is looked for outside of the workspace.\n#[rustfmt::skip]\n");
    text.push_str("pub static PLACES: &[Place] = &[\n");
    table.program.iter().flat_map(places).for_each(|place| text.push_str(&place));
    text.push_str("];\n");
    Ok(text)
}

fn list(text: &mut String, name: &str, about: &str, items: &[String]) {
    text.push_str(&format!("\n/// {about}\n#[rustfmt::skip]\npub static {name}: &[&str] = &[\n"));
    items.iter().for_each(|item| text.push_str(&format!("    {item:?},\n")));
    text.push_str("];\n");
}

/// The places of a program, a line each.
fn places(program: &Program) -> Vec<String> {
    let levels = program.levels.unwrap_or(LEVELS);
    let line = |from: String, path: &str, name: &str, folder: bool| {
        let levels = if folder { levels } else { 0 };
        format!("    Place {{ from: {from}, path: {path:?}, name: {name:?}, levels: {levels} }},\n")
    };
    let mut all = Vec::new();
    for home in &program.home {
        let (path, folder) = plain(home);
        let name = format!("~/{path}");
        all.push(line("From::Home".into(), path, &name, folder));
        let item =
            program.variables.iter().map(|(variable, base)| (variable.as_str(), base.as_str()));
        for (variable, base) in item.chain(BASES) {
            if let Some(rest) = below(path, base) {
                all.push(line(format!("From::Variable({variable:?})"), rest, &name, folder));
            }
        }
        if let Some(rest) = path.strip_prefix(".config/") {
            all.push(line("From::Root".into(), &format!("{SYSTEM_CONFIG}/{rest}"), &name, folder));
        }
    }
    for system in &program.system {
        let (path, folder) = plain(system);
        all.push(line("From::Root".into(), path, &format!("file:{path}"), folder));
    }
    all
}

/// A path without what says that all beneath it is meant, and whether that is said.
fn plain(pattern: &str) -> (&str, bool) {
    pattern.strip_suffix("/**").map_or((pattern, false), |folder| (folder, true))
}

/// A path beneath another one of the home directory; empty for that itself.
fn below<'p>(path: &'p str, base: &str) -> Option<&'p str> {
    let path = plain(path).0;
    match path.strip_prefix(base) {
        _ if base == "." => Some(path),
        Some("") => Some(""),
        Some(rest) => rest.strip_prefix('/'),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_from_home_and_from_each_variable() {
        let table = "program = [{ name = 'n', kind = 'k', why = 'w', source = 's', home = ['.config/x/**', '.y'], \
                     variables = { X_DIR = '.config/x', Y_FILE = '.y' } }]";
        let table: Table = toml::from_str(table).unwrap();
        let all = places(&table.program[0]).join("");
        for line in [
            r#"{ from: From::Home, path: ".config/x", name: "~/.config/x", levels: 4 }"#,
            r#"{ from: From::Variable("X_DIR"), path: "", name: "~/.config/x", levels: 4 }"#,
            r#"{ from: From::Variable("XDG_CONFIG_HOME"), path: "x", name: "~/.config/x", levels: 4 }"#,
            r#"{ from: From::Root, path: "/etc/xdg/x", name: "~/.config/x", levels: 4 }"#,
            r#"{ from: From::Variable("Y_FILE"), path: "", name: "~/.y", levels: 0 }"#,
        ] {
            assert!(all.contains(line), "{line} in {all}");
        }
        assert_eq!(all.lines().count(), 7, "{all}");
    }

    #[test]
    fn a_path_lies_below_a_base_as_a_whole() {
        for (path, base, rest) in [
            (".config/git/**", ".config", Some("git")),
            (".configure", ".config", None),
            (".zshrc", ".", Some(".zshrc")),
            (".zshrc", ".zshrc", Some("")),
        ] {
            assert_eq!(below(path, base), rest, "{path} {base}");
        }
    }
}
