import { config } from '../../config'
import { now } from '../../core/clock'
import { decrypted, encrypted } from '../../core/encryption'
import { invalid, Problem } from '../../core/problem'
import { sharesName } from '../../core/request-name'
import { hashed } from '../../core/secret'
import { Busy } from '../../storage/errors'
import type { Db } from '../../storage/port'
import { networkOf, standsFor, waitsLong } from '../../tenancy/caller'
import { keyOf } from '../../tenancy/secrets'
import { type Tenant, tenantOf } from '../../tenancy/tenants'
import { type Actor, bearerOf, byApiToken, byBearer, byCookie } from '../actors'
import { cookieOf } from '../cookies'
import { guiseOf } from '../impersonation'
import { Claim, claimFor, inProgress, PROCESS } from './claim'
import { Heard } from './heard'
import { assertStillHolds, refusalOf, rightsOf } from './verdict'

const KEPT = 16 << 20 // characters of an answer
const PATIENCE = 30_000 // ms; so long another server's work is waited for
const LOOK = 100 // ms

type Work = (request: Request) => Promise<Response>
type Row = [
  attempt: string,
  fingerprint: string | null,
  answer: string | null,
  created: string | null,
  /** How long the work still counts as being done (ms). */
  left: number,
]

/** A request with the caller and the tenant that it names, and how it is worked on. */
type Asked = { request: Request; tenant: Tenant; actor: Actor | undefined; name: string; work: Work }

/**
 * Does the work of a request with this `Idempotency-Key` once: who asks again within 24 hours, as the same caller at the
 * same path, gets the first answer. @throws 400 for what is no key, 422 for another body, 409 when there is no answer to give
 */
export async function once(request: Request, key: string, work: Work): Promise<Response> {
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    invalid({ path: 'Idempotency-Key', message: 'An Idempotency-Key has 1 to 255 visible characters of ASCII.' })
  const tenant = await Promise.resolve(tenantOf(request)).catch(() => undefined)
  // Who asks no tenant is refused anyway.
  if (!tenant) return work(request)
  const actor = await actorBehind(request, tenant).catch(() => undefined)
  const { pathname = '' } = URL.parse(request.url) ?? {}
  const name = hashed([callerName(request, tenant, actor), pathname.replace(/\/$/, ''), key].join('\n'))
  const line = lineOf(tenant.db)
  for (let first = line.get(name); first; first = line.get(name)) {
    waitsLong(request)
    await first
  }
  const turn = Promise.withResolvers<void>()
  line.set(name, turn.promise)
  try {
    return await attempt({ request, tenant, actor, name, work })
  } finally {
    line.delete(name)
    turn.resolve()
  }
}

/** Those of this process with the same key wait for each other. */
const lines = new WeakMap<Db, Map<string, Promise<void>>>()
function lineOf(db: Db) {
  const known = lines.get(db) ?? new Map<string, Promise<void>>()
  lines.set(db, known)
  return known
}

async function attempt(asked: Asked) {
  const { request, tenant, name, work } = asked
  const heard = new Heard(request, await keyOf(tenant.tenant, 'idempotency-fingerprint'))
  const known = await find(tenant, name)
  if (known) return (isGuarded(request) && (await refusalOf(heard.request, work))) || repeat(asked, known, heard)
  const claim = new Claim(name, () => heard.fingerprint)
  claimFor(heard.request, claim)
  try {
    const response = await work(heard.request)
    if (claim.lost) return await repeat(asked, await find(tenant, name), heard)
    return await keep(asked, claim, response, heard)
  } finally {
    claim.end()
  }
}

/** Whether the guard stands before a route; others judge their callers by themselves. */
const isGuarded = ({ url }: Request) => !!URL.parse(url)?.pathname.startsWith('/api/')

async function find({ db }: Tenant, name: string): Promise<Row | undefined> {
  const select = `select attempt, fingerprint, answer, created, busy - (select now from clock)
    from idempotency_keys where name = ? and expires > ?`
  return (await db.ask(select, [name, now()]))[0] as Row | undefined
}

/** The answer that was given, as soon as it is there. */
async function repeat(asked: Asked, known: Row | undefined, heard: Heard): Promise<Response> {
  const { tenant, actor, name } = asked
  waitsLong(heard.request)
  const fingerprint = await heard.read()
  const until = performance.now() + PATIENCE
  for (let row = known; ; row = await find(tenant, name)) {
    // The first was refused after all; here, the body has been read already.
    if (!row) throw new Busy()
    const [by, first, answer, created, left] = row
    if (first !== null && first !== fingerprint) {
      const message = 'This Idempotency-Key was used for another request. Take a new key for each thing to be done.'
      throw new Problem(422, 'IDEMPOTENCY_KEY_REUSED', message)
    }
    if (answer) return unsealed(tenant, actor, name, answer)
    if (answer === '') throw gone('the answer was too large, or a stream, and is not kept')
    // A folder has one server: what another process did not finish nobody does.
    if (left <= 0 || !(config.ATOLL_DATABASE_URL || by.startsWith(PROCESS))) return rebuilt(asked, created)
    if (performance.now() > until) throw inProgress()
    await Bun.sleep(LOOK)
  }
}

