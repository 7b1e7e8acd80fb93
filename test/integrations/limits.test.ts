import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { connections } from '../../src/connections/tables'
import { moveClock, now, toIsoString } from '../../src/core/clock'
import { removeOld } from '../../src/events/events'
import { integrations } from '../../src/integrations/tables'
import { withLease } from '../../src/jobs/with-lease'
import { setStatus } from '../../src/tenancy/tenants'
import { DAY, resetClock } from '../accounts/session-fixtures'
import { emitAndDeliver, newOrderEvent, times } from '../plugins/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createIntegrationsFixture, type IntegrationsFixture, listJobs } from './fixtures'

setDefaultTimeout(30_000)

let h: IntegrationsFixture
beforeAll(async () => {
  h = await createIntegrationsFixture()
})

const mail = { kind: 'email', to: 'ada@x.test', subject: 'x', text: 'x' } as const
const time = toIsoString(now())
const countMails = async (own: Pick<IntegrationsFixture, 'admin'> = h) => (await own.admin.get('/mails')).body.length

test('a tenant has 500 connections, and then no more', async () => {
  const row = { name: 'x', kind: 'paddle' as const, labels: [], metadata: {}, version: 1, created: time, updated: time }
  const rows = times(499).map((n) => ({ ...row, _id: `c${n}` }))
  await h.tenant.write((tx) => tx.insert(connections).values(rows))
  const made = await Promise.all(
    times(3).map(() => h.admin.post('/integration-sources', { name: 'x', kind: 'stripe', labels: ['last'] })),
  )
  expect(made.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  expect(made.find(({ status }) => status === 409)!.body.code).toBe('TOO_MANY_INTEGRATION_SOURCES')
  // A label is found wherever it stands in the list.
  for (const sort of ['created', '-created'])
    expect((await h.admin.get(`/integration-sources?labels=last&sort=${sort}`)).body.length).toBe(1)
  await h.tenant.write((tx) => tx.delete(connections).run())
})

test('a tenant has 1,000 integrations, and then no more', async () => {
  const row = {
    ...{ name: null, active: false, guest: false, trigger: { kind: 'chat' as const }, triggerKind: 'chat' as const },
    ...{ target: mail, targetKind: 'email' as const, source: null, roles: [], workspaceRoles: [], plugin: null },
    ...{ user: 'x', since: 0, version: 1, created: time, updated: time },
  }
  const rows = times(999).map((n) => ({ ...row, _id: `i${n}` }))
  await h.tenant.write((tx) => tx.insert(integrations).values(rows))
  const body = { trigger: { kind: 'webhook' }, target: mail }
  const made = await Promise.all(times(3).map(() => h.admin.post('/integrations', body)))
  expect(made.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  expect(made.find(({ status }) => status === 409)!.body.code).toBe('TOO_MANY_INTEGRATIONS')
  await h.tenant.write((tx) => tx.delete(integrations).run())
})

test('an event that was removed before it was its turn is given up', async () => {
  const { _id } = await h.integration(
    { kind: 'event', source: 'shop' },
    { kind: 'http', url: 'https://nobody.invalid' },
  )
  await emitAndDeliver(h.tenant, newOrderEvent(1), newOrderEvent(2))
  moveClock(now() + 100 * DAY)
  await emitAndDeliver(h.tenant, { ...newOrderEvent(3), source: 'elsewhere' })
  await withLease(h.tenant, 'test', removeOld)
  await h.admin.put(`/integrations/${_id}`, { target: mail })
  const dead = (await h.admin.get(`/integrations/${_id}/runs?state=dead&sort=_id`)).body
  for (const { _id: run } of dead) await h.admin.post(`/integrations/${_id}/runs/${run}/replay`)
  await h.due()
  const [first] = (await h.admin.get(`/integrations/${_id}/runs?state=dead`)).body
  expect([first.outcome.message, await countMails()]).toEqual(['The event was too old and has been removed.', 0])
  await h.clear()
  resetClock()
})

test('what was taken from a caller is dropped when the integration waits for something else by then', async () => {
  const { _id } = await h.integration({ kind: 'webhook' }, mail)
  await h.as('user').post(`/webhooks/${_id}`, {})
  expect((await h.admin.get(`/integrations/${_id}/runs`)).body[0]).toMatchObject({
    trigger: 'webhook',
    event: null,
    due: null,
  })
  await h.admin.put(`/integrations/${_id}`, { trigger: { kind: 'event', source: 'shop' } })
  await h.due()
  expect([await countMails(), (await h.admin.get(`/integrations/${_id}/runs`)).body]).toEqual([0, []])
  await h.clear()
})

test('the times of one tenant are nobody else’s, and one that is suspended catches up once', async () => {
  moveClock(Date.parse('2031-05-01T10:00:30Z'))
  const abroad = await createIntegrationsFixture()
  await abroad.integration({ kind: 'schedule', cron: '* * * * *' }, mail)
  moveClock(Date.parse('2031-05-01T10:01:30Z'))
  expect(await h.due()).toBe(0)
  expect(await listJobs(h.tenant, 'schedule')).toEqual([])
  await setStatus(abroad.id, 'suspended')
  moveClock(Date.parse('2031-05-01T11:30:30Z'))
  expect((await abroad.admin.get('/mails')).status).toBe(403)
  await setStatus(abroad.id, 'active')
  await abroad.due()
  expect([await countMails(abroad), await countMails()]).toEqual([1, 0])
  resetClock()
})

test('an integration of one tenant goes by no connection of another', async () => {
  const theirs = (await createTestTenant()).as('admin')
  const { body } = await theirs.post('/integration-sources', {
    name: 'x',
    kind: 'http',
    metadata: { url: 'https://x.test' },
  })
  const target = { kind: 'http', sourceId: body._id }
  expect(statusAndCode(await h.admin.post('/integrations', { trigger: { kind: 'webhook' }, target }))).toEqual([
    400,
    'INVALID_INPUT',
  ])
})
