import { afterAll, expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { moveClock, now } from '../../src/core/clock'
import { runDue } from '../../src/jobs/runner'
import { house } from '../house'
import { startReceiver } from '../outside/receiver'
import { closed, open, orders, times } from './kit'

const KILLS = 50
const MOST = 6 // deliveries of a process until its end
const PATIENCE = 500 // ms for them
const program = resolve(import.meta.dir, '../outside/teller.ts')
const receiver = startReceiver()
afterAll(async () => {
  closed()
  moveClock(Date.now())
  await receiver.stop()
})

/** A process that is ready to begin. */
function teller(tenant: string) {
  const child = Bun.spawn([process.execPath, program, tenant], {
    env: { ...process.env, ATOLL_ALLOW_PRIVATE_NETWORK: 'on' },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return {
    /** Lives until it has made some deliveries, and a moment longer; the numbers of the events that it has committed. */
    async live(first: number, deliveries: number) {
      const from = receiver.got.length
      // However busy the machine is: some are delivered before the end.
      const until = performance.now() + (from ? PATIENCE : 40 * PATIENCE)
      const end = async () => {
        while (receiver.got.length - from < deliveries && performance.now() < until) await Bun.sleep(1)
        await Bun.sleep(Math.random() * 10)
        child.kill('SIGKILL')
      }
      child.stdin.write(`${first}\n`)
      child.stdin.flush()
      let told = ''
      for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
        if (!told) void end()
        told += chunk
      }
      await child.exited
      // The last line may have been cut.
      return told.split('\n').slice(0, -1).map(Number)
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

test('whoever is killed at whatever moment, no event is lost, and each subscriber gets them in their order', async () => {
  open()
  const { as, tenant, id } = await house()
  await orders(as('admin'), [`${receiver.url}/a`, `${receiver.url}/b`])
  await orders(as('admin'), [`${receiver.url}/c`])
  // One of them has its weak moments.
  receiver.own.answer = ({ path }) => (path === '/c' && Math.random() < 0.02 ? 503 : 200)
  const committed: number[] = []
  const ready = times(2).map(() => teller(id))
  for (const n of times(KILLS)) {
    await using next = ready.shift()!
    if (n < KILLS - 2) ready.push(teller(id))
    committed.push(...(await next.live(n * 100_000, Math.floor(Math.random() * MOST))))
  }
  const under = receiver.got.length
  expect([committed.length >= KILLS, under > 0]).toEqual([true, true])

  receiver.own.answer = () => 200
  await tenant.write((tx) => tx.ask("update leases set expires = 0, holder = null where name = 'jobs'"))
  moveClock(now() + 60_000)
  await runDue(tenant)
  expect(await tenant.db.ask("select 1 from jobs where kind = 'delivery'")).toEqual([])
  for (const path of ['/a', '/b', '/c']) {
    const got = receiver.got.filter((one) => one.path === path)
    const ids = new Map<number, string>()
    for (const { body, id } of got) {
      const { n } = body.metadata as { n: number }
      // What comes twice comes as the same.
      expect(ids.get(n) ?? id).toBe(id)
      ids.set(n, id)
    }
    const order = [...ids.keys()]
    expect(order).toEqual(order.toSorted((one, other) => one - other))
    expect(committed.filter((n) => !ids.has(n))).toEqual([])
    expect(new Set(ids.values()).size).toBe(ids.size)
  }
  console.log(
    `${KILLS} processes were killed after ${committed.length} events; ${under} deliveries had arrived, ${receiver.got.length} in the end.`,
  )
}, 120_000)
