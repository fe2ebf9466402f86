// Peer: the TypeScript SDK, first line: McpServer over StdioServerTransport.
import { execFile } from 'node:child_process';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const server = new McpServer({ name: 'bench', version: '1.0.0' });

const text = (value) => ({ content: [{ type: 'text', text: value }] });

server.registerTool(
    'echo',
    { description: 'Return the text.', inputSchema: { text: z.string() } },
    async (given) => text(given.text),
);

server.registerTool(
    'add',
    { description: 'Return the sum of two integers.', inputSchema: { a: z.int(), b: z.int() } },
    async ({ a, b }) => text(String(a + b)),
);

server.registerTool(
    'payload',
    { description: 'Return the object.', inputSchema: { object: z.record(z.string(), z.unknown()) } },
    async ({ object }) => ({ ...text(JSON.stringify(object)), structuredContent: object }),
);

server.registerTool(
    'sleep',
    { description: 'Wait for so many milliseconds.', inputSchema: { ms: z.int() } },
    async ({ ms }) => {
        await new Promise((resolve) => setTimeout(resolve, ms));
        return text('done');
    },
);

server.registerTool(
    'bash',
    { description: 'Run a command and return what it printed.', inputSchema: { command: z.string() } },
    ({ command }) =>
        new Promise((resolve) => {
            const limits = { maxBuffer: 256 * 1024 * 1024 };
            execFile('bash', ['-c', command], limits, (_, stdout, stderr) => resolve(text(stdout + stderr)));
        }),
);

await server.connect(new StdioServerTransport());
