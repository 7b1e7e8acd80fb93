import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { queueMail } from '../../src/accounts/mail/mails'
import { config } from '../../src/config'
import { moveClock } from '../../src/core/clock'
import { runDueJobs } from '../../src/jobs/runner'
import { startSmtpServer } from '../fakes/smtp-server'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import {
  allowPrivateNetwork,
  createOrderPlugin,
  denyPrivateNetwork,
  emitAndDeliver,
  newOrderEvent,
} from '../plugins/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'

setDefaultTimeout(30_000)

const receiver = startWebhookReceiver()
beforeAll(allowPrivateNetwork)
afterAll(async () => {
  moveClock()
  denyPrivateNetwork()
  await receiver.stop()
})

test('an admin sees a failing delivery with what waits behind it, and retries it now', async () => {
  const { tenant, as } = await createTestTenant()
  const admin = as('admin')
  receiver.answer = () => 500
  const { _id, name } = await createOrderPlugin(admin, [`${receiver.url}/hooks`])
  await emitAndDeliver(tenant, newOrderEvent(1), newOrderEvent(2), newOrderEvent(3))
  const [failing, ...others] = (await admin.get('/jobs/failing')).body
  expect(others).toEqual([])
  expect(failing).toEqual({
    ...{ _id: expect.any(String), kind: 'delivery', subject: { kind: 'plugin', _id, name } },
    ...{ attempts: expect.any(Number), error: 'The endpoint answered 500.', waiting: 2 },
    ...{ nextAttempt: expect.any(String), created: expect.any(String) },
  })

  receiver.answer = () => 200
  receiver.deliveries.length = 0
  expect((await admin.post(`/jobs/${failing._id}/retry`)).body).toEqual({ success: true })
  await runDueJobs(tenant)
  expect(receiver.deliveries.map(({ body }) => (body.metadata as { n: number }).n)).toEqual([1, 2, 3])
  expect((await admin.get('/jobs/failing')).body).toEqual([])
  expect(statusAndCode(await admin.post(`/jobs/${failing._id}/retry`))).toEqual([404, 'JOB_NOT_FOUND'])
})

test('a failing run names its integration, and one without a failure is not listed', async () => {
  const { tenant, as } = await createTestTenant()
  const admin = as('admin')
  const create = async (path: string, body: object) => (await admin.post(path, body)).body._id as string
  const integrate = async (name: string, code: string) => {
    const lambdaId = await create('/lambdas', { name, code })
    const target = { kind: 'lambda', lambdaId }
    return create('/integrations', { name, trigger: { kind: 'event', source: 'shop' }, target })
  }
  const broken = await integrate('Pack orders', 'export default () => { throw new Error("No boxes.") }')
  await integrate('Count orders', 'export default () => 1')
  await emitAndDeliver(tenant, newOrderEvent(1))
  const failing = (await admin.get('/jobs/failing')).body
  expect(failing).toMatchObject([
    {
      kind: 'integration',
      subject: { kind: 'integration', _id: broken, name: 'Pack orders' },
      attempts: expect.any(Number),
      waiting: 0,
    },
  ])
  expect(failing[0].error).toStartWith('The lambda failed.')
  await admin.delete(`/integrations/${broken}`)
  const [orphan] = (await admin.get('/jobs/failing')).body
  expect(orphan?.subject ?? null).toBeNull()
})

test('a failing mail names its recipient, and is sent when an admin retries it', async () => {
  const server = await startSmtpServer()
  config.ATOLL_SMTP_URL = server.url
  try {
    const { tenant, as } = await createTestTenant()
    const admin = as('admin')
    server.refuse('grace@example.com', 451, 1)
    const mail = { to: 'grace@example.com', template: 'message', data: { subject: 'Hello', text: 'Hello' } } as const
    await tenant.write((tx) => queueMail(tenant, tx, mail))
    await runDueJobs(tenant)
    const failing = (await admin.get('/jobs/failing')).body
    expect(failing).toMatchObject([
      { kind: 'mail', subject: { kind: 'mail', name: 'grace@example.com' }, attempts: 1, waiting: 0 },
    ])
    const [stored] = (await admin.get('/mails')).body
    expect([failing[0].subject._id, failing[0].error]).toEqual([stored._id, stored.error])
    expect(failing[0].error).toContain('451')
    expect((await admin.post(`/jobs/${failing[0]._id}/retry`)).body).toEqual({ success: true })
    await runDueJobs(tenant)
    expect(server.to('grace@example.com')).toHaveLength(1)
    expect((await admin.get('/jobs/failing')).body).toEqual([])
  } finally {
    config.ATOLL_SMTP_URL = ''
    await server.close()
  }
})

test('nobody but an admin sees or retries failing jobs, and another tenant has none of them', async () => {
  const { tenant, as } = await createTestTenant()
  receiver.answer = () => 500
  await createOrderPlugin(as('admin'), [`${receiver.url}/hooks`])
  await emitAndDeliver(tenant, newOrderEvent(1))
  const [{ _id }] = (await as('admin').get('/jobs/failing')).body
  for (const name of ['user', 'editor'] as const) {
    expect(statusAndCode(await as(name).get('/jobs/failing'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await as(name).post(`/jobs/${_id}/retry`))).toEqual([403, 'FORBIDDEN'])
  }
  const other = (await createTestTenant()).as('admin')
  expect((await other.get('/jobs/failing')).body).toEqual([])
  expect(statusAndCode(await other.post(`/jobs/${_id}/retry`))).toEqual([404, 'JOB_NOT_FOUND'])
})
