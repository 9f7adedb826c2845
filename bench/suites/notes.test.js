const { test } = require("node:test");
const assert = require("node:assert");
const { createHash } = require("node:crypto");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

test("files", () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "notes-"));
  for (let number = 0; number < 300; number++)
    fs.writeFileSync(path.join(directory, `${number}.json`), JSON.stringify({ number, text: "a note ".repeat(50) }));
  const all = fs.readdirSync(directory).map((name) => JSON.parse(fs.readFileSync(path.join(directory, name))).number);
  assert.strictEqual(all.reduce((a, b) => a + b), 44850);
  fs.rmSync(directory, { recursive: true });
});

test("numbers", () => {
  let digest = Buffer.alloc(0);
  for (let number = 0; number < 200000; number++) digest = createHash("sha256").update(digest).update(`${number}`).digest();
  assert.strictEqual(digest.length, 32);
});

test("programs", () => {
  for (let number = 0; number < 5; number++)
    assert.strictEqual(Number(execFileSync(process.execPath, ["-p", `${number}`])), number);
});
