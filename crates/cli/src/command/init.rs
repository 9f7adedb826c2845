//! `capsule init`: a starter policy and editor schemas, in `.capsule/`, and the key that signs the record.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use capsule_authoring::policy_schema;
use capsule_base::code::Code;
use capsule_base::escape;
use capsule_base::limits::ORIGIN_BYTES;
use capsule_command::argv::show_argv;
use capsule_core::outcome::CodedError;
use capsule_runtime::plan::plan_schema;
use capsule_runtime::{CATALOGUE, FoundToolchain, survey_toolchains};
use capsule_store::{Signer, Verifier, is_key_name};
use serde_json::json;

use crate::args::InitArgs;
use crate::context::CliContext;
use crate::failure::Failure;
use crate::screen::{HINT, SUCCESS, Screen};

/// The starter policy: reading is free, writing is bounded to one folder, few commands.
const STARTER_POLICY: &str = include_str!("../../../../policies/starter.yaml");

pub(crate) fn run(args: &InitArgs, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
    let folder = ctx.start_directory().join(".capsule");
    let preset = args.preset.as_deref().map(|name| preset_policy(name, &ctx.start_directory()));
    refuse_preset(preset.as_deref(), &folder.join("policy.yaml"))?;
    let key = signing_key(args, ctx)?;
    let wrong = |error: std::io::Error, path: &Path| {
        CodedError::new(Code::FileSystem, format!("`{}`: {error}", path.display()))
    };
    let schemas = folder.join("schema");
    fs::create_dir_all(&schemas).map_err(|error| wrong(error, &schemas))?;
    let mut wrote = Vec::new();
    for (name, schema) in
        [("plan.v1.json", plan_schema(CATALOGUE)), ("policy.v1.json", policy_schema(CATALOGUE))]
    {
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        let path = schemas.join(name);
        fs::write(&path, text).map_err(|error| wrong(error, &path))?;
        wrote.push(path);
    }
    let policy = folder.join("policy.yaml");
    // A policy that is there is somebody's work.
    let (is_new, toolchains) =
        match fs::OpenOptions::new().write(true).create_new(true).open(&policy) {
            Ok(mut file) => {
                let toolchains = survey_toolchains(&ctx.home, Some(&ctx.start_directory()));
                let text = preset.unwrap_or_else(|| starter_policy(&toolchains));
                file.write_all(text.as_bytes()).map_err(|error| wrong(error, &policy))?;
                (true, toolchains)
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => (false, Vec::new()),
            Err(error) => return Err(wrong(error, &policy).into()),
        };
    InitResult { schemas: &wrote, policy: (&policy, is_new), key: &key, toolchains: &toolchains }
        .show(ctx, screen)
}

/// Refuses a preset where another policy is there, which is somebody's work.
fn refuse_preset(preset: Option<&str>, policy: &Path) -> Result<(), Failure> {
    let Some(preset) = preset else { return Ok(()) };
    match fs::read(policy) {
        Ok(text) if text != preset.as_bytes() => {
            let shown = escape::line(&policy.display().to_string()).into_owned();
            let message = format!("`--preset` is not used: `{shown}` is there already");
            let hint =
                "put that file away, or leave `--preset` out and write into it what you want";
            Err(CodedError::new(Code::Usage, message).with_suggestion(hint).into())
        }
        // One that cannot be read is met again where it is written.
        _ => Ok(()),
    }
}

/// The words that start Python in a project: that of its virtual environment, if it has one. A policy names no program of
/// the workspace itself.
fn python_program(project: &Path) -> String {
    let mut programs = [".venv/bin/python", "venv/bin/python"].into_iter();
    let found = programs.find(|program| project.join(program).exists());
    found.map_or_else(|| "python3".to_owned(), |program| format!("env, {program}"))
}

/// The policy of a preset: one that this build carries, and for a kind of project its tests.
fn preset_policy(preset: &str, project: &Path) -> String {
    let tests = match preset {
        "python" => {
            let program = python_program(project);
            &format!("[{program}, -m, pytest, -q]\n    filter: {{ args: [-k] }}")
        }
        "node" => "[npm, test]",
        "rust" => "[cargo, test]",
        _ => "",
    };
    let base = if preset == "readonly" { preset } else { "developer" };
    let text = format!(
        "# yaml-language-server: $schema=./schema/policy.v1.json\n\
         # A policy of Capsule. It is `builtin:{base}` and what is written here;\n\
         # `capsule policy explain --policy .capsule/policy.yaml -- COMMAND` says what it decides.\n\
         version: 1\nname: {preset}\nextends: builtin:{base}\n\
         workspace: {{ root: .. }}          # the folder that holds .capsule/\n"
    );
    match tests {
        "" => text,
        tests => format!(
            "{text}\ntools:\n  # The tests of the project, as a tool of their own.\n  test.run:\n    \
             decision: allow\n    command: {tests}\n    examples: {{ allow: [{{}}] }}\n"
        ),
    }
}

/// The starter policy with the toolchains that are there, each to be taken out of a comment: programs of
/// theirs run only where its author wants that.
fn starter_policy(found: &[FoundToolchain]) -> String {
    let names: Vec<&str> = shown_toolchains(found).map(|found| found.name).collect();
    if names.is_empty() {
        return STARTER_POLICY.to_owned();
    }
    let lines = format!(
        "# Toolchains and package caches that were found. Without the `#`, commands see them read-only.\n\
         # toolchains: [{}]\n\ntools:\n",
        names.join(", ")
    );
    STARTER_POLICY.replacen("tools:\n", &lines, 1)
}

/// The toolchains of which something can be shown.
fn shown_toolchains(found: &[FoundToolchain]) -> impl Iterator<Item = &FoundToolchain> {
    found.iter().filter(|found| found.shown.is_ok())
}

/// The key beside the store, which is made where there is none, and whether it was made. It is never made
/// anew: what it signed would be somebody else's.
fn signing_key(args: &InitArgs, ctx: &CliContext) -> Result<(Verifier, bool), Failure> {
    let origin = args.origin.as_deref();
    if let Some(name) = origin.filter(|name| !is_key_name(name)) {
        let message = format!("`{}` is no name for a record", escape::line(name));
        let hint = format!("up to {ORIGIN_BYTES} letters, digits, `.`, `-`, `_` and `/`");
        return Err(CodedError::new(Code::Usage, message).with_suggestion(hint).into());
    }
    let (signer, is_new) = Signer::take_or_make(&ctx.store, origin)?;
    let verifier = signer.verifier().clone();
    if origin.is_some_and(|name| name != verifier.name()) {
        let message = format!("the record has a key, by which it is called `{}`", verifier.name());
        let hint = "leave `--origin` out, or put the key away that lies beside the store";
        return Err(CodedError::new(Code::Usage, message).with_suggestion(hint).into());
    }
    Ok((verifier, is_new))
}

/// What there is now that was not there before, and what was left as it was.
struct InitResult<'m> {
    schemas: &'m [PathBuf],
    policy: (&'m Path, bool),
    key: &'m (Verifier, bool),
    /// The toolchains that were found, where the policy is new.
    toolchains: &'m [FoundToolchain],
}

impl InitResult<'_> {
    /// Says so, and what to do with it.
    fn show(&self, ctx: &CliContext, screen: &Screen) -> Result<u8, Failure> {
        let (policy, policy_is_new) = self.policy;
        let (key, key_is_new) = self.key;
        if screen.json {
            let all: Vec<&Path> =
                self.schemas.iter().map(PathBuf::as_path).chain([policy]).collect();
            let (wrote, kept) = all.split_at(self.schemas.len() + usize::from(policy_is_new));
            let key = json!({ "origin": key.name(), "public": key.to_string(), "new": key_is_new });
            let toolchains: Vec<&str> =
                shown_toolchains(self.toolchains).map(|found| found.name).collect();
            screen.print_json(
                &json!({ "wrote": wrote, "kept": kept, "key": key, "toolchains": toolchains }),
            )?;
            return Ok(0);
        }
        let relative = |path: &Path| path.strip_prefix(&ctx.cwd).unwrap_or(path).to_owned();
        let shown = |path: &Path| escape::line(&relative(path).display().to_string()).into_owned();
        for schema in self.schemas {
            screen.print_line(&format!("{SUCCESS}✔ wrote{SUCCESS:#} {}", shown(schema)))?;
        }
        let (policy, named) = (shown(policy), relative(policy).display().to_string());
        screen.print_line(&match policy_is_new {
            true => format!("{SUCCESS}✔ wrote{SUCCESS:#} {policy}"),
            false => format!("· kept  {policy}, which was there already"),
        })?;
        screen.print_line(&match key_is_new {
            true => {
                format!(
                    "{SUCCESS}✔ made{SUCCESS:#}  the key that signs the record, beside the store"
                )
            }
            false => String::from("· kept  the key that signs the record, beside the store"),
        })?;
        screen.print_line("        its public line, for others to verify with (--key):")?;
        screen.print_line(&format!("        {key}"))?;
        for found in shown_toolchains(self.toolchains) {
            let home = escape::line(&found.home.display().to_string()).into_owned();
            let line = format!(
                "· found toolchain `{}` in {home}; the policy names it in a comment",
                found.name
            );
            screen.print_line(&line)?;
        }
        let named = show_argv(&[named]);
        screen.eprint(&format!("{HINT}next{HINT:#}: capsule policy check --policy {named}"));
        if policy_is_new {
            screen.eprint(&format!("      capsule exec --policy {named} -- ls"));
        }
        Ok(0)
    }
}
