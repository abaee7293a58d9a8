// The official TypeScript SDK 1: the 2025 era.   typescript1.mjs SERVER [ARG...], in a folder that has the SDK
import * as checks from "./checks.mjs";
import { WATCHED, bothHalves, check, firstUpdate, load, refused } from "./checks.mjs";

const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
const { ResourceUpdatedNotificationSchema } = await load("@modelcontextprotocol/sdk/types.js");

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "typescript1", version: "1" }, { capabilities: {} });
const errors = [];
client.onerror = (error) => errors.push(error.message);
const update = firstUpdate((told) => client.setNotificationHandler(ResourceUpdatedNotificationSchema, told));
await client.connect(new StdioClientTransport({ command, args, env: process.env }));

const tools = (await client.listTools()).tools.map((tool) => tool.name);
check(tools.length === 13 && tools[0] === "shoal_exec", "tools/list", tools);
const uri = bothHalves("shoal_exec", await client.callTool({ name: "shoal_exec", arguments: { src: "'hi'" } }));
const listed = await client.callTool({ name: "shoal_pty_list", arguments: {} });
check(Array.isArray(listed.structuredContent?.ptys), "shoal_pty_list", listed);
await refused("an unknown tool is an error", client.callTool({ name: "nope", arguments: {} }), -32602);
check((await client.listResources()).resources.length >= 6, "resources/list");
check((await client.listResourceTemplates()).resourceTemplates.length >= 12, "resources/templates/list");
const value = await client.readResource({ uri });
check(value.contents[0].mimeType === "application/json", "resources/read", value);
await refused("a missing resource is an error", client.readResource({ uri: "shoal://nope/1" }), -32602);

await client.subscribeResource({ uri: WATCHED });
await client.callTool({ name: "shoal_exec", arguments: { src: "1" } });
check((await update).uri === WATCHED, "an update", await update);
await client.unsubscribeResource({ uri: WATCHED });
await client.ping();
check(errors.length === 0, "no frame the client complains of", errors);
await client.close();
process.exit(checks.failures);
