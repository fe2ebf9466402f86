// Every feature in one version, with the official TypeScript client in the line that is asked for:
// node client.mjs v1|v2 VERSION PYTHON FOLDER [http|sse]. The folder has the servers `features.py`,
// `plain.py`, `asking.py` and `bare.py`; the wire of each is traced beside it. Over HTTP they run already, and
// `servers.json` says where: the address for each transport, and the token. Prints one JSON line for each
// check: name, ok, detail.
// What the set of checks has to be is the caller's to know, so that one that has not run is missed.
import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [line, version, python, folder, over = "stdio"] = process.argv.slice(2);
const VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const MODERN = VERSIONS.at(-1);
const modern = version === MODERN;
const since = (first) => version >= first;
assert(VERSIONS.includes(version));
assert(line === "v2" || !modern, "the v1 line has no 2026-07-28");

const [{ Client }, transports, v1] = await Promise.all(
  line === "v1"
    ? [
        import("@modelcontextprotocol/sdk/client/index.js"),
        import(`@modelcontextprotocol/sdk/client/${{ http: "streamableHttp" }[over] ?? over}.js`),
        import("@modelcontextprotocol/sdk/types.js"),
      ]
    : [
        import("@modelcontextprotocol/client"),
        import(`@modelcontextprotocol/client${over === "stdio" ? "/stdio" : ""}`),
      ],
);

// The v1 line names what it handles by a schema, the v2 line by the method.
const SCHEMAS = v1 && {
  "elicitation/create": v1.ElicitRequestSchema,
  "sampling/createMessage": v1.CreateMessageRequestSchema,
  "roots/list": v1.ListRootsRequestSchema,
  "notifications/message": v1.LoggingMessageNotificationSchema,
  "notifications/resources/updated": v1.ResourceUpdatedNotificationSchema,
  "notifications/tools/list_changed": v1.ToolListChangedNotificationSchema,
  "notifications/prompts/list_changed": v1.PromptListChangedNotificationSchema,
  "notifications/resources/list_changed": v1.ResourceListChangedNotificationSchema,
};
const named = (method) => (SCHEMAS ? SCHEMAS[method] : method);
const EVERYTHING = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } };
const GUIDE = "docs://guide";
const REVIEW = { type: "ref/prompt", name: "review" };
const complaints = []; // what a client itself finds wrong with a server

// --- a connection ---

class Connection {
  constructor(client, transport) {
    Object.assign(this, { client, transport, agreed: undefined, heard: [], asked: [], waiting: new Map() });
  }

  /** Calls a tool; the v1 line has a schema between the parameters and the options. */
  call(name, values = {}, options = {}, meta = undefined) {
    const params = { name, arguments: values, ...(meta && { _meta: meta }) };
    return line === "v1"
      ? this.client.callTool(params, undefined, options)
      : this.client.callTool(params, options);
  }

  async text(name, values = {}) {
    const result = await this.call(name, values);
    assert(!result.isError, JSON.stringify(result));
    return result.content[0].text;
  }

