//! Programs that serve on loopback.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A server that ends with the test.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    port: u16,
}

impl ServerProcess {
    /// Starts the command that is made for a free port, and waits until it listens there.
    ///
    /// # Panics
    /// When it cannot be started, or does not listen within twenty seconds.
    pub fn start(command: impl Fn(u16) -> Command) -> Self {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut command = command(port);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut server = Self { child: command.spawn().unwrap(), port };
            // It ends at once where another test took the port meanwhile.
            while server.child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < end, "no server on port {port}");
                let is_listening = TcpStream::connect(("127.0.0.1", port)).is_ok();
                thread::sleep(Duration::from_millis(20));
                if is_listening && server.child.try_wait().unwrap().is_none() {
                    return server;
                }
            }
            assert!(Instant::now() < end, "no server begins");
        }
    }

    /// Starts a server of pages over TLS for `localhost`, with a certificate that nobody signed and that is written to
    /// this file.
    ///
    /// # Panics
    /// As [`Self::start`], or when `openssl` makes no certificate.
    #[must_use]
    pub fn start_tls(certificate: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("key");
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(certificate)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self::start(|port| {
            let mut command = Command::new("openssl");
            command
                .args(["s_server", "-www", "-quiet", "-accept", &format!("127.0.0.1:{port}")])
                .arg("-key")
                .arg(&key)
                .arg("-cert")
                .arg(certificate);
            command
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
