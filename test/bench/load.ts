import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder } from '../temp-folder'

export type SentRequest = { method: 'GET' | 'POST' | 'PATCH'; path: string; body?: string }

/** Many requests of one kind, each a little different. */
export type Load = {
  url: string
  headers: Record<string, string>
  method: SentRequest['method']
  /** Paths to ask for, and bodies to send to them, by turns. */
  paths: string[]
  bodies?: string[]
  connections: number
  seconds: number
}
/** Requests of any kinds, by turns. */
export type MixedLoad = Omit<Load, 'method' | 'paths' | 'bodies'> & { requests: SentRequest[] }

/** Requests per second, and latencies (ms). */
export type Figures = { perSecond: number; p50: number; p99: number; max: number; errors: number }

const wrk = Bun.which('wrk')
let scriptCount = 0
let scripts: string | undefined
/** wrk takes whole seconds. */
const isForWrk = (seconds: number) => wrk && Number.isInteger(seconds)
export const nameClient = (seconds: number) => (isForWrk(seconds) ? 'wrk' : 'the built-in client')

/** Puts load on a server; latencies in ms. */
export const measure = (load: Load | MixedLoad): Promise<Figures> =>
  isForWrk(load.seconds) ? measureByWrk(load) : measureByFetch(load)

function requestsOf(load: Load | MixedLoad): SentRequest[] {
  if ('requests' in load) return load.requests
  const { method, paths, bodies = [] } = load
  return Array.from({ length: Math.max(paths.length, bodies.length) }, (_, n) => ({
    method,
    path: paths[n % paths.length]!,
    body: bodies[n % bodies.length],
  }))
}

async function measureByWrk(load: Load | MixedLoad): Promise<Figures> {
  const { url, headers, connections, seconds } = load
  // A line break at the beginning of such a text would be lost.
  const quote = (value: string | undefined) => (value === undefined ? 'nil' : `[==[\n${value}]==]`)
  const requests = requestsOf(load).map(({ method, path, body }) => `{${[method, path, body].map(quote)}}`)
  scripts ??= createTempFolder('load')
  const script = join(scripts, `${++scriptCount}.lua`)
  writeFileSync(
    script,
    `local requests = {${requests}}
     local headers = {${Object.entries(headers)
       .map(([name, value]) => `["${name}"] = "${value}"`)
       .join(',')}}
     local n, made = 0, {}
     request = function()
       n = n % #requests + 1
       made[n] = made[n] or wrk.format(requests[n][1], requests[n][2], headers, requests[n][3])
       return made[n]
     end`,
  )
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '60s', '--latency', '-s', script, url]
  const text = await new Response(Bun.spawn([wrk!, ...args], { stdout: 'pipe' }).stdout).text()
  const ms = (pattern: RegExp) => {
    const [, value = 'NaN', unit = 'ms'] = pattern.exec(text) ?? []
    return Number(value) * { us: 0.001, ms: 1, s: 1_000, m: 60_000 }[unit as 'us']!
  }
  const [, perSecond = 'NaN'] = /Requests\/sec:\s+([\d.]+)/.exec(text) ?? []
  const [, refused = '0'] = /Non-2xx or 3xx responses: (\d+)/.exec(text) ?? []
  const broken = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text)?.slice(1) ?? []
  return {
    perSecond: Number(perSecond),
    p50: ms(/50%\s+([\d.]+)(us|ms|s|m)/),
    p99: ms(/99%\s+([\d.]+)(us|ms|s|m)/),
    max: ms(/Latency(?:\s+[\d.]+\w+){2}\s+([\d.]+)(us|ms|s|m)/),
    errors: Number(refused) + broken.reduce((sum, count) => sum + Number(count), 0),
  }
}

async function measureByFetch(load: Load | MixedLoad): Promise<Figures> {
  const { url, headers, connections, seconds } = load
  const requests = requestsOf(load)
  const times: number[] = []
  let [n, errors] = [0, 0]
  const until = performance.now() + seconds * 1000
  const caller = async () => {
    while (performance.now() < until) {
      const { method, path, body } = requests[n++ % requests.length]!
      const start = performance.now()
      const response = await fetch(url + path, { method, headers, body })
      await response.arrayBuffer()
      if (!response.ok) errors++
      times.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: connections }, caller))
  return { perSecond: times.length / seconds, ...percentilesOf(times), errors }
}

/** Sends each request once, one after the other, and repeats those that are told to wait. */
export async function measureSequence(
  url: string,
  headers: Record<string, string>,
  requests: SentRequest[],
): Promise<Figures & { slowest: string }> {
  const times: { ms: number; path: string }[] = []
  let errors = 0
  for (const { method, path, body } of requests) {
    const startedAt = performance.now()
    let response = await fetch(url + path, { method, headers, body })
    while (response.status === 503) {
      await response.arrayBuffer()
      response = await fetch(url + path, { method, headers, body })
    }
    await response.arrayBuffer()
    if (!response.ok) errors++
    times.push({ ms: performance.now() - startedAt, path })
  }
  const { path: slowest } = times.reduce((one, other) => (other.ms > one.ms ? other : one))
  const seconds = times.reduce((sum, { ms }) => sum + ms, 0) / 1_000
  return { perSecond: times.length / seconds, ...percentilesOf(times.map(({ ms }) => ms)), errors, slowest }
}

/** Returns what half of these times took at most, 99 of 100, and all. */
export function percentilesOf(times: number[]) {
  const sorted = times.toSorted((one, other) => one - other)
  const at = (part: number) => sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}

export const medianOf = (list: number[]) => list.toSorted((one, other) => one - other)[list.length >> 1] ?? Number.NaN

/** Returns the median of each figure, and the sum of errors. */
export const medianFigures = (list: Figures[]): Figures => ({
  perSecond: medianOf(list.map(({ perSecond }) => perSecond)),
  p50: medianOf(list.map(({ p50 }) => p50)),
  p99: medianOf(list.map(({ p99 }) => p99)),
  max: medianOf(list.map(({ max }) => max)),
  errors: list.reduce((sum, { errors }) => sum + errors, 0),
})

/** Prints a line, with the part that the figures are of those of something else. */
export function printFigures(
  name: string,
  { perSecond, p50, p99, errors }: Figures,
  compared?: { ratio: number; of: string },
) {
  const part = compared ? `  ${compared.ratio.toFixed(2)} of ${compared.of}` : ''
  const rate = Math.round(perSecond).toLocaleString('en').padStart(8)
  const latencies = `p50 ${p50.toFixed(2).padStart(6)} ms  p99 ${p99.toFixed(2).padStart(6)} ms`
  console.log(`${name.padEnd(52)} ${rate}/s  ${latencies}${part}${errors ? `  ${errors} ERRORS` : ''}`)
}
