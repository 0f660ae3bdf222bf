// Plays scenes with an official SDK. A task comes as JSON on stdin; the outcomes of its jobs, in
// their order, go to stdout as one JSON list. The exit status is 0 whenever that list was printed:
// which outcome is a failed test is for the test to say.
import { text as readAll } from "node:stream/consumers";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const task = JSON.parse(await readAll(process.stdin));
const usesTools = (job) => job.scene === "tools" || job.scene === "parallel";
const resultOf = (name) => task.tools.find((t) => t.name === name)?.result ?? "no such tool";
// A retry in a client would hide what the gateway failed to do.
const common = { apiKey: task.key, maxRetries: 0, timeout: task.timeout };

const apis = {
  chat() {
    const client = new OpenAI({ ...common, baseURL: `${task.base}/v1` });
    const params = (job) => {
      const content = [{ type: "text", text: task.prompt }];
      if (job.scene === "image") {
        content.push({ type: "image_url", image_url: { url: `data:image/png;base64,${task.pixel}` } });
      }
      return {
        model: job.model,
        max_completion_tokens: 2000,
        messages: [{ role: "system", content: task.system }, { role: "user", content }],
        ...(job.scene === "schema" && {
          response_format: { type: "json_schema", json_schema: { name: "answer", schema: task.schema, strict: true } },
        }),
        ...(job.scene === "reasoning" && { reasoning_effort: "high" }),
        ...(usesTools(job) && {
          tools: task.tools.map(({ name, description, schema: parameters }) => ({ type: "function", function: { name, description, parameters } })),
        }),
      };
    };
    const ask = async (job, body, o) => {
      if (!job.stream) {
        const answer = await client.chat.completions.create(body);
        o.thought += answer.choices[0].message.reasoning_content ?? "";
        return answer;
      }
      const stream = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
      stream.on("chunk", (c) => (o.thought += c.choices[0]?.delta?.reasoning_content ?? ""));
      stream.on("content", (delta) => (o.text += delta));
      return stream.finalChatCompletion();
    };
    return async (job, o) => {
      const body = params(job);
      const answer = await ask(job, body, o);
      const { message, finish_reason } = answer.choices[0];
      Object.assign(o, { text: message.content, finish: finish_reason, input: answer.usage.prompt_tokens, output: answer.usage.completion_tokens });
      if (!usesTools(job)) return;
      const calls = message.tool_calls ?? [];
      o.calls = calls.map((c) => ({ id: c.id, name: c.function.name, args: c.function.arguments }));
      body.messages.push(message, ...calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: resultOf(c.function.name) })));
      o.text = (await ask(job, body, o)).choices[0].message.content;
    };
  },

  responses() {
    const client = new OpenAI({ ...common, baseURL: `${task.base}/v1` });
    const params = (job) => {
      const content = [{ type: "input_text", text: task.prompt }];
      if (job.scene === "image") {
        content.push({ type: "input_image", detail: "auto", image_url: `data:image/png;base64,${task.pixel}` });
      }
      return {
        model: job.model,
        instructions: task.system,
        max_output_tokens: 2000,
        store: false,
        input: [{ role: "user", content }],
        ...(job.scene === "schema" && { text: { format: { type: "json_schema", name: "answer", schema: task.schema, strict: true } } }),
        ...(job.scene === "reasoning" && { reasoning: { effort: "high", summary: "auto" } }),
        ...(usesTools(job) && {
          tools: task.tools.map(({ name, description, schema: parameters }) => ({ type: "function", name, description, parameters, strict: false })),
        }),
      };
    };
    const ask = async (job, body, o) => {
      if (!job.stream) return client.responses.create(body);
      const stream = client.responses.stream(body);
      stream.on("response.output_text.delta", (e) => (o.text += e.delta));
      // The helper resolves with the response of a failure too; it is the events that tell.
      stream.on("response.failed", (e) => (o.error = e.response.error?.message ?? "failed"));
      const final = await stream.finalResponse();
      if (!o.error && final.output_text !== o.text) o.problem = "the deltas are not what the final response has";
      return final;
    };
    return async (job, o) => {
      const body = params(job);
      const answer = await ask(job, body, o);
      if (o.error) return;
      Object.assign(o, { text: answer.output_text, finish: answer.status, input: answer.usage.input_tokens, output: answer.usage.output_tokens });
      for (const item of answer.output) {
        if (item.type === "reasoning") o.thought += item.summary.map((s) => s.text).join("");
      }
      if (!usesTools(job)) return;
      const calls = answer.output.filter((item) => item.type === "function_call");
      o.calls = calls.map((c) => ({ id: c.call_id, name: c.name, args: c.arguments }));
      body.input.push(...answer.output, ...calls.map((c) => ({ type: "function_call_output", call_id: c.call_id, output: resultOf(c.name) })));
      o.text = "";
      o.text = (await ask(job, body, o)).output_text;
    };
  },

  messages() {
    const client = new Anthropic({ ...common, baseURL: task.base });
    const params = (job) => {
      const content = [{ type: "text", text: task.prompt }];
      if (job.scene === "image") {
        content.push({ type: "image", source: { type: "base64", media_type: "image/png", data: task.pixel } });
      }
      return {
        model: job.model,
        max_tokens: 4000,
        system: task.system,
        messages: [{ role: "user", content }],
        ...(job.scene === "schema" && { output_config: { format: { type: "json_schema", schema: task.schema } } }),
        ...(job.scene === "reasoning" && { thinking: { type: "enabled", budget_tokens: 2048 } }),
        ...(usesTools(job) && {
          tools: task.tools.map(({ name, description, schema: input_schema }) => ({ name, description, input_schema })),
        }),
      };
    };
    const ask = async (job, body, o) => {
      if (!job.stream) return client.messages.create(body);
      const stream = client.messages.stream(body);
      stream.on("text", (delta) => (o.text += delta));
      return stream.finalMessage();
    };
    const textOf = (message) => message.content.filter((b) => b.type === "text").map((b) => b.text).join("");
    return async (job, o) => {
      const body = params(job);
      const message = await ask(job, body, o);
      Object.assign(o, { text: textOf(message), finish: message.stop_reason, input: message.usage.input_tokens, output: message.usage.output_tokens });
      o.thought = message.content.filter((b) => b.type === "thinking").map((b) => b.thinking).join("");
      if (!usesTools(job)) return;
      const calls = message.content.filter((b) => b.type === "tool_use");
      o.calls = calls.map((c) => ({ id: c.id, name: c.name, args: JSON.stringify(c.input) }));
      body.messages.push(
        { role: "assistant", content: message.content },
        { role: "user", content: calls.map((c) => ({ type: "tool_result", tool_use_id: c.id, content: resultOf(c.name) })) },
      );
      o.text = textOf(await ask(job, body, o));
    };
  },
};

const play = apis[task.api]();
const outcomes = [];
for (const job of task.jobs) {
  const o = { text: "", thought: "", calls: [], finish: "", input: 0, output: 0, status: 0, error: "", problem: "" };
  try {
    await play(job, o);
  } catch (err) {
    o.error = String(err.message) || err.name;
    o.status = err.status ?? 0;
  }
  outcomes.push(o);
}
console.log(JSON.stringify(outcomes));
