#!/usr/bin/env python3
"""Verifies a record without Capsule: with FORMAT.md, Python's own library and the program `openssl`.

    verify.py STORE PUBLIC_LINE [ANCHOR]

STORE is a store or a run that was written out, PUBLIC_LINE the line that `capsule init` printed, and ANCHOR
a file with checkpoints that was kept elsewhere. It prints what it found and ends with 0, or names the first
thing that does not fit and ends with 1.

What it leaves out: whether the tables beside the events (columns, views, the cache of the tree) say the same, and
whether payloads that are gone were rightly erased. `capsule verify` looks at these, too.
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
        """The lines of a note, if this key signed it and no signature is wrongly said to be its."""
        text, _, below = note.rpartition("\n\n")
        text += "\n"
        own = []
        for line in below.splitlines():
            _, name, signature = line.split(" ")
            signature = base64.b64decode(signature)
            if name == self.name and signature[:4] == self.id:
                own.append(self.verifies(text.encode(), signature[4:]))
        return text.splitlines() if own and all(own) else None

    def verifies(self, text, signature):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, content in (("key", ED25519 + self.bytes), ("text", text), ("sig", signature)):
                (folder / name).write_bytes(content)
            asked = ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-rawin"]
            named = ["-inkey", folder / "key", "-in", folder / "text", "-sigfile", folder / "sig"]
            return subprocess.run(asked + named, capture_output=True).returncode == 0


def committed(value):
    """What an event commits to, wherever in it that stands."""
    if isinstance(value, dict):
        if set(value) == {"bytes", "commit"}:
            yield value["commit"]
        value = value.values()
    elif not isinstance(value, list):
        return
    for part in value:
        yield from committed(part)


def payloads(sql, leaf, event):
    """Those of an event: every one has its row, and what is there is what was committed to."""
    there, rows = 0, sql.execute(
        "SELECT commitment, salt, bytes FROM payloads WHERE id >= ? AND id < ?", (leaf * 16, leaf * 16 + 16)
    ).fetchall()
    if sorted(committed(event["body"])) != sorted(row[0] for row in rows):
        fail(f"event {leaf} has other payloads than it commits to")
    for commitment, salt, data in rows:
        if data is not None:
            there += 1
            if sha256(salt, data).hex() != commitment:
                fail(f"a payload of event {leaf} is not what it committed to")
    return there, len(rows)


def main(store, key, anchor=None):
    key = Key(key)
    sql = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    seen = list(checkpoints(pathlib.Path(anchor).read_text(), key.name)) if anchor else []
    tree, signed, runs, there, rows, found = Tree(), 0, {}, 0, 0, 0
    for leaf, data in sql.execute("SELECT leaf, bytes FROM events ORDER BY leaf"):
        if leaf != tree.size:
            fail(f"event {tree.size} is missing")
        found += compare(seen, tree)
        event = json.loads(data)
        run = event["run"]
        if run and (event["seq"], event["prev"]) != runs.get(run, (1, None)):
            fail(f"event {leaf} does not follow the one before it in {run}")
        if run:
            # Nothing follows a seal.
            is_end = event["kind"] == "run.sealed"
            if is_end and event["body"]["events"] != event["seq"]:
                fail(f"the seal of {run} counts other events than there are")
            runs[run] = None if is_end else (event["seq"] + 1, sha256(data).hex())
        if event["kind"] == "checkpoint":
            lines = key.signed(event["body"]["note"])
            if lines is None:
                fail(f"event {leaf} is not signed by {key.name}")
            # That of one run, where nothing else is in the tree.
            names = [key.name] + [f"{key.name}/run/{run}" for run in runs if len(runs) == 1]
            root = base64.b64encode(tree.root()).decode()
            if lines[0] not in names or lines[1:3] != [str(leaf), root]:
                fail(f"event {leaf} signs another history")
            signed = leaf
        own = payloads(sql, leaf, event)
        there, rows = there + own[0], rows + own[1]
        tree.push(sha256(b"\0", data))
    if rows != sql.execute("SELECT count(*) FROM payloads").fetchone()[0]:
        fail("there are payloads that no event knows")
    found += compare(seen, tree)
    if any(size > tree.size for size, _ in seen):
        fail(f"the anchor saw {max(seen)[0]} events, and here are {tree.size}")
    if not signed or (anchor and not found):
        fail("nothing is signed by this key, or the anchor knows nothing of this log")
    print(f"verified: {tree.size} events, the first {signed} signed by {key.name}; {there} payloads; "
          f"root {tree.root().hex()}")
    if anchor:
        print(f"the anchor saw the first {max(size for size, _ in seen)}")


def compare(seen, tree):
    """How often the anchor saw a tree of this size; it was this one each time."""
    own = [root for size, root in seen if size == tree.size]
    if any(root != tree.root() for root in own):
        fail(f"the anchor saw the first {tree.size} events otherwise")
    return len(own)


def checkpoints(text, origin):
    """The checkpoints of a log in any text: its origin, a size and a root as three words, not in signatures."""
    lines = [[word for word in line.split() if word == "—" or any(map(str.isalnum, word))]
             for line in text.splitlines()]
    words = [word for line in lines if line[:1] != ["—"] for word in line if word != "—"]
    for name, size, root in zip(words, words[1:], words[2:]):
        if name == origin and size.isdecimal() and str(int(size)) == size != "0":
            try:
                root = base64.b64decode(root, validate=True)
            except ValueError:
                continue
            if len(root) == 32:
                yield int(size), root


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
