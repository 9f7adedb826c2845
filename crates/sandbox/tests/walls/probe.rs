//! What runs inside: it does what its standard input says, line by line, and answers a line each.
//! Whatever a hostile program could ask of the kernel can be asked by `call`.

use std::ffi::CString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::ExitCode;
use std::time::Duration;

/// The argument that makes the test binary a probe.
pub(crate) const ARGUMENT: &str = "__probe";

pub(crate) fn main(words: &[String]) -> ExitCode {
    let mut script = String::new();
    // Some attempts need a free hand from the very start.
    if let [what, rest @ ..] = words {
        return directly(what, rest);
    }
    std::io::stdin().read_to_string(&mut script).unwrap();
    for line in script.lines() {
        let mut words = line.split(' ');
        let what = words.next().unwrap_or_default();
        let words: Vec<&str> = words.collect();
        let answer = answer(what, &words).replace('\n', "\\n");
        println!("{answer}");
    }
    ExitCode::SUCCESS
}

fn answer(what: &str, words: &[&str]) -> String {
    let outcome = |result: std::io::Result<String>| result.unwrap_or_else(|error| named(&error));
    match what {
        "call" => call(words),
        "read" => outcome(fs::read_to_string(unhex(words[0]))),
        "list" => outcome(fs::read_dir(unhex(words[0])).map(|entries| {
            let mut names: Vec<String> = entries
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names.join(" ")
        })),
        "stat" => outcome(fs::symlink_metadata(unhex(words[0])).map(|facts| {
            use std::os::unix::fs::MetadataExt as _;
            format!("mode {:o} size {} mtime {}", facts.mode(), facts.size(), facts.mtime())
        })),
        "write" => outcome(fs::write(words[0], "written").map(|()| "done".to_owned())),
        "append" => {
            outcome(fs::OpenOptions::new().append(true).open(words[0]).map(|_| "done".to_owned()))
        }
        "connect" => outcome(UnixStream::connect(words[0]).map(|_| "done".to_owned())),
        "send" => outcome(
            UnixDatagram::unbound()
                .and_then(|socket| socket.send_to(b"x", words[0]))
                .map(|_| "done".to_owned()),
        ),
        "tcp" => outcome(std::net::TcpStream::connect(words[0]).map(|_| "done".to_owned())),
        "udp" => outcome(
            std::net::UdpSocket::bind("0.0.0.0:0")
                .and_then(|socket| socket.send_to(b"x", words[0]))
                .map(|_| "done".to_owned()),
        ),
        "exec" => outcome(
            std::process::Command::new(words[0])
                .args(&words[1..])
                .output()
                .map(|output| format!("{} {}", output.status, crate::bed::text(&output.stdout))),
        ),
        "environment" => {
            let mut all: Vec<String> =
                std::env::vars_os().map(|(name, value)| format!("{name:?}={value:?}")).collect();
            all.sort();
            all.join(" ")
        }
        other => format!("unknown: {other}"),
    }
}

