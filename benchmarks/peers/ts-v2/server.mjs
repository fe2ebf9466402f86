// Peer: the TypeScript SDK, second line: McpServer through serveStdio.
import { execFile } from 'node:child_process';

import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const text = (value) => ({ content: [{ type: 'text', text: value }] });

function build() {
    const server = new McpServer({ name: 'bench', version: '1.0.0' }, { capabilities: { tools: {} } });

    server.registerTool(
        'echo',
        { description: 'Return the text.', inputSchema: z.object({ text: z.string() }) },
        async (given) => text(given.text),
    );

    server.registerTool(
        'add',
        { description: 'Return the sum of two integers.', inputSchema: z.object({ a: z.int(), b: z.int() }) },
        async ({ a, b }) => text(String(a + b)),
    );

    server.registerTool(
        'payload',
        { description: 'Return the object.', inputSchema: z.object({ object: z.record(z.string(), z.unknown()) }) },
        async ({ object }) => ({ ...text(JSON.stringify(object)), structuredContent: object }),
    );

    server.registerTool(
        'sleep',
        { description: 'Wait for so many milliseconds.', inputSchema: z.object({ ms: z.int() }) },
        async ({ ms }) => {
            await new Promise((resolve) => setTimeout(resolve, ms));
            return text('done');
        },
    );

    server.registerTool(
        'bash',
        { description: 'Run a command and return what it printed.', inputSchema: z.object({ command: z.string() }) },
        ({ command }) =>
            new Promise((resolve) => {
                const limits = { maxBuffer: 256 * 1024 * 1024 };
                execFile('bash', ['-c', command], limits, (_, stdout, stderr) => resolve(text(stdout + stderr)));
            }),
    );
    return server;
}

serveStdio(build);
