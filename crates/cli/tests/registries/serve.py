"""Registries of npm, pip and cargo, each with one package `ours`, served on loopback over TLS.

Takes a directory, makes all files there (`ca.crt` is the authority), and writes the port into its file `port`.
"""

import base64
import functools
import hashlib
import http.server
import io
import json
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
    (home / "names").write_text("subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth\n")
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


site.mkdir()
make_authority()
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=site)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(home / "crt", home / "key")
server.socket = context.wrap_socket(server.socket, server_side=True)
port = server.server_address[1]
make_npm(f"https://localhost:{port}")
make_pip()
make_cargo(f"https://localhost:{port}")
(home / "port.new").write_text(str(port))
(home / "port.new").rename(home / "port")
server.serve_forever()
