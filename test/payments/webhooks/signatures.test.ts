import { afterAll, afterEach, beforeAll, beforeEach, expect, spyOn, test } from 'bun:test'
import { config } from '../../../src/config'
import { moveClock, now } from '../../../src/core/clock'
import { logOutput } from '../../../src/core/log'
import type { ProviderKind } from '../../../src/payments/providers/provider'
import { PADDLE_SECRET, signPaddleWebhook, startPaddle } from '../../fakes/vendors/paddle'
import { startPaypal } from '../../fakes/vendors/paypal'
import { STRIPE_SECRET, signStripeWebhook, startStripe } from '../../fakes/vendors/stripe'
import type { SignedWebhook } from '../../fakes/vendors/vendor'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { createConnection, deliver } from './webhook-fixtures'

const [testTenant, otherTenant] = [await createTestTenant(), await createTestTenant()]
const [stripe, paypal, paddle] = [await startStripe(), await startPaypal(), await startPaddle()]
const sources: Record<ProviderKind, string> = { stripe: '', paypal: '', paddle: '' }
const foreign = 'whsec_of_another_tenant'
const webhooks = ['1JE4291016473214C', '2JE4291016473214D']

beforeAll(async () => {
  allowPrivateNetwork()
  for (const kind of kinds) {
    sources[kind] = await createConnection(testTenant, schemes[kind].connection)
    await createConnection(otherTenant, schemes[kind].foreignConnection)
  }
})
const lines: string[] = []
const logSpy = spyOn(logOutput, 'write')
beforeEach(() => void logSpy.mockImplementation((line) => void lines.push(line)))
afterEach(() => {
  moveClock()
})
afterAll(async () => {
  logSpy.mockRestore()
  denyPrivateNetwork()
  await Promise.all([stripe, paypal, paddle].map((vendor) => vendor.stop()))
})

const seconds = () => Math.floor(now() / 1000)
let events = 0
/** Events that are accepted without effect. The é distinguishes bytes from letters. */
const bodies: Record<ProviderKind, () => string> = {
  stripe: () =>
    JSON.stringify({ id: `evt_${events++}`, type: 'x', created: seconds(), data: { object: { name: 'é' } } }),
  paypal: () =>
    JSON.stringify({
      id: `WH-${events++}`,
      event_type: 'X',
      create_time: '2026-01-01T00:00:00Z',
      resource: { name: 'é' },
    }),
  paddle: () =>
    JSON.stringify({
      event_id: `evt_${events++}`,
      event_type: 'x',
      occurred_at: '2026-01-01T00:00:00Z',
      data: { name: 'é' },
    }),
}
const kinds = Object.keys(bodies) as ProviderKind[]

/** How a provider signs. Secrets of PayPal, which has none, are the ids of its webhooks. */
type SignatureScheme = {
  connection: { authentication: Record<string, string | string[]> }
  /** The connection of the other tenant, which has another secret. */
  foreignConnection: object
  /** Signs a body at a time in seconds. */
  sign(raw: string, secret: string | undefined, at: number): SignedWebhook | Promise<SignedWebhook>
  wrongSecrets: string[]
  /** Whether the connection has a secret that signs, which can be rotated. */
  hasWebhookSecret: boolean
  /** Whether we check the age of a signature. */
  expires: boolean
}
const withForeignSecret = (connection: object) => ({ ...connection, authentication: { webhookSecret: foreign } })
const wrongSecrets = [foreign, 'whsec_guessed', `${STRIPE_SECRET} `]

const schemes: Record<ProviderKind, SignatureScheme> = {
  stripe: {
    connection: stripe.connection(),
    foreignConnection: withForeignSecret(stripe.connection()),
    sign: (raw, secret = STRIPE_SECRET, at) => signStripeWebhook(raw, secret, at),
    ...{ wrongSecrets, hasWebhookSecret: true, expires: true },
  },
  paypal: {
    connection: paypal.connection(),
    foreignConnection: paypal.connection('OTHERWEBHOOK'),
    sign: (raw, webhook = webhooks[0]) => paypal.signEvent(undefined, webhook, raw),
    ...{ wrongSecrets: ['OTHERWEBHOOK', 'NOBODYSWEBHOOK'], hasWebhookSecret: false, expires: false },
  },
  paddle: {
    connection: paddle.connection(),
    foreignConnection: withForeignSecret(paddle.connection()),
    sign: (raw, secret = PADDLE_SECRET, at) => signPaddleWebhook(raw, secret, at),
    ...{ wrongSecrets, hasWebhookSecret: true, expires: true },
  },
}
const sign = async (kind: ProviderKind, raw: string, secret?: string, at = seconds()) =>
  schemes[kind].sign(raw, secret, at)

const IGNORED = { status: 'ignored' }
const INVALID = [401, 'INVALID_SIGNATURE']
const countEvents = async () =>
  (await testTenant.as('admin').get('/payments/events?count=true&limit=1')).headers.get('x-total-count')