/// Attempts that are commands of their own.
fn directly(what: &str, words: &[String]) -> ExitCode {
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    match what {
        "exit" => return ExitCode::from(u8::try_from(number(0)).unwrap()),
        "die" => {
            let signal = i32::try_from(number(0)).unwrap();
            // Not as Rust has set it for its own programs.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            unsafe { libc::raise(signal) };
        }
        "sleep" => std::thread::sleep(Duration::from_millis(number(0))),
        "spin" => loop {
            std::hint::spin_loop();
        },
        "write-for-ever" => {
            // Ends when nobody reads, if signals are as they should be.
            let mut out = std::io::stdout();
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
            while out.write_all(&[b'x'; 65_536]).is_ok() {}
        }
        "print" => {
            let (length, errors) = (number(0), number(1));
            for (count, error) in [(length, false), (errors, true)] {
                let bytes = vec![b'y'; usize::try_from(count).unwrap()];
                if error {
                    std::io::stderr().write_all(&bytes).unwrap();
                } else {
                    std::io::stdout().write_all(&bytes).unwrap();
                }
            }
        }
        "hog" => {
            // Touched page by page and kept.
            let mut kept: Vec<Vec<u8>> = Vec::new();
            for _ in 0..number(0) {
                kept.push(vec![1; 1 << 20]);
                std::thread::sleep(Duration::from_micros(number(1)));
            }
            println!("took {}", kept.len());
        }
        "hog-shared" => {
            // Mapped by this process and touched by a child, so that it is in no one's own memory.
            let length = usize::try_from(number(0) << 20).unwrap();
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let start =
                unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
            assert_ne!(start, libc::MAP_FAILED);
            if unsafe { libc::fork() } == 0 {
                for page in (0..length).step_by(4096) {
                    unsafe { start.cast::<u8>().add(page).write_volatile(1) };
                    if page % (1 << 20) == 0 {
                        std::thread::sleep(Duration::from_micros(number(1)));
                    }
                }
                std::thread::sleep(Duration::from_millis(200));
                std::process::exit(0);
            }
            unsafe { libc::wait(std::ptr::null_mut()) };
        }
        "hog-released" => {
            // Touched piece by piece, each let go of at once: hardly ever is any of it loaded.
            let length = usize::try_from(number(0) << 20).unwrap();
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let start =
                unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
            assert_ne!(start, libc::MAP_FAILED);
            for piece in (0..length).step_by(1 << 20) {
                let at = unsafe { start.cast::<u8>().add(piece) };
                for page in (0..(1 << 20).min(length - piece)).step_by(4096) {
                    unsafe { at.add(page).write_volatile(1) };
                }
                unsafe { libc::madvise(at.cast(), 1 << 20, libc::MADV_DONTNEED) };
                std::thread::sleep(Duration::from_millis(3));
            }
        }
        "hog-cut" => {
            // Piece by piece touched and cut down to one page.
            let length = usize::try_from(number(1) << 20).unwrap();
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            for _ in 0..number(0) {
                let start =
                    unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
                assert_ne!(start, libc::MAP_FAILED);
                for page in (0..length).step_by(4096) {
                    unsafe { start.cast::<u8>().add(page).write_volatile(1) };
                }
                std::thread::sleep(Duration::from_millis(120));
                let rest = unsafe { start.cast::<u8>().add(4096) };
                assert_eq!(unsafe { libc::munmap(rest.cast(), length - 4096) }, 0);
            }
        }
        "hog-tables" => {
            // Nothing is taken but what it takes to know that nothing is there.
            let length = usize::try_from(number(0) << 21).unwrap();
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let start =
                unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, flags, -1, 0) };
            assert_ne!(start, libc::MAP_FAILED);
            unsafe { libc::madvise(start, length, libc::MADV_NOHUGEPAGE) };
            for (looked, at) in (0..length).step_by(2 << 20).enumerate() {
                unsafe { start.cast::<u8>().add(at).read_volatile() };
                if looked % 1_000 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            std::thread::sleep(Duration::from_millis(300));
            println!("all of it");
        }
        "hog-unmapped" => {
            let mut files = Vec::new();
            for _ in 0..number(0) {
                let file = unsafe { libc::syscall(libc::SYS_memfd_create, c"x".as_ptr(), 0) };
                if file == -1 {
                    println!("{}", named(&std::io::Error::last_os_error()));
                    return ExitCode::SUCCESS;
                }
                let file = i32::try_from(file).unwrap();
                let mut file = unsafe { <fs::File as std::os::fd::FromRawFd>::from_raw_fd(file) };
                file.write_all(&vec![1; 1 << 20]).unwrap();
                files.push(file);
            }
        }
        "leave-shared" => {
            // Nobody is attached to it in the end, and nobody has removed it; only its owner knows of it.
            let length = usize::try_from(number(0) << 20).unwrap();
            let id = unsafe { libc::shmget(libc::IPC_PRIVATE, length, libc::IPC_CREAT) };
            if id == -1 {
                let error = std::io::Error::last_os_error();
                assert!(["ENOSYS", "EPERM"].contains(&named(&error).as_str()), "{error}");
                return ExitCode::SUCCESS;
            }
            let mut facts = unsafe { std::mem::zeroed::<libc::shmid_ds>() };
            facts.shm_perm.mode = 0o600;
            assert_eq!(unsafe { libc::shmctl(id, libc::IPC_SET, &raw mut facts) }, 0);
            let start = unsafe { libc::shmat(id, std::ptr::null(), 0) };
            assert_ne!(start, libc::MAP_FAILED);
            for page in (0..length).step_by(4096) {
                unsafe { start.cast::<u8>().add(page).write_volatile(1) };
            }
            facts.shm_perm.mode = 0;
            assert_eq!(unsafe { libc::shmctl(id, libc::IPC_SET, &raw mut facts) }, 0);
        }
        "leave-file" => {
            let path = std::env::var_os("TMPDIR").unwrap();
            let mut file = fs::File::create(std::path::Path::new(&path).join("left")).unwrap();
            for _ in 0..number(0) {
                file.write_all(&[1; 1 << 20]).unwrap();
            }
        }
        "storm" => {
            // Processes that are gone as soon as they have made the next ones.
            for _ in 0..8 {
                if unsafe { libc::fork() } == 0 {
                    loop {
                        if unsafe { libc::fork() } > 0 {
                            unsafe { libc::_exit(0) };
                        }
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        "bomb" => bomb(number(0)),
        "threads" => {
            let mut started = 0;
            for _ in 0..number(0) {
                let sleeper = || std::thread::sleep(Duration::from_secs(30));
                if std::thread::Builder::new().stack_size(65_536).spawn(sleeper).is_err() {
                    break;
                }
                started += 1;
            }
            println!("{started}");
        }
        "fill" => fill(&words[0]),
        "open-many" => {
            let mut files = Vec::new();
            while let Ok(file) = fs::File::open("/dev/null") {
                files.push(file);
            }
            println!("{}", files.len());
        }
        "big-file" => {
            let mut file =
                fs::File::create(format!("{}/big", std::env::var("HOME").unwrap())).unwrap();
            loop {
                if let Err(error) = file.write_all(&[0; 65_536]) {
                    println!("{}", named(&error));
                    break;
                }
            }
        }
        "daemon" => daemon(number(0)),
        "descriptors" => {
            let is_open = |number: &i32| unsafe { libc::fcntl(*number, libc::F_GETFD) } != -1;
            let open: Vec<String> =
                (0..4_096).filter(is_open).map(|number| number.to_string()).collect();
            // At once: others write to the same end.
            let line = format!("{}\n", open.join(" "));
            std::io::stderr().write_all(line.as_bytes()).unwrap();
        }
        "background" => {
            // A child that keeps our output open, and is not waited for.
            if unsafe { libc::fork() } == 0 {
                std::thread::sleep(Duration::from_secs(60));
            }
            println!("started");
        }
        "tree" => tree(number(0)),
        other => panic!("unknown: {other}"),
    }
    ExitCode::SUCCESS
}

/// Makes children that make children, until none can be made; says how many there were at most.
fn bomb(most: u64) {
    let mut children = 0;
    for _ in 0..most {
        match unsafe { libc::fork() } {
            0 => loop {
                std::thread::sleep(Duration::from_secs(60));
            },
            -1 => break,
            _ => children += 1,
        }
    }
    println!("{children}");
}

fn fill(path: &str) {
    let (mut file, mut total) = (fs::File::create(path).unwrap(), 0_u64);
    loop {
        match file.write(&[7; 65_536]) {
            Ok(written) => total += written as u64,
            Err(error) => {
                println!("{total} {}", named(&error));
                return;
            }
        }
    }
}

/// Leaves a grandchild in a session of its own that ignores every signal it can.
fn daemon(seconds: u64) {
    for _ in 0..2 {
        if unsafe { libc::fork() } != 0 {
            std::process::exit(0);
        }
        unsafe { libc::setsid() };
    }
    for signal in 1..32 {
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    std::thread::sleep(Duration::from_secs(seconds));
}

/// A few levels of processes that all sleep.
fn tree(levels: u64) {
    for _ in 0..levels {
        if unsafe { libc::fork() } == 0 && unsafe { libc::fork() } != 0 {
            break;
        }
    }
    std::thread::sleep(Duration::from_secs(60));
}

/// Any system call: its number, and arguments that are numbers, `s:text` or `b:length`. Answers
/// with what it returned, or the name of the error.
fn call(words: &[&str]) -> String {
    let number: i64 = words[0].parse().unwrap();
    let mut texts = Vec::new();
    let mut buffers = Vec::new();
    let mut arguments = [0_i64; 6];
    for (argument, word) in arguments.iter_mut().zip(&words[1..]) {
        *argument = if let Some(text) = word.strip_prefix("s:") {
            texts.push(CString::new(unhex(text).into_os_string().into_encoded_bytes()).unwrap());
            texts.last().unwrap().as_ptr() as i64
        } else if let Some(length) = word.strip_prefix("b:") {
            buffers.push(vec![0_u8; length.parse().unwrap()]);
            buffers.last_mut().unwrap().as_mut_ptr() as i64
        } else if let Some(bytes) = word.strip_prefix("x:") {
            let decoded = (0..bytes.len() / 2)
                .map(|i| u8::from_str_radix(&bytes[2 * i..2 * i + 2], 16).unwrap());
            buffers.push(decoded.collect());
            buffers.last_mut().unwrap().as_mut_ptr() as i64
        } else {
            word.parse().unwrap()
        };
    }
    let [a, b, c, d, e, f] = arguments;
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result == -1 { named(&std::io::Error::last_os_error()) } else { result.to_string() }
}

/// `%41` stands for `A`, so that any byte can stand in a script.
fn unhex(text: &str) -> std::path::PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    std::path::PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(
        bytes,
    ))
}

fn named(error: &std::io::Error) -> String {
    let name = match error.raw_os_error().unwrap_or(0) {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::ESRCH => "ESRCH",
        libc::EACCES => "EACCES",
        libc::EROFS => "EROFS",
        libc::ENOSYS => "ENOSYS",
        libc::EINVAL => "EINVAL",
        libc::ENOTTY => "ENOTTY",
        libc::ENXIO => "ENXIO",
        libc::ENETUNREACH => "ENETUNREACH",
        libc::ENOTDIR => "ENOTDIR",
        libc::EFBIG => "EFBIG",
        libc::ENOSPC => "ENOSPC",
        libc::ENOTSUP => "ENOTSUP",
        libc::EXDEV => "EXDEV",
        libc::ETXTBSY => "ETXTBSY",
        libc::ELOOP => "ELOOP",
        libc::EFAULT => "EFAULT",
        libc::EBADF => "EBADF",
        other => return format!("errno {other}"),
    };
    name.to_owned()
}
