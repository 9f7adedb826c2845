// The official SDK of TypeScript as a client of `capsule mcp serve`, over one transport:
//   sdk.mjs stdio CAPSULE ARG...
//   sdk.mjs http URL TOKEN
// The workspace has `notes.md`; the policy is `builtin:developer`, which asks about fetching.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [kind, first, ...rest] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${rest[0]}` };
const transport = kind === "stdio"
  ? new StdioClientTransport({ command: first, args: rest, env: process.env })
  : new StreamableHTTPClientTransport(new URL(first), { requestInit: { headers } });

const client = new Client(
  { name: "sdk", version: "1" },
  { capabilities: { elicitation: {} } },
);
const forms = [];
client.setRequestHandler(ElicitRequestSchema, (request) => {
  forms.push(request.params.message);
  return { action: "accept", content: { allow: true } };
});
await client.connect(transport);
assert.equal(client.getServerVersion().name, "capsule");
await client.ping();

const { tools } = await client.listTools();
const read = tools.find((tool) => tool.name === "fs_read");
assert.equal(read.annotations.readOnlyHint, true);
const call = async (name, args) => await client.callTool({ name, arguments: args });
const text = (result) => JSON.parse(result.content[0].text);

const notes = await call("fs_read", { path: "notes.md" });
assert.equal(notes.structuredContent.result.text, "pears: 12\n");
assert.deepEqual(text(notes), notes.structuredContent);
const edit = { path: "notes.md", search: "pears", replace: "quinces" };
assert.equal((await call("fs_edit", edit)).structuredContent.status, "ok");
const shown = await call("shell_run", { command: "cat notes.md" });
assert.equal(shown.structuredContent.result.stdout, "quinces: 12\n");

// What the policy denies is a result that a model reads, and what it asks about is a form.
for (const [name, args] of [
  ["fs_read", { path: "../secret" }],
  ["shell_run", { command: "git push origin main" }],
  ["no_such_tool", {}],
]) {
  const denied = await call(name, args);
  assert.equal(denied.isError, true);
  assert.equal(denied.structuredContent.status, "denied", name);
}
assert.equal(forms.length, 0);
const asked = await call("fs_delete", { path: "notes.md" });
assert.equal(forms.length, 1);
assert.match(forms[0], /notes\.md/);
assert.equal(asked.structuredContent.status, "ok");

const { prompts } = await client.listPrompts();
assert.deepEqual(prompts.map((prompt) => prompt.name), ["capsule-policy"]);
const prompt = await client.getPrompt({ name: "capsule-policy" });
assert.match(prompt.messages[0].content.text, /fs\.read/);
await client.close();
console.log(`the SDK of TypeScript, over ${kind}: well`);
