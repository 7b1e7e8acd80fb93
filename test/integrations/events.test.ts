import { afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { moveClock, now } from '../../src/core/clock'
import type { NewEvent } from '../../src/jobs/outbox'
import { lambdas } from '../../src/lambdas/tables'
import { resetClock } from '../accounts/session-fixtures'
import { TIME } from '../expectations'
import { emitAndDeliver, newOrderEvent, times } from '../plugins/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createIntegrationsFixture, type IntegrationsFixture, listJobs } from './fixtures'

setDefaultTimeout(30_000)

let h: IntegrationsFixture
let before: string[]
beforeAll(async () => {
  h = await createIntegrationsFixture()
  const permissions = ['create', 'read'].map((operation) => ({ operation, scope: 'tenant', roleBased: ['plugin'] }))
  const fields = [{ key: 'text', type: 'string' }]
  await h.admin.post('/blueprints', { key: 'notes', name: 'Notes', fields, permissions })
})
beforeEach(async () => {
  await h.clear()
  before = (await listNotes()).map(({ _id }) => _id)
})
afterEach(resetClock)

/** Creates a lambda that stores the value of this expression as a note, with the role of a plugin. */
const createNoteWriter = (expression: string, statement = '') =>
  h.lambda(
    `async (request, atoll) => { ${statement}; await atoll.entities('notes').create({ text: String(${expression}) }) }`,
    { serviceRole: 'plugin' },
  )
const listNotes = async (): Promise<{ _id: string; text: string }[]> =>
  (await h.admin.get('/blueprints/notes/entities?$sort=created&$limit=1000')).body
/** The texts of the notes of this test. */
const listNewTexts = async () => (await listNotes()).filter(({ _id }) => !before.includes(_id)).map(({ text }) => text)
const listEvents = async (eventName: string) =>
  (await h.admin.get(`/events?eventName=${eventName}&source=plugins`)).body
const countRuns = async (lambdaId: string) => (await h.admin.get(`/lambdas/${lambdaId}/logs?limit=1000`)).body.length
const createEventIntegration = (trigger: object, lambdaId: string, more: object = {}) =>
  h.integration({ kind: 'event', ...trigger }, { kind: 'lambda', lambdaId }, more)

describe('integrations with an event trigger', () => {
  test('an event trigger runs its lambda with each event in order, without a user', async () => {
    const { _id } = await createEventIntegration({ source: 'shop' }, await createNoteWriter('request.event.metadata.n'))
    await emitAndDeliver(h.tenant, ...times(12).map(newOrderEvent))
    expect(await listNewTexts()).toEqual(times(12).map(String))
    expect(await listJobs(h.tenant, 'integration')).toEqual([])
    const lambdaId = await createNoteWriter('JSON.stringify([request.event, request.user, request.body])')
    await h.admin.put(`/integrations/${_id}`, { target: { kind: 'lambda', lambdaId } })
    await emitAndDeliver(h.tenant, { ...newOrderEvent(99), description: 'An order', user: h.users.user })
    const [event] = (await h.admin.get('/events?kind=order&limit=1')).body
    expect(JSON.parse((await listNewTexts()).at(-1)!)).toEqual([event, null, null])
  })

  test('an event trigger matches source, kind and name, and any value where one is missing or *', async () => {
    const stockEvent: NewEvent = { source: 'stock', kind: 'item', eventName: 'gone' }
    await createEventIntegration({}, await createNoteWriter(`'any ' + request.event.source`))
    await createEventIntegration(
      { source: '*', eventKind: 'item', eventName: '*' },
      await createNoteWriter(`'items ' + request.event.source`),
    )
    await createEventIntegration(
      { source: 'shop', eventKind: 'order', eventName: 'placed' },
      await createNoteWriter(`'placed'`),
    )
    await createEventIntegration({ source: 'shop', eventName: 'gone' }, await createNoteWriter(`'never'`))
    await createEventIntegration({ source: 'shop' }, await createNoteWriter(`'off'`), { active: false })
    await emitAndDeliver(h.tenant, newOrderEvent(1), stockEvent)
    const texts = (await listNewTexts()).filter((one) => !/entities|accounts/.test(one)).sort()
    expect(texts).toEqual(['any shop', 'any stock', 'items stock', 'placed'])
  })

  test('an event trigger ignores events from before its creation, while inactive, or after a change of its source', async () => {
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const { _id } = await createEventIntegration({ source: 'shop' }, await createNoteWriter('request.event.metadata.n'))
    await emitAndDeliver(h.tenant, newOrderEvent(2))
    await h.admin.put(`/integrations/${_id}`, { active: false })
    await emitAndDeliver(h.tenant, newOrderEvent(3))
    await h.admin.put(`/integrations/${_id}`, { active: true })
    await emitAndDeliver(h.tenant, newOrderEvent(4))
    await h.admin.put(`/integrations/${_id}`, { trigger: { kind: 'event', source: 'other' } })
    await emitAndDeliver(h.tenant, newOrderEvent(5))
    expect(await listNewTexts()).toEqual(['2', '4'])
  })

  test('a change of the target applies to waiting runs, and a deletion removes them', async () => {
    const lambdaId = await createNoteWriter('1', `throw new Error('not yet')`)
    const { _id } = await createEventIntegration({ source: 'shop' }, lambdaId)
    await emitAndDeliver(h.tenant, newOrderEvent(1), newOrderEvent(2))
    expect((await listJobs(h.tenant, 'integration')).length).toBe(2)
    // Waiting runs use the new target.
    await h.admin.put(`/integrations/${_id}`, {
      target: { kind: 'lambda', lambdaId: await createNoteWriter('request.event.metadata.n') },
    })
    moveClock(now() + 60_000)
    await h.due()
    expect(await listNewTexts()).toEqual(['1', '2'])
    await h.admin.put(`/integrations/${_id}`, { target: { kind: 'lambda', lambdaId } })
    await emitAndDeliver(h.tenant, newOrderEvent(3), newOrderEvent(4))
    await h.admin.delete(`/integrations/${_id}`)
    expect(await listJobs(h.tenant, 'integration')).toEqual([])
    moveClock(now() + 600_000)
    await h.due()
    expect(await listNewTexts()).toEqual(['1', '2'])
  })

  test('a failing run is retried with doubling pauses, is dead after ten attempts and emits lambda-failed', async () => {
    const lambdaId = await createNoteWriter('1', `throw new Error('broken')`)
    const { _id } = await createEventIntegration({ source: 'shop' }, lambdaId, { name: 'Orders' })
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const dues: number[] = []
    for (let attempt = 1; attempt < 10; attempt++) {
      const [[, , due, attempts]] = (await listJobs(h.tenant, 'integration')) as [
        [string, string, number, number, string],
      ]
      expect(attempts).toBe(attempt)
      dues.push(due - now())
      moveClock(due)
      await h.due()
    }
    for (const [n, pause] of dues.entries()) {
      expect(pause).toBeGreaterThan(1_000 * 2 ** n - 500)
      expect(pause).toBeLessThanOrEqual(1_250 * 2 ** n)
    }
    const [[, , due, , state]] = (await listJobs(h.tenant, 'integration')) as [[string, string, null, number, string]]
    expect([due, state, await countRuns(lambdaId)]).toEqual([null, 'dead', 10])
    const [event, ...others] = await listEvents('lambda-failed')
    expect(others).toEqual([])
    expect(event).toMatchObject({
      source: 'plugins',
      kind: 'integration',
      description: 'The integration "Orders" failed and will not be retried.',
      metadata: { integration: _id, name: 'Orders', attempts: 10, outcome: { code: 'LAMBDA_FAILED' } },
    })
  })

  test('GET /integrations/:id/runs lists waiting and dead runs for admins, who can replay a dead one', async () => {
    const lambdaId = await createNoteWriter(
      'request.event.metadata.n',
      `if (request.event.metadata.n === 1) throw new Error('no')`,
    )
    const { _id } = await createEventIntegration({ source: 'shop' }, lambdaId)
    await emitAndDeliver(h.tenant, newOrderEvent(1), newOrderEvent(2))
    const path = `/integrations/${_id}/runs`
    const list = async (query = '') => (await h.admin.get(`${path}?sort=_id&${query}`)).body
    const [first, second] = await list()
    const event = (await h.admin.get('/events?kind=order&limit=2&sort=-_id')).body[1]._id
    expect(first).toEqual({
      ...{ _id: expect.stringContaining(event), trigger: 'event', event, due: null, state: 'waiting', attempts: 1 },
      outcome: { code: 'LAMBDA_FAILED', message: expect.any(String) },
      ...{ nextAttempt: TIME, created: TIME, finished: null },
    })
    expect(second).toMatchObject({ state: 'waiting', attempts: 0, nextAttempt: null, outcome: null })
    for (const _ of times(9)) {
      moveClock(now() + 3_600_000)
      await h.due()
    }
    const [dead, ...furtherRuns] = await list('state=dead')
    expect([dead, furtherRuns]).toEqual([
      { ...first, state: 'dead', attempts: 10, nextAttempt: null, finished: TIME },
      [],
    ])
    expect([await listNewTexts(), await list('state=waiting')]).toEqual([['2'], []])
    await h.admin.put(`/integrations/${_id}`, {
      target: { kind: 'lambda', lambdaId: await createNoteWriter(`'at last'`) },
    })
    const replayed = await h.admin.post(`${path}/${dead._id}/replay`)
    expect([replayed.status, replayed.body.state, replayed.body.attempts]).toEqual([200, 'waiting', 0])
    await h.due()
    expect([await listNewTexts(), await list()]).toEqual([['2', 'at last'], []])

    const otherIntegration = await createEventIntegration({ source: 'shop' }, lambdaId)
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const [otherRun] = (await h.admin.get(`/integrations/${otherIntegration._id}/runs`)).body
    for (const answer of [
      await h.admin.post(`${path}/none/replay`),
      await h.admin.post(`${path}/${otherRun._id}/replay`),
      await h.admin.post(`/integrations/none/runs/${otherRun._id}/replay`),
      await h.admin.get('/integrations/none/runs'),
    ])
      expect(answer.status).toBe(404)
    for (const client of [h.as('user'), h.as('editor')]) {
      expect(statusAndCode(await client.get(path))).toEqual([403, 'FORBIDDEN'])
      expect(statusAndCode(await client.post(`${path}/${otherRun._id}/replay`))).toEqual([403, 'FORBIDDEN'])
    }
    expect(statusAndCode(await h.anonymous.get(path))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('a failing integration does not delay another integration with the same trigger', async () => {
    await createEventIntegration({ source: 'shop' }, await createNoteWriter('1', `throw new Error('broken')`))
    await createEventIntegration({ source: 'shop' }, await createNoteWriter('request.event.metadata.n'))
    await emitAndDeliver(h.tenant, newOrderEvent(1), newOrderEvent(2), newOrderEvent(3))
    expect(await listNewTexts()).toEqual(['1', '2', '3'])
  })

  test('a run whose lambda is missing is not retried and emits lambda-failed with LAMBDA_NOT_FOUND', async () => {
    const lambdaId = await createNoteWriter('1')
    const { _id } = await createEventIntegration({ source: 'shop' }, lambdaId)
    // The API refuses to delete a lambda in use; only a partial restore could lose it.
    await h.tenant.write((tx) => tx.delete(lambdas).where(eq(lambdas._id, lambdaId)).run())
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const failures = (await listEvents('lambda-failed')).filter(
      ({ metadata }: NewEvent) => metadata?.integration === _id,
    )
    expect(failures.map(({ metadata }: NewEvent) => metadata?.outcome)).toEqual([
      { code: 'LAMBDA_NOT_FOUND', message: 'There is no such lambda.' },
    ])
  })

  test('an integration ignores the events of its own runs, and a chain of integrations ends after five runs', async () => {
    const echo = `await atoll.events.emit({ source: 'shop', eventName: 'echo', metadata: {} })`
    const alone = await createNoteWriter('1', echo)
    const { _id } = await createEventIntegration({ source: '*' }, alone)
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    expect(await countRuns(alone)).toBe(1)
    await h.admin.delete(`/integrations/${_id}`)
    const [ping, pong] = [await createNoteWriter('1', echo), await createNoteWriter('1', echo)]
    const source = 'plugin:shop'
    await createEventIntegration({ source, eventName: 'echo' }, ping)
    await createEventIntegration({ source, eventName: 'echo' }, pong)
    await emitAndDeliver(h.tenant, { source, kind: 'order', eventName: 'echo' })
    // Both run for the first event, then for each other's events, until a chain has five runs.
    expect([await countRuns(ping), await countRuns(pong)]).toEqual([5, 5])
    expect((await listJobs(h.tenant, 'integration')).every(([, , , , state]) => state === 'dead')).toBeTrue()
  })

  test('integrations that fail on delivery-failed events trigger each other at most five deep', async () => {
    const trigger = { kind: 'event', source: 'plugins', eventName: 'delivery-failed' }
    // A mail without a recipient fails at once.
    const target = { kind: 'email', to: '{{nobody}}', subject: 'x', text: 'x' }
    for (const _ of times(2)) await h.integration(trigger, target)
    await emitAndDeliver(h.tenant, { source: 'plugins', kind: 'x', eventName: 'delivery-failed' })
    // The first event, which triggers both, and the failures that they trigger in each other, five deep.
    expect((await listEvents('delivery-failed')).length).toBe(11)
    expect((await listJobs(h.tenant, 'integration')).every(([, , , , state]) => state === 'dead')).toBeTrue()
  })

  test('a lambda without a serviceRole has only the permissions of a guest when an event runs it', async () => {
    const lambdaId = await h.lambda(`(_, atoll) => atoll.entities('notes').create({ text: 'no' })`)
    await createEventIntegration({ source: 'shop' }, lambdaId)
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    expect(await listNewTexts()).toEqual([])
    expect((await h.admin.get(`/lambdas/${lambdaId}/logs`)).body[0]).toMatchObject({ trigger: 'event', status: 500 })
  })

  test('an event trigger ignores the events of another tenant', async () => {
    await createEventIntegration({ source: 'shop' }, await createNoteWriter('request.event.metadata.n'))
    const otherTenant = await createTestTenant()
    await emitAndDeliver(otherTenant.tenant, newOrderEvent(1))
    await emitAndDeliver(h.tenant, newOrderEvent(2))
    expect(await listNewTexts()).toEqual(['2'])
  })

  test('an event trigger runs once for each event when six workers look for due jobs at once', async () => {
    await createEventIntegration({ source: 'shop' }, await createNoteWriter('request.event.metadata.n'))
    await Promise.all(times(6).map((n) => emitAndDeliver(h.tenant, newOrderEvent(n))))
    expect((await listNewTexts()).sort()).toEqual(times(6).map(String))
  })
})
