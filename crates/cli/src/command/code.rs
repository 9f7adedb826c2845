//! `capsule explain-code`: the table of codes.

use capsule_core::code::Code;
use capsule_core::outcome::Status;
use capsule_core::tool::closest;
use serde_json::{Value, json};

use crate::args::ExplainCode;
use crate::failure::{Failure, usage};
use crate::screen::Screen;

pub(crate) fn run(args: &ExplainCode, screen: &Screen) -> Result<u8, Failure> {
    let Some(slug) = &args.slug else { return all(screen) };
    let code = Code::from_slug(slug).ok_or_else(|| {
        // A part of a name is as good as a slip of the pen.
        let slugs = || Code::ALL.iter().map(|code| code.slug());
        let begins = slugs().find(|known| !slug.is_empty() && known.starts_with(slug.as_str()));
        let holds = slugs().find(|known| slug.len() > 2 && known.contains(slug.as_str()));
        let near = closest(slug, slugs()).or(begins).or(holds);
        let hint = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
        usage(format!("there is no code `{slug}`{hint}"))
    })?;
    if screen.json {
        screen.say_json(&to_json(code))?;
        return Ok(0);
    }
    screen.say(code.slug())?;
    screen.say(&format!("  means    {}", code.meaning()))?;
    screen.say(&format!("  cause    {}", code.cause()))?;
    screen.say(&format!("  next     {}", code.next_step()))?;
    screen.say(&format!("  move     {}", code.responsible().description()))?;
    screen.say(&format!("  class    {}", Status::from(code).name()))?;
    screen.say(&format!("  exit     {}", code.exit().status()))?;
    Ok(0)
}

fn all(screen: &Screen) -> Result<u8, Failure> {
    if screen.json {
        screen.say_json(&Code::ALL.iter().map(|code| to_json(*code)).collect::<Value>())?;
        return Ok(0);
    }
    for code in Code::ALL {
        screen.say(&format!("{:<26} {}", code.slug(), code.meaning()))?;
    }
    Ok(0)
}

fn to_json(code: Code) -> Value {
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
