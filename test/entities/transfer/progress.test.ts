import { afterEach, describe, expect, test } from 'bun:test'
import { moveClock, now } from '../../../src/core/clock'
import { createImportFixture, importBody, toNdjson } from './import-fixtures'

type ImportFixture = Awaited<ReturnType<typeof createImportFixture>>

const manyLines = (count: number, title: unknown = 'x') => toNdjson(Array.from({ length: count }, () => ({ title })))

/** Starts an import to which lines can be added. */
function startImport(own: ImportFixture, query = 'format=ndjson') {
  let sender: ReadableStreamDefaultController<Uint8Array>
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      sender = controller
    },
  })
  const answer = importBody(own)(stream, query)
  return {
    answer,
    /** Sends lines until the condition holds. */
    async until(holds: () => Promise<boolean>) {
      for (; !(await holds()); await Bun.sleep(1)) sender.enqueue(Buffer.from(manyLines(100)))
    },
    send: (text: string) => sender.enqueue(Buffer.from(text)),
    end: () => sender.close(),
    breakOff: () => sender.error(new Error('gone')),
  }
}

async function importEvents(own: ImportFixture, name: 'admin' | 'user' = 'admin') {
  const { status, body } = await own.as(name).get('/events?source=blueprints&kind=things&limit=100')
  return status === 200 ? body.reverse() : status
}
const eventNames = (events: { eventName: string }[]) => events.map(({ eventName }) => eventName)

afterEach(() => moveClock())

describe('progress of imports', () => {
  test('an import that takes seconds emits progress events, at most one a second, and a final one', async () => {
    const own = await createImportFixture()
    const { answer, until, send, end } = startImport(own)
    for (const count of [1, 2, 3]) {
      moveClock(now() + 1_000)
      await until(async () => (await importEvents(own)).length >= count)
    }
    send(manyLines(1, 5))
    end()
    const { body } = await answer
    const events = await importEvents(own)
    const [first, ...between] = eventNames(events).slice(0, -1)
    expect([first, ...new Set(between)]).toEqual(['import-started', 'import-progress'])
    const times = events.slice(0, -1).map(({ created }: { created: string }) => Date.parse(created))
    for (const [n, time] of times.slice(1).entries()) expect(time - times[n]).toBeGreaterThanOrEqual(1_000)
    const last = events.at(-1)
    expect(last).toMatchObject({ eventName: 'import-finished', user: own.users.user, workspace: null })
    expect(last.metadata).toEqual({
      ...{ import: events[0].metadata.import, format: 'ndjson', mode: 'create', dryRun: false, atomic: false },
      ...{ imported: body.imported, failed: 1, received: expect.any(Number), size: null },
    })
    const { imported, received } = events[0].metadata
    expect([imported < body.imported, received < last.metadata.received]).toEqual([true, true])
    expect(await importEvents(own, 'user')).toBe(403)
  })

  test('an import that breaks off emits import-failed with its code', async () => {
    const own = await createImportFixture()
    const { answer, until, breakOff } = startImport(own)
    moveClock(now() + 1_000)
    await until(async () => (await importEvents(own)).length > 0)
    breakOff()
    expect((await answer).status).toBe(400)
    expect((await importEvents(own)).at(-1)).toMatchObject({
      eventName: 'import-failed',
      metadata: { code: 'MALFORMED_BODY', failed: 0 },
    })
  })
})

test('an import that takes less than a second emits no events', async () => {
  const own = await createImportFixture()
  expect((await importBody(own)(manyLines(300))).body.imported).toBe(300)
  expect(await importEvents(own)).toEqual([])
})
