//! Workspaces whose repository lies outside of them: linked working trees and submodules.

use super::*;

/// A linked working tree beside the workspace, with a repository whose configuration and hooks are the user's own.
const LINKED: &str = "git worktree add -q ../w -b w; echo SECRET > .git/hooks/pre-commit; \
    git config http.extraHeader 'Authorization: SECRET'; git config core.fsmonitor ./SECRET; \
    git config remote.o.url https://ann:SECRET@example.org/x; \
    git config remote.p.url 'https://example.org/x?token=SECRET'; git config branch.v.remote https://ann:SECRET@example.org/x; git config branch.w.remote o; git config branch.w.merge refs/heads/w; \
    echo SECRET > .git/notes.txt; mkdir -p .git/modules/x; echo SECRET > .git/modules/x/config; echo more >> ../w/a";

/// A superproject beside the workspace with a submodule.
const SUBMODULE: &str = "cd ..; git init -q super; cd super; git submodule --quiet add \"$(cd ../ws; pwd)\" sub; \
    git commit -qm sub; echo SECRET > .git/modules/sub/hooks/pre-commit; git -C sub config x.y SECRET; echo more >> sub/a";

/// The answer to a command line with another directory as the workspace.
fn run_in(bed: &Bed, directory: &str, line: &str) -> serde_json::Value {
    run_with_policy(bed, directory, (&bed.policy, line))
}

fn run_with_policy(bed: &Bed, directory: &str, (policy, line): (&str, &str)) -> serde_json::Value {
    let directory = bed.capsule.workspace().join(directory).canonicalize().unwrap();
    let args = serde_json::json!({ "command": line }).to_string();
    let words = ["call", "shell.run", "--policy", policy, "--args", &args];
    CommandOutput::from(bed.capsule.command(&words).current_dir(directory).output().unwrap()).json()
}

/// W7: git tells in a linked working tree, and in a submodule, what it tells outside.
#[test]
fn git_reads_a_repository_outside() {
    for (lines, directory) in [(LINKED, "../w"), (SUBMODULE, "../super/sub")] {
        let bed = Bed::new(lines);
        for line in [
            "git status -sb",
            "git diff",
            "git log --format=%s%an --all",
            "git branch -vv",
            "git show --stat",
            "git ls-files",
            "git blame -s a",
            "git stash list",
            "git rev-parse --show-toplevel --abbrev-ref HEAD",
        ] {
            let answer = run_in(&bed, directory, line);
            let outside = bed.host(&format!("cd {directory}; {line}"));
            assert_eq!(answer["result"]["stdout"], outside, "{directory}: {line}: {answer}");
        }
        let policy = STAGED.replace("sandbox: {", "sandbox: { mount: workspace,");
        let policy = bed.capsule.write_policy(&policy);
        let answer = run_with_policy(&bed, directory, (&policy, "echo new > n; git status -s"));
        match directory {
            "../w" => assert_eq!(answer["result"]["stdout"], " M a\n?? n\n", "{answer}"),
            // The path in its `.git` file is relative, and leads elsewhere from there.
            _ => assert_eq!(answer["code"], "git.elsewhere", "{answer}"),
        }
    }
}

/// Nothing of the repository starts a program, holds a secret or belongs to another one.
#[test]
fn a_repository_outside_shows_what_git_needs() {
    for (lines, directory, git) in
        [(LINKED, "../w", "../ws/.git"), (SUBMODULE, "../super/sub", "../super/.git/modules/sub")]
    {
        let bed = Bed::new(lines);
        let place = bed.host(&format!("cd {git}; pwd -P"));
        let place = place.trim();
        bed.host(&format!(
            "printf 'use File::Find; find(sub {{ if (-f and open(F, q(<), $_)) {{ local $/; my $t = <F>; $t =~ tr/ -~//cd; print $t }} }}, q({place}), q({place}/..))' > {directory}/r.pl"
        ));
        let told = run_in(
            &bed,
            directory,
            "git config --list --show-origin; perl r.pl; git commit -qam x",
        );
        assert!(!told.to_string().contains("SECRET"), "{told}");
        let told = run_in(&bed, directory, "perl r.pl");
        assert!(told["result"]["stdout"].as_str().unwrap().contains("refs/heads/"), "{told}");
    }
}

