"""Registries of npm, pip, cargo, Go and apt, each with one package `ours`, a repository of git and a page, served on
loopback over TLS.

Takes a directory, makes all files there (`ca.crt` is the authority), and writes the port into its file `port`.
"""

import base64
import functools
import hashlib
import http.server
import io
import json
import os
import pathlib
import ssl
import subprocess
import sys
import tarfile
import zipfile

home = pathlib.Path(sys.argv[1])
site = home / "site"


def run(*words, **options):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)


def put(path, content):
    file = site / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())


def packed(files):
    """A gzipped tar file."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return held.getvalue()


def make_authority():
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes"]
    run(*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", home / "ca.key", "-out", home / "ca.crt",
        "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    run(*new, "-subj", "/CN=localhost", "-keyout", home / "key", "-out", home / "request")
    (home / "names").write_text("subjectAltName=DNS:localhost,DNS:origin.example\nextendedKeyUsage=serverAuth\n")
    run("openssl", "x509", "-req", "-days", "2", "-in", home / "request", "-CA", home / "ca.crt", "-CAkey",
        home / "ca.key", "-CAcreateserial", "-extfile", home / "names", "-out", home / "crt")


def make_npm(base):
    manifest = {"name": "ours", "version": "1.0.0", "main": "index.js"}
    tarball = packed({"package/package.json": json.dumps(manifest), "package/index.js": "module.exports = 1;\n"})
    put("npm/ours-1.0.0.tgz", tarball)
    digest = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    dist = {"tarball": f"{base}/npm/ours-1.0.0.tgz", "integrity": digest}
    versions = {"1.0.0": {**manifest, "dist": dist}}
    put("npm/ours", json.dumps({"name": "ours", "dist-tags": {"latest": "1.0.0"}, "versions": versions}))


def make_pip():
    wheel = io.BytesIO()
    info = "ours-1.0.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("ours.py", "number = 1\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: ours\nVersion: 1.0.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"ours.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    put("simple/ours/ours-1.0.0-py3-none-any.whl", wheel.getvalue())
    put("simple/ours/index.html", '<a href="ours-1.0.0-py3-none-any.whl">ours-1.0.0-py3-none-any.whl</a>')


def make_cargo(base):
    manifest = '[package]\nname = "ours"\nversion = "1.0.0"\nedition = "2021"\n'
    crate = packed({"ours-1.0.0/Cargo.toml": manifest, "ours-1.0.0/src/lib.rs": "pub fn number() -> u8 { 1 }\n"})
    put("crates/ours/1.0.0/download", crate)
    put("cargo/config.json", json.dumps({"dl": f"{base}/crates"}))
    row = {"name": "ours", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
    put("cargo/ou/rs/ours", json.dumps({**row, "cksum": hashlib.sha256(crate).hexdigest()}) + "\n")


def make_go():
    module = "example.org/ours@v1.0.0"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr(f"{module}/go.mod", "module example.org/ours\n")
        files.writestr(f"{module}/ours.go", "package ours\n\nfunc Number() int { return 1 }\n")
    put("go/example.org/ours/@v/list", "v1.0.0\n")
    put("go/example.org/ours/@v/v1.0.0.info", json.dumps({"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}))
    put("go/example.org/ours/@v/v1.0.0.mod", "module example.org/ours\n")
    put("go/example.org/ours/@v/v1.0.0.zip", archive.getvalue())


def make_apt():
    put("apt/Packages", "Package: ours\nVersion: 1.0.0\nArchitecture: all\nMaintainer: t <t@example.org>\n"
        f"Filename: ours.deb\nSize: 1\nSHA256: {hashlib.sha256(b'x').hexdigest()}\nDescription: ours\n")


def make_git():
    user = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q", "work"], ["-C", "work", "add", "a"], ["-C", "work", *user, "commit", "-qm", "first"],
                  ["clone", "-q", "--bare", "work", "git/ours.git"]):
        run("git", *words, cwd=home)
        if words[0] == "init":
            (home / "work/a").write_text("first\n")


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        self.git() if self.path.startswith("/git/") else super().do_GET()

    def do_POST(self):
        self.git()

    def git(self):
        path, _, query = self.path.removeprefix("/git").partition("?")
        length = int(self.headers.get("Content-Length", 0))
        environment = {"GIT_PROJECT_ROOT": home / "git", "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
                       "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_LENGTH": str(length),
                       "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                       "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                       "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
        answer = subprocess.run(["git", "http-backend"], env={**os.environ, **environment},
                                input=self.rfile.read(length), stdout=subprocess.PIPE, check=True).stdout
        head, _, body = answer.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


site.mkdir()
make_authority()
handler = functools.partial(Handler, directory=site)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(home / "crt", home / "key")
server.socket = context.wrap_socket(server.socket, server_side=True)
port = server.server_address[1]
make_npm(f"https://localhost:{port}")
make_pip()
make_go()
make_apt()
make_git()
put("page", "a page")
make_cargo(f"https://localhost:{port}")
(home / "port.new").write_text(str(port))
(home / "port.new").rename(home / "port")
server.serve_forever()
