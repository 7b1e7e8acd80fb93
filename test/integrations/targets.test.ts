import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { moveClock, now } from '../../src/core/clock'
import { resetClock } from '../accounts/session-fixtures'
import { startSmtpServer } from '../fakes/smtp-server'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { allowPrivateNetwork, denyPrivateNetwork, emitAndDeliver, newOrderEvent } from '../plugins/fixtures'
import { statusAndCode } from '../test-tenant'
import { createIntegrationsFixture, type IntegrationsFixture, listJobs } from './fixtures'

setDefaultTimeout(30_000)

const receiver = startWebhookReceiver()
const { deliveries, url } = receiver
let h: IntegrationsFixture
let mailServer: Awaited<ReturnType<typeof startSmtpServer>>
beforeAll(async () => {
  allowPrivateNetwork()
  h = await createIntegrationsFixture()
  mailServer = await startSmtpServer()
})
beforeEach(async () => {
  await h.clear()
  deliveries.length = 0
  mailServer.letters.length = 0
  receiver.answer = () => 200
})
afterEach(resetClock)
afterAll(async () => {
  denyPrivateNetwork()
  config.ATOLL_SMTP_URL = ''
  await receiver.stop()
  await mailServer.close()
})

test('DELETE /lambdas/:id answers 409 LAMBDA_IN_USE while an integration runs the lambda', async () => {
  const lambdaId = await h.lambda('() => 1')
  const { _id } = await h.integration({ kind: 'webhook' }, { kind: 'lambda', lambdaId })
  expect(statusAndCode(await h.admin.delete(`/lambdas/${lambdaId}`))).toEqual([409, 'LAMBDA_IN_USE'])
  expect((await h.as('user').post(`/webhooks/${_id}`)).body).toBe(1)
  await h.admin.delete(`/integrations/${_id}`)
  expect((await h.admin.delete(`/lambdas/${lambdaId}`)).status).toBe(200)
})

const listFailures = async () => (await h.admin.get('/events?eventName=delivery-failed&sort=-_id')).body
const SHOP_TRIGGER = { kind: 'event', source: 'shop' }

