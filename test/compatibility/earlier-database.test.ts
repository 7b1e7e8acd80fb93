// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { Webhook } from 'standardwebhooks'
import { codeAt, decodeBase32, stepAt } from '../../src/accounts/totp/codes'
import { createAuthenticator } from '../accounts/passkeys/passkey-fixtures'
import { apiCaller, createTempFolder, type RunningAtoll, runAtoll, startAtoll } from '../fakes/cli'
import { startOpenai } from '../fakes/openai-server'
import { findPostgresBin } from '../fakes/postgres'
import { STRIPE_KEY, startStripe } from '../fakes/vendors/stripe'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { waitUntil } from '../wait-until'
import { nextCursor, OPERATOR_TOKEN, PASSWORD, PLUGIN_SECRET, things } from './earlier-database'
import {
  type EngineName,
  type FixtureDatabase,
  holdJobs,
  openFixtureDatabase,
  readIssued,
  replaceTexts,
  unpackFixture,
} from './fixture-database'

// The databases of every version, which database-generator.ts filled, are opened by the current code.
setDefaultTimeout(60_000)

const HOUR = 3_600_000
const entities = '/blueprints/things/entities'
/** Jobs of these kinds are never done: each run plans the next. */
const RECURRING_KINDS = ['payments-inbox', 'payments-time', 'schedule']

const folder = join(import.meta.dir, 'databases')
const fixtures = [...new Glob('*/*.tar.gz').scanSync(folder)].sort().map((path) => {
  const [version = '', engine = ''] = path.replace('.tar.gz', '').split('/')
  return { version, engine: engine as EngineName }
})
const isMissing = ({ engine }: { engine: EngineName }) => engine === 'postgres' && !findPostgresBin()
for (const { version } of fixtures.filter(isMissing))
  console.warn(`SKIPPED: the PostgreSQL database of ${version}, because PostgreSQL is not installed.`)

test('the version of package.json or an earlier one has a database for each engine', () => {
  const complete = fixtures.filter(({ version, engine }) => engine === 'postgres' && /^\d/.test(version))
  expect(complete.length).toBeGreaterThan(0)
  for (const { version } of complete) expect(fixtures).toContainEqual({ version, engine: 'sqlite' })
})

