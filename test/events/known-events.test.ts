import { beforeAll, describe, expect, test } from 'bun:test'
import { SYSTEM_EVENTS } from '../../src/events/known-events'
import { EVENTS } from '../documents/events'
import { createTestTenant, fullAccessRules, statusAndCode } from '../test-tenant'

let t: Awaited<ReturnType<typeof createTestTenant>>
let admin: ReturnType<typeof t.as>

beforeAll(async () => {
  t = await createTestTenant()
  admin = t.as('admin')
  const fields = [{ key: 'title', type: 'string' }]
  const permissions = fullAccessRules('tenant', 'user')
  const dispatchers = { create: true }
  expect(
    (await admin.post('/blueprints', { key: 'orders', name: 'Orders', fields, permissions, dispatchers })).status,
  ).toBe(201)
  const recorded = { source: 'shop', kind: 'basket', eventName: 'basket-left' }
  expect((await admin.post('/events', recorded)).status).toBe(201)
})

const target = { kind: 'email', to: 'ada@example.com', subject: 'Hello', text: 'Hello' }
const createIntegration = (trigger: object) =>
  admin.post('/integrations', { name: crypto.randomUUID(), trigger: { kind: 'event', ...trigger }, target })

test('known events are those of the reference, of blueprints, and what was recorded', async () => {
  const { status, body } = await admin.get('/events/known')
  expect(status).toBe(200)
  for (const [source, kind, eventName] of [
    ['accounts', 'user', 'user-created'],
    ['blueprints', 'orders', 'create'],
    ['blueprints', 'orders', 'import-finished'],
    ['shop', 'basket', 'basket-left'],
  ])
    expect(body).toContainEqual({ source, kind, eventName })
  expect(body).not.toContainEqual({ source: 'blueprints', kind: 'orders', eventName: 'update' })
  expect(statusAndCode(await t.as('user').get('/events/known'))).toEqual([403, 'FORBIDDEN'])
})

test('the events of the system are those that the reference documents', () => {
  const known = Object.entries(SYSTEM_EVENTS).flatMap(([source, kinds]) =>
    Object.entries(kinds).flatMap(([kind, names]) => names.map((name) => `${source} ${kind} ${name}`)),
  )
  const documented = EVENTS.filter(({ source, name }) => source !== 'blueprints' && name !== 'due').map(
    ({ source, kind, name }) => `${source} ${kind} ${name}`,
  )
  expect(known.sort()).toEqual(documented.sort())
})

describe('an integration that waits for events', () => {
  test.each([
    ['a source', { source: 'payment' }, '/trigger/source', 'Did you mean "payments"?'],
    ['a kind', { source: 'blueprints', eventKind: 'order' }, '/trigger/eventKind', 'Did you mean "orders"?'],
    [
      'a name',
      { source: 'shop', eventKind: 'basket', eventName: 'left' },
      '/trigger/eventName',
      'GET /api/events/known',
    ],
    [
      'an event that its blueprint does not record',
      { source: 'blueprints', eventKind: 'orders', eventName: 'update' },
      '/trigger/eventName',
      'Switch on update in its dispatchers.',
    ],
  ])('%s that nothing records is saved with a warning that says what to do', async (_, trigger, path, hint) => {
    const { status, body } = await createIntegration(trigger)
    expect([status, body.warnings.length]).toEqual([201, 1])
    expect(body.warnings[0]).toMatchObject({ path, code: 'UNKNOWN_EVENT', message: expect.stringContaining(hint) })
    const read = (await admin.get(`/integrations/${body._id}`)).body
    expect(read.warnings).toEqual(body.warnings)
    expect((await admin.put(`/integrations/${body._id}`, read)).status).toBe(200)
  })

  test.each([
    ['everything', {}],
    ['a star', { source: '*', eventKind: '*', eventName: '*' }],
    ['an event of the system', { source: 'payments', eventName: 'invoice-paid' }],
    ['an event of a blueprint', { source: 'blueprints', eventKind: 'orders', eventName: 'create' }],
    ['an event that was recorded before', { eventName: 'basket-left' }],
  ])('%s is saved without a warning', async (_, trigger) => {
    const { status, body } = await createIntegration(trigger)
    expect([status, body.warnings]).toEqual([201, undefined])
  })

  test('the warning is gone once the event was recorded', async () => {
    const { body } = await createIntegration({ source: 'warehouse' })
    expect(body.warnings).toHaveLength(1)
    await admin.post('/events', { source: 'warehouse', kind: 'shelf', eventName: 'empty' })
    expect((await admin.get(`/integrations/${body._id}`)).body.warnings).toBeUndefined()
  })
})

describe('GET /api/integrations/due-times', () => {
  const ask = (cron: string, timezone: string) =>
    admin.get(`/integrations/due-times?${new URLSearchParams({ cron, timezone })}`)

  test('the next five moments are listed, each also as the clocks of its zone show it', async () => {
    const { status, body } = await ask('30 9 * * *', 'Asia/Kolkata')
    expect([status, body.times.length]).toEqual([200, 5])
    for (const { due, local } of body.times) {
      expect(local).toMatch(/T09:30:00\+05:30$/)
      expect(new Date(local).toISOString()).toBe(due)
    }
    expect(body.times).toEqual(
      body.times.toSorted((a: { due: string }, b: { due: string }) => (a.due < b.due ? -1 : 1)),
    )
  })

  test.each([
    ['a zone that does not exist', '0 9 * * *', 'Mars/Olympus', 'timezone'],
    ['an expression that is none', 'every day', 'UTC', 'cron'],
  ])('%s is refused with the name of the parameter', async (_, cron, timezone, path) => {
    const { status, body } = await ask(cron, timezone)
    expect([status, body.code, body.details[0].path]).toEqual([400, 'INVALID_INPUT', path])
  })
})

test('a plugin is warned about each subscription to events that nothing records', async () => {
  const hookUrl = 'https://mailer.example.com/hook'
  const subscribedEvents = [
    { source: 'accounts', kind: 'usr', hookUrl },
    { eventName: 'invoice-paid', hookUrl },
  ]
  const { status, body } = await admin.post('/plugins', { name: 'Mailer', subscribedEvents })
  expect(status).toBe(201)
  expect(body.warnings).toEqual([
    {
      path: '/subscribedEvents/0/kind',
      code: 'UNKNOWN_EVENT',
      message: 'No known event has the kind "usr", so this may never run. Did you mean "user"?',
    },
  ])
  expect((await admin.get(`/plugins/${body._id}`)).body.warnings).toEqual(body.warnings)
})
