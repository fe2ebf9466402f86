// One conversation with a server over stdio, with the official TypeScript client in the line that is
// asked for: node client.mjs v1|v2 COMMAND ARGUMENT… Prints what it saw as one JSON object.
const [line, command, ...args] = process.argv.slice(2);
const [{ Client }, { StdioClientTransport }] = await Promise.all(
  line === "v1"
    ? [import("@modelcontextprotocol/sdk/client/index.js"), import("@modelcontextprotocol/sdk/client/stdio.js")]
    : [import("@modelcontextprotocol/client"), import("@modelcontextprotocol/client/stdio")],
);

const client = new Client({ name: "fastrpc-test", version: "1" });
await client.connect(new StdioClientTransport({ command, args, stderr: "inherit" }));
const seen = { server: client.getServerVersion() };
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
seen.echo = (await client.callTool({ name: "echo", arguments: { text: "héllo 漢 🎉" } })).content;
seen.sum = (await client.callTool({ name: "add", arguments: { a: 2, b: 3 } })).structuredContent;
seen.failed = (await client.callTool({ name: "fail", arguments: {} })).isError;
seen.many = (
  await Promise.all(
    Array.from({ length: 100 }, (_, at) => client.callTool({ name: "echo", arguments: { text: `call ${at}` } })),
  )
).every((result, at) => result.content[0].text === `call ${at}`);
const controller = new AbortController();
const endless =
  line === "v1"
    ? client.callTool({ name: "endless", arguments: {} }, undefined, { signal: controller.signal })
    : client.callTool({ name: "endless", arguments: {} }, { signal: controller.signal });
setTimeout(() => controller.abort("enough"), 100);
seen.aborted = await endless.then(() => false, () => true);
seen.after = (await client.callTool({ name: "echo", arguments: { text: "still here" } })).content[0].text;
const began = Date.now();
await client.close();
seen.closed_ms = Date.now() - began;
console.log(JSON.stringify(seen));
process.exit(0);
