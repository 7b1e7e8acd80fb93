import { writeFileSync } from 'node:fs'

/** Many requests of one kind, each a little different. */
export type Load = {
  url: string
  headers: Record<string, string>
  method: 'GET' | 'POST'
  /** Paths to ask for, or bodies to send to the one path. */
  paths: string[]
  bodies?: string[]
  connections: number
  seconds: number
}

export type Figures = { perSecond: number; p50: number; p99: number; errors: number }

const wrk = Bun.which('wrk')
let scriptCount = 0
export const client = wrk ? 'wrk' : 'the built-in client'

/** Puts load on a server; latencies in ms. */
export const measure = (load: Load): Promise<Figures> => (wrk ? measureByWrk(load) : measureByFetch(load))

async function measureByWrk({ url, headers, method, paths, bodies, connections, seconds }: Load): Promise<Figures> {
  // A line break at the beginning of such a text would be lost.
  const list = (values: string[]) => values.map((value) => `[==[\n${value}]==]`).join(',')
  const script = `/tmp/atoll-bench-${process.pid}-${++scriptCount}.lua`
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
