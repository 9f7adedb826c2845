//! Commands as texts, through the real binary: pipelines, lists, streams, patterns, and what becomes of
//! them in the staged workspace and in the record.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panics")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capsule_testkit::Capsule;
use serde_json::{Value, json};

fn capsule() -> Capsule {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("src/a.txt", "b\na\n");
    capsule.write_file("src/b.txt", "c\n");
    capsule.write_file("src/-rf", "minus\n");
    capsule
}

fn call(capsule: &Capsule, policy: &str, command: &str) -> Value {
    let args = json!({ "command": command }).to_string();
    capsule.run(&["call", "shell.run", "--policy", policy, "--args", &args]).json()
}

/// FR-16: what a text says is done as a shell would do it, and no shell is started.
#[test]
fn commands_do_what_they_say() {
    let capsule = capsule();
    for (command, stdout, status) in [
        ("cat src/a.txt | sort", "a\nb\n", 0),
        ("cat src/*.txt | sort -r | head -1", "c\n", 0),
        ("cd src && cat a.txt && cd .. && wc -l < src/b.txt", "b\na\n1\n", 0),
        ("false || echo other; echo then", "other\nthen\n", 0),
        ("false && echo never", "", 1),
        ("true || echo never", "", 0),
        ("echo a > new; cat new; echo b >> new; cat new", "a\na\nb\n", 0),
        ("ls nope 2>/dev/null || echo missing", "missing\n", 0),
        ("ls nope 2>&1 | grep -c nope", "1\n", 0),
        ("cat <<'EOF' | sort\nz\n$x\nEOF", "$x\nz\n", 0),
        ("sort <<< 'one line'", "one line\n", 0),
        ("echo {a,b}{1..2} 'a  b' \\*", "a1 a2 b1 b2 a  b *\n", 0),
        // A name that looks like an option is none, and a pattern without a match stands for itself.
        ("cd src && cat *f", "minus\n", 0),
        ("echo *.none", "*.none\n", 0),
        ("CI=7 env | grep ^CI=", "CI=7\n", 0),
        ("yes | head -2", "y\ny\n", 0),
        ("command -v cat", "/usr/bin/cat\n", 0),
        ("type cat", "/usr/bin/cat\n", 0),
        ("command -v cat tail", "/usr/bin/cat\n/usr/bin/tail\n", 0),
        ("cat **/a.txt", "b\na\n", 0),
        ("echo **/*.txt", "src/a.txt src/b.txt\n", 0),
        ("cd src && echo **/*.txt", "a.txt b.txt\n", 0),
        ("X=1 Y='a b'; echo \"$X ${Y}\" $Y; echo '$X'", "1 a b a b\n$X\n", 0),
        ("ls nope 2>/dev/null; echo \"status $?\"", "status 2\n", 0),
        ("cat <<EOF\nplain 'text'\nEOF", "plain 'text'\n", 0),
        ("n=3; cat <<EOF | tail -1\na\n$n of $(ls src | wc -l)\nEOF", "3 of 3\n", 0),
        ("echo \"$(cat <<'EOF'\nfix: it's\n\nbody $x\nEOF\n)\"", "fix: it's\n\nbody $x\n", 0),
        ("wc -l $(ls src/*.txt)", "2 src/a.txt\n1 src/b.txt\n3 total\n", 0),
        ("for f in a b; do cat src/$f.txt; done", "b\na\nc\n", 0),
        (
            "for f in src/*.txt; do if grep -q c \"$f\"; then echo \"$f\"; fi; done",
            "src/b.txt\n",
            0,
        ),
        ("cd src; for f in *f; do cat \"$f\"; done", "minus\n", 0),
        ("until [ -f made ]; do touch made; done; ls made", "made\n", 0),
        ("(cd src && ls *.txt); ls", "a.txt\nb.txt\nsrc\n", 0),
        ("{ cat src/a.txt; cat src/b.txt; } | sort", "a\nb\nc\n", 0),
        ("for i in 1 2; do echo $i; done > out; cat out", "1\n2\n", 0),
        ("set -euo pipefail; cat src/b.txt; false | cat; echo never", "c\n", 1),
        ("export CI=7; env | grep ^CI=; bash -c 'env | grep ^CI='", "CI=7\nCI=7\n", 0),
        ("bash -lc 'cd src && cat b.txt'; pwd | tail -c 5 | head -c 0", "c\n", 0),
        ("sh -c 'cat src/b.txt' 2>&1 | cat; bash -ec 'false; echo never' || echo $?", "c\n1\n", 0),
        // Where a shell goes, what it sets and how it ends is its alone.
        ("sh -c 'cd src'; ls; bash -c 'cd src && cd ..' && ls -d src; ls", "src\nsrc\nsrc\n", 0),
        (
            "bash -c \"sh -c 'cd src'\"; ls; for d in a b; do sh -c 'cd src'; done; ls",
            "src\nsrc\n",
            0,
        ),
        ("if sh -c 'cd missing'; then ls src; fi; ls", "src\n", 0),
        ("X=1; sh -c 'X=2; echo $X'; echo $X; false; sh -c 'echo $?'", "2\n1\n0\n", 0),
        ("sh -c 'set -e; true'; false; sh -c 'echo a; exit 3'; echo $?", "a\n3\n", 0),
        ("! grep -q c src/a.txt && echo none", "none\n", 0),
        ("ls nope &> log; wc -l < log; ls nope |& wc -l", "1\n1\n", 0),
        ("cat src/b.txt; exit 3; echo never", "c\n", 3),
        ("d=src; cd \"$d\" && [ \"$(pwd)\" = \"$PWD\" ] && cat b.txt", "c\n", 0),
        ("head -n $(echo 1) src/a.txt", "b\n", 0),
        // A shell opens the file before it runs anything.
        ("{ ls; } > new; cat new", "new\nsrc\n", 0),
        ("for f in *; do echo $f; done > new; cat new", "new\nsrc\n", 0),
        ("echo x > new; { cat new; echo y; } > new; cat new", "y\n", 0),
        ("echo x > new; { echo y; echo z; } >> new; cat new", "x\ny\nz\n", 0),
        ("false; { echo $?; } > new; cat new", "1\n", 0),
        ("{ echo never; } > missing/new || echo $?", "1\n", 0),
        // What a group writes goes behind what it wrote before, in whatever folder it is by now.
        ("(cd src && cat b.txt && ls nope) > new 2>&1 || wc -l < new", "2\n", 0),
        ("{ cd src; cat b.txt; } >> new; cat ../new; pwd | tail -c 4", "c\nsrc\n", 0),
        ("{ echo a; cat new; } > new 2>/dev/null; cat new", "a\n", 0),
        ("n=new; { n=other; echo a; wc -l < new; } > \"$n\"; cat new", "a\n1\n", 0),
        (
            "for f in a b nope; do cat src/$f.txt; done > new 2> errors; cat new errors | wc -l",
            "4\n",
            0,
        ),
        ("{ ls nope; echo a; } 2>&1 | wc -l; (ls nope; ls nope) |& wc -l", "2\n2\n", 0),
        ("for i in 1 2; do { echo $i; break; } > new; done; cat new; { exit 3; } >> new", "1\n", 3),
        ("{ cat src/b.txt | sort; X=$(cat src/b.txt); echo \"$X\"; } > new; cat new", "c\nc\n", 0),
        ("{ ls nope; echo a >&2; } 2>/dev/null; { echo b; } >&2; { echo c >&2; } 2>&1", "c\n", 0),
        (
            "head -c 5 < /dev/zero | wc -c; tr -dc a-z < /dev/urandom | head -c 7 | wc -c",
            "5\n7\n",
            0,
        ),
        ("dd if=/dev/zero of=zeros bs=3 count=2 status=none; wc -c < zeros", "6\n", 0),
        ("while IFS=: read -r a b; do echo \"$b$a\"; done <<< x:y", "yx\n", 0),
    ] {
        let answer = call(&capsule, "builtin:developer", command);
        assert_eq!(answer["result"]["stdout"], stdout, "{command}: {answer}");
        assert_eq!(answer["result"]["exit_code"], status, "{command}: {answer}");
    }
    assert!(!capsule.workspace().join("new").exists());
}

