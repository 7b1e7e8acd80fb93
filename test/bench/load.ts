import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder } from '../temp-folder'

/** Many requests of one kind, each a little different. */
export type Load = {
  url: string
  headers: Record<string, string>
  method: 'GET' | 'POST' | 'PATCH'
  /** Paths to ask for, and bodies to send to them. */
  paths: string[]
  bodies?: string[]
  connections: number
  seconds: number
}

export type Figures = { perSecond: number; p50: number; p99: number; errors: number }

const wrk = Bun.which('wrk')
let scriptCount = 0
let scripts: string | undefined
export const client = wrk ? 'wrk' : 'the built-in client'

/** Puts load on a server; latencies in ms. */
export const measure = (load: Load): Promise<Figures> => (wrk ? measureByWrk(load) : measureByFetch(load))

async function measureByWrk({ url, headers, method, paths, bodies, connections, seconds }: Load): Promise<Figures> {
  // A line break at the beginning of such a text would be lost.
  const list = (values: string[]) => values.map((value) => `[==[\n${value}]==]`).join(',')
  scripts ??= createTempFolder('load')
  const script = join(scripts, `${++scriptCount}.lua`)
  writeFileSync(
    script,
    `local paths = {${list(paths)}}
     local bodies = {${list(bodies ?? [])}}
     local headers = {${Object.entries(headers)
       .map(([name, value]) => `["${name}"] = "${value}"`)
       .join(',')}}
     local n, made = 0, {}
     request = function()
       n = n + 1
       local path, body = n % #paths + 1, n % math.max(#bodies, 1) + 1
       local key = path * 1000 + body
       made[key] = made[key] or wrk.format("${method}", paths[path], headers, bodies[body])
       return made[key]
     end`,
  )
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', script, url]
  const text = await new Response(Bun.spawn([wrk!, ...args], { stdout: 'pipe' }).stdout).text()
  const ms = (percent: string) => {
    const [, value = 'NaN', unit = 'ms'] = text.match(new RegExp(`${percent}%\\s+([\\d.]+)(us|ms|s)`)) ?? []
    return Number(value) * { us: 0.001, ms: 1, s: 1000 }[unit as 'us']!
  }
  const [, perSecond = 'NaN'] = text.match(/Requests\/sec:\s+([\d.]+)/) ?? []
  const [, errors = '0'] = text.match(/Non-2xx or 3xx responses: (\d+)/) ?? []
  return { perSecond: Number(perSecond), p50: ms('50'), p99: ms('99'), errors: Number(errors) }
}

async function measureByFetch({ url, headers, method, paths, bodies, connections, seconds }: Load): Promise<Figures> {
  const times: number[] = []
  let [n, errors] = [0, 0]
  const until = performance.now() + seconds * 1000
  const caller = async () => {
    while (performance.now() < until) {
      const turn = n++
      const start = performance.now()
      const response = await fetch(url + paths[turn % paths.length], {
        method,
        headers,
        body: bodies?.[turn % bodies.length],
      })
      await response.arrayBuffer()
      if (!response.ok) errors++
      times.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: connections }, caller))
  times.sort((one, other) => one - other)
  const at = (part: number) => times[Math.floor(times.length * part)] ?? Number.NaN
  return { perSecond: times.length / seconds, p50: at(0.5), p99: at(0.99), errors }
}

const medianOf = (list: number[]) => [...list].sort((a, b) => a - b)[list.length >> 1]!

/** Several rounds, one after the other on each server, so that a noisy neighbour disturbs all alike. */
export async function compareLoads(loads: Record<string, Load>, rounds: number): Promise<Record<string, Figures>> {
  const figures: Record<string, Figures[]> = {}
  for (let round = 0; round < rounds; round++)
    for (const [name, load] of Object.entries(loads)) {
      const list = figures[name] ?? []
      figures[name] = list
      list.push(await measure(load))
    }
  return Object.fromEntries(
    Object.entries(figures).map(([name, list]) => [
      name,
      {
        perSecond: medianOf(list.map(({ perSecond }) => perSecond)),
        p50: medianOf(list.map(({ p50 }) => p50)),
        p99: medianOf(list.map(({ p99 }) => p99)),
        errors: list.reduce((sum, { errors }) => sum + errors, 0),
      },
    ]),
  )
}

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
