import { expect, test } from 'bun:test'
import { listEvents } from '../../accounts/users/user-fixtures'
import { statusAndCode } from '../../test-tenant'
import { createThingsFixture } from '../fixtures'

const fields = [
  { key: 'title', type: 'string', required: true },
  { key: 'other', type: 'relation', target: 'things' },
]

test('concurrent creates each have their own response, owner and event', async () => {
  const own = await createThingsFixture(fields, undefined, { dispatchers: { create: true } })
  const { as, path, users } = own
  const names = Array.from({ length: 20 }, (_, n) => `n${n}`)
  const answers = await Promise.all(
    names.map((identifier, n) => as(n % 2 ? 'other' : 'user').post(path, { identifier, title: `Title ${n}` })),
  )
  expect(answers.map(({ status, body }) => [status, body.identifier, body.metadata?.title ?? body.title])).toEqual(
    names.map((identifier, n) => [201, identifier, `Title ${n}`]),
  )
  const events = await listEvents(own, 'source=blueprints')
  const ownerOf = (name: string) => (names.indexOf(name) % 2 ? users.other : users.user)
  for (const { user, metadata } of events) expect(user).toBe(ownerOf(`${metadata.identifier}`))
  expect(new Set(events.map(({ metadata }) => metadata.identifier))).toEqual(new Set(names))
})

test('concurrent creates in different traces emit events in their own traces', async () => {
  const { as, path, tenant } = await createThingsFixture(fields, undefined, { dispatchers: { create: true } })
  const traces = ['a', 'b', 'c', 'd'].map((letter) => `00-${letter.repeat(32)}-${'1'.repeat(16)}-00`)
  const create = (traceparent: string) => as('user').post(path, { title: traceparent }, { traceparent })
  expect((await Promise.all(traces.map(create))).map(({ status }) => status)).toEqual([201, 201, 201, 201])
  const select = "select trace from events where source = 'blueprints' and trace is not null order by trace"
  expect(await tenant.db.query(select)).toEqual(traces.map((trace) => [trace]))
})

test('creates beside invalid ones succeed, and each invalid one gets its own error', async () => {
  const { as, path } = await createThingsFixture(fields)
  const user = as('user')
  await user.post(path, { identifier: 'taken', title: 'First' })
  const answers = await Promise.all([
    user.post(path, { identifier: 'a', title: 'A' }),
    user.post(path, { identifier: 'taken', title: 'Second' }),
    user.post(path, { identifier: 'b', title: 'B', other: 'nobody' }),
    user.post(path, { identifier: 'c', title: 'C', other: 'taken' }),
    user.post(path, { identifier: 'twice', title: 'D' }),
    user.post(path, { identifier: 'twice', title: 'E' }),
  ])
  const outcomes = answers.map(statusAndCode)
  expect(outcomes.slice(0, 4)).toEqual([
    [201, undefined],
    [409, 'IDENTIFIER_EXISTS'],
    [400, 'INVALID_INPUT'],
    [201, undefined],
  ])
  expect(
    outcomes
      .slice(4)
      .map(([status]) => status)
      .sort(),
  ).toEqual([201, 409])
  const { body } = await user.get(`${path}?$sort=identifier`)
  expect(body.map(({ identifier }: { identifier: string }) => identifier)).toEqual(['a', 'c', 'taken', 'twice'])
})

test('concurrent updates each change their own fields, including those of the same entity', async () => {
  const { as, path } = await createThingsFixture(fields)
  const user = as('user')
  for (const identifier of ['a', 'b', 'c']) await user.post(path, { identifier, title: 'old' })
  const stale = { 'if-match': '"stale"' }
  const answers = await Promise.all([
    user.patch(`${path}/a`, { title: 'new a' }),
    user.patch(`${path}/b`, { title: 'new b' }),
    user.patch(`${path}/c`, { title: 'new c' }, stale),
    user.patch(`${path}/missing`, { title: 'new' }),
    user.patch(`${path}/a`, { other: 'b' }),
  ])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 412, 404, 200])
  const { body } = await user.get(`${path}?$sort=identifier`)
  expect(body.map(({ title, metadata, other }: Record<string, never>) => [title ?? metadata, other])).toMatchObject([
    ['new a', 'b'],
    ['new b', undefined],
    ['old', undefined],
  ])
})