/// The repository is shown read-only: subcommands that write are refused with that reason, and nothing changes.
#[test]
fn a_repository_outside_is_not_changed() {
    let bed = Bed::new(LINKED);
    let before = bed.host("find .git ../w -type f | sort | xargs cksum");
    for line in [
        "git add a",
        "git commit -qam x",
        "true && git stash",
        "git --no-pager checkout -b new",
        "git reset --hard",
    ] {
        let answer = run_in(&bed, "../w", line);
        assert_eq!(answer["code"], "git.elsewhere", "{line}: {answer}");
        assert!(answer["reason"].as_str().unwrap().contains("is shown read-only"), "{answer}");
    }
    let answer = run_in(&bed, "../w", "git branch new");
    assert!(answer["result"]["stderr"].as_str().unwrap().contains("Read-only"), "{answer}");
    let program = format!(
        "for (qw(HEAD refs/heads/x objects/x hooks/pre-commit config)) {{ open(F, '>', '{0}/.git/'.$_) and print 'ESCAPED' }} mkdir '{0}/.git/x' and print 'ESCAPED'",
        bed.capsule.workspace().display()
    );
    fs::write(bed.capsule.directory().join("w/w.pl"), program).unwrap();
    let answer = run_in(&bed, "../w", "perl w.pl");
    assert_eq!(answer["result"]["stdout"], "", "{answer}");
    assert_eq!(bed.host("rm ../w/w.pl; find .git ../w -type f | sort | xargs cksum"), before);
    let policy =
        bed.capsule.write_policy(&STAGED.replace("sandbox: {", "sandbox: { floor: landlock,"));
    let directory = bed.capsule.directory().join("w").canonicalize().unwrap();
    let args = serde_json::json!({ "command": "git status" }).to_string();
    let words = ["call", "shell.run", "--policy", &policy, "--args", &args];
    let mut lower = bed.capsule.command_without_namespaces(&words);
    let answer = CommandOutput::from(lower.current_dir(directory).output().unwrap()).json();
    assert_eq!(answer["code"], "git.elsewhere", "{answer}");
}

/// A `.git` file shows a directory only if that names the workspace in turn, belongs to the same user, and is the
/// repository of a working tree.
#[test]
fn a_forged_git_file_shows_nothing() {
    for forgery in [
        // The main repository itself, and the directory of another working tree.
        "echo \"gitdir: $PWD/.git\" > ../f/.git",
        "echo \"gitdir: $PWD/.git/worktrees/w\" > ../f/.git",
        // A directory that names the workspace, and is no part of the repository that it says.
        "mkdir ../d; echo \"$PWD/.git\" > ../d/commondir; realpath ../f/.git > ../d/gitdir; echo \"gitdir: $(realpath ../d)\" > ../f/.git",
        "mkdir -p ../d/worktrees/f; echo \"$PWD/.git\" > ../d/worktrees/f/commondir; realpath ../f/.git > ../d/worktrees/f/gitdir; \
            echo \"gitdir: $(realpath ../d/worktrees/f)\" > ../f/.git",
        // Links to it.
        "mkdir -p ../d/worktrees; ln -s $PWD/.git/worktrees/w ../d/worktrees/f; echo \"gitdir: $(realpath ../d)/worktrees/f\" > ../f/.git",
        "ln -s $PWD/.git ../f/.git",
        // One that everybody may change.
        "git worktree add -qf ../g; mv ../g/.git ../f/.git; realpath ../f/.git > .git/worktrees/g/gitdir; chmod o+w .git",
        "git worktree add -qf ../g; mv ../g/.git ../f/.git; realpath ../f/.git > .git/worktrees/g/gitdir; chmod o+w .git/worktrees/g/gitdir",
        // Not a working tree of it.
        "git init -q --separate-git-dir ../d ../f; cp -r .git/objects .git/refs ../d",
    ] {
        let bed = Bed::new(&format!("{LINKED}; mkdir ../f; {forgery}"));
        let place = bed.capsule.workspace().canonicalize().unwrap();
        for git in [place.join(".git"), bed.capsule.directory().join("d")] {
            let program =
                format!("print `cat {0}/HEAD {0}/packed-refs {0}/logs/HEAD 2>&1`", git.display());
            fs::write(bed.capsule.directory().join("f/r.pl"), program).unwrap();
            let answer = run_in(&bed, "../f", "perl r.pl");
            assert!(!answer.to_string().contains("refs/heads"), "{forgery}: {answer}");
        }
        let answer = run_in(&bed, "../f", "git log");
        assert!(
            answer["code"] == "git.elsewhere" || answer["result"]["exit_code"] == 128,
            "{forgery}: {answer}"
        );
        assert!(!answer.to_string().contains("Ann"), "{forgery}: {answer}");
    }
}