  /** The answer to a request that the client would not send, or would answer by itself. */
  async raw(method, params = {}) {
    const id = `raw:${this.waiting.size}`;
    const envelope = modern && {
      _meta: {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { name: "fastrpc-test", version: "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    };
    const answer = new Promise((resolve) => this.waiting.set(id, resolve));
    const message = { jsonrpc: "2.0", id, method, params: { ...params, ...envelope } };
    await this.transport.send(message).catch((error) => {
      // Over HTTP a method that is not there comes with 404, whose body the client takes for a text.
      complaints.splice(complaints.indexOf(String(error)), 1);
      this.waiting.get(id)(JSON.parse(error.data.text));
    });
    return answer;
  }

  on(method, handler) {
    this.client.setNotificationHandler(named(method), (notification) => handler(notification.params));
  }

  hear(...methods) {
    for (const method of methods) this.on(method, (params) => this.heard.push({ method, params }));
  }

  times(method) {
    return this.heard.filter((one) => one.method === method).length;
  }

  /** Lets the client answer all that it can be asked. */
  answer() {
    const answers = {
      "elicitation/create": ({ mode }) =>
        mode === "url" ? { action: "accept" } : { action: "accept", content: { x: 7 } },
      "sampling/createMessage": () => ({
        role: "assistant",
        content: { type: "text", text: "seven" },
        model: "m1",
        stopReason: "endTurn",
      }),
      "roots/list": () => ({ roots: [{ uri: "file:///work", name: "work" }] }),
    };
    for (const [method, give] of Object.entries(answers))
      this.client.setRequestHandler(named(method), (request) => {
        this.asked.push({ method, params: request.params ?? {} });
        return give(request.params ?? {});
      });
  }

  /** Ends the session and the connection. The v1 line takes its own end of a stream for an error. */
  async close() {
    await this.transport.terminateSession?.();
    if (over !== "stdio") this.client.onerror = undefined;
    await this.client.close();
  }

  /** Sees each message of the server's before the client does. */
  watch() {
    const inner = this.transport.onmessage;
    this.transport.onmessage = (message, extra) => {
      const waiting = "method" in message ? undefined : this.waiting.get(message.id);
      if (waiting) return waiting(message);
      if ("method" in message && "id" in message) this.requests = (this.requests ?? 0) + 1;
      return inner(message, extra);
    };
  }
}

/** The transport to a server: it is begun for a pipe, and is there already over HTTP. */
function transportTo(source) {
  const server = join(folder, source);
  if (over === "stdio") {
    const args = ["-m", "fastrpc", "serve", "--trace", `${server}.trace`, server];
    const options = { command: python, args, env: process.env, stderr: "inherit" };
    return new transports.StdioClientTransport(options);
  }
  const { [over]: address, token } = JSON.parse(readFileSync(join(folder, "servers.json"), "utf8"))[source];
  const Transport =
    over === "http" ? transports.StreamableHTTPClientTransport : transports.SSEClientTransport;
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  return new Transport(new URL(address), { requestInit, fetch: tracing(`${server}.${(traces += 1)}.trace`) });
}

let traces = 0;

/** A `fetch` that writes down what passes, as `fastrpc serve --trace` does. */
function tracing(path) {
  const note = (direction, message) => appendFileSync(path, `${direction} 0 ${message}\n`);
  return async (url, init) => {
    if (init?.body) note("<", init.body);
    const response = await fetch(url, init);
    const type = response.headers.get("content-type") ?? "";
    const isStream = type.startsWith("text/event-stream");
    if (!response.body || !(isStream || type.startsWith("application/json"))) return response;
    const decoder = new TextDecoder();
    let text = "";
    const noting = new TransformStream({
      transform(chunk, controller) {
        text += decoder.decode(chunk, { stream: true });
        const events = isStream ? text.split("\n\n") : [text];
        text = events.pop();
        for (const event of events) {
          const data = /^data: (\{.*)$/m.exec(event);
          if (data) note(">", data[1]);
        }
        controller.enqueue(chunk);
      },
      flush() {
        if (!isStream && text) note(">", text.trim());
      },
    });
    const seen = new Response(response.body.pipeThrough(noting), response);
    Object.defineProperty(seen, "url", { value: response.url });
    return seen;
  };
}

/** Connects in the version; fails if another one is agreed on. */
async function connect(source, { capabilities = {}, listChanged } = {}) {
  const transport = transportTo(source);
  const speak =
    line === "v1"
      ? {}
      : modern
        ? { versionNegotiation: { mode: "auto" } }
        : { supportedProtocolVersions: [version] };
  const options = { capabilities, listChanged, ...speak };
  const client = new Client({ name: "fastrpc-test", version: "1" }, options);
  const connection = new Connection(client, transport);
  client.onerror = (error) => complaints.push(String(error));
  if (line === "v1") offerOlder(connection);
  await client.connect(transport);
  connection.agreed ??= client.getNegotiatedProtocolVersion?.();
  assert.equal(connection.agreed, version);
  connection.watch();
  return connection;
}

/** The v1 line always offers the newest version it knows: what it sends is rewritten, what it gets is not. */
function offerOlder(connection) {
  const { transport } = connection;
  const send = transport.send.bind(transport);
  transport.send = (message, options) =>
    send(
      message.method === "initialize"
        ? { ...message, params: { ...message.params, protocolVersion: version } }
        : message,
      options,
    );
  const told = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (agreed) => {
    connection.agreed = agreed;
    told?.(agreed);
  };
}

async function refused(promise) {
  const error = await promise.then(
    (result) => assert.fail(`it was not refused: ${JSON.stringify(result)}`),
    (error) => error,
  );
  if (typeof error.code !== "number") throw error;
  return error.code;
}

async function until(condition) {
  for (let turn = 0; turn < 5000; turn++) {
    if (condition()) return;
    await sleep(10);
  }
  assert.fail("it never came");
}

async function check(name, body) {
  const late = new AbortController();
  const limit = sleep(60_000, undefined, { signal: late.signal }).then(() => assert.fail("it took too long"));
  limit.catch(() => {});
  const detail = await Promise.race([body(), limit]).then(
    () => undefined,
    (error) => String(error?.stack ?? error),
  );
  late.abort();
  console.log(JSON.stringify({ name, ok: detail === undefined, detail }));
}

// --- the server with one of every feature ---

const features = await connect("features.py", { capabilities: EVERYTHING });
features.answer();

await check("the server is described with what a version knows", async () => {
  const info = features.client.getServerVersion();
  assert.deepEqual([info.name, info.version], ["features", "2.0"]);
  assert.equal(features.client.getInstructions(), "Try everything.");
  assert.equal(info.title, since("2025-06-18") ? "All features" : undefined);
  assert.equal(info.description, since("2025-11-25") ? "One of each" : undefined);
  assert.equal(info.websiteUrl, since("2025-11-25") ? "https://example.com" : undefined);
  assert.equal(info.icons?.[0].src, since("2025-11-25") ? "https://example.com/icon.png" : undefined);
  const can = features.client.getServerCapabilities();
  assert(can.tools.listChanged && can.prompts.listChanged);
  assert(can.resources.listChanged && can.resources.subscribe);
  assert.notEqual(can.logging, undefined);
  assert.equal(can.completions !== undefined, since("2025-03-26"));
  assert.equal(can.tasks, undefined);
});

await check("tools are listed with what a version knows", async () => {
  const { tools } = await features.client.listTools();
  const point = tools.find((tool) => tool.name === "point");
  assert.equal(tools.length, 10);
  assert.equal(point.description, "Return a point.");
  assert.deepEqual(point.inputSchema.required, ["x"]);
  assert.equal(point.outputSchema !== undefined, since("2025-06-18"));
  assert.equal(point.title, since("2025-06-18") ? "Make a point" : undefined);
  assert.equal(point.annotations?.readOnlyHint, since("2025-03-26") ? true : undefined);
});

await check("a result is structured where a version knows it", async () => {
  const result = await features.call("point", { x: 3 });
  assert.deepEqual(result.structuredContent, since("2025-06-18") ? { x: 3, y: 0 } : undefined);
  assert.deepEqual(JSON.parse(result.content[0].text), { x: 3, y: 0 });
});

await check("a tool that fails says so, and one that is not there is refused", async () => {
  const result = await features.call("point", { x: "three" });
  assert.equal(result.isError, true);
  assert.match(result.content[0].text, /x/);
  assert.equal(await refused(features.call("nobody")), -32602);
});

await check("content has the types that a version knows", async () => {
  const { content } = await features.call("mixed");
  const audio = since("2025-03-26") ? "audio" : "resource";
  const link = since("2025-06-18") ? "resource_link" : "text";
  assert.deepEqual(
    content.map((block) => block.type),
    ["text", "image", audio, "resource", link],
  );
  assert.deepEqual([content[1].data, content[1].mimeType], ["cG5n", "image/png"]);
  assert.equal(content[3].resource.text, "inside");
  const sound = since("2025-03-26") ? content[2] : content[2].resource;
  assert.deepEqual([sound.data ?? sound.blob, sound.mimeType], ["d2F2", "audio/wav"]);
  if (since("2025-06-18")) assert.equal(content[4].uri, GUIDE);
  else assert.match(content[4].text, /docs:\/\/guide/);
});

await check("resources and templates are listed", async () => {
  const { resources } = await features.client.listResources();
  assert.deepEqual(
    resources.map((resource) => [resource.uri, resource.mimeType]),
    [
      [GUIDE, "text/markdown"],
      ["docs://logo", "image/png"],
    ],
  );
  assert.equal(resources[0].title, since("2025-06-18") ? "The guide" : undefined);
  const { resourceTemplates } = await features.client.listResourceTemplates();
  assert.deepEqual(
    resourceTemplates.map((template) => template.uriTemplate),
    ["notes://{name}/{part*}"],
  );
});

await check("resources are read, and one that is not there is refused", async () => {
  const read = async (uri) => (await features.client.readResource({ uri })).contents[0];
  assert.equal((await read(GUIDE)).text, "Begin");
  assert.equal((await read("docs://logo")).blob, "cG5n");
  const note = await read("notes://ann/a%20b");
  assert.equal(note.mimeType, "application/json");
  assert.deepEqual(JSON.parse(note.text), { name: "ann", part: "a b" });
  // The v2 line shows every version's code as the newest one's.
  const code = modern ? -32602 : -32002;
  assert.equal((await features.raw("resources/read", { uri: "docs://nowhere" })).error?.code, code);
  assert.equal(await refused(read("docs://nowhere")), line === "v2" ? -32602 : code);
});

await check("prompts are listed and filled in", async () => {
  const { prompts } = await features.client.listPrompts();
  assert.equal(prompts.length, 1);
  const [prompt] = prompts;
  assert.deepEqual([prompt.name, prompt.description], ["review", "Have code reviewed."]);
  assert.equal(prompt.title, since("2025-06-18") ? "Review code" : undefined);
  assert.deepEqual(
    prompt.arguments.map((one) => [one.name, Boolean(one.required)]),
    [
      ["code", true],
      ["language", false],
    ],
  );
  const values = { code: "x = 1", language: "rust" };
  const filled = await features.client.getPrompt({ name: "review", arguments: values });
  assert.equal(filled.messages[0].content.text, "Review this rust: x = 1");
  assert.equal(await refused(features.client.getPrompt({ name: "review", arguments: {} })), -32602);
  assert.equal(await refused(features.client.getPrompt({ name: "nobody" })), -32602);
});

await check("arguments are completed", async () => {
  const values = async (ref, name, value, context) => {
    const params = { ref, argument: { name, value }, ...(context && { context }) };
    return (await features.client.complete(params)).completion.values;
  };
  const others = since("2025-06-18") ? { arguments: { language: "rust" } } : undefined;
  assert.deepEqual(await values(REVIEW, "language", "r"), ["rust"]);
  assert.deepEqual(await values(REVIEW, "code", "x", others), [others ? "x in rust" : "x in any"]);
  const note = { type: "ref/resource", uri: "notes://{name}/{part*}" };
  assert.deepEqual(await values(note, "name", "an"), ["ann", "anton"]);
});

await check("log messages come from the level that was asked for", async () => {
  features.heard.length = 0;
  features.hear("notifications/message");
  if (!modern) await features.client.setLoggingLevel("info");
  await features.call("noisy", {}, {}, modern && { "io.modelcontextprotocol/logLevel": "info" });
  await until(() => features.heard.length === 2);
  assert.deepEqual(
    features.heard.map(({ params: { level, logger, data } }) => [level, logger, data]),
    [
      ["info", "tests", { any: ["value"] }],
      ["error", undefined, "loud"],
    ],
  );
});

if (modern)
  await check("a request without a level brings no log messages", async () => {
    features.heard.length = 0;
    await features.call("noisy");
    await features.call("point", { x: 1 });
    assert.deepEqual(features.heard, []);
  });
else
  await check("the level can be raised, and only to one there is", async () => {
    features.heard.length = 0;
    await features.client.setLoggingLevel("error");
    await features.call("noisy");
    await features.call("point", { x: 1 });
    assert.deepEqual(
      features.heard.map(({ params }) => params.data),
      ["loud"],
    );
    assert.equal((await features.raw("logging/setLevel", { level: "shrill" })).error.code, -32602);
  });

await check("the client is asked for a sample", async () => {
  features.asked.length = 0;
  assert.equal(await features.text("think"), "m1: seven");
  const [{ method, params }] = features.asked;
  assert.equal(method, "sampling/createMessage");
  assert.deepEqual([params.maxTokens, params.systemPrompt], [9, "Be brief"]);
  assert.equal([params.messages[0].content].flat()[0].text, "What now?");
});

await check("the client is asked for its roots", async () => {
  features.asked.length = 0;
  assert.equal(await features.text("where"), "file:///work");
  assert.equal(await features.text("where"), "file:///work");
  if (modern) return assert.equal(features.asked.length, 2);
  assert.equal(features.asked.length, 1); // they hold until the client says that they have changed
  await features.client.sendRootsListChanged();
  assert.equal(await features.text("where"), "file:///work");
  assert.equal(features.asked.length, 2);
});

await check("the client is asked to fill in a form where a version knows it", async () => {
  features.asked.length = 0;
  if (since("2025-06-18")) {
    assert.equal(await features.text("who"), "7,0");
    assert.equal(features.asked[0].params.message, "Where?");
    assert.deepEqual(Object.keys(features.asked[0].params.requestedSchema.properties), ["x", "y"]);
  } else {
    assert.equal((await features.call("who")).isError, true);
    assert.deepEqual(features.asked, []);
  }
});

await check("the client is asked to open a page where a version knows it", async () => {
  features.asked.length = 0;
  if (since("2025-11-25")) {
    assert.equal(await features.text("visit"), "accept");
    assert.equal(features.asked[0].params.url, "https://example.com/sign-in");
  } else {
    assert.equal((await features.call("visit")).isError, true);
    assert.deepEqual(features.asked, []);
  }
});

await check("one call asks for several things", async () => {
  features.asked.length = 0;
  if (since("2025-06-18")) {
    assert.equal(await features.text("everything"), "7 is seven in 1");
    const methods = features.asked.map((one) => one.method);
    assert.deepEqual(methods.slice(0, 2), ["elicitation/create", "sampling/createMessage"]);
    assert.deepEqual(methods.slice(2), modern ? ["roots/list"] : []);
  } else assert.equal((await features.call("everything")).isError, true);
});

await check("changes are told", async () => {
  const lists = ["tools", "prompts", "resources"].map((kind) => `notifications/${kind}/list_changed`);
  features.heard.length = 0;
  features.hear(...lists, "notifications/resources/updated");
  const filter = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
  const asked = { ...filter, resourceSubscriptions: [GUIDE] };
  const listening = modern && (await features.client.listen(asked));
  if (modern) assert.deepEqual(listening.honoredFilter, asked);
  else await features.client.subscribeResource({ uri: GUIDE });
  await features.call("change");
  await until(() => [...lists, "notifications/resources/updated"].every((one) => features.times(one) > 0));
  const updated = features.heard.find((one) => one.method === "notifications/resources/updated");
  assert.equal(updated.params.uri, GUIDE);
  if (listening) await listening.close();
  else await features.client.unsubscribeResource({ uri: GUIDE });
  const names = (list) => list.map((one) => one.name);
  assert(names((await features.client.listTools()).tools).includes("added"));
  assert(names((await features.client.listPrompts()).prompts).includes("added"));
  assert.equal((await features.client.listResources()).resources.length, 3);
});

await check("what another version has is refused", async () => {
  const gone = ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
  const params = { level: "info", uri: GUIDE, notifications: { toolsListChanged: true } };
  for (const method of [...(modern ? gone : ["subscriptions/listen"]), "tasks/list"])
    assert.equal((await features.raw(method, params)).error?.code, -32601, method);
});

await features.close();

// --- a server for what takes time ---

const plain = await connect("plain.py");

await check("a ping is answered where a version has one", async () => {
  const answer = await plain.raw("ping");
  if (modern) assert.equal(answer.error?.code, -32601);
  else {
    assert.deepEqual(answer.result, {});
    await plain.client.ping();
  }
});

await check("many calls at once are each answered", async () => {
  const texts = Array.from({ length: 100 }, (_, at) => `héllo 漢 🎉 ${at}`);
  assert.deepEqual(await Promise.all(texts.map((text) => plain.text("echo", { text }))), texts);
});

await check("progress comes in its order", async () => {
  const reports = [];
  const heard = []; // each step waits to be told that the last one has been heard of
  const onprogress = ({ progress, total, message }) => {
    reports.push([progress, total, message]);
    heard.push(plain.call("go_on"));
  };
  const options = { onprogress };
  assert.equal((await plain.call("steps", { count: 3 }, options)).content[0].text, "done");
  const message = (step) => (since("2025-03-26") ? `step ${step}` : undefined);
  assert.deepEqual(
    reports,
    [1, 2, 3].map((step) => [step, 3, message(step)]),
  );
  await Promise.all(heard);
});

await check("a call that is given up ends on the server too", async () => {
  const controller = new AbortController();
  const options = { signal: controller.signal };
  const call = plain.call("endless", {}, options).then(
    () => false,
    () => true,
  );
  while ((await plain.text("begun")) !== "1") await sleep(10);
  assert.equal(await plain.text("cancelled"), "0");
  controller.abort("enough");
  assert.equal(await call, true);
  while ((await plain.text("cancelled")) !== "1") await sleep(10);
});

await check("a subscription holds until it is ended", async () => {
  const updated = "notifications/resources/updated";
  plain.hear(updated);
  await plain.call("touch");
  await plain.text("echo", { text: "between" });
  assert.equal(plain.times(updated), 0);
  const listening = modern && (await plain.client.listen({ resourceSubscriptions: [GUIDE] }));
  if (!modern) await plain.client.subscribeResource({ uri: GUIDE });
  await plain.call("touch");
  await until(() => plain.times(updated) === 1);
  if (listening) {
    await listening.close();
    assert.equal(await listening.closed, "local");
  } else await plain.client.unsubscribeResource({ uri: GUIDE });
  await plain.call("touch");
  await plain.text("echo", { text: "after" });
  await sleep(50);
  assert.equal(plain.times(updated), 1);
});

await check("a client that cannot be asked is not", async () => {
  const able = features.asked.length;
  const lame = await connect("features.py");
  for (const tool of ["who", "visit", "think", "where"])
    if (modern) assert.equal(await refused(lame.call(tool)), -32021, tool);
    else {
      const result = await lame.call(tool);
      assert.equal(result.isError, true, tool);
      assert(result.content[0].text);
    }
  assert.equal(lame.requests, undefined);
  assert.equal(features.asked.length, able);
  await lame.close();
});

await check("a server of a pipe ends with its input", async () => {
  const server = plain.transport._process;
  if (server) {
    const ended = new Promise((resolve) => server.once("exit", (code, signal) => resolve([code, signal])));
    server.stdin.end(); // the client itself would wait for two seconds, and then send a signal
    assert.deepEqual(await ended, [0, null]);
  } else assert.notEqual(over, "stdio");
  await plain.close();
});

// --- a server with pages, whose prompts and resources ask ---

const told = { tools: 0 };
const asking = await connect("asking.py", {
  capabilities: EVERYTHING,
  listChanged: {
    tools: { autoRefresh: true, debounceMs: 0, onChanged: (error, tools) => (told.tools = error ?? tools) },
  },
});
asking.answer();

await check("lists come in pages", async () => {
  const first = (await asking.raw("tools/list")).result;
  const names = (tools) => tools.map((tool) => tool.name);
  assert.deepEqual(names(first.tools), ["first", "second"]);
  const rest = await asking.client.listTools({ cursor: first.nextCursor });
  assert.deepEqual(names(rest.tools), ["third"]);
  assert.equal(rest.nextCursor, undefined);
  assert.equal(await refused(asking.client.listTools({ cursor: "?" })), -32602);
  // The v2 line walks the pages by itself, the v1 line gives the first.
  const listed = names((await asking.client.listTools()).tools);
  assert.deepEqual(listed, line === "v1" ? ["first", "second"] : ["first", "second", "third"]);
});

await check("lists say for how long they hold where a version knows it", async () => {
  const { ttlMs, cacheScope } = (await asking.raw("tools/list")).result;
  assert.deepEqual([ttlMs, cacheScope], modern ? [7000, "public"] : [undefined, undefined]);
});

await check("prompts and resources ask too", async () => {
  const filled = await asking.client.getPrompt({ name: "greet" });
  assert.equal(filled.messages[0].content.text, "Greet seven");
  const { contents } = await asking.client.readResource({ uri: "own://name" });
  assert.equal(contents[0].text, "seven");
});

await check("the client fetches a list anew that has changed", async () => {
  await asking.call("first");
  await until(() => told.tools !== 0);
  assert(Array.isArray(told.tools), String(told.tools));
  if (line === "v2") assert(told.tools.some((tool) => tool.name === "added"));
});

await asking.close();

// --- a server without anything ---

const bare = await connect("bare.py");

await check("what a server has not is neither promised nor served", async () => {
  const can = bare.client.getServerCapabilities();
  assert.deepEqual([can.prompts, can.resources, can.completions], [undefined, undefined, undefined]);
  assert.deepEqual((await bare.client.listTools()).tools, []);
  const argument = { name: "code", value: "" };
  for (const [method, params] of [
    ["prompts/list"],
    ["prompts/get", { name: "review" }],
    ["resources/list"],
    ["resources/templates/list"],
    ["resources/read", { uri: GUIDE }],
    ["completion/complete", { ref: REVIEW, argument }],
  ])
    assert.equal((await bare.raw(method, params)).error?.code, -32601, method);
});

await bare.close();

await check("the client has nothing to complain of", async () => assert.deepEqual(complaints, []));
process.exit(0);
