//! The words where no model is configured: what was looked for, what is there, and what can be done.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use capsule_base::escape;

use crate::screen::{HINT, Screen};

/// Where servers listen unless they are told otherwise: Ollama, llama.cpp and LM Studio.
const USUAL_PORTS: [u16; 3] = [OLLAMA_PORT, 8080, 1234];
/// Where Ollama listens.
const OLLAMA_PORT: u16 = 11434;
/// How long a server on this machine may take to answer a connection.
const WAIT: Duration = Duration::from_millis(200);

/// Whether something listens on a port of this machine.
fn listens(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, WAIT).is_ok()
}

/// Says what was looked for, and how a model is set up.
pub(crate) fn explain_missing_model(is_named: bool, providers: &Path, screen: &Screen) {
    let set = |name: &str| match std::env::var_os(name).is_some_and(|value| !value.is_empty()) {
        true => "set",
        false => "not set",
    };
    screen.eprint("no model is configured; these were looked for:");
    for name in ["OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
        screen.eprint(&format!("  {name:<20} {}", set(name)));
    }
    let is_there = if providers.exists() { "there" } else { "not there" };
    let place = providers.display().to_string();
    screen.eprint(&format!("  {:<20} {is_there}: {}", "providers.yaml", escape::line(&place)));
    let model = if is_named { "named" } else { "not named: --model NAME or CAPSULE_MODEL" };
    screen.eprint(&format!("  {:<20} {model}", "the model"));
    for port in USUAL_PORTS {
        let is_there = listens(port);
        let heard = if is_there { "something listens" } else { "nothing listens" };
        screen.eprint(&format!("  {:<20} {heard}", format!("127.0.0.1:{port}")));
        if is_there && port != OLLAMA_PORT {
            let base = format!("http://127.0.0.1:{port}/v1");
            screen.eprint(&format!("  {:<20} OpenAI's format? export OPENAI_BASE_URL={base}", ""));
        }
    }
    screen.eprint(&format!(
        "{HINT}without a model{HINT:#}: capsule chat --demo shows a chat with a scripted one"
    ));
}
