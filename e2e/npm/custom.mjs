// Lets the official client call a custom tool, plain, streamed and with its own accumulator, and prints the three
// texts of the call as a JSON list.
import { parseArgs } from 'node:util';
import OpenAI from 'openai';

const { values: o } = parseArgs({ options: { 'base-url': { type: 'string' }, key: { type: 'string' }, model: { type: 'string' } } });
const client = new OpenAI({ baseURL: o['base-url'], apiKey: o.key, maxRetries: 0 });
const ask = { model: o.model, input: 'Fix it.', store: false, tools: [{ type: 'custom', name: 'apply_patch', description: 'Edits files.' }] };
const inputOf = (response) => response.output.find((item) => item.type === 'custom_tool_call')?.input;

const plain = inputOf(await client.responses.create(ask));
let pieces = '';
for await (const e of await client.responses.create({ ...ask, stream: true })) {
  if (e.type === 'response.custom_tool_call_input.delta') pieces += e.delta;
}
const final = inputOf(await client.responses.stream(ask).finalResponse());
console.log(JSON.stringify([plain, pieces, final]));
