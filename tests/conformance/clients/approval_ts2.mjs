// Approval by a form, with the official TypeScript SDK 2.   approval_ts2.mjs SERVER [ARG...]
// The kernel's policy says `opaque = "ask"` and `approve = "client"`.
import * as checks from "./checks.mjs";
import { check, load } from "./checks.mjs";

const { Client } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

const [command, ...args] = process.argv.slice(2);
const source = "sh { echo approved-$((40 + 2)) }";
const answers = [{ action: "accept", content: { ok: true } }, { action: "decline" }];
const shown = [];
const client = new Client(
  { name: "typescript2", version: "1" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
client.setRequestHandler("elicitation/create", async (request) => {
  shown.push(request.params.message);
  return answers.shift();
});
await client.connect(new StdioClientTransport({ command, args, env: process.env }));

async function apply() {
  const plan = await client.callTool({ name: "shoal_plan", arguments: { src: source } });
  return client.callTool({ name: "shoal_apply", arguments: { plan_ref: plan.structuredContent.plan_ref } });
}
const accepted = await apply();
check(shown[0]?.includes(source), "the person sees the source", shown);
check(!accepted.isError && accepted.content[0].text.includes("approved-42"), "an accepted plan runs", accepted);
const declined = await apply();
check(declined.isError && declined.structuredContent.code === -32011, "a declined one does not", declined);
await client.close();
process.exit(checks.failures);
