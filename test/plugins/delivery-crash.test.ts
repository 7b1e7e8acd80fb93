import { afterAll, expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { moveClock, now } from '../../src/core/clock'
import { runDueJobs } from '../../src/jobs/runner'
import { compileProgram } from '../fakes/binary'
import { createTempFolder } from '../fakes/cli'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { createTestTenant } from '../test-tenant'
import { allowPrivateNetwork, createOrderPlugin, denyPrivateNetwork, times } from './fixtures'

const KILLS = 50
const MAX_DELIVERIES_PER_PROCESS = 6 // before it is killed
const DELIVERY_WAIT_MS = 500 // for the deliveries of one process
const program = compileProgram(resolve(import.meta.dir, '../fakes/delivery-process.ts'), createTempFolder())
const receiver = startWebhookReceiver()
afterAll(async () => {
  denyPrivateNetwork()
  moveClock()
  await receiver.stop()
})

/** Starts a process that emits and delivers events as soon as it is given a first number. */
function startDeliveryProcess(tenant: string) {
  const child = Bun.spawn([program, tenant], {
    env: { ...process.env, ATOLL_ALLOW_PRIVATE_NETWORK: 'on' },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return {
    /** Runs the process until it has made some deliveries, kills it, and returns the numbers of the committed events. */
    async runUntilKilled(first: number, count: number) {
      const from = receiver.deliveries.length
      // A busy machine gets more time, so that some deliveries are made at all.
      const until = performance.now() + (from ? DELIVERY_WAIT_MS : 40 * DELIVERY_WAIT_MS)
      const killAfterDeliveries = async () => {
        while (receiver.deliveries.length - from < count && performance.now() < until) await Bun.sleep(1)
        await Bun.sleep(Math.random() * 10)
        child.kill('SIGKILL')
      }
      child.stdin.write(`${first}\n`)
      child.stdin.flush()
      let output = ''
      for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
        if (!output) void killAfterDeliveries()
        output += chunk
      }
      await child.exited
      // The last line may have been cut.
      return output.split('\n').slice(0, -1).map(Number)
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

test('subscribers receive every committed event in order, with stable ids, when delivering processes are killed at random', async () => {
  allowPrivateNetwork()
  const { as, tenant, id } = await createTestTenant()
  await createOrderPlugin(as('admin'), [`${receiver.url}/a`, `${receiver.url}/b`])
  await createOrderPlugin(as('admin'), [`${receiver.url}/c`])
  // One endpoint fails now and then.
  receiver.answer = ({ path }) => (path === '/c' && Math.random() < 0.02 ? 503 : 200)
  const committed: number[] = []
  const ready = times(2).map(() => startDeliveryProcess(id))
  for (const n of times(KILLS)) {
    await using next = ready.shift()!
    if (n < KILLS - 2) ready.push(startDeliveryProcess(id))
    committed.push(...(await next.runUntilKilled(n * 100_000, Math.floor(Math.random() * MAX_DELIVERIES_PER_PROCESS))))
  }
  const arrivedDuringKills = receiver.deliveries.length
  expect([committed.length >= KILLS, arrivedDuringKills > 0]).toEqual([true, true])

  receiver.answer = () => 200
  await tenant.write((tx) => tx.query("update leases set expires = 0, holder = null where name = 'jobs'"))
  moveClock(now() + 60_000)
  await runDueJobs(tenant)
  expect(await tenant.db.query("select 1 from jobs where kind = 'delivery'")).toEqual([])
  for (const path of ['/a', '/b', '/c']) {
    const deliveries = receiver.deliveries.filter((one) => one.path === path)
    const ids = new Map<number, string>()
    for (const { body, id } of deliveries) {
      const { n } = body.metadata as { n: number }
      // A repeated delivery has the same id.
      expect(ids.get(n) ?? id).toBe(id)
      ids.set(n, id)
    }
    const order = [...ids.keys()]
    expect(order).toEqual(order.toSorted((a, b) => a - b))
    expect(committed.filter((n) => !ids.has(n))).toEqual([])
    expect(new Set(ids.values()).size).toBe(ids.size)
  }
  console.log(
    `${KILLS} processes were killed after ${committed.length} events; ${arrivedDuringKills} deliveries had arrived, ${receiver.deliveries.length} in the end.`,
  )
}, 120_000)
