import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { readFairly } from '../../../src/entities/query/fair-reads'
import { chargeFreeRead, freeReadMs } from '../../../src/entities/query/read-costs'
import type { Db } from '../../../src/storage/port'
import { costlyWork } from '../../../src/tenancy/fair-queue'
import { errorOf } from '../../rejections'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture, importThings } from '../fixtures'

const defaults = { ...freeReadMs }
// Every read is costly from its second statement on.
beforeAll(() => Object.assign(freeReadMs, { thread: 0, waiting: 0 }))
afterAll(() => void Object.assign(freeReadMs, defaults))

const fields = [
  { key: 'name', type: 'string' },
  { key: 'stage', type: 'string' },
  { key: 'worth', type: 'number' },
]
const createFilledFixture = async () => {
  const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'))
  const things = Array.from({ length: 50 }, (_, n) => ({
    identifier: `thing-${n}`,
    name: `Name ${n}`,
    stage: ['won', 'lost'][n % 2],
    worth: n,
  }))
  await importThings(own, things)
  return own
}
const COSTLY = [
  'entities?stage=won&worth[$gte]=10&$count=true',
  'entities?name[$like]=%25name 1%25',
  'charts/pie?x=stage&worth[$gte]=10',
  'charts/sum?sum=worth&groupBy=stage',
  'charts/count?stage=won&worth[$gte]=10',
  'entities?$populate=true&$count=true',
  'entities/export?format=ndjson&worth[$gte]=10',
]

/** Occupies the queue of a tenant until the returned function is called. */
function occupyQueue(tenant: string) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const work = costlyWork.run({ tenant, caller: 'somebody else' }, () => promise)
  return async () => {
    resolve()
    await work
  }
}

test.each(COSTLY)('%s waits in the queue of its tenant, while a read by identifier does not', async (path) => {
  const own = await createFilledFixture()
  const user = own.as('user')
  const expected = await user.get(`/blueprints/things/${path}`)
  expect(expected.status).toBe(200)
  const free = occupyQueue(own.id)
  let answered = false
  const costly = user.get(`/blueprints/things/${path}`).then((answer) => {
    answered = true
    return answer
  })
  for (let n = 0; n < 5; n++) expect((await user.get(`${own.path}/thing-${n}`)).status).toBe(200)
  await Bun.sleep(20)
  expect(answered).toBe(false)
  await free()
  const { status, body } = await costly
  expect([status, body]).toEqual([200, expected.body])
})

test('a short list takes a turn only when its tenant is beyond its budget and uses more of the thread than others', async () => {
  const own = await createFilledFixture()
  Object.assign(freeReadMs, defaults)
  const share = spyOn(costlyWork, 'isAboveShare')
  const run = spyOn(costlyWork, 'run')
  const takesTurn = async () => {
    run.mockClear()
    expect((await own.as('user').get(`${own.path}?$limit=2`)).status).toBe(200)
    return run.mock.calls.length > 0
  }
  share.mockReturnValue(true)
  expect(await takesTurn()).toBe(false)
  chargeFreeRead(own.id, 60_000)
  expect(await takesTurn()).toBe(true)
  share.mockReturnValue(false)
  expect(await takesTurn()).toBe(false)
  for (const spy of [share, run]) spy.mockRestore()
  Object.assign(freeReadMs, { thread: 0, waiting: 0 })
})

test('an explained list waits in the queue of its tenant, too', async () => {
  const own = await createFilledFixture()
  const path = `${own.path}?$explain=true&stage=won&worth[$gte]=10`
  const free = occupyQueue(own.id)
  let answered = false
  const explained = own
    .as('admin')
    .get(path)
    .finally(() => {
      answered = true
    })
  for (let n = 0; n < 5; n++) expect((await own.as('user').get(`${own.path}/thing-${n}`)).status).toBe(200)
  await Bun.sleep(20)
  expect(answered).toBe(false)
  await free()
  expect((await explained).body.shown).toBe(20)
})

test('reads of a tenant that has used much of the thread wait in its queue as soon as they take more than cheap ones', async () => {
  const [own, other] = [await createFilledFixture(), await createFilledFixture()]
  Object.assign(freeReadMs, { thread: 1_000, threadBeyondBudget: 0, waiting: 1_000 })
  try {
    chargeFreeRead(own.id, 10_000)
    const frees = [own, other].map(({ id }) => occupyQueue(id))
    const path = `/blueprints/things/${COSTLY[0]}`
    let hasAnswered = false
    const answer = own
      .as('user')
      .get(path)
      .finally(() => {
        hasAnswered = true
      })
    expect((await other.as('user').get(path)).status).toBe(200)
    await Bun.sleep(20)
    expect(hasAnswered).toBe(false)
    for (const free of frees) await free()
    expect((await answer).status).toBe(200)
  } finally {
    Object.assign(freeReadMs, { ...defaults, thread: 0, waiting: 0 })
  }
})

test('costly reads of one tenant do not wait for those of another', async () => {
  const [own, otherTenant] = [await createFilledFixture(), await createFilledFixture()]
  const free = occupyQueue(own.id)
  for (const path of COSTLY) expect((await otherTenant.as('user').get(`/blueprints/things/${path}`)).status).toBe(200)
  await free()
})

test('rejects the 101st concurrent costly read of a caller with 503 BUSY, and serves another caller', async () => {
  const own = await createFilledFixture()
  const path = `/blueprints/things/${COSTLY[0]}`
  const free = occupyQueue(own.id)
  const user = Array.from({ length: 101 }, () => own.as('user').get(path))
  const refused = await Promise.race(user)
  expect(statusAndCode(refused)).toEqual([503, 'BUSY'])
  expect(refused.headers.get('retry-after')).toBe('1')
  const otherRead = own.as('other').get(path)
  await free()
  const statuses = (await Promise.all(user)).map(({ status }) => status).toSorted()
  expect(statuses).toEqual([...Array(100).fill(200), 503])
  expect((await otherRead).status).toBe(200)
  expect((await own.as('user').get(path)).status).toBe(200)
})

test('a failed read frees its place in the queue, even if a part of it sends a statement later', async () => {
  const { tenant } = await createFilledFixture()
  const request = new Request('http://anybody.test/')
  const selectOne = (db: Db) => db.query('select 1')
  for (let n = 0; n < 51; n++) {
    const ended = Promise.withResolvers<void>()
    let late: Promise<unknown> | undefined
    const read = async (db: Db) => {
      await selectOne(db)
      await selectOne(db)
      late = ended.promise.then(() => selectOne(db))
      throw new Error('broken')
    }
    expect((await errorOf(readFairly(tenant, request, read))).message).toContain('broken')
    ended.resolve()
    await late?.catch(() => {})
  }
  const last = await readFairly(tenant, request, async (db) => [await selectOne(db), await selectOne(db)])
  expect(last).toEqual([[[1]], [[1]]])
})
