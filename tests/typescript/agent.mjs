// One session with the agent's tools, with the official TypeScript client in the line that is asked for:
// node agent.mjs v1|v2 VERSION PYTHON FOLDER. FOLDER/session.json says what to do: the server's environment and
// working folder, the calls in their order and until what they are repeated, what to answer when asked. Prints what came
// of it, as one JSON object; what is right is the caller's to know.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [line, version, python, folder] = process.argv.slice(2);
const MODERN = "2026-07-28";
const session = JSON.parse(readFileSync(join(folder, "session.json"), "utf8"));

const [{ Client }, { StdioClientTransport }, v1] = await Promise.all(
  line === "v1"
    ? [
        import("@modelcontextprotocol/sdk/client/index.js"),
        import("@modelcontextprotocol/sdk/client/stdio.js"),
        import("@modelcontextprotocol/sdk/types.js"),
      ]
    : [import("@modelcontextprotocol/client"), import("@modelcontextprotocol/client/stdio")],
);

const transport = new StdioClientTransport({
  command: python,
  args: ["-m", "fastrpc", "serve", "--trace", join(folder, "trace")],
  env: session.environment,
  cwd: session.cwd,
  stderr: "inherit",
});
const speak = version === MODERN ? { versionNegotiation: { mode: "auto" } } : {};
const capabilities = { elicitation: { form: {} } };
const client = new Client({ name: "fastrpc-test", version: "1" }, { capabilities, ...speak });
const came = { tools: [], results: [], asked: [], logs: [], complaints: [] };
client.onerror = (error) => came.complaints.push(String(error));
client.setRequestHandler(v1 ? v1.ElicitRequestSchema : "elicitation/create", ({ params }) => {
  came.asked.push(params);
  return { action: "accept", content: session.answer };
});
client.setNotificationHandler(
  v1 ? v1.LoggingMessageNotificationSchema : "notifications/message",
  ({ params }) => came.logs.push(params),
);

let agreed; // the v1 line tells its transport, the v2 line whoever asks
if (line === "v1") transport.setProtocolVersion = (told) => (agreed = told);
await client.connect(transport);
agreed ??= client.getNegotiatedProtocolVersion();
assert.equal(agreed, version);
if (version !== MODERN) await client.setLoggingLevel("info");
came.tools = (await client.listTools()).tools;
for (const { tool, arguments: values, until } of session.calls) {
  const params = { name: tool, arguments: values };
  const call = () => (line === "v1" ? client.callTool(params, undefined) : client.callTool(params));
  let result = await call();
  while (!(result.content.at(-1).text ?? "").startsWith(until)) {
    await sleep(20);
    result = await call();
  }
  came.results.push(result);
}
await client.close();
console.log(JSON.stringify(came));
