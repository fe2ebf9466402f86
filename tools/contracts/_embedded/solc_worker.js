// Runs solc's WebAssembly: `node solc_worker.js SOLJSON` answers compilations until its input ends.
//
// A request is a line with a number of bytes, and so many bytes of standard JSON behind it; so is an answer.
// `node solc_worker.js SOLJSON --standard-json` compiles what is in its input once, and `--version` prints the
// version, as solc itself does: for forge. Inputs go into the compiler's own memory, not over its stack, which
// large ones would overflow. What a compiler prints must not end up among answers: stdout is moved away.
"use strict";

const fs = require("fs");

const [soljson, ...options] = process.argv.slice(2);
console.log = console.info = console.warn = console.error;
const solc = require(soljson);

function compile(input) {
  const request = input.toString();
  const size = solc.lengthBytesUTF8(request) + 1;
  const pointer = solc._solidity_alloc(size);
  solc.stringToUTF8(request, pointer, size);
  const text = solc.UTF8ToString(solc._solidity_compile(pointer, 0, 0));
  solc._solidity_reset();
  return text;
}

function version() {
  return solc.UTF8ToString(solc._solidity_version());
}

function writeAll(bytes) {
  let done = 0;
  while (done < bytes.length) {
    try {
      done += fs.writeSync(1, bytes, done);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

function answer(text) {
  const bytes = Buffer.from(text);
  writeAll(Buffer.concat([Buffer.from(`${bytes.length}\n`), bytes]));
}

function serve() {
  let held = Buffer.alloc(0);
  let parts = [];
  let wanted = -1;
  process.stdin.on("data", (chunk) => {
    parts.push(chunk);
    for (;;) {
      if (wanted >= 0 && parts.reduce((sum, part) => sum + part.length, held.length) < wanted) return;
      held = Buffer.concat([held, ...parts]);
      parts = [];
      if (wanted < 0) {
        const end = held.indexOf(10);
        if (end < 0) return;
        wanted = parseInt(held.subarray(0, end).toString(), 10);
        held = held.subarray(end + 1);
      }
      if (held.length < wanted) return;
      const request = held.subarray(0, wanted);
      held = held.subarray(wanted);
      answer(request.length === 0 ? version() : compile(request));
      wanted = -1;
    }
  });
  process.stdin.on("end", () => process.exit(0));
}

if (options.includes("--version")) {
  writeAll(Buffer.from(`solc, the solidity compiler commandline interface\nVersion: ${version()}\n`));
} else if (options.includes("--standard-json")) {
  writeAll(Buffer.from(compile(fs.readFileSync(0))));
} else {
  serve();
}
