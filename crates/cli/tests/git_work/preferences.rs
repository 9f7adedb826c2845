//! The part of the user's configuration that commands get.

use super::*;

/// W4: an identity, a first branch, the ends of lines and ignored files come from the user's configuration, and what
/// the repository says counts more.
#[test]
fn a_person_is_who_they_are_on_the_host() {
    let bed = Bed::new("");
    bed.host("mkdir -p ~/.config/git; echo '*.swp' > ~/.config/git/ignore; touch x.swp");
    let line = "git commit --allow-empty -qm two; git log -1 --format='%an <%ae>'; git init -q new; \
                git -C new symbolic-ref HEAD; git status --short; rm -rf new";
    assert_eq!(bed.printed(line), "Ann <ann@example.org>\nrefs/heads/trunk\n?? new/\n");
    bed.host("git config user.email team@example.org");
    assert!(bed.printed(line).starts_with("Ann <team@example.org>\n"));
    bed.host(
        "git config --unset user.email; printf '[user]\\nemail = work@example.org\\n' > ~/work.inc",
    );
    bed.user(&format!(
        "config --global includeIf.gitdir:{}/.path work.inc",
        bed.host("pwd -P").trim()
    ));
    assert!(bed.printed(line).starts_with("Ann <work@example.org>\n"));
    bed.apply();
    assert_eq!(bed.host("git log -1 --format=%s%ae"), "twowork@example.org\n");
}

/// Without namespaces, too.
#[test]
fn a_person_is_known_in_the_lower_tier() {
    let bed = Bed::new("");
    let line = "git commit --allow-empty -qm two; git log -1 --format='%an <%ae>'";
    let answer = bed.command_in_lower_tier(line);
    assert_eq!(answer["result"]["stdout"], "Ann <ann@example.org>\n", "{answer}");
}

/// A variable of the user's says who it is.
#[test]
fn variables_say_who_a_person_is() {
    let mut bed = Bed::new("");
    for (name, value) in [("GIT_AUTHOR_NAME", "Bo"), ("GIT_AUTHOR_EMAIL", "bo@example.org")] {
        bed.capsule.set(name, value);
    }
    let line = "git commit --allow-empty -qm two; git log -1 --format='%an <%ae> %cn'";
    assert_eq!(bed.printed(line), "Bo <bo@example.org> Ann\n");
}

/// A name for a subcommand is judged and run as the words of the alias, and is known to scripts if it starts
/// nothing.
#[test]
fn an_alias_is_judged_as_what_it_stands_for() {
    let bed = Bed::new("");
    for (name, words) in [
        ("st", "status -sb"),
        ("send", "push"),
        ("up", "send"),
        ("mine", "!id"),
        ("log", "push"),
        ("paged", "-c core.pager=id log"),
    ] {
        let mut git = Command::new("git");
        git.args(["config", "--global", &format!("alias.{name}"), words])
            .env("HOME", bed.capsule.home());
        assert!(git.status().unwrap().success());
    }
    assert_eq!(bed.printed("git st"), "## trunk\n");
    assert_eq!(bed.printed("cd .git && git -C .. st | wc -l"), "1\n");
    assert_eq!(bed.printed("git log --format=%s"), "one\n");
    bed.host("printf 'all:\\n\\t@git st\\n' > Makefile");
    assert_eq!(bed.printed("make"), "## trunk\n?? Makefile\n");
    for (line, code) in [
        ("git send origin", "policy.never"),
        ("true && git up", "policy.never"),
        ("git mine", "policy.denied"),
        ("git paged", "policy.denied"),
    ] {
        let answer = bed.run(line).json();
        assert_eq!(answer["code"], code, "{line}: {answer}");
    }
    let argv = serde_json::json!({ "argv": ["git", "send", "origin"] }).to_string();
    assert_eq!(bed.run_with(&["--args", &argv]).json()["code"], "policy.never");
}

/// Nothing of the user's configuration starts a program, signs, names a file or holds a secret.
#[test]
fn what_starts_a_program_stays_where_it_is() {
    let bed = Bed::new("");
    bed.host("printf '#!/bin/sh\\ntouch ran\\n' > evil; chmod +x evil");
    for (key, value) in [
        ("core.fsmonitor", "./evil"),
        ("core.pager", "./evil"),
        ("core.hooksPath", "."),
        ("diff.external", "./evil"),
        ("commit.gpgSign", "true"),
        ("gpg.program", "./evil"),
        ("credential.helper", "!./evil"),
        ("http.extraHeader", "Authorization: secret"),
        ("alias.st", "!./evil"),
    ] {
        let mut git = Command::new("git");
        git.args(["config", "--global", key, value]).env("HOME", bed.capsule.home());
        assert!(git.status().unwrap().success());
    }
    let line = "git status --short; git diff HEAD; git commit --allow-empty -qm two; git config --list; ls";
    let said = bed.printed(line);
    assert!(said.contains("user.name=Ann"), "{said}");
    for word in ["secret", "=./evil", "\nran\n", "gpgsign"] {
        assert!(!said.contains(word), "{word}: {said}");
    }
}

/// A filter of the user's configuration is started by no subcommand and no tool, although `.gitattributes` names it;
/// one of the repository is started behind the walls alone.
#[test]
fn filters_start_nothing_outside() {
    for place in ["--global", "--local"] {
        let bed = Bed::new(
            "echo '*.x filter=evil diff=evil merge=evil' > .gitattributes; git add .gitattributes; git commit -qm attributes",
        );
        let marker = bed.capsule.home().join("ran");
        for key in
            ["filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "merge.evil.driver"]
        {
            let program = format!("sh -c 'echo ran >> {}; cat'", marker.display());
            let mut git = Command::new("git");
            git.args(["config", place, key, &program]).current_dir(bed.capsule.workspace());
            assert!(git.env("HOME", bed.capsule.home()).status().unwrap().success());
        }
        bed.printed("echo 1 > a.x; git add a.x; git commit -qm x; echo 2 > a.x; git status -s; git diff; git stash -q; git stash pop -q");
        for tool in ["git.status", "git.diff"] {
            bed.capsule.write_file("b.x", "1\n");
            let done = bed.capsule.run(&["call", tool, "--policy", &bed.policy, "--args", "{}"]);
            assert_eq!(done.json()["status"], "ok", "{tool}: {}", done.stdout);
        }
        assert!(!marker.exists(), "{place}");
    }
}
