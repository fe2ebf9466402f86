// Peer: the TypeScript SDK, second line: McpServer through serveStdio, or with `--http PORT` over HTTP, for the wire
// of 2026-07-28 only and with JSON answers.
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const text = (value) => ({ content: [{ type: 'text', text: value }] });

// Over HTTP a server is built for every request: what can be made once is.
const inputs = {
    echo: z.object({ text: z.string() }),
    add: z.object({ a: z.int(), b: z.int() }),
    payload: z.object({ object: z.record(z.string(), z.unknown()) }),
    sleep: z.object({ ms: z.int() }),
    bash: z.object({ command: z.string() }),
};

function build() {
    const server = new McpServer({ name: 'bench', version: '1.0.0' }, { capabilities: { tools: {} } });

    server.registerTool(
        'echo',
        { description: 'Return the text.', inputSchema: inputs.echo },
        async (given) => text(given.text),
    );

    server.registerTool(
        'add',
        { description: 'Return the sum of two integers.', inputSchema: inputs.add },
        async ({ a, b }) => text(String(a + b)),
    );

    server.registerTool(
        'payload',
        { description: 'Return the object.', inputSchema: inputs.payload },
        async ({ object }) => ({ ...text(JSON.stringify(object)), structuredContent: object }),
    );

    server.registerTool(
        'sleep',
        { description: 'Wait for so many milliseconds.', inputSchema: inputs.sleep },
        async ({ ms }) => {
            await new Promise((resolve) => setTimeout(resolve, ms));
            return text('done');
        },
    );

    server.registerTool(
        'bash',
        { description: 'Run a command and return what it printed.', inputSchema: inputs.bash },
        ({ command }) =>
            new Promise((resolve) => {
                const limits = { maxBuffer: 256 * 1024 * 1024 };
                execFile('bash', ['-c', command], limits, (_, stdout, stderr) => resolve(text(stdout + stderr)));
            }),
    );
    return server;
}

const [option, port] = process.argv.slice(2);
if (option === '--http') {
    const handler = createMcpHandler(build, { legacy: 'reject', responseMode: 'json' });
    createServer(toNodeHandler(handler)).listen(Number(port), '127.0.0.1');
} else {
    serveStdio(build);
}
