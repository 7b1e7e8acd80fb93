import { connect } from 'node:net'
import { resolve } from 'node:path'
import { waitUntil } from '../wait-until'
import { binaryPath } from './binary'

/** Runs the source instead of the binary. */
export const SOURCE_COMMAND = [process.execPath, resolve(import.meta.dir, '../../src/main.ts')]

export type RunOptions = {
  /** Settings in addition to the default ones. */
  env?: Record<string, string>
  /** The working directory. The data is in its folder `tenants`. */
  at: string
  stdin?: string
  /** The process is killed after this time (ms). */
  timeout?: number
  /** The program that is run instead of the compiled binary. */
  program?: string[]
}

export { createTempFolder } from '../temp-folder'

const DEFAULT_ENV = {
  ATOLL_PORT: '0',
  ATOLL_DURABILITY: 'normal',
  ATOLL_HOUSEKEEPING: '0',
  ATOLL_LOG_LEVEL: 'error',
  ATOLL_RATE_LIMITS: 'off', // tests make more requests than people do
  PATH: process.env.PATH ?? '',
}

/** Runs a command to its end. `json` is its parsed output. */
export async function runAtoll(
  command: string | string[],
  { at, env, stdin = '', timeout = 20_000, program = [binaryPath()] }: RunOptions,
) {
  const args = typeof command === 'string' ? command.split(' ').filter(Boolean) : command
  const child = Bun.spawn([...program, ...args], {
    cwd: at,
    env: { ...DEFAULT_ENV, ...env },
    stdin: Buffer.from(stdin),
    timeout,
    killSignal: 'SIGKILL',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { code, out, err, json: tryParseJson(out) }
}

// biome-ignore lint/suspicious/noExplicitAny: an answer can be anything, and expectations say what it is
function tryParseJson(text: string): any {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Starts a server on a free port, for `await using`: it ends with the block, even if that throws. */
export async function startAtoll({ at, env, program = [binaryPath()] }: RunOptions, ...options: string[]) {
  const child = Bun.spawn([...program, 'serve', ...options], {
    cwd: at,
    env: { ...DEFAULT_ENV, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const logged = child.stderr.text()
  const printed = { all: '' }
  const reading = (async () => {
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) printed.all += chunk
  })()
  const until = async (what: RegExp) => {
    while (!what.test(printed.all)) {
      if (child.exitCode !== null || child.signalCode)
        throw new Error(`The server ended (${child.exitCode}) and printed: ${printed.all}${await logged}`)
      await Bun.sleep(5)
    }
    return what.exec(printed.all)!
  }
  const end = async (signal: 'SIGTERM' | 'SIGKILL' | 'SIGINT' | 'SIGHUP') => {
    if (child.exitCode === null && !child.killed) child.kill(signal)
    await Promise.all([child.exited, reading])
    return child.exitCode
  }
  try {
    const [, url = ''] = await until(/(https?:\/\/[\w.[\]:]+:\d+)/)
    return {
      url,
      port: Number(new URL(url).port),
      pid: child.pid,
      /** Waits until the output contains a match, and returns it. */
      until,
      /** Returns what the server has printed so far. */
      readOutput: () => printed.all,
      /** Sends the signal, waits for the end, and returns the exit code. */
      end,
      exited: child.exited,
      /** The log of the server, once it has ended. */
      logged,
      [Symbol.asyncDispose]: async () => void (await end('SIGKILL')),
    }
  } catch (error) {
    await end('SIGKILL')
    throw error
  }
}
export type RunningAtoll = Awaited<ReturnType<typeof startAtoll>>

/** Sends bytes unchanged, piece by piece, and returns what comes back until the server hangs up or stays silent. */
export function sendRaw(port: number, pieces: (string | Uint8Array)[], idleTimeoutMs = 2_000): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let received = ''
  const socket = connect(port, '127.0.0.1', async () => {
    for (const piece of pieces) {
      if (socket.destroyed || received) return
      await new Promise((sent) => socket.write(piece, sent))
    }
  })
  const done = () => {
    clearTimeout(timer)
    socket.destroy()
    resolve(received)
  }
  // A busy machine needs more time for the first answer.
  let timer = setTimeout(done, 5 * idleTimeoutMs)
  socket.setEncoding('latin1')
  socket.on('data', (text) => {
    received += text
    clearTimeout(timer)
    timer = setTimeout(done, idleTimeoutMs)
  })
  for (const event of ['close', 'end', 'error']) socket.on(event, done)
  return promise
}

/** Returns the status of a raw answer; 0 when there was none. */
export const parseStatus = (answer: string) => Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1] ?? 0)

/** Returns a client of a real server, which waits as long as it takes. */
export const apiCaller =
  (url: string, headers: Record<string, string> = {}) =>
  async (method: string, path: string, body?: unknown) => {
    const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...json, ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: tryParseJson(text) ?? text }
  }

/** Returns the sum of a metric over its series that have these labels, from the server at `url`. */
export async function readMetric(url: string, name: string, labels: Record<string, string> = {}): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const series = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  const chosen = series.filter((line) =>
    Object.entries(labels).every(([label, value]) => line.includes(`${label}="${value}"`)),
  )
  if (!chosen.length) throw new Error(`There is no ${name} ${JSON.stringify(labels)}.`)
  return chosen.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

export const PASSWORD = 'correct horse'

/** Creates a tenant with the administrator "root" by the command line. Its host is `<id>.test`. */
export async function createTenantByCli(at: RunOptions, id: string) {
  const created = await runAtoll(
    [
      'tenant',
      'create',
      id,
      '--host',
      `${id}.test`,
      '--admin-username',
      'root',
      '--admin-password',
      PASSWORD,
      '--json',
    ],
    at,
  )
  if (created.code) throw new Error(created.err)
  return created.json
}

/** Signs a user of a tenant in, and returns headers with their access token. */
export async function signIn(
  url: string,
  tenant: string,
  username = 'root',
  password = PASSWORD,
): Promise<Record<string, string>> {
  const body = { username, password, authType: 'oauth' }
  const signInOnce = () => apiCaller(url, { tenant })('POST', '/api/signin', body)
  // A busy machine may ask for patience.
  const answer = await waitUntil(signInOnce, ({ status }) => status !== 503)
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return { tenant, authorization: `Bearer ${answer.body.payload.token}` }
}
