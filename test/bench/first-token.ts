// `bun test/bench/first-token.ts [--rounds 600] [--source]`: how much later than by the model's server itself the first word of a
// stream comes through us, by turns, beside a proxy of a few lines as the limit. With `--source`, the source runs instead of the
// binary. The server and the readers speak HTTP by hand, on a new connection each time or on one that is kept.
import { apiCaller, createTempFolder, createTenantByCli, SOURCE_COMMAND, signIn, startAtoll } from '../fakes/cli'

const { argv } = process
const ROUNDS = Number(argv[argv.indexOf('--rounds') + 1]) || 600
const END_AFTER_MS = 4 // between the first word and the rest of an answer

const MODEL_SERVER_SOURCE = `
const chunk = (more) => { const text = 'data: ' + JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', ...more }) + '\\n\\n'
  return text.length.toString(16) + '\\r\\n' + text + '\\r\\n' }
const word = chunk({ choices: [{ index: 0, delta: { content: 'Hello ' }, finish_reason: null }] })
const end = chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }) + chunk({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }) + 'e\\r\\ndata: [DONE]\\n\\n\\r\\n0\\r\\n\\r\\n'
const HEAD = 'HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n'
const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: {
  open(socket) { socket.data = '' },
  data(socket, bytes) {
    socket.data += bytes
    const head = socket.data.indexOf('\\r\\n\\r\\n')
    const length = Number(/content-length: (\\d+)/i.exec(socket.data)?.[1] ?? 0)
    if (head < 0 || socket.data.length < head + 4 + length) return
    socket.data = ''
    socket.write(HEAD + word)
    setTimeout(() => socket.write(end), ${END_AFTER_MS})
  },
} })
const target = 'http://127.0.0.1:' + server.port + '/v1/chat/completions'
const proxy = Bun.serve({ hostname: '127.0.0.1', port: 0, async fetch(request) {
  const response = await fetch(target, { method: 'POST', headers: { 'content-type': 'application/json' }, body: await request.text() })
  return new Response(response.body, { headers: { 'content-type': 'text/event-stream' } })
} })
console.log(server.port + ' ' + proxy.port)`
const child = Bun.spawn([process.execPath, '-e', MODEL_SERVER_SOURCE], { stdout: 'pipe', stderr: 'inherit' })
process.once('exit', () => child.kill())
const { value } = await child.stdout.getReader().read()
const [port = 0, proxyPort = 0] = new TextDecoder().decode(value).trim().split(' ').map(Number)

type Target = { port: number; path: string; headers?: object; model: string }
type Exchange = {
  heard: string
  began: number
  firstMs: number
  resolve: (ms: number) => void
  reject: (e: Error) => void
}

/** Returns a function that asks for a stream and returns the ms until its first word has come. */
function createReader({ port, path, headers = {}, model }: Target, isKept: boolean) {
  const text = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], stream: true })
  const lines = { host: 'x', 'content-type': 'application/json', 'content-length': text.length, ...headers }
  const head = Object.entries(lines).map((line) => line.join(': '))
  const message = `POST ${path} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${text}`
  let exchange: Exchange
  const connect = () =>
    Bun.connect({
      ...{ hostname: '127.0.0.1', port },
      socket: {
        data(socket, bytes) {
          exchange.heard += bytes.toString()
          if (!exchange.firstMs && exchange.heard.includes('"content":"Hello "'))
            exchange.firstMs = performance.now() - exchange.began
          // What came at once has a length instead of an end.
          if (!/\[DONE\]\s+(0\r\n\r\n)?$/.test(exchange.heard)) return
          if (/chunked/i.test(exchange.heard) && !exchange.heard.endsWith('0\r\n\r\n')) return
          exchange.resolve(exchange.firstMs)
          if (!isKept) socket.end()
        },
        close: () => exchange.reject(new Error(`It broke off: ${exchange.heard}`)),
      },
    })
  let kept: Awaited<ReturnType<typeof connect>> | undefined
  return async () => {
    if (isKept) kept ??= await connect()
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    exchange = { heard: '', began: performance.now(), firstMs: 0, resolve, reject }
    const socket = kept ?? (await connect())
    socket.write(message)
    return promise
  }
}

const quantile = (all: number[], part: number) =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length * part)] ?? Number.NaN

const runOptions = {
  at: createTempFolder(),
  env: { ATOLL_ALLOW_PRIVATE_NETWORK: 'on' },
  ...(argv.includes('--source') && { program: SOURCE_COMMAND }),
}
await createTenantByCli(runOptions, 'acme')
await using server = await startAtoll(runOptions)
const headers = await signIn(server.url, 'acme')
const call = apiCaller(server.url, headers)
const source = { name: 'models', kind: 'openai', metadata: { apiUrl: `http://127.0.0.1:${port}/v1` } }
const { _id: sourceId } = (await call('POST', '/api/integration-sources', source)).body
const { _id } = (await call('POST', '/api/ai/agents', { name: 'bench', sourceId })).body

// What the server still does after a turn must not meet the next one, so its two routes do not follow each other.
const targets: Record<string, Target> = {
  source: { port, path: '/v1/chat/completions', model: 'm' },
  'our own route': { port: server.port, path: `/api/ai/${_id}/chat-completion`, headers, model: 'm' },
  proxy: { port: proxyPort, path: '/', model: 'm' },
  "OpenAI's interface": { port: server.port, path: '/api/ai/v1/chat/completions', headers, model: _id },
}
for (const isKept of [false, true]) {
  const ways = Object.entries(targets).map(([name, target]) => ({
    ...{ name, times: [] as number[], read: createReader(target, isKept) },
  }))
  for (let n = 0; n < ROUNDS; n++)
    for (const { times, read } of ways) {
      const ms = await read()
      if (n >= ROUNDS / 5) times.push(ms)
    }
  console.log(isKept ? 'On a connection that is kept:' : 'On a new connection each time:')
  for (const { name, times } of ways) {
    const later = times.map((ms, n) => ms - ways[0]!.times[n]!)
    const [p10, p50, p90] = [0.1, 0.5, 0.9].map((part) => quantile(times, part).toFixed(2))
    console.log(
      `  ${name.padEnd(18)} p10 ${p10}, p50 ${p50}, p90 ${p90} ms; later ${quantile(later, 0.5).toFixed(2)} ms (2 ms)`,
    )
  }
}
child.kill()
await server.end('SIGTERM')
process.exit()
