//! Modules of a crate do not import each other in a circle (house, split by subject). What a module only hands
//! on (`pub use`) and what its tests import does not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::Repository;
use crate::rust::Source;
use crate::tidy::TidyFinding;

/// Which modules of a crate each module imports from, by their paths.
type Imports = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check(house: &Repository) -> Vec<TidyFinding> {
    let shipped = house.sources.iter().filter(|source| !source.is_for_development());
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in shipped {
        let inside = source.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
        if let Some((name, _)) = inside {
            crates.entry(name).or_default().push(source);
        }
    }
    crates.into_iter().filter_map(|(name, sources)| check_crate(name, &sources)).collect()
}

fn check_crate(name: &str, sources: &[&Source]) -> Option<TidyFinding> {
    let cycles = find_cycles(&read_imports(name, sources));
    let shown: Vec<String> = cycles.iter().map(|cycle| cycle.join(", ")).collect();
    (!cycles.is_empty()).then(|| {
        let what = format!(
            "modules import each other; import from the module that declares an item, or move it: {}",
            shown.join(" · ")
        );
        TidyFinding::at(format!("crates/{name}"), what)
    })
}

fn read_imports(name: &str, sources: &[&Source]) -> Imports {
    let module = |source: &Source| -> String {
        let full = source.module();
        let inside = full.strip_prefix(name).unwrap_or(&full);
        let inside = inside.strip_prefix("::").unwrap_or(inside);
        if inside == "main" { String::new() } else { inside.to_owned() }
    };
    let modules: BTreeSet<String> = sources.iter().map(|source| module(source)).collect();
    let imports = |source: &Source| -> BTreeSet<String> {
        let own = module(source);
        let paths = source.items.imports.iter().filter(|(_, line)| !source.is_test(*line));
        let found = paths.filter_map(|(path, _)| declaring_module(&modules, &own, path));
        found.filter(|found| *found != own).collect()
    };
    sources.iter().map(|source| (module(source), imports(source))).collect()
}

/// The module whose file a path leads to.
fn declaring_module(modules: &BTreeSet<String>, own: &str, path: &[String]) -> Option<String> {
    let mut parts: Vec<&str> = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => own.split("::").filter(|part| !part.is_empty()).collect(),
        first => {
            let child = if own.is_empty() { first.to_owned() } else { format!("{own}::{first}") };
            return modules.contains(&child).then_some(child);
        }
    };
    for part in path {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    while !modules.contains(&parts.join("::")) {
        parts.pop()?;
    }
    Some(parts.join("::"))
}

/// The groups of modules that reach each other.
fn find_cycles(imports: &Imports) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|module| (module, reach(imports, module))).collect();
    let reaches =
        |from: &String, to: &String| reached.get(from).is_some_and(|all| all.contains(to));
    let mut groups: BTreeSet<Vec<String>> = BTreeSet::new();
    for module in imports.keys() {
        let mutual = |other: &&String| reaches(module, other) && reaches(other, module);
        let shown = |name: &String| if name.is_empty() { "lib".into() } else { name.clone() };
        let group: Vec<String> = imports.keys().filter(mutual).map(shown).collect();
        if !group.is_empty() {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

/// The modules that a module imports from, and those that these import from, and so on.
fn reach<'i>(imports: &'i Imports, from: &String) -> BTreeSet<&'i String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&String> = imports.get(from).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(imports.get(module).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> usize {
        check(&Repository::from_files(files)).len()
    }

    #[test]
    fn modules_that_import_each_other_are_found() {
        let a = ("crates/x/src/a.rs", "use crate::b::{B, inner::C};");
        assert_eq!(found(&[a, ("crates/x/src/b.rs", "fn f() { super::a::run(); }")]), 1);
        let through = ("crates/x/src/b/inner.rs", "use crate::c::D;");
        let back = ("crates/x/src/c.rs", "type T = crate::a::A;");
        assert_eq!(found(&[a, ("crates/x/src/b/mod.rs", ""), through, back]), 1);
        let child = ("crates/x/src/a/c.rs", "use super::A;");
        for text in ["fn f() { c::run(); }", "struct S(c::T);", "use c::T;"] {
            let parent = format!("mod c; {text}");
            assert_eq!(found(&[("crates/x/src/a/mod.rs", &parent), child]), 1, "{text}");
        }
    }

    #[test]
    fn what_is_handed_on_and_what_tests_import_is_no_circle() {
        let parent = ("crates/x/src/a/mod.rs", "mod b; pub use b::B; pub(crate) use self::b::C;");
        let child = ("crates/x/src/a/b.rs", "use super::A;");
        assert_eq!(found(&[parent, child]), 0);
        let tests = "use crate::b::B;\n#[cfg(test)]\nmod tests { use crate::c::C; }";
        let back = ("crates/x/src/c.rs", "use crate::a::A;");
        assert_eq!(found(&[("crates/x/src/a.rs", tests), ("crates/x/src/b.rs", ""), back]), 0);
    }
}