/// What is said of a part that could not be started is shown where the list goes on, once, and its status is that of a
/// shell.
#[test]
fn a_part_that_cannot_start_says_so() {
    let capsule = capsule();
    let (write, read) = ("cannot write to `missing/new`", "cannot read from `nope`");
    for (command, stdout, said, status) in [
        ("echo x > missing/new; echo $?", "1\n", vec![write], 0),
        ("echo x > missing/new && echo never || echo or", "or\n", vec![write], 0),
        ("ls src/b.txt; cat < nope", "src/b.txt\n", vec![read], 1),
        ("! cat < nope", "", vec![read], 0),
        ("{ echo x; } > missing/new; echo $?", "1\n", vec![write], 0),
        ("X=$(cat < nope); echo \"<$X> $?\"", "<> 1\n", vec![read], 0),
        ("for f in a b; do cat < nope; done; echo $?", "1\n", vec![read, read], 0),
        ("while read -r f; do echo \"$f\"; done < nope; echo $?", "1\n", vec![read], 0),
        ("cd missing; echo $?", "1\n", vec!["cd: missing: No such file"], 0),
        ("cd missing 2>/dev/null; echo $?", "1\n", vec![], 0),
        ("cd -; echo $?", "1\n", vec!["cd: OLDPWD not set"], 0),
    ] {
        let args = ["exec", "--policy", "builtin:developer", "--unattended", "--", command];
        let done = capsule.run(&args);
        let lines: Vec<&str> = done
            .stderr
            .lines()
            .filter(|line| !line.starts_with("  capsule show-run") && !line.starts_with("hint: "))
            .collect();
        assert_eq!(lines.len(), said.len(), "{command}: {lines:?}");
        assert!(
            lines.iter().zip(&said).all(|(line, said)| line.contains(said)),
            "{command}: {lines:?}"
        );
        assert_eq!(done.exits(status).stdout, stdout, "{command}");
        let answer = call(&capsule, "builtin:developer", command);
        let told = answer["result"]["stderr"].as_str().unwrap();
        assert_eq!(told.lines().count(), said.len(), "{command}: {answer}");
    }
}

