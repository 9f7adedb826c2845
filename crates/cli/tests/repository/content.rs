//! What would come into files by way of a repository: each is refused, and nothing of it is applied.

use super::*;

/// A name, what the host has beside the rest, what is done in the sandbox, and a part of the reason.
type Row = (&'static str, &'static str, &'static str, &'static str);

const OTHER: &str = "git would take it for content of files: it holds another `";
const UNREAD: &str = "what git would make of it cannot be compared: ";

/// Makes `$evil`: a commit, over the one that is there, in which a build server would run something else.
const EVIL: &str = r#"
export GIT_INDEX_FILE=/tmp/index
git read-tree HEAD
blob=$(echo evil | git hash-object -w --stdin)
git update-index --add --cacheinfo 100644,$blob,.github/workflows/ci.yml
tree=$(git write-tree)
evil=$(git commit-tree -p HEAD -m evil $tree)
unset GIT_INDEX_FILE
theirs=$(git rev-parse origin/theirs)
"#;

const ROWS: &[Row] = &[
    // Entries of the index.
    (
        "an entry of the index",
        "",
        "git update-index --add --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),.github/workflows/new.yml",
        OTHER,
    ),
    (
        "another content of one that is there",
        "",
        "git update-index --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),.husky/pre-commit",
        OTHER,
    ),
    ("another mode", "", "git update-index --chmod=+x .husky/pre-commit", OTHER),
    (
        "another content that is the one of some other file",
        "",
        "git update-index --cacheinfo 100644,$(git rev-parse HEAD:src/1),.github/workflows/ci.yml",
        OTHER,
    ),
    (
        "an entry of a conflict",
        "",
        "printf '100644 %s 2\\t.vscode/tasks.json\\n' $(git rev-parse HEAD:src/1) | git update-index --index-info",
        OTHER,
    ),
    ("an entry that only a remote branch has", "", "git read-tree origin/theirs", OTHER),
    (
        "an entry that goes",
        "",
        "git update-index --force-remove .github/workflows/ci.yml",
        "it is without `",
    ),
    ("all entries", "", "rm .git/index", "it is without `"),
    (
        "an entry whose changes are not looked for",
        "",
        "git update-index --skip-worktree .husky/pre-commit",
        "it hides what becomes of",
    ),
    (
        "the same by another name",
        "",
        "git update-index --assume-unchanged .github/workflows/ci.yml",
        "it hides what becomes of",
    ),
    (
        "a patch that is applied to the index alone",
        "",
        "printf -- '--- /dev/null\\n+++ b/.vscode/tasks.json\\n@@ -0,0 +1 @@\\n+{}\\n' | git apply --cached",
        OTHER,
    ),
    (
        "a link where a folder is looked for",
        "",
        "git update-index --add --cacheinfo 120000,$(printf src | git hash-object -w --stdin),.vscode",
        OTHER,
    ),
    (
        "a link that leads to what is protected",
        "",
        "git update-index --add --cacheinfo 120000,$(printf .git/hooks | git hash-object -w --stdin),easy",
        "it holds another `easy`",
    ),
    (
        "another repository where a folder is looked for",
        "",
        "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),.vscode",
        "another repository in a place",
    ),
    ("an index that is no index", "", "echo evil > .git/index", UNREAD),
    // What references stand for.
    ("a branch", "", "$EVIL git update-ref refs/heads/main $evil", OTHER),
    ("a new branch", "", "$EVIL git update-ref refs/heads/new $evil", OTHER),
    ("a branch by a file of its own", "", "$EVIL echo $evil > .git/refs/heads/main", OTHER),
    (
        "a branch in the list",
        "git pack-refs --all",
        "$EVIL sed -i \"s/^[0-9a-f]* refs.heads.main/$evil refs\\/heads\\/main/\" .git/packed-refs",
        OTHER,
    ),
    (
        "what hides beneath a file of its own",
        "git pack-refs --all; git commit -q --allow-empty -m n",
        "$EVIL sed -i \"s/^[0-9a-f]* refs.heads.main/$evil refs\\/heads\\/main/\" .git/packed-refs",
        OTHER,
    ),
    (
        "what a tag in the list is said to stand for",
        "git tag -a -m t t; git pack-refs --all",
        "$EVIL sed -i \"s/^^.*/^$evil/\" .git/packed-refs",
        OTHER,
    ),
    ("a tag", "", "$EVIL git tag v1 $evil", OTHER),
    ("a tag of a tag", "", "$EVIL git tag -a -m v1 v1 $evil; git tag -a -m v2 v2 v1", OTHER),
    ("a tag of a tree", "", "$EVIL git tag v1 $tree", OTHER),
    (
        "a stash",
        "",
        "$EVIL git stash store -m x $(git commit-tree -p HEAD -p HEAD~1 -m x $tree)",
        OTHER,
    ),
    ("a note", "", "$EVIL git update-ref refs/notes/commits $evil", OTHER),
    ("a remote branch", "", "$EVIL git update-ref refs/remotes/origin/main $evil", OTHER),
    ("a reference of no known kind", "", "$EVIL git update-ref refs/else/x $evil", OTHER),
    ("no branch at all", "", "$EVIL echo $evil > .git/HEAD", OTHER),
    (
        "two commits, of which the last is as before",
        "",
        "$EVIL git update-ref refs/heads/main $(git commit-tree -p $evil -m good HEAD^{tree})",
        OTHER,
    ),
    (
        "a merge",
        "",
        "$EVIL git update-ref refs/heads/main $(git commit-tree -p HEAD -p $evil -m good HEAD^{tree})",
        OTHER,
    ),
    (
        "a commit with nothing before it",
        "",
        "$EVIL git update-ref refs/heads/main $(git commit-tree -m evil $tree)",
        OTHER,
    ),
    (
        "a commit that has what only theirs has",
        "",
        "$EVIL git update-ref refs/heads/main $(git commit-tree -p HEAD -p $theirs -m m $theirs^{tree})",
        OTHER,
    ),
    ("a branch that becomes theirs", "", "$EVIL git update-ref refs/heads/main $theirs", OTHER),
    (
        "another branch that becomes theirs",
        "git branch dev",
        "$EVIL git update-ref refs/heads/dev $theirs",
        OTHER,
    ),
    (
        "a branch that is called like theirs",
        "git update-ref refs/remotes/origin/main HEAD",
        "$EVIL git update-ref refs/heads/origin/main $theirs",
        OTHER,
    ),
    (
        "a tag that is called like a branch",
        "",
        "$EVIL git update-ref refs/tags/main $theirs",
        OTHER,
    ),
    ("theirs, without a branch", "", "$EVIL echo $theirs > .git/HEAD", OTHER),
    (
        "theirs, by the name of another",
        "",
        "git update-ref refs/heads/x origin/theirs; echo 'ref: refs/heads/x' > .git/HEAD",
        OTHER,
    ),
    (
        "a commit without what was there",
        "",
        "$EVIL git update-ref refs/heads/main $(git commit-tree -p HEAD -m gone HEAD:src)",
        "it is without `",
    ),
    (
        "a commit that was thrown away",
        "git checkout -q -b gone; mkdir .vscode; echo {} > .vscode/tasks.json; git add .; git commit -qm gone; git rev-parse HEAD > .gone; git checkout -q main; git branch -qD gone; git reflog expire --expire=now --all",
        "git update-ref refs/heads/main $(cat .gone)",
        OTHER,
    ),
    // What git keeps beside them.
    ("what is merged", "", "$EVIL echo $evil > .git/MERGE_HEAD", OTHER),
    ("where a reset goes back to", "", "$EVIL echo $evil > .git/ORIG_HEAD", OTHER),
    ("where a reset goes back to, as theirs", "", "$EVIL echo $theirs > .git/ORIG_HEAD", OTHER),
    (
        "what was fetched",
        "",
        "$EVIL printf '%s\\t\\tbranch main of x\\n' $evil > .git/FETCH_HEAD",
        OTHER,
    ),
    ("what is taken up after a merge", "", "$EVIL echo $evil > .git/MERGE_AUTOSTASH", OTHER),
    ("what a merge made", "", "$EVIL echo $tree > .git/AUTO_MERGE", OTHER),
    (
        "what a reference stood for",
        "",
        "$EVIL printf '%s %s A <a> 1 +0000\\tx\\n' $evil $evil >> .git/logs/HEAD",
        OTHER,
    ),
    (
        "a stash below the last",
        "echo s >> src/1; git stash -q",
        "$EVIL sed -i \"1s/^[0-9a-f]* [0-9a-f]*/$(printf %040d 0) $evil/\" .git/logs/refs/stash",
        OTHER,
    ),
    ("a log that is none", "", "echo evil > .git/logs/HEAD", UNREAD),
    ("where a search goes back to", "", "echo origin/theirs > .git/BISECT_START", UNREAD),
    ("a name beside the others", "", "$EVIL echo $evil > .git/main", "it is not known what git"),
    (
        "the same in a repository of another name",
        "git clone -q --bare . data.git; git -C data.git config core.bare true; rm -rf data.git/hooks; printf data.git > .git/info/exclude",
        "git rev-parse HEAD > data.git/other",
        "it is not known what git",
    ),
    (
        "a link among the references",
        "",
        "ln -s main .git/refs/heads/other",
        "nothing but regular files",
    ),
    ("a reference out of the repository", "", "echo 'ref: ../../../x' > .git/refs/heads/x", UNREAD),
    (
        "`HEAD` as a branch of theirs",
        "",
        "echo 'ref: refs/remotes/origin/theirs' > .git/HEAD",
        "`HEAD` stands for",
    ),
    ("a replaced object", "", "git replace HEAD:.github/workflows/ci.yml HEAD:src/1", "Git runs"),
    (
        "a replaced object in the list",
        "git pack-refs --all",
        "echo \"$(git rev-parse HEAD:src/1) refs/replace/$(git rev-parse HEAD:.github/workflows/ci.yml)\" >> .git/packed-refs",
        "in another's place",
    ),
    (
        "other parents",
        "",
        "mkdir -p .git/info; echo $(git rev-parse HEAD) > .git/info/grafts",
        "Git runs",
    ),
    ("an end of the history", "", "git rev-parse HEAD > .git/shallow", "where the history ends"),
    (
        "a part of the working tree",
        "",
        "mkdir -p .git/info; echo src > .git/info/sparse-checkout",
        "Git runs",
    ),
    (
        "what resolves conflicts",
        "",
        "mkdir -p .git/rr-cache/x; echo evil > .git/rr-cache/x/postimage",
        "later conflicts",
    ),
    ("an index in parts", "", "git update-index --split-index", "in two parts"),
    (
        "an index in parts, of which one is there already",
        "git update-index --split-index",
        "echo x >> src/a; git add src/a",
        "in two parts",
    ),
    ("other objects", "", "echo /tmp > .git/objects/info/alternates", "Git runs"),
    (
        "commands of a rebase",
        "",
        "mkdir .git/rebase-merge; echo 'exec evil' > .git/rebase-merge/git-rebase-todo",
        "Git runs",
    ),
    ("a lock", "", "touch .git/index.lock", "it is a lock"),
    // Objects.
    (
        "another object in place of one",
        "",
        "o=$(git rev-parse HEAD:.github/workflows/ci.yml | sed 's,^..,&/,'); n=$(echo evil | git hash-object -w --stdin | sed 's,^..,&/,'); chmod u+w .git/objects/$o; cat .git/objects/$n > .git/objects/$o",
        "another content than its name",
    ),
    (
        "a file with the name of a packed object",
        "git gc -q",
        "o=$(git rev-parse HEAD:src/1 | sed 's,^..,&/,'); n=$(echo worse | git hash-object -w --stdin | sed 's,^..,&/,'); mkdir -p .git/objects/${o%/*}; cp .git/objects/$n .git/objects/$o",
        "another content than its name",
    ),
    (
        "an object that is none",
        "",
        "mkdir -p .git/objects/00; echo evil > .git/objects/00/00000000000000000000000000000000000000",
        UNREAD,
    ),
    ("an index of a pack that lies", "", PACK_THAT_LIES, "names `"),
    (
        "a pack without objects",
        "",
        "echo evil > .git/objects/pack/pack-0.pack; echo evil > .git/objects/pack/pack-0.idx",
        UNREAD,
    ),
    (
        "another index of a pack",
        "git gc -q",
        "for f in .git/objects/pack/*.idx; do chmod u+w $f; echo >> $f; done",
        "another length",
    ),
    ("an index of several packs", "git gc -q", "git multi-pack-index write", "several packs"),
    ("a map of the history", "git gc -q", "git repack -adbq", "of the history"),
    ("a commit graph that lies", "", GRAPH_THAT_LIES, "something else than a commit does"),
    ("a commit graph in parts", "", "git commit-graph write --reachable --split", "in parts"),
    ("a tree with a name of two parts", "", SLASHED, "more than one way"),
    ("a tree with a name twice", "", TWICE, "more than one way"),
    ("a tree with a repository", "", DOTGIT, "more than one way"),
    ("an index whose trees lie", "", TREES_THAT_LIE, "a tree that its entries do not make"),
    ("an index with a part that nobody knows", "", UNKNOWN_PART, "a part `ABCD`"),
    (
        "a large file that lies",
        "",
        "mkdir -p .git/lfs/objects/aa/aa; echo evil > .git/lfs/objects/aa/aa/$(printf %064d 0)",
        "another content than its name",
    ),
    // Other places that are protected.
    (
        "a hook by the name that the configuration gives it",
        "mkdir hooks; echo one > hooks/pre-commit; git add .; git commit -qm hooks; git config core.hooksPath hooks",
        "git update-index --cacheinfo 100755,$(echo evil | git hash-object -w --stdin),hooks/pre-commit",
        "it holds another `hooks/pre-commit`",
    ),
    (
        "a repository within",
        "git init -q -b main sub; cd sub; git config user.name a; git config user.email a@b; git commit -q --allow-empty -m x; cd ..; printf sub > .git/info/exclude",
        "cd sub; git update-index --add --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),.envrc",
        "it holds another `.envrc`",
    ),
    (
        "a repository without a working tree",
        "git clone -q --bare --no-hardlinks . data.git; rm -rf data.git/hooks; printf data.git > .git/info/exclude",
        "$EVIL for o in $evil $tree $blob $(git rev-parse $tree:.github $tree:.github/workflows); do f=$(echo $o | sed 's,^..,&/,'); mkdir -p data.git/objects/${f%/*}; cp -n .git/objects/$f data.git/objects/$f || true; done; echo $evil > data.git/refs/heads/main",
        OTHER,
    ),
    (
        "a repository elsewhere",
        "mkdir data; git init -q --separate-git-dir=data/repo; echo 'gitdir: data/repo' > .git; printf data > data/repo/info/exclude",
        "$EVIL git update-ref refs/heads/main $evil",
        OTHER,
    ),
    (
        "names by the longer digest",
        "rm -rf .git; git init -q -b main --object-format=sha256 .; git config user.name a; git config user.email a@b; git add .; git commit -qm one; git update-ref refs/remotes/origin/theirs HEAD",
        "$EVIL git update-ref refs/heads/main $evil",
        OTHER,
    ),
];

