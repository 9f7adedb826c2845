//! Small projects of several languages, built and tested inside as outside. Only `.ci/run nightly` installs their
//! toolchains and starts these tests.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panics"
)]

use capsule_testkit::{Capsule, CommandOutput};

mod origins;

use origins::{Client, try_clients, try_clients_without_proxy};

struct Project(Capsule);

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let capsule = Capsule::new(env!("CARGO_BIN_EXE_capsule"));
        for (path, content) in files {
            capsule.write_file(path, content);
        }
        Self(capsule)
    }

    fn exec(&self, words: &[&str]) -> CommandOutput {
        let args = ["exec", "--policy", "builtin:developer", "--unattended", "--"];
        self.0.run(&[&args, words].concat()).exits(0)
    }
}

/// W12: the JVM takes a quarter of the memory that the call has, which is 4 GiB at most, as its heap.
#[test]
fn java_sizes_its_heap_by_the_call() {
    let project = Project::new(&[(
        "Heap.java",
        "class Heap { public static void main(String[] a) { System.out.println(Runtime.getRuntime().maxMemory() >> 20); } }\n",
    )]);
    let heap: u64 = project.exec(&["java", "Heap.java"]).stdout.trim().parse().unwrap();
    assert!(heap <= 1_024, "{heap} MB");
    let _ = project.exec(&["javac", "-d", "out", "Heap.java"]);
}

/// W3: a module of Go with one that lies beside it, and a server on the loopback of the call.
#[test]
fn go_builds_and_tests() {
    let project = Project::new(&[
        (
            "go.mod",
            "module example.com/app\n\ngo 1.19\n\nrequire example.com/lib v0.1.0\n\nreplace example.com/lib => ./lib\n",
        ),
        ("lib/go.mod", "module example.com/lib\n\ngo 1.19\n"),
        ("lib/lib.go", "package lib\n\nfunc Add(a, b int) int { return a + b }\n"),
        (
            "app_test.go",
            "package app\n\nimport (\n\t\"net/http\"\n\t\"net/http/httptest\"\n\t\"testing\"\n\n\t\"example.com/lib\"\n)\n\n\
             func TestAdd(t *testing.T) {\n\ts := httptest.NewServer(http.NotFoundHandler())\n\tdefer s.Close()\n\
             \tif r, err := http.Get(s.URL); err != nil || r.StatusCode != 404 || lib.Add(1, 2) != 3 {\n\t\tt.Fatal(err)\n\t}\n}\n",
        ),
    ]);
    let _ = project.exec(&["go", "build", "./..."]);
    assert!(project.exec(&["go", "test", "./..."]).stdout.starts_with("ok"));
}

/// W9: CMake, configured and built inside; and make with two jobs.
#[test]
fn cmake_and_make_build() {
    let project = Project::new(&[
        (
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.20)\nproject(app C)\nadd_executable(app main.c)\n",
        ),
        ("main.c", "int main(void) { return 0; }\n"),
        ("Makefile", "test: app\n\t./app\napp: main.c\n\tcc -o $@ $^\n"),
    ]);
    let _ = project.exec(&["cmake", "-S", ".", "-B", "build"]);
    let workspace = project.0.workspace();
    let made = std::process::Command::new("cmake")
        .args(["-S", ".", "-B", "build"])
        .current_dir(workspace)
        .output();
    assert!(made.unwrap().status.success());
    let built = project.exec(&["cmake", "--build", "build"]);
    assert!(built.stdout.contains("Built target app"), "{}", built.stdout);
    assert!(project.exec(&["make", "-j2", "test"]).stdout.contains("./app"));
}

const GET_JAVA: &str = "import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.security.KeyStore;
import java.security.cert.*;
import javax.net.ssl.*;

class Get {
    public static void main(String[] words) throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        try (InputStream file = new FileInputStream(\"ca.crt\")) {
            trusted.setCertificateEntry(\"ca\", CertificateFactory.getInstance(\"X.509\").generateCertificate(file));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        SSLContext context = SSLContext.getInstance(\"TLS\");
        context.init(null, managers.getTrustManagers(), null);
        HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory());
        try (InputStream page = new URL(words[0]).openStream()) {
            Files.copy(page, Path.of(\"page\"));
        }
    }
}
";
/// The JVM looks for no variable: it is told by properties.
const RUN_PY: &str = "import os, subprocess, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ['https_proxy'])
named = [f'-Dhttps.proxyHost={proxy.hostname}', f'-Dhttps.proxyPort={proxy.port}', '-Dhttp.nonProxyHosts=']
sys.exit(subprocess.call(['java', *named, 'Get.java', sys.argv[1]]))
";

/// Go loads a module over TLS from its proxy of modules.
#[test]
fn go_reaches_the_host_that_is_named() {
    try_clients(&[Client {
        files: &[(
            "go.mod",
            "module example.com/app\n\ngo 1.19\n\nrequire example.org/ours v1.0.0\n",
        )],
        argv: &["go", "mod", "download", "example.org/ours"],
        made: "go.sum",
    }]);
}

/// A program of Java loads a page over TLS where it is told of the proxy, and reaches nothing where it is not.
#[test]
fn java_reaches_the_host_that_is_named() {
    try_clients(&[Client {
        files: &[("Get.java", GET_JAVA), ("run.py", RUN_PY)],
        argv: &["python3", "run.py", "https://localhost:PORT/page"],
        made: "page",
    }]);
    try_clients_without_proxy(&[Client {
        files: &[("Get.java", GET_JAVA)],
        argv: &["java", "Get.java", "https://localhost:PORT/page"],
        made: "",
    }]);
}
