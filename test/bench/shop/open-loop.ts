// An open loop: each request has its time, whether earlier ones were answered or not, and its latency counts from then.
import { HttpConnection } from './http-connection'

const MAX_CONNECTIONS = 128
const TICK_MS = 1

export type ScheduledKind = { name: string; percent: number; draw(): string }
/** The latency of each request (ms) by its kind. */
export type Latencies = Map<string, number[]>

export type OpenLoop = {
  latencies: Latencies
  /** How many requests of a kind failed with a status. */
  errors: Map<string, number>
  /** How late the last request was answered after the end of its schedule (ms). */
  lateMs: number
}

/** Sends `perSecond` requests for so many seconds. */
export async function runOpenLoop(
  url: string,
  kinds: ScheduledKind[],
  { perSecond, seconds, pick }: { perSecond: number; seconds: number; pick(): number },
): Promise<OpenLoop> {
  const { hostname, port } = new URL(url)
  const idle: HttpConnection[] = []
  const waiting: { kind: ScheduledKind; dueAt: number }[] = []
  const latencies: Latencies = new Map(kinds.map(({ name }) => [name, []]))
  const total = Math.floor(perSecond * seconds)
  const startedAt = performance.now()
  let [connections, scheduled, answered] = [0, 0, 0]
  const errors = new Map<string, number>()
  const countError = (name: string) => errors.set(name, (errors.get(name) ?? 0) + 1)
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()

  async function send(connection: HttpConnection, kind: ScheduledKind, dueAt: number): Promise<void> {
    try {
      const { status } = await connection.send(kind.draw())
      if (status >= 300) countError(`${status} ${kind.name}`)
    } catch {
      countError(`no answer: ${kind.name}`)
    }
    latencies.get(kind.name)!.push(performance.now() - dueAt)
    if (++answered === total) end()
    const next = waiting.shift()
    if (next) void send(connection, next.kind, next.dueAt)
    else idle.push(connection)
  }

  function tick() {
    const dueCount = Math.min(total, 1 + Math.floor(((performance.now() - startedAt) / 1_000) * perSecond))
    for (; scheduled < dueCount; scheduled++) {
      const kind = kinds[pick()]!
      const dueAt = startedAt + (scheduled / perSecond) * 1_000
      let connection = idle.pop()
      if (!connection && connections < MAX_CONNECTIONS) {
        connections++
        connection = new HttpConnection(hostname, Number(port))
      }
      if (connection) void send(connection, kind, dueAt)
      else waiting.push({ kind, dueAt })
    }
    if (scheduled === total) clearInterval(timer)
  }
  const timer = setInterval(tick, TICK_MS)
  await ended
  return { latencies, errors, lateMs: performance.now() - startedAt - seconds * 1_000 }
}
