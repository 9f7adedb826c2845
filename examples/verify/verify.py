#!/usr/bin/env python3
"""Verifies a record without Capsule: with FORMAT.md, Python's own library and the program `openssl`.

    verify.py STORE PUBLIC_LINE [ANCHOR]

STORE is a store or a run that was written out, PUBLIC_LINE the line that `capsule init` printed, and ANCHOR
a file with checkpoints that was kept elsewhere. It prints what it found and ends with 0, or names the first
thing that does not fit and ends with 1.
"""

import base64
import hashlib
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

# What DER puts before the 32 bytes of an Ed25519 public key (RFC 8410, section 4).
ED25519 = bytes.fromhex("302a300506032b6570032100")


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def fail(why):
    print(f"NOT verified: {why}")
    sys.exit(1)


class Tree:
    """The tree of RFC 6962, by the roots of its complete subtrees."""

    def __init__(self):
        self.size, self.peaks = 0, []

    def push(self, leaf):
        size, node = self.size, leaf
        while size & 1:
            node = sha256(b"\1", self.peaks.pop(), node)
            size >>= 1
        self.peaks.append(node)
        self.size += 1

    def root(self):
        if not self.peaks:
            return sha256()
        node = self.peaks[-1]
        for left in reversed(self.peaks[:-1]):
            node = sha256(b"\1", left, node)
        return node


class Key:
    """A public line: NAME+NUMBER+KEY (C2SP signed-note)."""

    def __init__(self, line):
        self.name, number, key = line.strip().split("+", 2)
        kind, self.bytes = base64.b64decode(key)[:1], base64.b64decode(key)[1:]
        self.id = sha256(self.name.encode(), b"\n", kind, self.bytes)[:4]
        if kind != b"\1" or self.id.hex() != number:
            fail("the public line is not one of Ed25519")

    def signed(self, note):
        """The text of a note, if this key signed it."""
        text, _, below = note.rpartition("\n\n")
        text += "\n"
        for line in below.splitlines():
            _, name, signature = line.split(" ")
            signature = base64.b64decode(signature)
            if name == self.name and signature[:4] == self.id:
                return text if self.verifies(text.encode(), signature[4:]) else None
        return None

    def verifies(self, text, signature):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, content in (("key", ED25519 + self.bytes), ("text", text), ("sig", signature)):
                (folder / name).write_bytes(content)
            asked = ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-rawin"]
            named = ["-inkey", folder / "key", "-in", folder / "text", "-sigfile", folder / "sig"]
            return subprocess.run(asked + named, capture_output=True).returncode == 0


def payloads(sql):
    """Every payload that is there, against what its event committed to."""
    count = 0
    for row, commitment, salt, data in sql.execute("SELECT id, commitment, salt, bytes FROM payloads"):
        if data is None:
            continue
        leaf = sql.execute("SELECT bytes FROM events WHERE leaf = ?", (row // 16,)).fetchone()
        if sha256(salt, data).hex() != commitment or commitment.encode() not in leaf[0]:
            fail(f"payload {row} is not what event {row // 16} committed to")
        count += 1
    return count


def main(store, key, anchor=None):
    key = Key(key)
    sql = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    tree, signed, previous = Tree(), 0, {}
    seen = dict(checkpoints(pathlib.Path(anchor).read_text(), key.name)) if anchor else {}
    for leaf, data in sql.execute("SELECT leaf, bytes FROM events ORDER BY leaf"):
        if leaf != tree.size:
            fail(f"event {tree.size} is missing")
        if seen.get(tree.size, tree.root()) != tree.root():
            fail(f"the anchor saw the first {tree.size} events otherwise")
        event = json.loads(data)
        run = event["run"]
        if run and (event["seq"], event["prev"]) != previous.get(run, (1, None)):
            fail(f"event {leaf} does not follow the one before it in {run}")
        previous[run] = (event["seq"] + 1, sha256(data).hex())
        if event["kind"] == "checkpoint":
            text = key.signed(event["body"]["note"])
            if text is None:
                fail(f"event {leaf} is not signed by {key.name}")
            if text.split("\n")[1:3] != [str(leaf), base64.b64encode(tree.root()).decode()]:
                fail(f"event {leaf} signs another history")
            signed = leaf
        tree.push(sha256(b"\0", data))
    if any(size > tree.size for size in seen):
        fail(f"the anchor saw {max(seen)} events, and here are {tree.size}")
    if not signed or (anchor and not seen):
        fail("nothing is signed by this key, or the anchor knows nothing of this log")
    print(f"verified: {tree.size} events, the first {signed} signed by {key.name}; "
          f"{payloads(sql)} payloads; root {tree.root().hex()}")


def checkpoints(text, origin):
    """The checkpoints of a log in any text: its origin, a size and a root as three words."""
    words = [word for word in text.split() if any(letter.isalnum() for letter in word)]
    for name, size, root in zip(words, words[1:], words[2:]):
        if name == origin and size.isdigit():
            yield int(size), base64.b64decode(root)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
