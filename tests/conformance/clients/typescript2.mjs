// The official TypeScript SDK 2: probing (auto), or 2026-07-28 alone (pin).   typescript2.mjs MODE SERVER [ARG...]
import * as checks from "./checks.mjs";
import { WATCHED, bothHalves, check, firstUpdate, load, refused } from "./checks.mjs";

const { Client } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

const [mode, command, ...args] = process.argv.slice(2);
const negotiation = { mode: mode === "pin" ? { pin: "2026-07-28" } : mode };
const client = new Client({ name: "typescript2", version: "1" }, { capabilities: {}, versionNegotiation: negotiation });
const errors = [];
client.onerror = (error) => errors.push(error.message);
const update = firstUpdate((told) => client.setNotificationHandler("notifications/resources/updated", told));
await client.connect(new StdioClientTransport({ command, args, env: process.env }));

const tools = await client.listTools();
check(tools.tools.length === 13 && tools.ttlMs > 0 && tools.cacheScope === "public", "tools/list", tools);
const uri = bothHalves("shoal_exec", await client.callTool({ name: "shoal_exec", arguments: { src: "'hi'" } }));
const wrong = await client.callTool({ name: "shoal_exec", arguments: {} });
check(wrong.isError && wrong.structuredContent.code === -32602, "a missing argument is a result", wrong);
await refused("an unknown tool is an error", client.callTool({ name: "nope", arguments: {} }), -32602);
const value = await client.readResource({ uri });
check(value.ttlMs === 0 && value.cacheScope === "private", "resources/read", value);
await refused("a missing resource is an error", client.readResource({ uri: "shoal://nope/1" }), -32602);

const stream = await client.listen({ resourceSubscriptions: [WATCHED] });
await client.callTool({ name: "shoal_exec", arguments: { src: "1" } });
check((await update).uri === WATCHED, "an update", await update);
await stream.close();
check(errors.length === 0, "no frame the client complains of", errors);
await client.close();
process.exit(checks.failures);
