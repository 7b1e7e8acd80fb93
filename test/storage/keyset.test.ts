import { expect, test } from 'bun:test'
import { getTableColumns } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { mails } from '../../src/accounts/mail/tables'
import { usage } from '../../src/ai/tables'
import { jobs } from '../../src/jobs/tables'
import { runs as lambdaRuns } from '../../src/lambdas/tables'
import { invoices, providerEvents } from '../../src/payments/tables'
import { deliveries } from '../../src/plugins/tables'
import { nextPagePath } from '../entities/fixtures'
import { type ApiClient, createTestTenant, statusAndCode } from '../test-tenant'

const { as, id } = await createTestTenant()
const admin = as('admin')
const source = `source-${id}`

const createEvents = async (names: string[], by: ApiClient = admin) => {
  for (const eventName of names) expect((await by.post('/events', { source, kind: 'k', eventName })).status).toBe(201)
}
const eventNamesOf = (body: { eventName: string }[]) => body.map(({ eventName }) => eventName)

/** Follows the links of a list, with something written after each page. */
async function followLinks(path: string, afterPage: (page: number) => Promise<void>) {
  const seen: string[] = []
  let pages = 0
  for (let at: string | undefined = path; at; pages++) {
    const { status, body, headers } = await admin.get(at)
    expect([at, status]).toEqual([at, 200])
    seen.push(...eventNamesOf(body))
    at = nextPagePath(headers)
    await afterPage(pages)
  }
  return { seen, pages }
}

test('keyset pages of a growing list repeat and skip no row', async () => {
  await createEvents(['a', 'b', 'c', 'd', 'e'])
  const { seen, pages } = await followLinks(`/events?source=${source}&limit=2`, (page) =>
    createEvents([`later-${page}`]),
  )
  expect([seen, pages]).toEqual([['e', 'd', 'c', 'b', 'a'], 3])
  const searched = await followLinks(`/events?source=${source}&search=later&limit=1`, (page) =>
    page < 2 ? createEvents([`later-still-${page}`]) : Promise.resolve(),
  )
  expect(searched.seen).toEqual(['later-2', 'later-1', 'later-0'])
})

test('keyset pages follow every sort order of a list, and every page has the total count', async () => {
  const all = eventNamesOf((await admin.get(`/events?source=${source}&limit=1000`)).body)
  for (const sort of ['eventName', '-eventName', 'kind,-eventName', 'created', '-kind,created,_id']) {
    const sorted = eventNamesOf((await admin.get(`/events?source=${source}&sort=${sort}&limit=1000`)).body)
    const { seen } = await followLinks(`/events?source=${source}&sort=${sort}&limit=2`, async () => {})
    expect([sort, seen]).toEqual([sort, sorted])
    expect(seen.toSorted()).toEqual(all.toSorted())
  }
  const first = await admin.get(`/events?source=${source}&limit=2&count=true`)
  const second = await admin.get(nextPagePath(first.headers)!)
  expect([first, second].map(({ headers }) => headers.get('x-total-count'))).toEqual([`${all.length}`, `${all.length}`])
})

const ids = (body: { _id: string }[]) => body.map(({ _id }) => _id)

/** Expects that the links of a list lead to all of its rows, in each sort order with pages of one and two rows. */
async function expectWalk(client: ApiClient, path: string, sorts: string[], length: number) {
  for (const sort of sorts)
    for (const limit of [1, 2]) {
      const join = path.includes('?') ? '&' : '?'
      const complete = await client.get(`${path}${join}sort=${sort}&limit=1000`)
      expect([path, sort, complete.status, complete.body.message]).toEqual([path, sort, 200, undefined])
      const all = ids(complete.body)
      expect([path, sort, all.length]).toEqual([path, sort, length])
      const seen: string[] = []
      for (let at: string | undefined = `${path}${join}sort=${sort}&limit=${limit}`; at; ) {
        const { status, body, headers } = await client.get(at)
        expect([at, status]).toEqual([at, 200])
        seen.push(...ids(body))
        at = nextPagePath(headers)
      }
      expect([path, sort, seen]).toEqual([path, sort, all])
    }
}