test.each(kinds)(
  'a webhook signed by %s is accepted however the tenant is named, and an unknown tenant gets 404 TENANT_NOT_FOUND',
  async (kind) => {
    const targets: [string, Record<string, string>][] = [
      [testTenant.origin, {}],
      [`http://nowhere.test`, { tenant: testTenant.id }],
      [`http://nowhere.test`, {}],
      // The tenant in the query takes precedence over the host of another tenant.
      [otherTenant.origin, {}],
    ]
    for (const [n, [origin, headers]] of targets.entries()) {
      const sent = await sign(kind, bodies[kind]())
      const query = n < 2 ? '' : `?tenant=${testTenant.id}`
      const answer = await deliver({ origin }, kind, { ...sent, headers: { ...sent.headers, ...headers } }, query)
      expect([n, answer.status, answer.body]).toEqual([n, 200, IGNORED])
    }
    const nowhere = await deliver({ origin: 'http://nowhere.test' }, kind, sign(kind, bodies[kind]()))
    expect(statusAndCode(nowhere)).toEqual([404, 'TENANT_NOT_FOUND'])
    expect(statusAndCode(await deliver(testTenant, kind, sign(kind, bodies[kind]()), '?tenant=nobody'))).toEqual([
      404,
      'TENANT_NOT_FOUND',
    ])
  },
)

test.each(kinds)(
  'a webhook of %s whose bytes were changed gets 401 INVALID_SIGNATURE and is not stored',
  async (kind) => {
    const before = await countEvents()
    const raw = bodies[kind]()
    const changes = [
      raw.slice(0, -1),
      raw.slice(0, raw.length / 2),
      `${raw} `,
      JSON.stringify(JSON.parse(raw), null, 2),
      raw.replace('é', '\\u00e9'),
      raw.replace('é', 'e\u0301'),
      raw.replace('evt_', 'evt_9').replace('WH-', 'WH-9'),
      `\ufeff${raw}`,
      '{}',
      '',
    ]
    // PayPal compares the parsed JSON, not its bytes.
    const rejected = kind === 'paypal' ? changes.filter((text) => !text || differs(text, raw)) : changes
    for (const changed of rejected) {
      const { headers } = await sign(kind, raw)
      expect([changed, statusAndCode(await deliver(testTenant, kind, { raw: changed, headers }))]).toEqual([
        changed,
        INVALID,
      ])
    }
    const bytes = new TextEncoder().encode(raw)
    bytes[bytes.indexOf(0xc3)] = 0xff
    const { headers } = await sign(kind, raw)
    expect(statusAndCode(await deliver(testTenant, kind, { raw: bytes as never, headers }))).toEqual(INVALID)
    expect(await countEvents()).toBe(before)
  },
)

function differs(one: string, other: string) {
  try {
    return JSON.stringify(JSON.parse(one)) !== JSON.stringify(JSON.parse(other))
  } catch {
    return true
  }
}

test.each(kinds)(
  'a webhook of %s with a wrong secret, that of another tenant, or a broken signature gets 401 INVALID_SIGNATURE',
  async (kind) => {
    const raw = bodies[kind]()
    for (const secret of schemes[kind].wrongSecrets)
      expect(statusAndCode(await deliver(testTenant, kind, sign(kind, raw, secret)))).toEqual(INVALID)
    expect(statusAndCode(await deliver(otherTenant, kind, sign(kind, raw)))).toEqual(INVALID)
    expect(
      statusAndCode(await deliver(testTenant, kind, { raw, headers: { 'content-type': 'application/json' } })),
    ).toEqual(INVALID)
    const { headers } = await sign(kind, raw)
    for (const [name, value] of Object.entries(headers).filter(
      ([name]) => name !== 'content-type' && name !== 'paypal-auth-algo' && name !== 'paypal-cert-url',
    ))
      for (const broken of [
        `${value.slice(0, -1)}${value.endsWith('0') ? 1 : 0}`,
        'x',
        't=1,v1=',
        'ts=;h1=',
        `ts=${'9'.repeat(400)};h1=x`,
      ])
        expect(
          statusAndCode(await deliver(testTenant, kind, { raw, headers: { ...headers, [name]: broken } })),
        ).toEqual(INVALID)
  },
)

test.each(kinds.filter((kind) => schemes[kind].expires))(
  'a signature of %s is valid for 300 seconds before and after its timestamp',
  async (kind) => {
    for (const [age, status] of [
      [290, 200],
      [302, 401],
      [3600, 401],
      [-290, 200],
      [-302, 401],
    ] as const) {
      const answer = await deliver(testTenant, kind, sign(kind, bodies[kind](), undefined, seconds() - age))
      expect([age, answer.status]).toEqual([age, status])
    }
    const { raw, headers } = await sign(kind, bodies[kind]())
    moveClock(now() + 310_000)
    expect(statusAndCode(await deliver(testTenant, kind, { raw, headers }))).toEqual(INVALID)
    // A second, fresh timestamp makes nothing fresh that was signed with the first.
    const [name, header] = Object.entries(headers).find(([name]) => name.endsWith('-signature'))!
    const [time, separator] = kind === 'stripe' ? [`t=${seconds()}`, ','] : [`ts=${seconds()}`, ';']
    for (const value of [`${time}${separator}${header}`, `${header}${separator}${time}`])
      expect(statusAndCode(await deliver(testTenant, kind, { raw, headers: { ...headers, [name]: value } }))).toEqual(
        INVALID,
      )
  },
)

