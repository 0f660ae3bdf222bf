// Calls chat completions with the official SDK and prints one JSON line for each call:
//   {"i": 0, "ok": true, "text": "…", "chunks": 3, "finish": "stop", "ms": 12,
//    "provider": "…", "connection": "…", "attempts": "1"}
//   {"i": 1, "ok": false, "status": 503, "code": "…", "error": "…", "ms": 9}
// The exit status is 0 whenever all lines were printed: whether a failed call is a failed test is
// for the test to say.
import { parseArgs } from "node:util";
import OpenAI from "openai";

const { values: opts } = parseArgs({
  options: {
    "base-url": { type: "string" },
    key: { type: "string" },
    model: { type: "string" },
    n: { type: "string", default: "1" },
    concurrency: { type: "string", default: "1" },
    "timeout-ms": { type: "string", default: "30000" },
    stream: { type: "boolean", default: false },
  },
});
for (const name of ["base-url", "key", "model"]) {
  if (!opts[name]) {
    console.error(`--${name} is missing`);
    process.exit(2);
  }
}

const client = new OpenAI({
  baseURL: opts["base-url"],
  apiKey: opts.key,
  maxRetries: 0, // a retry in here would hide what the gateway failed to do
  timeout: Number(opts["timeout-ms"]),
});

async function call(i) {
  const request = {
    model: opts.model,
    messages: [{ role: "user", content: `call ${i}` }],
    stream: opts.stream,
  };
  const { data, response } = await client.chat.completions.create(request).withResponse();
  const result = {
    text: "",
    chunks: 0,
    finish: null,
    provider: response.headers.get("x-omniroute-provider"),
    connection: response.headers.get("x-omniroute-connection"),
    attempts: response.headers.get("x-omniroute-attempts"),
  };
  if (!opts.stream) {
    result.text = data.choices[0].message.content;
    result.finish = data.choices[0].finish_reason;
    return result;
  }
  for await (const chunk of data) {
    const choice = chunk.choices[0];
    if (!choice) continue; // the usage block
    if (choice.delta?.content) {
      result.text += choice.delta.content;
      result.chunks++;
    }
    if (choice.finish_reason) result.finish = choice.finish_reason;
  }
  return result;
}

let next = 0;
const total = Number(opts.n);

async function worker() {
  while (next < total) {
    const i = next++;
    const started = performance.now();
    const ms = () => Math.round(performance.now() - started);
    try {
      const result = await call(i);
      console.log(JSON.stringify({ i, ok: true, ...result, ms: ms() }));
    } catch (err) {
      console.log(JSON.stringify({ i, ok: false, status: err.status, code: err.code, error: String(err.message), ms: ms() }));
    }
  }
}

await Promise.all(Array.from({ length: Number(opts.concurrency) }, worker));
