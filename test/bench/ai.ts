// `bun test/bench/bench.ts --ai`: how late the words of 500 streams at once are, with the memory that takes. The server and the
// readers speak HTTP by hand, so that what is measured is us; each word is the time at which it was said (ms, by the one clock
// of this machine). How late the first word of a stream is: `first-token.ts`.
import { readFileSync } from 'node:fs'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'

const [STREAMS, WORDS, PACE] = [500, 200, 50]

const MODEL_SERVER_SOURCE = `
const chunk = (more) => { const text = 'data: ' + JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', ...more }) + '\\n\\n'
  return text.length.toString(16) + '\\r\\n' + text + '\\r\\n' }
const word = () => chunk({ choices: [{ index: 0, delta: { content: (performance.timeOrigin + performance.now()).toFixed(3) + ' ' }, finish_reason: null }] })
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
    let left = ${WORDS}
    socket.write(HEAD)
    const timer = setInterval(() => {
      if (left-- > 0) return void socket.write(word())
      clearInterval(timer)
      socket.write(end)
    }, ${PACE})
  },
} })
console.log(server.port)`
const child = Bun.spawn([process.execPath, '-e', MODEL_SERVER_SOURCE], { stdout: 'pipe', stderr: 'inherit' })
process.once('exit', () => child.kill())
const { value } = await child.stdout.getReader().read()
const port = Number(new TextDecoder().decode(value))

const nowMs = () => performance.timeOrigin + performance.now()
const quantile = (all: number[], part: number) =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length * part)] ?? Number.NaN
const ms = (value: number) => `${value.toFixed(1)} ms`

/** Asks for a stream, and tells of each word how old it is when it is there. */
function readStream(at: number, path: string, headers: object, body: object, hear: (late: number) => void) {
  const text = JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], stream: true, ...body })
  const lines = Object.entries({
    host: 'x',
    'content-type': 'application/json',
    'content-length': text.length,
    ...headers,
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  Bun.connect({
    ...{ hostname: '127.0.0.1', port: at },
    socket: {
      open: (socket) =>
        void socket.write(`POST ${path} HTTP/1.1\r\n${lines.map((one) => one.join(': ')).join('\r\n')}\r\n\r\n${text}`),
      data(socket, bytes) {
        const heard = bytes.toString()
        for (const [, said] of heard.matchAll(/"content":"([\d.]+) "/g)) hear(nowMs() - Number(said))
        if (!heard.includes('[DONE]')) return
        resolve()
        socket.end()
      },
      close: () => reject(new Error('It broke off.')),
    },
  }).catch(reject)
  return promise
}

const runOptions = { at: createTempFolder(), env: { ATOLL_ALLOW_PRIVATE_NETWORK: 'on', ATOLL_RATE_LIMITS: 'off' } }
await createTenantByCli(runOptions, 'acme')
{
  await using server = await startAtoll(runOptions)
  const headers = await signIn(server.url, 'acme')
  const call = apiCaller(server.url, headers)
  const metadata = { apiUrl: `http://127.0.0.1:${port}/v1` }
  const source = { name: 'models', kind: 'openai', metadata }
  const { _id: sourceId } = (await call('POST', '/api/integration-sources', source)).body
  const { _id } = (await call('POST', '/api/ai/agents', { name: 'bench', sourceId })).body
  const path = `/api/ai/${_id}/chat-completion`

  const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))![1]) / 1024
  /** Processor time of the server, in ms: the kernel counts in hundredths of a second. */
  const worked = () => {
    const [user, system] = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1]!.split(' ').slice(11, 13)
    return (Number(user) + Number(system)) * 10
  }
  const [before, busy] = [memory(), worked()]
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(most, memory())
  }, 100)
  const late: number[] = []
  const streams = Array.from({ length: STREAMS }, async (_, n) => {
    await Bun.sleep(n * 4)
    await readStream(server.port, path, headers, { model: 'slow' }, (ms) => void late.push(ms))
  })
  await Promise.all(streams)
  clearInterval(watch)
  const cost = ((worked() - busy) * 1_000) / late.length
  if (late.length !== STREAMS * WORDS) throw new Error(`${late.length} words came instead of ${STREAMS * WORDS}.`)
  const [p50, p99] = [quantile(late, 0.5), quantile(late, 0.99)]
  console.log(
    `${STREAMS} streams of ${WORDS} words: p50 ${ms(p50)}, p99 ${ms(p99)} late (100 ms), ${Math.round(cost)} µs of a processor for each; ${Math.round(before)} MB before, ${Math.round(most)} MB at most (300 MB)`,
  )
}
child.kill()
process.exit()
