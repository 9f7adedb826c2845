//! Folders that a command closes: while it runs they are nobody's business, and when it has ended they are
//! refused by their names, for what they are.

use super::*;

/// A command as an ordinary user gives it, whom permissions hold. Whoever is root in his own namespace is
/// not held by them either.
fn ordinary(bed: &Bed, words: &[&str]) -> CommandOutput {
    let inner = bed.capsule.command(words);
    let inner = match bed.copied || rustix::process::geteuid().is_root() {
        true => held(&inner),
        false => inner,
    };
    let mut command = match bed.copied {
        true => copied::under_a_mount(&inner, &bed.capsule.workspace()),
        false => inner,
    };
    command.stdin(Stdio::null()).output().unwrap().into()
}

/// The same without the powers by which root opens everything.
fn held(inner: &Command) -> Command {
    let without = "-dac_override,-dac_read_search";
    let mut command = Command::new("setpriv");
    command.args(["--inh-caps", without, "--bounding-set", without]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.current_dir(inner.get_current_dir().unwrap()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// A command that changes something, as an ordinary user gives it.
fn perl(bed: &Bed, script: &str) -> CommandOutput {
    let script = format!("use strict; {PUT}{script}");
    ordinary(bed, &["exec", "--policy", &bed.policy, "--json", "--", "perl", "-e", &script])
}

fn changes(bed: &Bed) -> String {
    ordinary(bed, &["changes", "latest"]).exits(0).stdout
}

/// What a program closes and opens again, as tests of such errors do, ends no command.
#[test]
fn what_is_opened_again_is_fine() {
    let pause = "select(undef, undef, undef, 0.7)";
    let rows: &[(&str, &[&str])] = &[
        ("mkdir 't'; chmod 0, 't'; PAUSE; chmod 0700, 't'; rmdir 't' or die", &["the run"]),
        ("chmod 0, 'd'; PAUSE; chmod 0755, 'd' or die; put('d/x', 1)", &["M d/x"]),
        ("put('full/4', 4); chmod 0444, 'full'; PAUSE; chmod 0755, 'full' or die", &["A full/4"]),
        ("chmod 0, '.'; PAUSE; chmod 0755, '/workspace' or die; put('n', 1)", &["A n"]),
        // Deeper than any path can be long.
        (
            "my @up; for (1 .. 1_500) { mkdir 'nest' or die; chdir 'nest' or die } PAUSE; \
             for (1 .. 1_500) { chdir '..' or die; rmdir 'nest' or die }",
            &["the run"],
        ),
    ];
    for make in [Bed::new, || Bed { copied: true, ..Bed::new() }] {
        for (script, expected) in rows {
            let bed = make();
            let ran = perl(&bed, &script.replace("PAUSE", pause));
            assert_eq!(ran.status, 0, "{script}: {}", ran.stdout);
            assert_eq!(ran.json()["result"]["exit_code"], 0, "{script}");
            assert_eq!(bed.changes(), *expected, "{script}");
        }
    }
}

/// What is closed at the end is refused by its name, as what it is, and nothing in it is told.
#[test]
fn what_stays_closed_is_refused_by_its_name() {
    let rows: &[(&str, &str, &[&str])] = &[
        ("mkdir 't'; put('t/f', 1); chmod 0, 't'", "t", &["A t/  mode 0"]),
        ("chmod 0, 'full' or die", "full", &["M full/  mode 755 → 0"]),
        ("chmod 0444, 'full'; put('a', 'x')", "full", &["M a", "M full/  mode 755 → 444"]),
        ("put('d/e/z', 1); chmod 0, 'd/e', 'd' or die", "d", &["M d/  mode 755 → 0"]),
        ("put('n', 1); chmod 0, '/workspace' or die", ".", &["M ./  mode 755 → 0"]),
    ];
    for make in [Bed::new, || Bed { copied: true, ..Bed::new() }] {
        for (script, path, expected) in rows {
            let bed = make();
            fs::set_permissions(bed.capsule.workspace(), fs::Permissions::from_mode(0o755))
                .unwrap();
            let before = bed.tree();
            let ran = perl(&bed, script).exits(3).json();
            assert_eq!(
                (&ran["code"], &ran["result"]["exit_code"]),
                (&json!("change.refused"), &json!(0))
            );
            let reason = ran["reason"].as_str().unwrap();
            assert!(reason.contains(&format!("`{path}`: its permissions")), "{script}: {reason}");
            let told = changes(&bed);
            let told: Vec<_> = told.lines().collect();
            assert_eq!(told.len(), expected.len(), "{script}: {told:?}");
            let all = expected.iter().zip(&told).all(|(own, line)| line.starts_with(own));
            assert!(
                all && told
                    .iter()
                    .any(|own| own.contains("its permissions do not allow reading it")),
                "{script}: {told:?}"
            );
            let _ = bed.run(&["apply", "latest"]).exits(3);
            assert_eq!(bed.tree(), before, "{script}");
            let _ = ordinary(&bed, &["discard", "latest"]).exits(0);
            assert_eq!(bed.staged_folders(), 0, "{script}");
        }
    }
}

/// A path that is too long to be looked at is told as that, and not as too many.
#[test]
fn what_lies_too_deep_is_told_so() {
    let bed = Bed::new();
    let script = "for (1 .. 900) { mkdir 'nest' or die; chdir 'nest' or die } select(undef, undef, undef, 0.7)";
    let ran = perl(&bed, script).exits(3).json();
    let reason = ran["reason"].as_str().unwrap();
    assert_eq!(ran["result"]["exit_code"], 0, "{ran}");
    assert!(reason.contains("nested deeper than"), "{reason}");
    assert!(!reason.contains("would be staged"), "{reason}");
    assert!(changes(&bed).contains("its path is longer than the system allows"));
}

/// What a command is ended for is said once.
#[test]
fn too_many_is_said_once() {
    let bed = Bed::new();
    let many = "mkdir 'many'; for my $n (0 .. 30_000) { put(\"many/$n\", '') } sleep 20";
    let ended = perl(&bed, many).exits(1).json();
    let reason = ended["reason"].as_str().unwrap();
    assert_eq!(
        (&ended["code"], reason.matches("would be staged").count()),
        (&json!("change.too-many"), 1)
    );
}