describe.each(fixtures.filter((fixture) => !isMissing(fixture)))(
  'a database of $version on $engine',
  ({ version, engine }) => {
    const issued = readIssued(join(folder, version, `${engine}.json`))
    const at = createTempFolder()
    const env: Record<string, string> = {
      ...{ ATOLL_ALLOW_PRIVATE_NETWORK: 'on', ATOLL_TEST_CLOCK: 'on', ATOLL_RATE_LIMITS: 'on' },
      ATOLL_OPERATOR_TOKEN: OPERATOR_TOKEN,
    }
    let database: FixtureDatabase

    let server: RunningAtoll
    let releaseJobs: (() => Promise<void>) | undefined
    let stripe: Awaited<ReturnType<typeof startStripe>>
    let openai: Awaited<ReturnType<typeof startOpenai>>
    const receiver = startWebhookReceiver()

    type Headers = Record<string, string>
    const send = (method: string, path: string, body?: unknown, headers: Headers = {}) =>
      apiCaller(server.url, { host: 'acme.test', ...headers })(method, `/api${path}`, body)
    const admin = { 'x-api-key': issued.apiToken }
    const get = async (path: string, headers: Headers = admin) => (await send('GET', path, undefined, headers)).body
    const signIn = (username: string, more: object = {}) =>
      send('POST', '/signin', { username, password: PASSWORD, authType: 'oauth', ...more })
    const bearer = ({ body }: Awaited<ReturnType<typeof signIn>>) => ({ authorization: `Bearer ${body.payload.token}` })
    const identifiersOf = (list: { identifier: string }[]) => list.map(({ identifier }) => identifier)

    const operate = (path: string, body: object) =>
      apiCaller(server.url, { authorization: `Bearer ${OPERATOR_TOKEN}` })('POST', `/operator/${path}`, body)
    const setClock = (ms: number) => operate('clock', { now: new Date(ms).toISOString() })

    beforeAll(async () => {
      await unpackFixture(join(folder, version, `${engine}.tar.gz`), at)
      database = await openFixtureDatabase(engine, at)
      Object.assign(env, database.env)
      ;[stripe, openai] = [await startStripe(), await startOpenai()]
      const known = JSON.parse(readFileSync(join(at, 'stripe.json'), 'utf8'))
      for (const [id, session] of known.sessions) stripe.sessions.set(id, session)
      for (const [id, subscription] of known.subscriptions) stripe.subscriptions.set(id, subscription)
      const columns = { connections: ['metadata'], plugins: ['subscribed_events'], jobs: ['payload'] }
      // The fakes listen at other ports than when the database was made.
      await replaceTexts(database, columns, [
        [issued.urls.stripe, stripe.url],
        [issued.urls.openai, openai.url],
        [issued.urls.receiver, receiver.url],
      ])
      releaseJobs = await holdJobs(database)
      server = await startAtoll({ at, env })
      await setClock(issued.issuedAt + 1_000)
    })
    afterAll(async () => {
      await server?.end('SIGTERM')
      await releaseJobs?.()
      await Promise.all([stripe?.stop(), openai?.stop(), receiver.stop(), database?.stop()])
    })

    test('atoll doctor finds nothing wrong with an earlier database', async () => {
      const { code, out } = await runAtoll('doctor', { at, env })
      expect([code, out]).toEqual([0, expect.stringContaining('acme')])
    })

    test('an administrator reads what the earlier version answered', async () => {
      // Ports differ, and so does how much room the tables of a version take.
      const withoutVarying = (body: unknown) =>
        JSON.parse(
          JSON.stringify(body)
            .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1')
            .replace(/"storage":\d+/, '"storage":1'),
        )
      for (const [path, body] of Object.entries(issued.answers ?? {}))
        expect([path, withoutVarying(await get(path.replace('/api', '')))]).toMatchObject([path, withoutVarying(body)])
    })

    describe('credentials that an earlier version issued', () => {
      test('a password, an API token, an access token and a cookie are accepted', async () => {
        expect((await signIn('bea')).status).toBe(200)
        expect((await get('/me')).username).toBe('ada')
        expect((await get('/me', { authorization: issued.accessToken })).username).toBe('ada')
        expect((await get('/me', { cookie: issued.cookies.join('; ') })).username).toBe('bea')
      })

      test('a refresh token gets its successor', async () => {
        const refreshed = await send('POST', '/token/refresh', { refreshToken: issued.refreshToken })
        expect([refreshed.status, (await get('/me', bearer(refreshed))).username]).toEqual([200, 'dora'])
      })

      test('a second factor takes a code of its secret, and a recovery code once', async () => {
        const challenge = async () => (await signIn('carl')).body.details.challenge
        const code = codeAt(decodeBase32(issued.totpSecret), stepAt(issued.issuedAt + 1_000) + 1)
        expect((await send('POST', '/signin', { challenge: await challenge(), code, authType: 'oauth' })).status).toBe(
          200,
        )
        const recovery = async () =>
          (
            await send('POST', '/signin', {
              challenge: await challenge(),
              code: issued.recoveryCode,
              authType: 'oauth',
            })
          ).status
        expect([await recovery(), await recovery()]).toEqual([200, 401])
      })

      test('a passkey signs its user in', async () => {
        const { id, userHandle, key } = issued.passkey
        const privateKey = createPrivateKey({ key, format: 'jwk' })
        const keyPair = { privateKey, publicKey: createPublicKey(privateKey) }
        const device = createAuthenticator('http://acme.test', keyPair, Buffer.from(id, 'base64url'))
        device.own.userHandle = userHandle
        const options = (await send('POST', '/signin/passkey/options', {})).body
        const body = { credential: device.get(options), authType: 'oauth' }
        const answer = await send('POST', '/signin/passkey', body, { origin: 'http://acme.test' })
        expect([answer.status, (await get('/me', bearer(answer))).username]).toEqual([200, 'bea'])
      })

      test('a mailed code verifies an address, and another resets a password', async () => {
        expect((await send('POST', '/email/verify', { token: issued.verificationToken })).status).toBe(200)
        const reset = { token: issued.passwordResetToken, password: 'another horse battery' }
        expect((await send('POST', '/password/reset', reset)).status).toBe(200)
        expect((await signIn('hugo', { password: reset.password })).status).toBe(200)
      })

      test('a device cookie makes its browser a known device while guesses lock the account for others', async () => {
        const guess = { username: 'bea', password: 'wrong word', authType: 'oauth' }
        const statuses = new Set<number>()
        for (let attempt = 0; attempt < 30 && !statuses.has(429); attempt++)
          statuses.add((await send('POST', '/signin', guess)).status)
        expect([...statuses]).toEqual([401, 429])
        const cookie = issued.cookies.find((one: string) => one.includes('_device='))!
        const known = await send('POST', '/signin', { ...guess, password: PASSWORD }, { cookie })
        expect(known.status).toBe(200)
      })
    })

    describe('entities that an earlier version stored', () => {
      const stored = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'imported', 'once', 'live']

      test('an entity of each field type is returned as it was written', async () => {
        for (const thing of things) expect(await get(`${entities}/${thing.identifier}`)).toMatchObject(thing)
      })

      test('filters and sort orders find them by the stored index', async () => {
        const list = async (query: string) => identifiersOf(await get(`${entities}?${query}`))
        expect(await list('$sort=price&price[$lt]=1e30')).toEqual(['a', 'g', 'b', 'f', 'c', 'd'])
        expect(await list('$sort=cost&cost[$gt]=-1')).toEqual(['b', 'c', 'a', 'g'])
        expect(await list('cost=10.5')).toEqual(['a'])
        expect(await list('stock=9007199254740991')).toEqual(['e'])
        expect(await list('day[$lte]=2024-02-29&$sort=day')).toEqual(['g', 'a'])
        expect(await list('moment=2024-03-01T11:00:00%2B01:00')).toEqual(['b'])
        expect(await list('mail=Ada@Acme.test')).toEqual(['c'])
        expect(await list(`title=${'x'.repeat(300)}`)).toEqual(['e'])
        expect(await list(`title=${encodeURIComponent('e\u0301')}`)).toEqual(['g'])
        expect(await list('tags=a')).toEqual(['e'])
        expect(await list('parent=a')).toEqual(['f'])
        expect((await list('$q=harbour')).sort()).toEqual(['a', 'b', 'd', 'f'])
        expect(await list('$sort=created')).toEqual(stored)
        const refused = await send('POST', entities, { code: 'E1' }, admin)
        expect([refused.status, refused.body.code]).toEqual([409, 'UNIQUE_VIOLATION'])
      })

      test.each(Object.entries<string>(issued.cursors))(
        'a cursor continues the list ?%s where it broke off',
        async (query, $after) => {
          const limit = Number(/limit=(\d+)/.exec(query)![1])
          // What fits nearly equally may change places when the index of words becomes ready.
          if (query.includes('$q'))
            await waitUntil(
              () => get(`${entities}?${query}&$explain=true`),
              (plan) =>
                plan.indexes.some(
                  (one: { field: string; state: string }) => one.field === '$q' && one.state === 'ready',
                ),
            )
          const list = identifiersOf(await get(`${entities}?${query.replace(/\$limit=\d+/, '$limit=100')}`))
          const all = list.filter((identifier) => identifier !== 'live') // it was created after the cursors
          const next = identifiersOf(await get(`${entities}?${query}&$after=${$after}`))
          expect(next.length).toBeGreaterThan(0)
          expect(next).toEqual(all.slice(limit, 2 * limit))
        },
      )

      test('a cursor of the events continues after the row where it broke off', async () => {
        const query = '/events?limit=5'
        const first = await send('GET', `${query}&$after=${issued.eventsCursor}`, undefined, admin)
        const older = (first.body as { created: string }[]).map(({ created }) => created)
        expect([older.length, older.toSorted().reverse()]).toEqual([5, older])
        expect(nextCursor(first)).not.toBe(issued.eventsCursor)
      })

      test('an ETag is still that of the entity', async () => {
        const answer = await send('GET', `${entities}/live`, undefined, { ...admin, 'if-none-match': issued.etag })
        expect(answer.status).toBe(304)
      })

      test('a repeated request with an idempotency key gets the first answer, and another body is refused', async () => {
        const key = { authorization: issued.accessToken, 'idempotency-key': 'order-1' }
        const again = await send('POST', entities, { identifier: 'once', title: 'Once' }, key)
        expect([again.status, again.body]).toEqual([201, issued.once])
        expect((await send('POST', entities, { identifier: 'once', title: 'Twice' }, key)).status).toBe(422)
      })

      test('live changes resume after an event id', async () => {
        const headers = { host: 'acme.test', ...admin, 'last-event-id': issued.eventId }
        const stream = await fetch(`${server.url}/api${entities}/changes`, { headers })
        let received = ''
        for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) {
          received += chunk
          if (/^event: [\s\S]*\n\n/m.test(received)) break
        }
        expect(received).toMatch(/event: update\nid: .*\ndata: .*"Lively"/)
        expect(received).not.toContain('event: reset')
      })
    })

    describe('secrets that an earlier version encrypted', () => {
      test('encrypted data of a user and of a workspace is decrypted', async () => {
        const bank = await get(`/users/${issued.users.bea}/encrypted`, { ...admin, 'x-encrypted-id': 'bank' })
        expect(bank).toEqual({ iban: 'GB00 INVENTED' })
        expect(await get(`/workspaces/${issued.workspace}/encrypted`)).toEqual({ pin: '0000' })
      })

      test('a lambda gets its secret, and a connection sends its header', async () => {
        const told = await send('POST', `/webhooks/${issued.lambdaHook}`, {}, admin)
        expect(told.body).toEqual({ body: { secret: 'invented-lambda-secret', method: 'POST' } })
        await send('POST', `/webhooks/${issued.shopHook}`, { n: 1 }, admin)
        expect(receiver.deliveries.at(-1)).toMatchObject({
          path: '/orders',
          headers: { 'x-shop-key': 'invented-shop-key' },
        })
      })

      test('an agent goes on with its thread, by its stored token and knowledge', async () => {
        const body = { messages: [{ role: 'user', content: 'What colour are quinces?' }] }
        const answer = await send('POST', `/ai/${issued.agent}/chat-completion/${issued.thread}`, body, {
          cookie: issued.cookies[0]!,
        })
        expect(answer.status).toBe(200)
        const request = openai.requests.findLast(({ path }) => path.endsWith('/chat/completions'))!
        expect(request.headers.authorization).toBe('Bearer sk-invented')
        expect(JSON.stringify(request.body.messages)).toContain('Good day')
        expect(JSON.stringify(request.body.messages)).toContain('Quinces are yellow.')
      })
    })

    test('a queued job of each kind is done', async () => {
      const kinds = async () =>
        (await database.query<{ kind: string }>('select distinct kind from jobs order by kind')).map(({ kind }) => kind)
      expect(await kinds()).toEqual(issued.jobKinds)
      expect(issued.jobKinds.length).toBeGreaterThan(10)
      const nextRetry = async () =>
        Number(
          (
            await database.query<{ at: number }>("select next_at as at from provider_events where status = 'parked'")
          )[0]!.at,
        )
      const parkedUntil = await nextRetry()
      await setClock(issued.issuedAt + 2 * HOUR)
      await releaseJobs!()
      // The server may be running them already, and some queue others.
      await operate('jobs/run', { tenant: 'acme' })
      const left = await waitUntil(kinds, ({ length }) => length === RECURRING_KINDS.length)
      expect([left, await database.query("select * from jobs where state = 'dead'")]).toEqual([RECURRING_KINDS, []])
      const templates = (await get('/mails?limit=100')).map(
        ({ to, template }: Record<string, string>) => `${template} ${to}`,
      )
      expect(templates).toContain('verification fay@acme.test') // mail
      expect(templates).toContain('passwordReset carl@acme.test') // forgotten-password
      const hook = receiver.deliveries.find(({ path }) => path === '/hook')!
      const signedAt = new Date(Number(hook.headers['webhook-timestamp']) * 1_000)
      expect(hook.headers['webhook-signature']).toBe(new Webhook(PLUGIN_SECRET).sign(hook.id, signedAt, hook.text)) // delivery
      const orders = receiver.deliveries.filter(({ path }) => path === '/orders')
      expect(orders.map(({ text }) => text).join()).toContain('placed') // integration
      expect(await database.query('select * from threads where _id = ?', [issued.leftThread])).toEqual([]) // threads-of-removed
      expect(await waitUntil(nextRetry, (at) => at > parkedUntil)).toBeGreaterThan(parkedUntil + HOUR) // payments-inbox
      const asked = stripe.seen.map(({ method, path }) => `${method} ${path.replace(/_test_.*?(\/|$)|_\d.*/, '$1')}`)
      expect(asked).toContain('DELETE /v1/subscriptions/sub') // payments-cancel
      expect(asked).toContain('POST /v1/checkout/sessions/cs/expire') // payments-call-off
      expect(asked).toContain('POST /v1/subscriptions/sub') // payments-reprice
      expect(asked).toContain('GET /v1/subscriptions/sub') // payments-time
      expect(stripe.seen.every(({ headers }) => headers.authorization === `Bearer ${STRIPE_KEY}`)).toBe(true)

      const [next] = await database.query<{ due: number }>("select due from jobs where kind = 'schedule'")
      const runs = async () => (await get(`/lambdas/${issued.lambda}/logs?limit=100`)).length
      const before = await runs()
      await setClock(Number(next!.due) + 1_000)
      await operate('jobs/run', { tenant: 'acme' })
      expect(await waitUntil(runs, (count) => count > before)).toBe(before + 1) // schedule
    })
  },
)
