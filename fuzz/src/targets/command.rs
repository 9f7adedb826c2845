//! The text of a command. Reading it never panics; what is refused is underlined within the text,
//! and so is every word that was read. What was read is written and read back as the same, is kept
//! as the same bytes, and holds nothing that a shell would replace or that nobody can see. The words
//! of any text are a command line, which is written and read back too.

use capsule_base::escape::is_hostile;
use capsule_base::limits;
use capsule_command::shell_syntax::{
    ElementKind, PipelineStage, Redirection, Script, ShellWord, SyntaxRefusal, parse, quote_argv,
};

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse(text) {
        Ok(script) => accepted(text, script),
        Err(refusal) => refused(text, &refusal),
    }
    command_line(text);
}

fn refused(text: &str, refusal: &SyntaxRefusal) {
    crate::assert_named(text, &vec![refusal.diagnostic()]);
    let shown = refusal.underlined(text);
    assert_eq!(shown.lines().count(), 2, "{shown:?}");
    assert!(!shown.chars().any(|c| c != '\n' && is_hostile(c)), "{shown:?}");
    assert!(!refusal.message.is_empty() && !refusal.suggestion.is_empty());
}

/// A script without what is only about how it was written: places and quotes.
fn normalized(mut script: Script) -> Script {
    for element in &mut script.elements {
        element.span = 0..0;
        for stage in &mut element.pipeline.stages {
            stage.span = 0..0;
            for word in &mut stage.words {
                *word =
                    ShellWord { pieces: std::mem::take(&mut word.pieces), ..ShellWord::default() };
            }
        }
    }
    script
}

fn accepted(text: &str, script: Script) {
    assert!((1..=limits::COMMAND_ELEMENTS_ALL).contains(&script.elements.len()));
    let mut is_list = true;
    for element in &script.elements {
        let runs = element.kind == ElementKind::Run;
        is_list &=
            runs && element.pipeline.stages.iter().all(|own| own.variable_names().count() == 0);
        let least = usize::from(runs);
        assert!((least..=limits::PIPELINE_STAGES).contains(&element.pipeline.stages.len()));
        assert!(element.otherwise <= script.elements.len());
        assert!(text.get(element.span.clone()).is_some());
    }
    script.stages().for_each(|own| stage(text, own));
    let script = normalized(script);
    if is_list {
        let written = script.to_string();
        assert_eq!(parse(&written).map(normalized).as_ref(), Ok(&script), "{written:?}");
    }
    crate::assert_kept(&script);
}

fn stage(text: &str, stage: &PipelineStage) {
    assert!(text.get(stage.span.clone()).is_some());
    assert!(stage.words.first().is_some_and(|first| first.literal().is_some()));
    assert!(stage.words.len() <= limits::ARGV_WORDS);
    for word in &stage.words {
        assert!(text.get(word.span.clone()).is_some());
        let is_open = word.as_glob().is_some() || word.has_variables();
        assert_eq!(word.literal().is_none(), is_open);
        assert!(word.literal().is_none_or(|own| own == word.unexpanded()));
        assert!(word.quoted || !word.unexpanded().starts_with('~'));
        assert!(!word.unexpanded().contains('\0'));
        // Only as `$'\r'`, where everybody sees it.
        assert!(word.quoted || !word.unexpanded().contains('\r'));
    }
    for redirect in &stage.redirects {
        match redirect {
            Redirection::File { path, .. } | Redirection::Input { path } => {
                assert!(!path.is_empty() || !stage.templates.is_empty())
            }
            Redirection::Here { text } => assert!(text.is_empty() || text.ends_with('\n')),
            Redirection::Duplicate { .. } => {}
        }
    }
}

/// One word a line, as text of the language.
fn command_line(text: &str) {
    let argv: Vec<String> = text.split('\n').map(Into::into).collect();
    let Ok(written) = quote_argv(&argv) else { return };
    let script = parse(&written).expect("what was written is read");
    let [element] = script.elements.as_slice() else { panic!("{written:?}") };
    let [stage] = element.pipeline.stages.as_slice() else { panic!("{written:?}") };
    assert!(stage.variables.is_empty() && stage.redirects.is_empty());
    let read = stage.words.iter().map(ShellWord::literal);
    assert!(read.eq(argv.iter().map(|word| Some(word.as_str()))), "{written:?}");
}
