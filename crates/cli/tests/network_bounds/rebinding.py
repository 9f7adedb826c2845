"""Runs a command in a network with a name server whose answers change, and a server at each of the addresses.

Takes the files to answer `/etc/resolv.conf` and the counts, and the command. The first question about an address of
`changing.example` gets 127.0.0.2, the second 127.0.0.3, the third 127.0.0.2 again and all after that 127.0.0.3. Needs
namespaces of users, mounts and the network of its own.
"""

import fcntl
import http.server
import json
import pathlib
import socket
import struct
import subprocess
import sys
import threading

resolv, counts, *command = sys.argv[1:]
ADDRESSES = ["127.0.0.2", "127.0.0.3", "127.0.0.2"]
asked = []
served = []


def bring_loopback_up():
    set_flags, is_up = 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", is_up))


def answer_names(server):
    while True:
        question, client = server.recvfrom(512)
        end = question.index(b"\0", 12) + 5
        (kind,) = struct.unpack("!H", question[end - 4 : end - 2])
        answers = b""
        if kind == 1:
            address = ADDRESSES[len(asked)] if len(asked) < len(ADDRESSES) else "127.0.0.3"
            asked.append(address)
            # The name by its place, of an address that holds for no time.
            answers = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 0, 4) + socket.inet_aton(address)
        head = question[:2] + struct.pack("!HHHHH", 0x8180, 1, 1 if answers else 0, 0, 0)
        server.sendto(head + question[12:end] + answers, client)


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        served.append(self.server.server_address[0])
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"page")

    def log_message(self, *_):
        pass


pathlib.Path(resolv).write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")
subprocess.run(["mount", "--bind", resolv, pathlib.Path("/etc/resolv.conf").resolve()], check=True)
bring_loopback_up()
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("127.0.0.1", 53))
threading.Thread(target=answer_names, args=(names,), daemon=True).start()
for host in ("127.0.0.2", "127.0.0.3"):
    page = http.server.ThreadingHTTPServer((host, 8080), Page)
    threading.Thread(target=page.serve_forever, daemon=True).start()
status = subprocess.run(command).returncode
pathlib.Path(counts).write_text(json.dumps({"asked": asked, "served": served}))
sys.exit(status)
