//! Pipelines that would fill a disk.

use alloc::string::String;
use alloc::vec::Vec;

use crate::shell_syntax::{PipelineStage, Redirection, ShellWord, StdStream};
use crate::specs::{CommandLine, PathAccess, base_name, is_endless_device};
use crate::steps::DEV_NULL;

/// The program of a pipeline whose text never ends, where that text goes to a file: `yes > f`. A program is told by the
/// innermost command line: what starts it prints nothing of its own. One that is ended within a minute (`timeout 5 yes > f`) writes no
/// more than another that may: what a file and a run may hold is bounded by the sandbox.
#[must_use]
pub fn endless_output(stages: &[PipelineStage]) -> Option<String> {
    let mut endless = None;
    let is_timed = |pair: &[&CommandLine<'_>]| {
        let [CommandLine { argv: [name, words @ ..], .. }, inner] = pair else { return false };
        let own = words.get(..words.len().saturating_sub(inner.argv.len()));
        let Some([options @ .., time]) = own else { return false };
        // Not every signal ends a program.
        let has_signal = options.iter().any(|word| word.starts_with('-') && word.contains('s'));
        let is_short = matches!(time.trim_end_matches('s').parse(), Ok(1_u32..=60));
        base_name(name) == "timeout" && !has_signal && is_short
    };
    for stage in stages {
        let argv: Vec<String> = stage.words.iter().map(ShellWord::unexpanded).collect();
        let line = CommandLine::parse(&argv, None, false);
        let lines = line.with_nested();
        let inner = lines.last()?;
        let (name, words) =
            inner.argv.split_first().map(|(name, words)| (base_name(name), words))?;
        let has = |starts: &[&str]| {
            words.iter().any(|word| starts.iter().any(|start| word.starts_with(start)))
        };
        let reads = |redirect: &Redirection| matches!(redirect, Redirection::Input { path } if is_endless_device(path));
        let is_read = |word: &String| is_endless_device(word.trim_start_matches("if="));
        endless = match name {
            _ if name == "head" || lines.windows(2).any(is_timed) => None,
            "dd" | "od" | "xxd" if has(&["count=", "-N", "--read-bytes", "-l"]) => None,
            "yes" | "seq" if name == "yes" || has(&["inf"]) => Some(name),
            "tail" if has(&["-f", "-F", "--follow"]) => Some(name),
            _ if stage.redirects.iter().any(reads) || words.iter().any(is_read) => Some(name),
            _ => endless.as_deref(),
        }
        .map(String::from);
        let mut paths = inner.parsed_argvs().flat_map(|argv| &argv.paths);
        let writes = matches!(name, "tee" | "dd" | "cp" | "install" | "split" | "sponge")
            && paths.any(|used| used.access == PathAccess::Write);
        let is_file = |redirect: &Redirection| matches!(redirect, Redirection::File { stream: StdStream::Out, path, .. } if path != DEV_NULL);
        if endless.is_some() && (writes || stage.redirects.iter().any(is_file)) {
            return endless;
        }
    }
    None
}