describe('the target http', () => {
  test('the http target of an event receives the event through a connection with its headers and an idempotency key', async () => {
    const sourceId = await h.source(
      'http',
      { url: `${url}/base/` },
      { headers: { 'x-key': 's3cret', 'Content-Length': '1', host: 'evil.test' } },
    )
    await h.integration(SHOP_TRIGGER, { kind: 'http', sourceId, path: '/orders?x=1', method: 'PUT' })
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const [event] = (await h.admin.get('/events?kind=order&limit=1')).body
    expect(deliveries.map(({ path, body }) => [path, body])).toEqual([['/base/orders', event]])
    expect(deliveries[0]!.headers).toMatchObject({
      'x-key': 's3cret',
      'content-type': 'application/json',
      'user-agent': 'atoll',
    })
    expect(deliveries[0]!.headers['idempotency-key']).toContain(event._id)
    expect(deliveries[0]!.headers.host).toBe(new URL(url).host)
  })

  test('the http target of a webhook receives the request, and the caller gets its answer without cookies', async () => {
    receiver.answer = () =>
      new Response('<ok/>', { status: 201, headers: { 'content-type': 'text/xml', 'set-cookie': 'a=1' } })
    const { _id } = await h.integration({ kind: 'webhook' }, { kind: 'http', url: `${url}/hook` })
    const answer = await h.as('user').post(`/webhooks/${_id}?a=1`, { n: 1 })
    expect([answer.status, answer.body, answer.headers.get('content-type')]).toEqual([201, '<ok/>', 'text/xml'])
    expect(answer.headers.get('set-cookie')).toBeNull()
    expect(deliveries[0]!.body).toMatchObject({
      method: 'POST',
      query: { a: '1' },
      body: { n: 1 },
      rawBody: '{"n":1}',
      user: { _id: h.users.user, roles: ['user'] },
      workspace: null,
    })
    expect(deliveries[0]!.text).not.toContain(h.tokens.user)
    await h.admin.put(`/integrations/${_id}`, { target: { kind: 'http', url, method: 'GET' } })
    await h.as('user').get(`/webhooks/${_id}`)
    expect(deliveries[1]!.text).toBe('')
  })

  test('a webhook whose http target is unreachable or not allowed answers 502 OUTSIDE_UNREACHABLE', async () => {
    const { _id } = await h.integration({ kind: 'webhook' }, { kind: 'http', url: 'http://127.0.0.1:1' })
    expect(statusAndCode(await h.as('user').post(`/webhooks/${_id}`))).toEqual([502, 'OUTSIDE_UNREACHABLE'])
    await h.admin.put(`/integrations/${_id}`, { target: { kind: 'http', url } })
    denyPrivateNetwork()
    expect(
      statusAndCode(await h.admin.put(`/integrations/${_id}`, { target: { kind: 'http', url: `${url}/x` } })),
    ).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await h.as('user').post(`/webhooks/${_id}`))).toEqual([502, 'OUTSIDE_UNREACHABLE'])
    allowPrivateNetwork()
    expect(deliveries).toEqual([])
  })

  test('an http target says by Retry-After when a run is tried again: seconds, or a date, at most an hour', async () => {
    for (const [retryAfter, ms] of [
      ['120', 120_000],
      [new Date(now() + 600_000).toUTCString(), 600_000],
      ['1000000000', 3_600_000],
    ] as const) {
      receiver.answer = () => new Response(null, { status: 503, headers: { 'retry-after': retryAfter } })
      const { _id } = await h.integration(SHOP_TRIGGER, { kind: 'http', url })
      await emitAndDeliver(h.tenant, newOrderEvent(1))
      const [run] = (await h.admin.get(`/integrations/${_id}/runs`)).body
      expect(Date.parse(run.nextAttempt) - now()).toBeWithin(ms - 3_000, ms + 1)
      await h.admin.delete(`/integrations/${_id}`)
    }
    const hook = await h.integration({ kind: 'webhook' }, { kind: 'http', url })
    const answer = await h.as('user').post(`/webhooks/${hook._id}`, {})
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1000000000'])
  })

  test('an http target that fails is retried in order with the same key for three days, then emits delivery-failed', async () => {
    receiver.answer = () => 503
    const { _id } = await h.integration(SHOP_TRIGGER, { kind: 'http', url })
    await emitAndDeliver(h.tenant, newOrderEvent(1), newOrderEvent(2))
    moveClock(now() + 3_600_000)
    await h.due()
    expect(deliveries.map(({ body }) => (body.metadata as { n: number }).n)).toEqual([1, 1])
    expect(new Set(deliveries.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    moveClock(now() + 3 * 86_400_000)
    await h.due()
    const [event] = await listFailures()
    expect(event.metadata).toEqual({
      ...{ integration: _id, name: null, run: expect.any(String), attempts: expect.any(Number) },
      outcome: expect.objectContaining({ message: 'The target answered 503.' }),
    })
    // The second event has its own three days.
    receiver.answer = () => 200
    await h.due()
    expect((await listJobs(h.tenant, 'integration')).filter(([, , , , state]) => state === 'waiting')).toEqual([])
  })
})

