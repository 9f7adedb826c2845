//! `capsule init`: a starter policy and editor schemas, in `.capsule/`.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use capsule_core::code::Code;
use capsule_core::outcome::Problem;
use capsule_runtime::CATALOGUE;
use capsule_runtime::plan::schema;

use crate::failure::Failure;
use crate::screen::{GOOD, HINT, Screen};
use crate::surroundings::Surroundings;

/// The starter policy: reading is free, writing is bounded to one folder, few commands.
const STARTER: &str = include_str!("../../../../policies/starter.yaml");

pub(crate) fn run(around: &Surroundings, screen: &Screen) -> Result<u8, Failure> {
    let folder = around.cwd.join(".capsule");
    let wrong = |error: std::io::Error, path: &Path| {
        Problem::new(Code::FileSystem, format!("`{}`: {error}", path.display()))
    };
    let schemas = folder.join("schema");
    fs::create_dir_all(&schemas).map_err(|error| wrong(error, &schemas))?;
    let mut text = serde_json::to_string_pretty(&schema(CATALOGUE)).unwrap_or_default();
    text.push('\n');
    let plan_schema = schemas.join("plan.v1.json");
    fs::write(&plan_schema, text).map_err(|error| wrong(error, &plan_schema))?;
    screen.say(&format!("{GOOD}✔ wrote{GOOD:#} .capsule/schema/plan.v1.json"))?;
    let policy = folder.join("policy.yaml");
    // A policy that is there is somebody's work.
    match fs::OpenOptions::new().write(true).create_new(true).open(&policy) {
        Ok(mut file) => {
            file.write_all(STARTER.as_bytes()).map_err(|error| wrong(error, &policy))?;
            screen.say(&format!("{GOOD}✔ wrote{GOOD:#} .capsule/policy.yaml"))?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            screen.say("· kept  .capsule/policy.yaml, which was there already")?;
        }
        Err(error) => return Err(wrong(error, &policy).into()),
    }
    screen.complain(&format!(
        "{HINT}next{HINT:#}: capsule policy check --policy .capsule/policy.yaml"
    ));
    screen.complain("      capsule exec --policy .capsule/policy.yaml -- ls");
    Ok(0)
}
