//! Ordinary programs work.

use std::fs;

use capsule_base::root_names::RootNames;
use capsule_sandbox::{Executor, SandboxBackend as _, Termination};

use crate::Test;
use crate::bed::{Bed, Rows, launch, text};

pub(crate) const TESTS: &[Test] = &[
    ("ordinary_programs_work", ordinary_programs_work),
    ("programs_outside_system_folders_can_be_shown", programs_outside_system_folders_can_be_shown),
];

/// A shell command, and what it prints. `need` is a program without which the row is left out: the
/// row is about how it runs here, not about which programs a machine has.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("cat", "cat file", "content"),
    ("ls", "ls", "Makefile\nfile\nmain.c\nscript.sh"),
    ("grep", "grep -c content file", "1"),
    ("find", "find . -name '*.c'", "./main.c"),
    ("sort", "printf 'b\\na\\n' | sort", "a\nb"),
    ("sed", "sed s/content/new/ file", "new"),
    ("awk", "awk '{print NR, $0}' file", "1 content"),
    ("tar", "tar cf /tmp/t.tar file && tar tf /tmp/t.tar", "file"),
    ("gzip", "gzip -c file | gzip -dc", "content"),
    ("cp", "cp -a file /tmp/copy && cat /tmp/copy", "content"),
    ("nproc", "test $(nproc) -ge 1 && echo yes", "yes"),
    ("date", "date -u -d @0 +%Y", "1970"),
    ("id", "id -u >/dev/null && echo yes", "yes"),
    ("df", "df /workspace >/dev/null && echo yes", "yes"),
    ("mktemp", "mktemp -d | cut -c1-5", "/tmp/"),
    ("mkfifo", "mkfifo /tmp/p && (echo through > /tmp/p &) && cat /tmp/p", "through"),
    ("sh", "sh script.sh", "from a script"),
    ("bash", "bash -c 'cat <(echo substituted)'", "substituted"),
    (
        "git",
        "cd /tmp && git init -q r && cd r && cp /workspace/file . && git add . && git -c user.name=n -c user.email=e commit -q -m m && git log --format=%s",
        "m",
    ),
    ("perl", "perl -e 'print join(\",\", map { $_ * 2 } 1..3)'", "2,4,6"),
    ("make", "make -s", "made"),
    ("gcc", "gcc -o /tmp/main main.c && /tmp/main", "compiled"),
    (
        "/usr/bin/python3",
        "/usr/bin/python3 -c 'import threading,subprocess,tempfile,ssl,hashlib,json; t=threading.Thread(target=lambda: print(\"thread\")); t.start(); t.join(); print(subprocess.check_output([\"echo\",\"child\"]).decode().strip())'",
        "thread\nchild",
    ),
    (
        "/usr/bin/python3",
        "/usr/bin/python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs,[-1,-2]))'",
        "[1, 2]",
    ),
    (
        "/usr/bin/node",
        "/usr/bin/node -e 'const {Worker}=require(\"worker_threads\"); new Worker(\"console.log(1+1)\",{eval:true}).on(\"exit\",()=>console.log(require(\"child_process\").execSync(\"echo child\").toString().trim()))'",
        "2\nchild",
    ),
    (
        "/usr/bin/java",
        "mkdir /tmp/j && printf 'public class T{public static void main(String[] a)throws Exception{Thread t=new Thread(()->System.out.println(\"java\"));t.start();t.join();}}' > /tmp/j/T.java && /usr/bin/java -Xmx256m /tmp/j/T.java",
        "java",
    ),
    ("/usr/bin/cargo", "/usr/bin/cargo --version | cut -d' ' -f1", "cargo"),
    ("ps", "ps -e >/dev/null 2>&1; echo asked", "asked"),
    ("timeout", "timeout 1 sleep 0.01; echo $?", "0"),
    ("xargs", "printf 'a b' | xargs -n1 echo", "a\nb"),
    ("setsid", "setsid echo apart", "apart"),
    ("nice", "nice -n 5 echo nice", "nice"),
];

fn ordinary_programs_work() {
    let mut bed = Bed::new(
        |workspace| {
            fs::write(workspace.join("file"), "content\n").unwrap();
            fs::write(workspace.join("script.sh"), "echo from a script\n").unwrap();
            fs::write(workspace.join("Makefile"), "all:\n\t@echo made\n").unwrap();
            let main = "#include <stdio.h>\nint main(void){puts(\"compiled\");return 0;}\n";
            fs::write(workspace.join("main.c"), main).unwrap();
        },
        &[],
    );
    let mut rows = Rows::default();
    let mut ran = 0;
    for (need, script, expected) in COMMANDS {
        let path = ["", "/usr/local/bin/", "/usr/bin/", "/bin/"].map(|at| format!("{at}{need}"));
        if !path.iter().any(|path| path.starts_with('/') && fs::exists(path).unwrap_or(false)) {
            eprintln!("    {need} is not on this machine");
            continue;
        }
        ran += 1;
        let mut command = launch("/bin/sh", &["sh", "-c", script]);
        command.limits.timeout_ms = 60_000;
        let exit = bed.try_run(command).unwrap();
        let out = text(&exit.stdout.bytes);
        rows.check(
            exit.termination == Termination::Exited(0) && out.trim_end() == *expected,
            || format!("{script}: {:?} {out:?} {:?}", exit.termination, text(&exit.stderr.bytes)),
        );
    }
    rows.end();
    assert!(ran > 20, "only {ran} programs were there");
}

fn programs_outside_system_folders_can_be_shown() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("tools/bin")).unwrap();
    fs::copy("/bin/echo", folder.path().join("tools/bin/say")).unwrap();
    fs::create_dir(folder.path().join("workspace")).unwrap();
    let open = |path: &str| fs::File::open(folder.path().join(path)).unwrap().into();
    let start = |programs: Vec<(std::path::PathBuf, std::os::fd::OwnedFd)>| {
        let mut executor = Executor::start().unwrap();
        let view = capsule_sandbox::SandboxView {
            floor: crate::world::current().floor(),
            workspace: open("workspace"),
            root_names: RootNames::default(),
            staging: None,
            hidden: Vec::new(),
            programs,
            toolchains: Vec::new(),
            repository: None,
            git: capsule_sandbox::GitFiles::default(),
        };
        executor.enter(view).map(|_| executor)
    };
    let mut executor = start(vec![("/opt/some/tools".into(), open("tools"))]).unwrap();
    let mut say = launch(folder.path().join("tools/bin/say").to_str().unwrap(), &["say", "hello"]);
    say.stages[0].program.path = "/opt/some/tools/bin/say".into();
    let exit = executor.run(say, &mut crate::bed::Nobody).unwrap();
    assert_eq!(text(&exit.stdout.bytes), "hello\n");
    for taken in
        ["/tmp/tool", "/workspace/tool", "/proc/tool", "/dev/tool", "/usr/bin/tool", "relative"]
    {
        assert!(start(vec![(taken.into(), open("tools/bin/say"))]).is_err(), "{taken}");
    }
}