describe('the target email', () => {
  const mail = {
    kind: 'email',
    to: '{{metadata.to}}',
    subject: 'Order {{metadata.n}}',
    text: 'Hello,\n{{metadata.items}} {{metadata.items.0}} {{none}}.',
  }
  const order = (to: string) => ({ ...newOrderEvent(7), metadata: { n: 7, to, items: ['a', 'b'] } })
  const TEXT = 'Hello,\n["a","b"] a .'

  test('the email target renders its template with the event and sends the mail through a connection', async () => {
    const sourceId = await h.source('email', { host: '127.0.0.1', port: mailServer.port, from: 'Shop <shop@x.test>' })
    await h.integration(SHOP_TRIGGER, { ...mail, sourceId })
    await emitAndDeliver(h.tenant, order('ada@x.test, bob@x.test'))
    expect(mailServer.letters.length).toBe(1)
    const [letter] = mailServer.letters
    expect([letter!.from, letter!.to, letter!.text.trim()]).toEqual(['shop@x.test', ['ada@x.test', 'bob@x.test'], TEXT])
    expect(letter!.headers).toContain('Subject: Order 7')
  })

  test('the email target without a connection sends a mail of the tenant with its mail template', async () => {
    await h.integration(SHOP_TRIGGER, mail)
    await emitAndDeliver(h.tenant, order('ada@x.test'))
    const [storedMail] = (await h.admin.get('/mails')).body
    expect(storedMail).toMatchObject({
      to: 'ada@x.test',
      template: 'message',
      state: 'kept',
      subject: 'Order 7',
      text: TEXT,
    })
    const frame = { message: { text: '{{text}}\n\nYour shop' } }
    await h.admin.post('/configurations', { key: 'mail-templates', metadata: frame })
    config.ATOLL_SMTP_URL = mailServer.url
    await emitAndDeliver(h.tenant, order('bob@x.test'))
    expect(mailServer.letters.map(({ to, text }) => [to, text.trim()])).toEqual([
      [['bob@x.test'], `${TEXT}\n\nYour shop`],
    ])
    config.ATOLL_SMTP_URL = ''
  })

  test('a webhook with an email target answers 202 at once, and its mail is written later without injected headers', async () => {
    const target = { kind: 'email', to: '{{body.to}}', subject: 'From {{user._id}}', text: '{{body.text}}' }
    const { _id } = await h.integration({ kind: 'webhook' }, target)
    // Input of the caller becomes neither a header, nor a recipient, nor a template.
    const body = { to: 'ada@x.test', text: '{{user._id}}\r\nBcc: evil@x.test' }
    const answer = await h.as('user').post(`/webhooks/${_id}`, body)
    expect([answer.status, answer.body]).toEqual([202, { success: true }])
    await h.due()
    const [storedMail] = (await h.admin.get('/mails?to=ada@x.test')).body
    expect([storedMail.subject, storedMail.text]).toEqual([`From ${h.users.user}`, `${body.text}\n\nYour shop`])
    await h.as('user').post(`/webhooks/${_id}`, { to: 'ada@x.test\r\nBcc: evil@x.test', text: 'x' })
    await h.due()
    expect((await listFailures())[0].metadata.outcome.message).toContain('is not an e-mail address.')
    expect(JSON.stringify((await h.admin.get('/mails')).body)).not.toContain('"to":"evil')
  })

  test('an email target without recipients, or with one that the server refuses with 550, is not retried', async () => {
    const sourceId = await h.source('email', { host: '127.0.0.1', port: mailServer.port })
    await h.integration(SHOP_TRIGGER, { ...mail, sourceId })
    mailServer.refuse('no@x.test', 550)
    const before = (await listFailures()).length
    await emitAndDeliver(h.tenant, order(''), order('no@x.test'))
    const messages = (await listFailures()).map(
      ({ metadata }: { metadata: { outcome: { message: string } } }) => metadata.outcome.message,
    )
    expect(messages.length).toBe(before + 2)
    expect(messages.slice(0, 2).sort()).toEqual([
      'A mail can have 1 to 50 recipients, not 0.',
      'The mail server answered 550 at RCPT TO.',
    ])
  })

  test('a recipient whom the mail server refuses fails the run, and only that one gets the mail at a retry', async () => {
    const sourceId = await h.source('email', { host: '127.0.0.1', port: mailServer.port })
    await h.integration(SHOP_TRIGGER, { ...mail, sourceId })
    mailServer.refuse('later@x.test', 451, 1)
    await emitAndDeliver(h.tenant, order('taken@x.test, later@x.test'))
    expect([mailServer.to('taken@x.test').length, mailServer.to('later@x.test').length]).toEqual([1, 0])
    moveClock(now() + 3_600_000)
    await h.due()
    expect([mailServer.to('taken@x.test').length, mailServer.to('later@x.test').length]).toEqual([1, 1])
    mailServer.refuse('never@x.test', 550)
    await emitAndDeliver(h.tenant, order('taken@x.test, never@x.test'))
    expect((await listFailures())[0].metadata.outcome).toEqual({
      message: 'The mail server refused never@x.test (550) and accepted the mail for the others.',
      refused: ['never@x.test'],
    })
  })
})