const moment = (n: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString()
const FIVE = [0, 1, 2, 3, 4]

type Row = Record<string, unknown>

/** A row with a value in every column; rows of odd number have null in every nullable column. */
const rowOf = (table: SQLiteTable, n: number, own: Row): Row =>
  Object.fromEntries(
    Object.entries(getTableColumns(table)).map(([name, column]) => {
      const { notNull, dataType, enumValues } = column as SQLiteColumn
      if (name in own) return [name, own[name]]
      if (!notNull && n % 2) return [name, null]
      if (name === '_id') return [name, `${id}-${n}`]
      if (dataType === 'custom') return [name, moment(n)]
      if (dataType === 'json') return [name, []]
      if (dataType === 'boolean') return [name, n % 2 === 0]
      return [name, dataType === 'number' ? n : (enumValues?.[0] ?? `${name}-${n}`)]
    }),
  )

test('the links of every keyset list lead to its end in any order, even when sorted by nullable times', async () => {
  const { as, tenant } = await createTestTenant()
  const admin = as('admin')
  const create = async (path: string, body: object) => {
    const { status, body: answer } = await admin.post(path, body)
    expect([path, status, answer.message]).toEqual([path, 201, undefined])
    return answer._id as string
  }
  const lambda = await create('/lambdas', { name: 'l', code: 'export default () => 1' })
  const integration = await create('/integrations', {
    ...{ name: 'i', trigger: { kind: 'event' }, target: { kind: 'lambda', lambdaId: lambda } },
  })
  const plugin = await create('/plugins', { name: `p-${id}` })
  const paid = { providerKind: 'stripe', billableEntityType: 'user', currency: 'USD', status: 'paid' }
  const job = {
    kind: 'integration',
    orderingKey: `integration ${integration}`,
    state: 'dead',
    payload: { event: 'e' },
    due: null,
  }
  const lists: [path: string, table: SQLiteTable, own: Row, sorts: string[]][] = [
    ['/mails', mails, { state: 'kept' }, ['-created', 'sent', '-sent', 'sent,-created']],
    ['/ai/usage', usage, { kind: 'completion', status: 'completed' }, ['-created', 'created']],
    [`/lambdas/${lambda}/logs`, lambdaRuns, { lambda, error: null }, ['-started', 'duration,started']],
    ['/invoices', invoices, paid, ['-created', 'paidAt', '-paidAt']],
    ['/payments/events', providerEvents, { providerKind: 'stripe', status: 'ignored' }, ['-created', '-updated,type']],
    [`/plugins/${plugin}/deliveries`, deliveries, { plugin, state: 'dead' }, ['-created', 'status', '-updated']],
    [`/integrations/${integration}/runs`, jobs, job, ['-created', 'finished', '-finished']],
  ]
  for (const [path, table, own, sorts] of lists) {
    await tenant.write((tx) =>
      tx
        .insert(table)
        .values(FIVE.map((n) => rowOf(table, n, own)))
        .run(),
    )
    await expectWalk(admin, path, sorts, FIVE.length)
  }
})

test('a cursor of another sort order or list and a forged cursor are refused with 400 INVALID_INPUT', async () => {
  const { headers } = await admin.get(`/events?source=${source}&limit=2`)
  const cursor = new URL(`http://x${nextPagePath(headers)}`).searchParams.get('$after')!
  const forged = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const paths = [
    `/events?source=${source}&sort=kind&$after=${cursor}`,
    `/ai/usage?$after=${cursor.slice(0, -3)}`,
    `/events?$after=x`,
    `/events?$after=${forged(['-created,-_id', 'text', 'x'])}`,
    `/events?$after=${forged(['-created,-_id', 1.5, 'x'])}`,
    `/events?$after=${forged(['-created,-_id', null, 'x'])}`,
    `/events?$after=${forged(['-created,-_id', 1, 'a\0b'])}`,
    `/events?$after=${forged(['-created,-_id', 1])}`,
    `/events?$after=${forged({ a: 1 })}`,
    `/mails?$after=${forged(['-created,-_id', 'yesterday', 'x'])}`,
    `/mails?$after=${forged(['-created,-_id', 1, 'x'])}`,
  ]
  for (const path of paths)
    expect([path, ...statusAndCode(await admin.get(path))]).toEqual([path, 400, 'INVALID_INPUT'])
  expect((await admin.get(`/events?$after=`)).status).toBe(200)
})

test('the parameter page returns the page of that number', async () => {
  const all = eventNamesOf((await admin.get(`/events?source=${source}&limit=1000`)).body)
  const { body } = await admin.get(`/events?source=${source}&limit=2&page=2`)
  expect(eventNamesOf(body)).toEqual(all.slice(2, 4))
})