/// A file that a group keeps open is written to by nothing else in it: it is said before anything runs, or where it is
/// found out.
#[test]
fn the_file_of_a_group_is_its_own() {
    let capsule = capsule();
    for (command, why) in [
        ("{ echo a; echo b >> new; } > new", "as the group itself does"),
        ("{ echo a; cat src/b.txt > ./new; } >> new", "as the group itself does"),
        ("cd src; { echo a; (cd ..; echo b > src/new); } > new", "as the group itself does"),
        ("v=new; { echo a; echo b 2> \"$v\"; } > new", "as the group itself does"),
        ("{ { echo a; } > new; echo b; } 2> new", "as the group itself does"),
        ("{ for v in *; do echo b > \"$v\"; done; } > new", "as the group itself does"),
        ("{ echo a; mv new other; echo b; } > new", "not there any more"),
        ("{ ls nope | cat; } 2>&1 | wc -l", "cannot follow a group"),
    ] {
        let answer = call(&capsule, "builtin:developer", command);
        assert_eq!(answer["code"], "exec.not-in-language", "{command}: {answer}");
        assert!(answer["reason"].as_str().unwrap().contains(why), "{command}: {answer}");
    }
}

/// A script of the workspace is read in the language, and each of its commands is a call of its own.
#[test]
fn scripts_of_the_workspace_are_read() {
    let capsule = capsule();
    for (file, text) in [
        (
            "plain.sh",
            "#!/bin/sh\nset -e\n# a comment\ncd src\nfor f in *.txt; do\n  cat \"$f\"\ndone\n",
        ),
        ("one.sh", "cat src/b.txt"),
        ("sub/here.sh", "pwd | tail -c 4; exit 3\n"),
        ("quotes.sh", "echo 'it'\\''s' \"a  b\"\n"),
        ("writes.sh", "echo 'echo never' > later.sh\n"),
        ("later.sh", "echo first\n"),
        ("parameter.sh", "cat \"$1\"\n"),
        ("function.sh", "f() { ls; }\nf\n"),
        ("push.sh", "ls\ngit push\n"),
        ("home.sh", "cat ~/.ssh/id_rsa\n"),
        ("shell.sh", "ls\nbash function.sh\n"),
        ("dollar.sh", "echo '$(id)'\n"),
        ("empty.sh", "# nothing\n"),
        ("-c", "echo dash\n"),
    ] {
        capsule.write_file(file, text);
    }
    capsule.write_file(".env", "echo secret\n");
    symlink("/etc/profile", capsule.workspace().join("outside.sh")).unwrap();
    for (name, target) in [("link.sh", "one.sh"), ("linked", "sub"), ("env.sh", ".env")] {
        symlink(target, capsule.workspace().join(name)).unwrap();
    }
    let inside = |name: &str| capsule.workspace().join(name);
    fs::hard_link(inside("quotes.sh"), inside("twin.sh")).unwrap();
    fs::hard_link(inside(".env"), inside("secret.sh")).unwrap();
    for (command, expected) in [
        ("sh plain.sh", Ok("b\na\nc\n")),
        ("bash ./plain.sh --fast", Ok("b\na\nc\n")),
        ("/bin/bash plain.sh | sort | head -1", Ok("a\n")),
        ("bash quotes.sh > out; cat out", Ok("it's a  b\n")),
        (
            "cat > new.sh <<'E'\ncat src/b.txt\nls sub\nE\nchmod +x new.sh && bash new.sh",
            Ok("c\nhere.sh\n"),
        ),
        ("cat <<'E' > one.sh\necho new\nE\nsh one.sh", Ok("new\n")),
        ("bash one.sh 2>&1", Ok("c\n")),
        ("cd sub && sh here.sh || echo $?", Ok("sub\n3\n")),
        ("ls sub && sh quotes.sh; sh one.sh", Ok("here.sh\nit's a  b\nc\n")),
        ("chmod +x one.sh && sh one.sh", Ok("c\n")),
        ("bash dollar.sh", Ok("$(id)\n")),
        ("bash writes.sh", Ok("")),
        ("sh -e one.sh; [ -f one.sh ] && sh -eu one.sh", Ok("c\nc\n")),
        ("echo \"<$(sh one.sh)>\"; CI=1 sh one.sh | wc -l", Ok("<c>\n1\n")),
        ("bash -c 'bash one.sh; cat src/b.txt'", Err("no-shells")),
        // What is outside of the language is code, as is what could be another text by then.
        ("bash writes.sh; bash later.sh", Err("no-shells")),
        ("echo ls > later.sh; sh later.sh", Err("no-shells")),
        ("for n in 1 2; do sh one.sh; done", Err("no-shells")),
        ("cat > one.sh <<'E'\necho new\nE\nsed -i s/new/id/ one.sh; sh one.sh", Err("no-shells")),
        ("false && cat > one.sh <<'E'\necho new\nE\nsh one.sh", Err("no-shells")),
        ("cat >> one.sh <<'E'\necho new\nE\nsh one.sh", Err("no-shells")),
        ("n=x; cat > one.sh <<E\necho $n\nE\nsh one.sh", Err("no-shells")),
        ("cat > new.sh <<'E'\ngit push\nE\nbash new.sh", Err("no-publishing")),
        ("sh parameter.sh src/a.txt", Err("no-shells")),
        ("sh function.sh", Err("no-shells")),
        ("sh home.sh", Err("no-shells")),
        ("bash shell.sh", Err("no-shells")),
        ("sh empty.sh", Err("no-shells")),
        ("sh missing.sh", Err("no-shells")),
        ("bash -x one.sh", Err("no-shells")),
        ("bash < one.sh", Err("no-shells")),
        ("zsh one.sh", Err("no-shells")),
        ("env bash one.sh", Err("no-shells")),
        ("sh -- one.sh", Err("no-shells")),
        // The file itself may not be read.
        ("sh .env", Err("no-")),
        ("sh outside.sh", Err("no-shells")),
        ("sh env.sh", Err("no-")),
        ("sh secret.sh", Err("no-")),
        // By a link it may be another by then, as may be what has two names.
        ("sh link.sh", Err("no-shells")),
        ("sh linked/here.sh", Err("no-shells")),
        ("cat > link.sh <<'E'\ngit push\nE\nsh one.sh", Err("no-shells")),
        ("cat > one.sh <<'E'\ngit push\nE\nsh link.sh", Err("no-shells")),
        ("cat > linked/here.sh <<'E'\ngit push\nE\nsh sub/here.sh", Err("no-shells")),
        ("cat > linked/new.sh <<'E'\nls\nE\nsh linked/new.sh", Err("no-shells")),
        ("cat > twin.sh <<'E'\ngit push\nE\nsh quotes.sh", Err("no-shells")),
        // A part that is denied denies the list.
        ("sh push.sh", Err("no-publishing")),
    ] {
        let answer = call(&capsule, "builtin:developer", command);
        match expected {
            Ok(stdout) => assert_eq!(answer["result"]["stdout"], stdout, "{command}: {answer}"),
            Err(rule) => {
                assert!(answer.to_string().contains(rule), "{command}: {answer}");
                assert_eq!(answer["result"]["stdout"], Value::Null, "{command}: {answer}");
            }
        }
    }
    // As words, too; and the record has the text that was judged.
    let words = ["exec", "--policy", "builtin:developer", "--unattended", "--", "sh", "one.sh"];
    assert_eq!(capsule.run(&words).exits(0).stdout, "c\n");
    let shown = capsule.run(&["show-run", "latest"]).exits(0).stdout;
    assert!(shown.contains("cat src/b.txt"), "{shown}");
    fs::remove_file(capsule.workspace().join("one.sh")).unwrap();
    let _ = capsule.run(&["replay", "latest"]).exits(0);
}