/** The answer to a create that was interrupted after its commit: what was made, as it is now and as the caller may see it. */
async function rebuilt({ request, work }: Asked, created: string | null): Promise<Response> {
  const response = created === null ? undefined : await work(readOf(request, created))
  if (response?.status !== 200) throw gone('it was interrupted before it was answered')
  const { headers } = response
  headers.set('idempotency-replayed', 'rebuilt')
  return new Response(response.body, { status: 201, headers })
}

/** The same caller's GET of a path, with the query of the first request. */
function readOf(request: Request, path: string): Request {
  const { origin, search } = new URL(request.url)
  const changes: Record<string, unknown> = { method: 'GET', url: `${origin}${path}${search}`, body: null }
  const read = new Proxy(request, {
    get: (target, key: keyof Request) => {
      if (Object.hasOwn(changes, key)) return changes[key]
      const value = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  standsFor(read, request)
  sharesName(read, request)
  return read
}

const gone = (why: string) =>
  new Problem(
    409,
    'IDEMPOTENCY_NO_ANSWER',
    `The first request with this key has begun its work, but ${why}. See what it did, then use a new key.`,
  )

/** Refusals that say nothing about the request but only about now. */
const PASSING = [401, 429]

/** Keeps an answer for those who ask again, and gives it. */
async function keep({ tenant: { tenant, write }, actor }: Asked, claim: Claim, response: Response, heard: Heard) {
  const { status, headers } = response
  const failed = status >= 500 || (status >= 400 && heard.fingerprint === undefined)
  // A guest could fill the disk with refusals.
  if (failed || PASSING.includes(status) || (!actor && status >= 400)) {
    if (claim.held) await write((tx) => (failed ? claim.giveUp(tx) : claim.release(tx))).catch(() => {})
    return response
  }
  const plain = /^application\/([\w.]+\+)?json\b/.test(headers.get('content-type') ?? '')
  const text = plain || !response.body ? await response.text() : undefined
  const small = text !== undefined && text.length <= KEPT
  const answer = small
    ? await sealed(tenant, claim.name, { status, headers: [...headers], text, rights: rightsOf(actor) })
    : ''
  // The work is done: that it can't be told again is no reason not to tell it now.
  await write((tx) => claim.settle(tx, answer)).catch(() => {})
  return text === undefined ? response : new Response(text || null, { status, headers })
}

/**
 * Whose key it is. Who acts elsewhere, or may do less, is somebody else. Of those who are nobody here, some come with a
 * credential of another kind, such as a refresh token: neighbours in one network have each their own.
 */
const callerName = (request: Request, tenant: Tenant, actor: Actor | undefined) => {
  const guise = guiseOf(request)
  const as = guise ? ` ${actor?.privileged} as ${JSON.stringify(guise)}` : ''
  if (actor) {
    const kind = actor.session ? 'user' : actor.token?.bound ? 'bound' : 'program'
    return `${kind} ${actor.user} ${actor.workspace?._id} ${actor.scopes.join()}${as}`
  }
  const { headers } = request
  const credentials = [headers.get('x-api-key'), headers.get('authorization'), cookieOf(request, tenant)]
  return `guest ${networkOf(request)} ${JSON.stringify(credentials)}`
}

/** As the guard sees it, but nothing is renewed and nobody refused: that comes with the work. */
async function actorBehind(request: Request, tenant: Tenant): Promise<Actor | undefined> {
  const key = request.headers.get('x-api-key')
  if (key) return byApiToken(tenant, key)
  if (request.headers.get('authorization')) return byBearer(tenant, bearerOf(request))
  const cookie = cookieOf(request, tenant)
  return cookie ? (await byCookie(tenant, cookie))?.actor : undefined
}

type Answered = { status: number; headers: [string, string][]; text: string; rights?: string[] }

/** An answer may hold a secret that is kept nowhere else. */
const sealed = async (tenant: string, name: string, answer: Answered) =>
  encrypted(await keyOf(tenant, 'idempotency-answer'), JSON.stringify(answer), name).toString('base64')

async function unsealed({ tenant }: Tenant, actor: Actor | undefined, name: string, kept: string): Promise<Response> {
  const key = await keyOf(tenant, 'idempotency-answer')
  let answer: Answered
  try {
    answer = JSON.parse(decrypted(key, Buffer.from(kept, 'base64'), name))
  } catch {
    throw gone('its answer was kept under another key of this installation')
  }
  assertStillHolds(actor, answer.rights ?? [])
  const response = new Response(answer.text || null, { status: answer.status, headers: answer.headers })
  response.headers.set('idempotency-replayed', 'true')
  return response
}
