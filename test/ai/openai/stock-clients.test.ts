import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { embed, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai'
import { NotFoundError, OpenAI } from 'openai'
import { listen } from '../../../src/gateway'
import { createAiFixture } from '../fixtures'

setDefaultTimeout(60_000)

const at = await createAiFixture()
const server = listen('127.0.0.1', 0)
afterAll(async () => {
  await server.stop(true)
  await at.openai.stop()
})

await at.agent({ name: 'Echo', sourceId: 'echo' })
await at.agent({ name: 'Embedder' })
const [baseURL, apiKey] = [new URL('/api/ai/v1', server.url).href, at.tokens.user]
const headers = { tenant: at.id }
const hello = { role: 'user' as const, content: 'Hello' }
const ask = { role: 'user' as const, content: 'call pick {"color":"red"}' }
const parameters = { type: 'object' as const, properties: { color: { type: 'string' as const } } }

test('the `openai` package for Node chats, streams, calls tools, embeds and reads errors', async () => {
  const client = new OpenAI({ baseURL, apiKey, defaultHeaders: headers, maxRetries: 0 })
  const { chat } = client
  const whole = await chat.completions.create({ model: 'Echo', messages: [hello] })
  expect(whole.choices[0]!.message.content).toBe('Hello')
  const stream = chat.completions.stream({ model: 'Echo', messages: [hello], stream_options: { include_usage: true } })
  expect(await stream.finalContent()).toBe('Hello')
  expect((await stream.totalUsage()).total_tokens).toBeGreaterThan(0)
  const picked: unknown[] = []
  const runner = chat.completions.runTools({
    model: 'Echo',
    stream: true,
    messages: [ask],
    tools: [
      {
        type: 'function',
        function: {
          name: 'pick',
          description: 'Picks a color.',
          parameters,
          parse: JSON.parse,
          function: (input: unknown) => {
            picked.push(input)
            return 'It is red.'
          },
        },
      },
    ],
  })
  expect(await runner.finalContent()).toBe('It is red.')
  expect(picked).toEqual([{ color: 'red' }])
  const { data } = await client.embeddings.create({ model: 'Embedder', input: 'green cats' })
  expect(data[0]!.embedding).toHaveLength(64)
  const models = await Array.fromAsync(client.models.list())
  expect(models.map(({ id }) => id)).toContain('Echo')
  const refusal = await chat.completions.create({ model: 'nobody', messages: [hello] }).catch((error) => error)
  expect(refusal).toBeInstanceOf(NotFoundError)
  expect(refusal).toMatchObject({ code: 'MODEL_NOT_FOUND', param: 'model', type: 'invalid_request_error' })
})

test('the `ai` package streams, calls tools in steps and embeds', async () => {
  const provider = createOpenAICompatible({ name: 'atoll', baseURL, apiKey, headers, includeUsage: true })
  const pick = tool({
    inputSchema: jsonSchema<{ color: string }>(parameters),
    execute: ({ color }) => `It is ${color}.`,
  })
  const { text, steps } = await generateText({
    model: provider('Echo'),
    messages: [ask],
    tools: { pick },
    stopWhen: stepCountIs(3),
  })
  expect([text, steps.length]).toEqual(['It is red.', 2])
  const streamed = streamText({ model: provider('Echo'), system: 'Be brief.', messages: [hello] })
  expect(await Array.fromAsync(streamed.textStream).then((parts) => parts.join(''))).toBe('Hello')
  expect((await streamed.totalUsage).totalTokens).toBeGreaterThan(0)
  const { embedding } = await embed({ model: provider.embeddingModel('Embedder'), value: 'green cats' })
  expect(embedding).toHaveLength(64)
})

const python = process.env.TEST_PYTHON ?? 'python3'
const hasPackage = (name: string) =>
  Bun.spawnSync([python, '-c', `import importlib.util, sys; sys.exit(not importlib.util.find_spec("${name}"))`], {
    stderr: 'ignore',
  }).success

const missing = (name: string) => {
  if (hasPackage(name)) return false
  console.warn(`SKIPPED: ${python} has no package ${name} (pip install ${name}; TEST_PYTHON names another interpreter)`)
  return true
}

async function runPython(client: string) {
  const env = { ...process.env, BASE: baseURL, KEY: apiKey, TENANT: at.id, MODEL: 'Echo', EMBEDDER: 'Embedder' }
  const script = join(import.meta.dir, 'stock_clients.py')
  const child = Bun.spawn([python, script, client], { env, stdout: 'pipe', stderr: 'pipe' })
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if (await child.exited) throw new Error(errors)
  return JSON.parse(out.trim().split('\n').at(-1)!)
}

test.skipIf(missing('openai'))('the `openai` package for Python does the same', async () => {
  expect(await runPython('openai')).toEqual({
    ...{ whole: 'Hello', streamed: 'Hello', usage: true, call: ['pick', '{}'], after: 'red', dimensions: 64 },
    ...{ models: true, error: ['MODEL_NOT_FOUND', 'model', 'invalid_request_error'] },
  })
})

test.skipIf(missing('langchain_openai'))(
  'LangChain chats, streams, calls tools, embeds and asks for JSON',
  async () => {
    expect(await runPython('langchain_openai')).toEqual({
      ...{ whole: 'Hello', streamed: 'Hello', usage: true, call: ['pick', {}], finish: 'tool_calls', after: 'red' },
      ...{ dimensions: 64, structured: { echo: 'Hello' } },
    })
  },
)

test.skipIf(missing('litellm'))('LiteLLM chats, streams and calls tools', async () => {
  expect(await runPython('litellm')).toEqual({
    ...{ whole: 'Hello', streamed: 'Hello', call: ['pick', '{}'], finish: 'tool_calls' },
  })
})