/// The text of a shell is read in the language also where its words are given one by one, and nothing else is started for it.
#[test]
fn the_text_of_a_shell_may_be_given_as_words() {
    let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
    capsule.write_file("a b.txt", "it's\n");
    let rows: [(&[&str], i32, &str); 5] = [
        (&["bash", "-lc", "cat 'a b.txt' | wc -c"], 0, "5\n"),
        (&["sh", "-c", "cat \"a b.txt\" && echo it\\'s"], 0, "it's\nit's\n"),
        (&["bash", "-c", "for f in *.txt; do echo \"$f\"; done"], 0, "a b.txt\n"),
        (&["bash", "-c", "sudo id"], 3, ""),
        (&["bash", "-c", "eval ls"], 3, ""),
    ];
    for (words, status, stdout) in rows {
        let args = ["exec", "--policy", "builtin:developer", "--unattended", "--"];
        let ran = capsule.run(&[&args, words].concat()).exits(status);
        assert_eq!(ran.stdout, stdout, "{words:?}: {ran:?}");
    }
}

/// What a policy or a layer says of a shell holds for the scripts that it is given.
#[test]
fn rules_about_scripts_hold() {
    let policy = |more: &str| format!("version: 1\nname: own\nextends: builtin:developer\n{more}");
    let never = |argv: &str| format!("never: [{{ id: no-prod, argv: [{argv}] }}]\n");
    let exec = |rule: &str| format!("tools: {{ shell.run: {{ {rule} }} }}\n");
    for (own, layer, command, expected) in [
        (never("[sh, one.sh]"), String::new(), "sh one.sh", "no-"),
        (never("[sh, one.sh]"), String::new(), "cd src && ls; sh one.sh", "no-"),
        (never("[dash]"), String::new(), "sh one.sh", "no-"),
        (never("[{ regex: '(ba)?sh' }, one.sh]"), String::new(), "bash one.sh", "no-"),
        (String::new(), never("[sh, one.sh]"), "sh one.sh", "no-"),
        (String::new(), exec("form: command, executables: { sh: deny }"), "sh one.sh", "denied"),
        (String::new(), exec("form: command, denied_tokens: [one.sh]"), "sh one.sh", "denied"),
        // Rules about others leave scripts what they are.
        (never("[make, deploy]"), never("[make, release]"), "sh one.sh", ""),
        (String::new(), exec("form: command, denied_tokens: [two.sh]"), "sh one.sh", ""),
    ] {
        let capsule = capsule();
        capsule.write_file("one.sh", "cat src/b.txt");
        if !layer.is_empty() {
            let text = format!("version: 1\nlayer: workspace\n{layer}");
            capsule.write_file(".capsule/policy.yaml", text);
        }
        let path = capsule.write_policy(&policy(&own));
        let answer = call(&capsule, &path, command);
        let row = format!("{own}{layer}{command}: {answer}");
        let stdout = if expected.is_empty() { json!("c\n") } else { Value::Null };
        assert_eq!(answer["result"]["stdout"], stdout, "{row}");
        assert!(answer.to_string().contains(expected), "{row}");
    }
}

