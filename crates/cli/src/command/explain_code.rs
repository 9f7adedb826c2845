//! `capsule explain-code`: the table of codes.

use capsule_base::code::Code;
use capsule_base::suggestion::closest;
use capsule_core::outcome::Status;
use serde_json::{Value, json};

use crate::args::ExplainCodeArgs;
use crate::failure::{Failure, usage_failure};
use crate::screen::Screen;

pub(crate) fn run(args: &ExplainCodeArgs, screen: &Screen) -> Result<u8, Failure> {
    let Some(slug) = &args.slug else { return list_all(screen) };
    let code = Code::from_slug(slug).ok_or_else(|| {
        // A part of a name is as good as a slip of the pen.
        let slugs = || Code::ALL.iter().map(|code| code.slug());
        let begins = slugs().find(|known| !slug.is_empty() && known.starts_with(slug.as_str()));
        let holds = slugs().find(|known| slug.len() > 2 && known.contains(slug.as_str()));
        let near = closest(slug, slugs()).or(begins).or(holds);
        let hint = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
        usage_failure(format!("there is no code `{slug}`{hint}"))
    })?;
    if screen.json {
        screen.print_json(&code_json(code))?;
        return Ok(0);
    }
    screen.print_line(code.slug())?;
    screen.print_fitted(&format!("  means    {}", code.meaning()))?;
    screen.print_fitted(&format!("  cause    {}", code.cause()))?;
    screen.print_fitted(&format!("  next     {}", code.next_step()))?;
    screen.print_fitted(&format!("  up to    {}", code.responsible().description()))?;
    screen.print_fitted(&format!("  class    {}", Status::from(code).name()))?;
    screen.print_fitted(&format!("  exit     {}", code.exit().status()))?;
    Ok(0)
}

fn list_all(screen: &Screen) -> Result<u8, Failure> {
    if screen.json {
        screen.print_json(&Code::ALL.iter().map(|code| code_json(*code)).collect::<Value>())?;
        return Ok(0);
    }
    for code in Code::ALL {
        screen.print_fitted(&format!("{:<26} {}", code.slug(), code.meaning()))?;
    }
    Ok(0)
}

fn code_json(code: Code) -> Value {
    json!({
        "code": code,
        "meaning": code.meaning(),
        "cause": code.cause(),
        "next": code.next_step(),
        "move": code.responsible().description(),
        "class": Status::from(code),
        "exit": code.exit().status(),
    })
}
