//! `capsule init`: a starter policy and editor schemas, in `.capsule/`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use capsule_core::code::Code;
use capsule_core::escape;
use capsule_core::outcome::Problem;
use capsule_runtime::plan::schema;
use capsule_runtime::{CATALOGUE, policy_schema};
use serde_json::json;

use crate::failure::Failure;
use crate::screen::{GOOD, HINT, Screen};
use crate::surroundings::Surroundings;

/// The starter policy: reading is free, writing is bounded to one folder, few commands.
const STARTER: &str = include_str!("../../../../policies/starter.yaml");

pub(crate) fn run(around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let folder = around.beginning().join(".capsule");
    let wrong = |error: std::io::Error, path: &Path| {
        Problem::new(Code::FileSystem, format!("`{}`: {error}", path.display()))
    };
    let schemas = folder.join("schema");
    fs::create_dir_all(&schemas).map_err(|error| wrong(error, &schemas))?;
    let mut wrote = Vec::new();
    for (name, schema) in
        [("plan.v1.json", schema(CATALOGUE)), ("policy.v1.json", policy_schema(CATALOGUE))]
    {
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        let path = schemas.join(name);
        fs::write(&path, text).map_err(|error| wrong(error, &path))?;
        wrote.push(path);
    }
    let policy = folder.join("policy.yaml");
    // A policy that is there is somebody's work.
    let is_new = match fs::OpenOptions::new().write(true).create_new(true).open(&policy) {
        Ok(mut file) => {
            file.write_all(STARTER.as_bytes()).map_err(|error| wrong(error, &policy))?;
            true
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(wrong(error, &policy).into()),
    };
    tell(&policy, &wrote, is_new, around, screen)
}

/// Says what was written, and what to do with it.
fn tell(
    policy: &Path,
    schemas: &[PathBuf],
    is_new: bool,
    around: &Surroundings,
    screen: &Screen,
) -> Result<u8, Failure> {
    if screen.json {
        let all: Vec<&Path> = schemas.iter().map(PathBuf::as_path).chain([policy]).collect();
        let (wrote, kept) = all.split_at(schemas.len() + usize::from(is_new));
        screen.say_json(&json!({ "wrote": wrote, "kept": kept }))?;
        return Ok(0);
    }
    let shown = |path: &Path| {
        let path = path.strip_prefix(&around.cwd).unwrap_or(path).display().to_string();
        escape::line(&path).into_owned()
    };
    for schema in schemas {
        screen.say(&format!("{GOOD}✔ wrote{GOOD:#} {}", shown(schema)))?;
    }
    let policy = shown(policy);
    screen.say(&match is_new {
        true => format!("{GOOD}✔ wrote{GOOD:#} {policy}"),
        false => format!("· kept  {policy}, which was there already"),
    })?;
    screen.complain(&format!("{HINT}next{HINT:#}: capsule policy check --policy {policy}"));
    screen.complain(&format!("      capsule exec --policy {policy} -- ls"));
    Ok(0)
}