/// Programs may do what they like in the workspace.
const OPEN: &str = "version: 1
sandbox: { level: workspace-write }
tools:
  shell.run:
    form: command
    effects: { reads: allow, opens: allow, writes: allow, deletes: allow, runs: allow, code: allow, unknown: allow }
";

fn lay_out(folder: &Path) {
    for (file, text) in [("f", "root\n"), ("a/f", "a\n"), ("a/b/f", "ab\n"), ("b/f", "b\n")] {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    symlink("a/b", folder.join("l")).unwrap();
    symlink("nowhere", folder.join("d")).unwrap();
}

/// Every file with its text, every folder and every link.
fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let text = match () {
                () if kind.is_symlink() => {
                    format!("-> {}", fs::read_link(&path).unwrap().display())
                }
                () if kind.is_dir() => "folder".into(),
                () => fs::read_to_string(&path).unwrap(),
            };
            if kind.is_dir() {
                open.push(path.clone());
            }
            found.insert(path.strip_prefix(root).unwrap().to_owned(), text);
        }
    }
    found
}

/// A41: what a list prints, how it ends, and the files that are there then are those of bash. Many more are
/// compared without a sandbox (`lists_made_at_random_mean_what_they_mean_to_bash`).
#[test]
fn lists_do_what_bash_does() {
    let mut wrong = Vec::new();
    for text in [
        "test -f f || cd a; sed -i s/o/0/ f",
        "test -f missing || cd a; sed -i s/a/0/ f",
        "cd missing; rm f",
        "cd missing && rm f; touch g",
        "cd missing || cd a; rm f",
        "cd missing 2>/dev/null || cd nowhere 2>/dev/null || cd b && rm f",
        "cd a && cd missing; rm f",
        "false && cd a; pwd -P",
        "true || cd a; pwd -P; cd b; pwd -P",
        "cd a; cd ..; pwd -P; cd b && cd - && pwd -P",
        "cd a && cd b && cd - && cd - && cat f",
        "cd - 2>/dev/null || touch failed",
        "cd f; touch x",
        "cd l && pwd -P && cat f && cd .. && pwd -P && cat f",
        "cd l; cat ../f; echo x > ../new; cd ../a && cat f",
        "cd l && echo y >> f; cat < f",
        "mkdir new; cd new; touch x; cd ..; rm -r new",
        "nosuchprogram || echo none; nosuchprogram",
        "perl -e 'kill 9, $$' || echo killed; perl -e 'kill 9, $$'",
        "cat < missing || echo none",
        "cd a\ncat f\ncd b\ncat f\ncd ../..\ncat f",
        "cd a && cat f | cat; cd ..; cat f | head -c 2",
        "cd a || cd b; echo *; cd ..; echo [a-b]",
        "true && : || echo never; : > empty",
        "cd a/b; mv f ../g; cd -; cat a/g",
        "cat a/f & wait; cat f",
        "cat a/f > new & wait $!; cat new; echo $?",
        "cat missing 2>/dev/null & wait %1 || echo failed; false & wait; echo $?",
        "sleep 9 & kill $!; wait $!; echo $?",
        "sleep 9 & A=$!; kill -0 $A && kill -9 $A; wait %1; echo $?",
        "true & wait %3 2>/dev/null; echo $?; kill %2 2>/dev/null || echo none; wait",
        "set -e; false & echo $?; wait; cat f; wait %1 2>/dev/null || echo over",
    ] {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        lay_out(&capsule.workspace());
        let policy = capsule.write_policy(OPEN);
        let answer = call(&capsule, &policy, text);
        let result = &answer["result"];
        let _ = capsule.run(&["apply", "latest"]);
        let status =
            result["exit_code"].as_i64().or(result["signal"].as_i64().map(|own| own + 128));
        let ours = (
            result["stdout"].as_str().unwrap_or_default().to_owned(),
            status,
            tree(&capsule.workspace()),
        );
        let bash = capsule.directory().join("bash");
        fs::create_dir(&bash).unwrap();
        lay_out(&bash);
        let mut shell = Command::new("bash");
        let path = "/usr/local/bin:/usr/bin:/bin";
        shell
            .args(["-c", text])
            .current_dir(&bash)
            .env_clear()
            .env("PATH", path)
            .stdin(Stdio::null());
        let done = shell.output().unwrap();
        let place = fs::canonicalize(&bash).unwrap();
        let workspace = fs::canonicalize(capsule.workspace()).unwrap();
        let stdout = String::from_utf8(done.stdout).unwrap();
        let stdout = stdout.replace(place.to_str().unwrap(), workspace.to_str().unwrap());
        let signal = std::os::unix::process::ExitStatusExt::signal(&done.status);
        let status = done.status.code().or(signal.map(|own| own + 128)).map(i64::from);
        let theirs = (stdout, status, tree(&bash));
        if ours != theirs {
            wrong.push(format!("{text:?}\n  ours {ours:?}\n  bash {theirs:?}\n  {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A41: before a list runs, its parts are judged in every folder that they may run in; what is approved is
/// approved for those.
#[test]
fn a_list_is_judged_in_every_folder_that_it_may_run_in() {
    let capsule = capsule();
    capsule.write_file("secret/a.txt", "s\n");
    let policy = capsule.write_policy(
        "version: 1\nsandbox: { level: workspace-write }\ntools:\n  fs.read: { decision: allow, paths: { allow: [\"**\"], deny: [\"secret/**\"] } }\n  \
         shell.run: { form: command, effects: { reads: allow, writes: allow } }\n",
    );
    for (command, code) in [
        ("test -f src/a.txt || cd secret; cat a.txt", "path.not-allowed"),
        ("cd nowhere || cd secret; cat a.txt", "path.not-allowed"),
        ("cd secret && cat a.txt", "path.not-allowed"),
        ("cd nowhere; cat ../x", "path.outside-workspace"),
        ("cd src; cat ../src/a.txt; cd ..; cat src/b.txt", ""),
        ("mkdir out; cd out; cp ../src/a.txt .; cat a.txt", ""),
        ("cd nowhere; cat src/b.txt", ""),
    ] {
        let answer = call(&capsule, &policy, command);
        let got = if answer["status"] == "denied" { answer["code"].as_str().unwrap() } else { "" };
        assert_eq!(got, code, "{command}: {answer}");
    }
    let many = "cd a; cd b; ".repeat(9) + "ls";
    assert_eq!(call(&capsule, &policy, &many)["code"], "exec.not-in-language");
}

/// B33: text that commands write for a build to run is a program text, whether one list writes and runs it or
/// several calls; what `fs.write` writes is a file.
#[test]
fn what_commands_wrote_for_a_build_is_asked_about() {
    let step = |tool: &str, args: Value| json!({ "tool": tool, "args": args });
    let run = |command: &str| step("shell.run", json!({ "command": command }));
    let write =
        |path: &str| step("fs.write", json!({ "path": path, "content": "all:\n\techo built\n" }));
    for (steps, asked) in [
        (vec![run("printf 'all:\\n\\techo built\\n' > Makefile"), run("make")], true),
        (vec![run("echo 'x:' | tee sub/Makefile"), run("ls"), run("cd sub && make")], true),
        (
            vec![
                step("shell.run", json!({ "argv": ["cp", "src/a.txt", "Makefile"] })),
                step("shell.run", json!({ "argv": ["make"] })),
            ],
            true,
        ),
        (vec![write("Makefile"), run("make")], false),
        (vec![run("touch Makefile"), write("Makefile"), run("make")], false),
        (vec![run("make; echo 'all:' > Makefile"), run("ls")], false),
        (vec![run("sed -i s/b/c/ src/a.txt && make")], false),
        (vec![run("printf 'print(1)' > gen.py; python3 gen.py")], false),
        (vec![run("printf 'all:\\n\\techo built\\n' > rules"), run("make -f rules")], true),
        (vec![run("awk 'BEGIN { print \"all:\" > \"Makefile\" }'; make")], true),
        (vec![run("echo x > rules; make")], false),
    ] {
        let capsule = capsule();
        capsule.write_file("sub/x", "");
        let plan = capsule.write_plan(&json!(steps).to_string());
        let ran = capsule.run(&["run", &plan, "--policy", "builtin:developer", "--json"]);
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(text.contains("approval.needed"), asked, "{steps:?}: {text}");
    }
}

/// A1, A2, A8, FR-19: where one part may not run, none does.
#[test]
fn a_list_runs_as_a_whole_or_not_at_all() {
    let capsule = capsule();
    for (command, code) in [
        ("touch made && git push", "policy.never"),
        ("touch made; cat /etc/passwd", "path.outside-workspace"),
        ("touch made | tee ../out", "path.outside-workspace"),
        ("touch made > .git/hooks/pre-commit", "policy.never"),
        ("touch made && rm -rf *", "path.whole-workspace"),
        ("touch made && sh script", "policy.never"),
        ("touch made && sh -c 'git push'", "policy.never"),
        ("for f in a b; do touch made; git push; done", "policy.never"),
        ("touch made; rm $(ls)", "exec.not-in-language"),
        ("touch made && echo $HOME", "exec.not-in-language"),
        ("touch made && rm src/a.txt", "approval.needed"),
        ("cd nowhere/.. && touch made", "path.invalid"),
    ] {
        let answer = call(&capsule, "builtin:developer", command);
        assert_eq!(answer["code"], code, "{command}: {answer}");
        assert_eq!(answer["status"], "denied", "{command}: {answer}");
        let changes = capsule.run(&["changes", "latest"]);
        assert!(!changes.stdout.contains("made"), "{command}: {}", changes.stdout);
    }
}

/// What programs write that no rule names is staged where the policy's level lets them write; what
/// several parts of a list changed is told together.
#[test]
fn programs_without_a_rule_write_where_the_level_lets_them() {
    let capsule = capsule();
    let command =
        "mkdir -p out && cp src/a.txt out/ && timeout 9 sed -i s/a/z/ src/a.txt; cat src/a.txt";
    let answer = call(&capsule, "builtin:developer", command);
    assert_eq!(answer["result"]["stdout"], "b\nz\n", "{answer}");
    assert_eq!(answer["result"]["changes_total"], 3, "{answer}");
    assert_eq!(answer["result"]["changes"].as_array().unwrap().len(), 3, "{answer}");
    assert_eq!(fs::read_to_string(capsule.workspace().join("src/a.txt")).unwrap(), "b\na\n");
    let _ = capsule.run(&["apply", "latest"]).exits(0);
    assert_eq!(fs::read_to_string(capsule.workspace().join("src/a.txt")).unwrap(), "b\nz\n");
    assert!(capsule.workspace().join("out/a.txt").exists());
    // Without the level, programs that no rule names write nothing; nor do they under a policy that
    // only looks.
    let strict = capsule.write_policy(
        "version: 1\ntools: { shell.run: { form: command, effects: { reads: allow, writes: allow } } }\n",
    );
    let answer = call(&capsule, &strict, "touch new");
    assert!(answer["result"]["stderr"].as_str().unwrap().contains("Read-only"), "{answer}");
    assert_eq!(call(&capsule, "builtin:readonly", "touch new")["code"], "policy.denied");
}

/// A program that another one starts is bound by its own rule as well.
#[test]
fn a_wrapped_program_is_bound_by_its_rule() {
    let capsule = capsule();
    let policy = capsule.write_policy(
        "version: 1\nsandbox: { level: workspace-write }\ntools:\n  shell.run:\n    form: command\n    \
         executables:\n      timeout: allow\n      touch: { decision: allow, writes: [\"out/**\"] }\n",
    );
    fs::create_dir(capsule.workspace().join("out")).unwrap();
    let answer = call(&capsule, &policy, "timeout 9 touch out/new");
    assert_eq!(answer["status"], "ok", "{answer}");
    let answer = call(&capsule, &policy, "timeout 9 touch src/new");
    assert_ne!(answer["status"], "ok", "{answer}");
}

/// Output that becomes the value of a variable, or the input of a loop, is not printed as well.
#[test]
fn what_is_captured_is_not_shown() {
    let capsule = capsule();
    for (command, stdout) in [
        ("x=$(cat src/b.txt); echo \"v $x\"", "v c\n"),
        ("while read -r l; do echo \"l $l\"; done < src/b.txt; cat src/b.txt", "l c\nc\n"),
        ("cat src/b.txt | while read -r l; do echo \"l $l\"; done", "l c\n"),
        ("echo \"a $(echo b) c\"; echo d", "a b c\nd\n"),
        ("(echo a; echo b) | sort -r", "b\na\n"),
    ] {
        let words = ["exec", "--policy", "builtin:developer", "--command", "--", command];
        assert_eq!(capsule.run(&words).exits(0).stdout, stdout, "{command}");
        let replayed = capsule.run(&["replay", "latest"]).exits(0);
        assert!(replayed.stderr.contains("nothing was executed"), "{command}: {replayed:?}");
    }
}

/// B22: names that begin with a dash are paths to every program that a loop hands them to.
#[test]
fn loops_over_names_hand_on_no_options() {
    let capsule = capsule();
    for (command, stdout) in [
        ("cd src; for f in *; do cat \"$f\"; done", "minus\nb\na\nc\n"),
        (
            "cd src; for f in *f; do for g in \"$f\" $f; do wc -l $g; done; done",
            "1 ./-rf\n1 ./-rf\n",
        ),
    ] {
        let answer = call(&capsule, "builtin:developer", command);
        assert_eq!(answer["result"]["stdout"], stdout, "{command}: {answer}");
    }
    for command in [
        "cd src; cat $(ls)",
        "cd src; f=$(ls | head -1); cat \"$f\"",
        // The `--` may be that of a program which starts another one.
        "cd src; f=$(ls | head -1); cat -- \"$f\"",
    ] {
        let answer = call(&capsule, "builtin:developer", command);
        assert_eq!(answer["code"], "exec.not-in-language", "{command}: {answer}");
    }
}

/// A4: what a program prints is judged with the command that it becomes a word of, when that is reached.
#[test]
fn outputs_are_judged_where_they_become_words() {
    let capsule = capsule();
    capsule.write_file("option", "--files0-from=option");
    capsule.write_file("far", "../x");
    capsule.write_file("hidden", ".env");
    capsule.write_file(".env", "SECRET\n");
    capsule.write_file("several", "src/a.txt src/*");
    capsule.write_file("number", "12");
    for (command, code) in [
        ("wc $(cat option)", "exec.not-in-language"),
        ("x=$(cat option); wc \"$x\"", "exec.not-in-language"),
        ("for x in $(cat option); do wc $x; done", "exec.not-in-language"),
        ("wc $(cat several)", "exec.not-in-language"),
        ("cat \"$(cat far)\"", "path.outside-workspace"),
        ("for x in src/b.txt $(cat far); do cat $x; done", "path.outside-workspace"),
        ("x=$(cat far) && if cat \"$x\"; then ls; fi", "path.outside-workspace"),
        ("cat \"$(cat hidden)\"", "policy.never"),
        ("bash -c 'cat \"$(cat hidden)\"' | cat", "policy.never"),
        ("make -j$(cat far)", "exec.not-in-language"),
        ("make -n -j$(cat number) nothing", "exec.exit-nonzero"),
    ] {
        let answer = call(&capsule, "builtin:developer", command);
        assert_eq!(answer["code"], code, "{command}: {answer}");
        let text = answer.to_string();
        assert!(!text.contains("SECRET"), "{command}: {text}");
    }
}

/// A virtual environment's programs are found once it is activated, and only as the programs of the workspace that
/// they are.
#[test]
fn an_activated_environment_has_its_programs() {
    let capsule = capsule();
    let _ = capsule.write_program(".venv/bin/tool", "#!/bin/sh\necho used\n");
    capsule.write_file(".venv/bin/activate", "");
    let policy = capsule.write_policy(OPEN);
    for command in ["source .venv/bin/activate && tool", ". .venv/bin/activate; cd src; tool"] {
        let answer = call(&capsule, &policy, command);
        assert_eq!(answer["result"]["stdout"], "used\n", "{command}: {answer}");
    }
    let answer = call(&capsule, &policy, "tool");
    assert_eq!(answer["code"], "exec.not-found", "{answer}");
}

/// CAP-10: a list replays as the calls that it was.
#[test]
fn lists_replay() {
    let capsule = capsule();
    let command = "for f in src/*.txt; do n=$(wc -l < $f); echo \"$f: $n\"; done | sort -r";
    let answer = call(&capsule, "builtin:developer", command);
    assert_eq!(answer["result"]["stdout"], "src/b.txt: 1\nsrc/a.txt: 2\n", "{answer}");
    let _ = capsule.run(&["replay", "latest"]).exits(0);
    let answer =
        call(&capsule, "builtin:developer", "cat src/a.txt | sort > sorted; cat sorted || echo no");
    assert_eq!(answer["result"]["stdout"], "a\nb\n", "{answer}");
    let shown = capsule.run(&["show-run", "latest"]).exits(0).stdout;
    assert!(shown.contains("sort > sorted") && shown.contains("2 ok"), "{shown}");
    let _ = fs::remove_dir_all(capsule.workspace().join("src"));
    let _ = capsule.run(&["replay", "latest"]).exits(0);
    let _ = capsule.run(&["verify"]).exits(0);
}
