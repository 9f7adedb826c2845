//! P14: the proxy of commands. What one connection carries a second, against a bare relay of two sockets; what setting
//! one up takes, and a build that downloads and unpacks 200 packages, against the same without a proxy. The client is the same
//! program on both sides, in `perl`, as the server is.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::Answer;
use crate::binary::{Binary, printed, quiet};
use crate::options::Options;
use crate::origin;
use crate::pairs::{Pairs, seconds};
use crate::row::{Row, Target};

const POLICY: &str = r#"version: 1
name: network
extends: builtin:developer
budgets: { run: { calls: 1000000, fetched: 1000GB } }
sandbox:
  network: { shell.run: proxy, hosts: ["localhost:PORT"], private_ips: { allow: [127.0.0.1] } }
tools:
  shell.run:
    effects: { network: allow, code: allow, unknown: allow }
    executables: { perl: { decision: allow, writes: ["**"] } }
"#;

/// Asks for `PATH` as often as it is told, each time over a connection of its own, and prints how long one took, in
/// seconds. A package is unpacked.
const CLIENT: &str = r#"use Socket; use Time::HiRes "time";
my ($port, $count, $path, $through) = @ARGV;
my $proxy = $through ? ($ENV{http_proxy} =~ /:(\d+)/)[0] : 0;
my $began = time;
for my $number (1 .. $count) {
    socket(my $s, PF_INET, SOCK_STREAM, 0) or die $!;
    connect($s, pack_sockaddr_in($proxy || $port, INADDR_LOOPBACK)) or die $!;
    if ($proxy) {
        syswrite($s, "CONNECT localhost:$port HTTP/1.1\r\nHost: localhost:$port\r\n\r\n");
        sysread($s, my $answer, 4096); $answer =~ / 200 / or die $answer;
    }
    syswrite($s, "GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n");
    my ($head, $got) = ("", 0);
    sysread($s, $head, 4096, length $head) or die "cut" while $head !~ /\r\n\r\n/;
    $head =~ s/^.*?Length: (\d+).*?\r\n\r\n//s; my $wanted = $1;
    my $file; open($file, ">", "p$number.tgz") or die $! if $path eq "/package";
    for (my $block = $head;; ) {
        $got += length $block; print $file $block if $file;
        sysread($s, $block, 1 << 20) or last;
    }
    $got == $wanted or die "$got of $wanted";
    if ($file) { close $file; system("tar", "-xzf", "p$number.tgz", "--one-top-level=p$number") == 0 or die }
}
print +(time - $began) / $count, "\n";
"#;

/// How long the kernel is given to take namespaces apart.
const PAUSE: Duration = Duration::from_millis(20);
/// The packages of the build.
const PACKAGES: usize = 200;

pub(crate) fn measure(options: &Options) -> Answer<Vec<Row>> {
    let files = options.fresh("p14")?;
    let inside = options.fresh("p14-workspace")?;
    let long = u64::try_from(options.pick(512, 64)).unwrap_or(0) << 20;
    let port = origin::serve(package(&files)?, long)?;
    let binary = Binary::new(options, &files, &inside, &POLICY.replace("PORT", &port.to_string()))?;
    let client = Client { binary: &binary, outside: options.fresh("p14-outside")?, port };
    let rounds = options.pick(21, 3);
    let many = options.pick(500, 50);
    let relay = origin::relay(port)?;
    let carried = Pairs::take(
        rounds,
        PAUSE,
        || client.inside(1, "/long"),
        || client.outside(relay, 1, "/long"),
    )?;
    let set_up = Pairs::take(
        rounds,
        PAUSE,
        || client.inside(many, "/short"),
        || client.outside(port, many, "/short"),
    )?;
    let built = client.builds(options.pick(7, 1))?;
    let size = long >> 20;
    Ok(vec![
        Row::new(
            "P14",
            format!("{size} MiB through the proxy, in one connection"),
            "a bare relay of two sockets",
            carried,
            Target::SpeedAtLeast(0.8),
        ),
        Row::new(
            "P14",
            format!("a connection and its answer, one of {many}"),
            "direct",
            set_up,
            Target::MoreAtMost(1e-3),
        ),
        Row::new(
            "P14",
            format!("a build that downloads and unpacks {PACKAGES} packages"),
            "direct",
            built,
            Target::TimeAtMost(1.15),
        ),
    ])
}

/// The client, where it is confined and where it is not.
struct Client<'b> {
    binary: &'b Binary,
    outside: std::path::PathBuf,
    port: u16,
}

impl Client<'_> {
    fn inside(&self, count: usize, path: &str) -> Answer<f64> {
        let (port, count) = (self.port.to_string(), count.to_string());
        let words = ["--", "perl", "-e", CLIENT, &port, &count, path, "through"];
        number(&mut self.binary.command(&["exec", "--unattended"], &words))
    }

    /// Builds, inside and outside in turn, each from nothing.
    fn builds(&self, rounds: usize) -> Answer<Pairs> {
        Pairs::take(
            rounds,
            PAUSE,
            || {
                let time = seconds(|| self.inside(PACKAGES, "/package").map(|_| ()))?;
                // What was staged is dropped outside of what is measured.
                quiet(&mut self.binary.bare(&["discard", "latest"]))?;
                Ok(time)
            },
            || {
                let time = seconds(|| self.outside(self.port, PACKAGES, "/package").map(|_| ()))?;
                clear(&self.outside)?;
                Ok(time)
            },
        )
    }

    fn outside(&self, port: u16, count: usize, path: &str) -> Answer<f64> {
        let mut command = Command::new("perl");
        command.args(["-e", CLIENT, &port.to_string(), &count.to_string(), path]);
        number(command.current_dir(&self.outside))
    }
}

/// The number that a command prints.
fn number(command: &mut Command) -> Answer<f64> {
    let text = printed(command)?;
    text.trim().parse().map_err(|_| format!("{command:?} printed no number: {text}"))
}

/// Takes away what a build made.
fn clear(directory: &Path) -> Answer<()> {
    std::fs::remove_dir_all(directory)
        .and_then(|()| std::fs::create_dir(directory))
        .map_err(|error| format!("{}: {error}", directory.display()))
}

/// A package: ten files of source text, as small ones are.
fn package(place: &Path) -> Answer<Vec<u8>> {
    let failed = |error: std::io::Error| format!("{}: {error}", place.display());
    let source = include_str!("p14.rs");
    std::fs::create_dir(place.join("package")).map_err(failed)?;
    for number in 0..10 {
        let text = source.replace("the", &format!("{number}"));
        std::fs::write(place.join(format!("package/part{number}.rs")), text).map_err(failed)?;
    }
    quiet(Command::new("tar").args(["-czf", "package.tgz", "package"]).current_dir(place))?;
    std::fs::read(place.join("package.tgz")).map_err(failed)
}