test.each(kinds.filter((kind) => schemes[kind].hasWebhookSecret))(
  'a connection of %s accepts two secrets during a rotation',
  async (kind) => {
    const [old, fresh] = [`${kind} the old one`, `${kind} the fresh one`]
    const set = (webhookSecret: string | string[]) =>
      testTenant.as('admin').put(`/integration-sources/${sources[kind]}`, { authentication: { webhookSecret } })
    const answers = async () => [
      (await deliver(testTenant, kind, sign(kind, bodies[kind](), old))).status,
      (await deliver(testTenant, kind, sign(kind, bodies[kind](), fresh))).status,
    ]
    await set(old)
    expect(await answers()).toEqual([200, 401])
    await set([fresh, old])
    expect(await answers()).toEqual([200, 200])
    // Paddle itself signs with both secrets during a rotation.
    if (kind === 'paddle') {
      const both = signPaddleWebhook(bodies.paddle(), ['whsec_unknown', fresh], seconds())
      expect((await deliver(testTenant, kind, both)).status).toBe(200)
    }
    await set(fresh)
    expect(await answers()).toEqual([401, 200])
    await set(schemes[kind].connection.authentication.webhookSecret!)
  },
)

test('a PayPal connection accepts webhooks of each of its webhook ids, and others get 401 INVALID_SIGNATURE', async () => {
  await testTenant
    .as('admin')
    .put(`/integration-sources/${sources.paypal}`, { authentication: { webhookId: webhooks } })
  for (const webhook of webhooks)
    expect((await deliver(testTenant, 'paypal', sign('paypal', bodies.paypal(), webhook))).body).toEqual(IGNORED)
  expect(statusAndCode(await deliver(testTenant, 'paypal', sign('paypal', bodies.paypal(), '3JE')))).toEqual(INVALID)
})

test('a PayPal body that injects its own verification request gets 401 INVALID_SIGNATURE without asking PayPal', async () => {
  const raw = '{},"webhook_id":"OTHERWEBHOOK","webhook_event":{}'
  const requestsBefore = paypal.seen.length
  const { headers } = await sign('paypal', '{}')
  expect(statusAndCode(await deliver(testTenant, 'paypal', { raw, headers }))).toEqual(INVALID)
  expect(paypal.seen.length).toBe(requestsBefore)
})

test('a PayPal webhook gets 502 PROVIDER_ERROR while PayPal cannot verify it, and is accepted when it is sent again', async () => {
  const sent = await sign('paypal', bodies.paypal())
  paypal.own.failWhen = () => ({ status: 500 })
  expect(statusAndCode(await deliver(testTenant, 'paypal', sent))).toEqual([502, 'PROVIDER_ERROR'])
  paypal.own.failWhen = () => undefined
  expect((await deliver(testTenant, 'paypal', sent)).body).toEqual(IGNORED)
})

test('a webhook of an unknown provider gets 400 UNSUPPORTED_PROVIDER, and an oversized one 413 BODY_TOO_LARGE', async () => {
  for (const kind of ['square', 'http', 'constructor', 'Stripe'])
    expect(statusAndCode(await deliver(testTenant, kind, sign('stripe', bodies.stripe())))).toEqual([
      400,
      'UNSUPPORTED_PROVIDER',
    ])
  const { headers } = await sign('stripe', '{}')
  const long = 'x'.repeat(config.ATOLL_BODY_LIMIT + 1)
  expect(statusAndCode(await deliver(testTenant, 'stripe', { raw: long, headers }))).toEqual([413, 'BODY_TOO_LARGE'])
})

test('a signed body that is not a valid event gets 400 INVALID_INPUT', async () => {
  for (const raw of [
    '[]',
    '1',
    'no JSON',
    '{"id":1,"type":"x","created":1}',
    '{"id":"e","type":"x"}',
    '{"id":"\\u0000","type":"x","created":1}',
    '{"id":"e","type":"invoice.paid","created":1,"data":{"object":{"lines":{"data":5}}}}',
  ])
    expect([raw, statusAndCode(await deliver(testTenant, 'stripe', sign('stripe', raw)))]).toEqual([
      raw,
      [400, 'INVALID_INPUT'],
    ])
})

test('failed webhooks are reported at a limited rate, and neither events nor logs contain a secret', async () => {
  const events = (await testTenant.as('admin').get('/events?source=payments&eventName=webhook-failed')).body
  expect(events.length).toBeGreaterThan(0)
  expect(events.length).toBeLessThan(20)
  expect(lines).not.toBeEmpty()
  const storedEvents = (await testTenant.as('admin').get('/payments/events')).body
  const output = [JSON.stringify([events, storedEvents]), ...lines].join('\n')
  // The ids of PayPal's webhooks are not secret.
  const secrets = kinds.flatMap((kind) => {
    const { webhookId: _, ...keys } = schemes[kind].connection.authentication
    return Object.values(keys).flat()
  })
  for (const secret of [foreign, ...secrets]) expect(output).not.toContain(secret)
})
