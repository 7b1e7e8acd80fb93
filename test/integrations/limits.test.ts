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

test('rejects the 501st connection of a tenant with 409 TOO_MANY_INTEGRATION_SOURCES', async () => {
  const row = { name: 'x', kind: 'paddle' as const, labels: [], metadata: {}, version: 1, created: time, updated: time }
  const rows = times(499).map((n) => ({ ...row, _id: `c${n}` }))
  await h.tenant.write((tx) => tx.insert(connections).values(rows))
  const made = await Promise.all(
    times(3).map(() => h.admin.post('/integration-sources', { name: 'x', kind: 'stripe', labels: ['last'] })),
  )
  expect(made.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  expect(made.find(({ status }) => status === 409)!.body.code).toBe('TOO_MANY_INTEGRATION_SOURCES')
  // The filter by label reads all connections.
  for (const sort of ['created', '-created'])
    expect((await h.admin.get(`/integration-sources?labels=last&sort=${sort}`)).body.length).toBe(1)
  await h.tenant.write((tx) => tx.delete(connections).run())
})

test('rejects the 1,001st integration of a tenant with 409 TOO_MANY_INTEGRATIONS', async () => {
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

test('a run whose event was removed meanwhile is dead and sends no mail', async () => {
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

test('a webhook run that is still queued is dropped when the integration gets another trigger', async () => {
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

test('schedules run only for their own tenant, and run once after a suspension', async () => {
  moveClock(Date.parse('2031-05-01T10:00:30Z'))
  const otherTenant = await createIntegrationsFixture()
  await otherTenant.integration({ kind: 'schedule', cron: '* * * * *' }, mail)
  moveClock(Date.parse('2031-05-01T10:01:30Z'))
  expect(await h.due()).toBe(0)
  expect(await listJobs(h.tenant, 'schedule')).toEqual([])
  await setStatus(otherTenant.id, 'suspended')
  moveClock(Date.parse('2031-05-01T11:30:30Z'))
  expect((await otherTenant.admin.get('/mails')).status).toBe(403)
  await setStatus(otherTenant.id, 'active')
  await otherTenant.due()
  expect([await countMails(otherTenant), await countMails()]).toEqual([1, 0])
  resetClock()
})

test('rejects an integration with a connection of another tenant with 400 INVALID_INPUT', async () => {
  const otherAdmin = (await createTestTenant()).as('admin')
  const { body } = await otherAdmin.post('/integration-sources', {
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