/// A pack with two objects, whose index has their places exchanged.
const PACK_THAT_LIES: &str = r#"
one=$(git rev-parse HEAD:.github/workflows/ci.yml); other=$(echo evil | git hash-object -w --stdin)
name=$(printf '%s\n%s\n' $one $other | git pack-objects -q .git/objects/pack/pack)
chmod u+w .git/objects/pack/*
perl -e 'use Digest::SHA "sha1"; my $f = $ARGV[0]; open(F, "<:raw", $f); local $/; my $b = <F>; close F;
  my $o = 8 + 1024 + 40 + 8; my ($x, $y) = (substr($b, $o, 4), substr($b, $o + 4, 4));
  substr($b, $o, 4) = $y; substr($b, $o + 4, 4) = $x;
  ($x, $y) = (substr($b, $o - 8, 4), substr($b, $o - 4, 4)); substr($b, $o - 8, 4) = $y; substr($b, $o - 4, 4) = $x;
  $b = substr($b, 0, -20); $b .= sha1($b); open(F, ">:raw", $f); print F $b' .git/objects/pack/pack-$name.idx
rm .git/objects/$(echo $other | sed 's,^..,&/,')
git cat-file blob $one | grep -q evil
"#;

/// A commit graph that names the tree of their branch as that of `main`.
const GRAPH_THAT_LIES: &str = r#"
git commit-graph write --reachable
chmod u+w .git/objects/info/commit-graph
perl -e 'use Digest::SHA "sha1"; my ($f, $from, $to) = @ARGV; open(F, "<:raw", $f); local $/; my $b = <F>; close F;
  $b = substr($b, 0, -20); my $at = index($b, pack("H*", $from)); die if $at < 0; substr($b, $at, 20) = pack("H*", $to);
  $b .= sha1($b); open(F, ">:raw", $f); print F $b' .git/objects/info/commit-graph $(git rev-parse HEAD^{tree} origin/theirs^{tree})
"#;

const SLASHED: &str = r#"
blob=$(echo evil | git hash-object -w --stdin)
tree=$(perl -e 'print "100644 .github/workflows/x.yml\0", pack("H*", $ARGV[0])' $blob | git hash-object -w -t tree --literally --stdin)
git update-ref refs/heads/main $(git commit-tree -p HEAD -m evil $tree)
"#;

const TWICE: &str = r#"
blob=$(git rev-parse HEAD:src/1)
tree=$(perl -e 'print map { ("100644 a\0", pack("H*", $ARGV[0])) } 1, 2' $blob | git hash-object -w -t tree --literally --stdin)
git update-ref refs/heads/main $(git commit-tree -p HEAD -m evil $tree)
"#;

const DOTGIT: &str = r#"
tree=$(perl -e 'print "40000 .GIT\0", pack("H*", $ARGV[0])' $(git rev-parse HEAD:src) | git hash-object -w -t tree --literally --stdin)
git update-ref refs/heads/main $(git commit-tree -p HEAD -m evil $tree)
"#;

/// An index whose next commit would be the tree of their branch.
const TREES_THAT_LIE: &str = r#"
git read-tree HEAD
perl -e 'use Digest::SHA "sha1"; my ($f, $from, $to) = @ARGV; open(F, "<:raw", $f); local $/; my $b = <F>; close F;
  $b = substr($b, 0, -20); my $at = index($b, pack("H*", $from)); die if $at < 0; substr($b, $at, 20) = pack("H*", $to);
  $b .= sha1($b); open(F, ">:raw", $f); print F $b' .git/index $(git rev-parse HEAD^{tree} origin/theirs^{tree})
"#;

const UNKNOWN_PART: &str = r#"
perl -e 'use Digest::SHA "sha1"; my $f = ".git/index"; open(F, "<:raw", $f); local $/; my $b = <F>; close F;
  $b = substr($b, 0, -20) . "ABCD" . pack("N", 1) . "x"; $b .= sha1($b); open(F, ">:raw", $f); print F $b'
"#;

/// C22: nothing that an invariant protects comes into files by way of a repository, and none of its objects
/// becomes another one.
#[test]
fn a_repository_brings_nothing_that_is_protected() {
    let wrong = run_in_parallel(ROWS.to_vec(), |(what, host, inside, why)| {
        let bed = Bed::new(host);
        let before = bed.files();
        let ran = bed.inside(&inside.replace("$EVIL", EVIL));
        let answer = ran.stdout.parse::<serde_json::Value>().unwrap_or_default();
        let reason = answer["reason"].as_str().unwrap_or_default();
        if answer["code"] != "change.refused" || !reason.contains(why) {
            return Some(format!("{what}: {}", told(&ran)));
        }
        let applied = bed.apply();
        let is_refused = applied.status == 3 && applied.stderr.contains("change.refused");
        if !is_refused || bed.files() != before {
            return Some(format!("{what}: applied: {}", told(&applied)));
        }
        None
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// C22: in the workspace itself, what came there is told when the command has ended.
#[test]
fn what_is_made_of_a_repository_in_the_workspace_itself_is_told() {
    let rows: &[(&str, &str)] = &[
        ("$EVIL git update-ref refs/heads/main $evil", OTHER),
        ("$EVIL git update-ref refs/heads/main $theirs", OTHER),
        ("git update-index --force-remove .github/workflows/ci.yml", "it is without `"),
        ("$EVIL git pack-refs --all; git tag t $evil; git gc -q", OTHER),
        (
            "o=$(git rev-parse HEAD:src/1 | sed 's,^..,&/,'); n=$(echo worse | git hash-object -w --stdin | sed 's,^..,&/,'); \
             chmod u+w .git/objects/$o; cat .git/objects/$n > .git/objects/$o",
            "another content than its name",
        ),
        ("echo x > src/x; git add src; git commit -qm x", ""),
        ("git gc -q; echo x > src/x; git add src; git commit -qm x", ""),
        ("git stash list; git checkout -q -b topic; git commit -q --amend -m other", ""),
    ];
    let wrong = run_in_parallel(rows.to_vec(), |(script, why)| {
        let bed = Bed::new("");
        let ran = bed.directly(&script.replace("$EVIL", EVIL));
        let answer = ran.stdout.parse::<serde_json::Value>().unwrap_or_default();
        let reason = answer["reason"].as_str().unwrap_or_default();
        let is_right = match why {
            "" => ran.status == 0,
            why => answer["code"] == "change.protected" && reason.contains(why),
        };
        (!is_right).then(|| format!("{script}: {}", told(&ran)))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// C22: a tool that writes files leaves to git what git keeps, in every way of changing a workspace.
#[test]
fn no_tool_writes_what_git_keeps() {
    let bed = Bed::new("git gc -q");
    let direct = bed.policy.replace("policy.yaml", "direct.yaml");
    fs::write(&direct, POLICY.replace("{ floor: landlock }", "{ workspace: direct }")).unwrap();
    let before = bed.files();
    for policy in [&bed.policy, &direct] {
        for (tool, args) in [
            ("fs.write", r#"{"path":".git/refs/heads/main","content":"x"}"#),
            ("fs.write", r#"{"path":".git/refs/heads/new","content":"x"}"#),
            ("fs.write", r#"{"path":".git/HEAD","content":"x"}"#),
            ("fs.edit", r#"{"path":".git/HEAD","search":"main","replace":"x"}"#),
            ("fs.write", r#"{"path":".git/index","content":"x"}"#),
            ("fs.delete", r#"{"path":".git/index"}"#),
            ("fs.delete", r#"{"path":".git/objects","recursive":true}"#),
            ("fs.write", r#"{"path":".git/objects/00/0","content":"x"}"#),
            ("fs.write", r#"{"path":".git/MERGE_HEAD","content":"x"}"#),
            ("fs.write", r#"{"path":".git/rr-cache/x/postimage","content":"x"}"#),
            ("fs.write", r#"{"path":".git/shallow","content":"x"}"#),
            ("fs.write", r#"{"path":".git/main","content":"x"}"#),
        ] {
            let ran = bed.capsule.run(&["call", tool, "--policy", policy, "--args", args]);
            assert_eq!(ran.status, 3, "{tool} {args}: {}", told(&ran));
            assert!(bed.files() == before, "{tool} {args}");
        }
        let text = r#"{"path":".git/info/exclude","content":"own\n"}"#;
        let _ = bed.capsule.run(&["call", "fs.write", "--policy", policy, "--args", text]).exits(0);
        let _ = bed.capsule.run(&["discard", "latest"]);
    }
}
