import { config } from '../../config'
import { now } from '../../core/clock'
import { sha256 } from '../../core/crypto'
import { decrypt, encrypt } from '../../core/encryption'
import { badRequest, isRejection, Problem } from '../../core/problem'
import { SERVER_RUN } from '../../core/process-id'
import { inheritRequestId } from '../../core/request-id'
import { Busy } from '../../storage/errors'
import type { Db } from '../../storage/port'
import { disableIdleTimeout, linkOriginalRequest } from '../../tenancy/client-connection'
import { deriveKey } from '../../tenancy/installation-keys'
import { resolveTenant, type Tenant } from '../../tenancy/tenants'
import { assertRightsStillHeld, checkAuthorization } from './authorization-check'
import { attachClaim, Claim, inProgress } from './claim'
import { HashedRequest } from './hashed-request'

const MAX_STORED_ANSWER_LENGTH = 16 << 20 // characters
const MAX_WAIT_MS = 30_000 // for the work of another server
const POLL_INTERVAL_MS = 100

type HandleRequest = (request: Request) => Promise<Response>

/** The sender of a request, as far as its Idempotency-Key and its answer depend on them. */
export type Caller = {
  /** Callers with the same name share their keys. */
  name: string
  /** The roles and labels that may have allowed the request; a stored answer needs all that the first request had. */
  rights: string[]
  isGuest: boolean
}
type IdentifyCaller = (request: Request, tenant: Tenant) => Promise<Caller>

type KeyRow = [
  attempt: string,
  fingerprint: string | null,
  answer: string | null,
  created: string | null,
  /** How long the work still counts as running (ms). */
  left: number,
]

/** A request with its tenant, its caller and the work that answers it. `name` is that of the key's row. */
type IdempotentCall = { request: Request; tenant: Tenant; caller: Caller; name: string; work: HandleRequest }

/**
 * Does the work of a request with this `Idempotency-Key` once. A repeated request of the same caller at the same path
 * within 24 hours gets the first answer.
 * @throws 400 for an invalid key, 422 for another body, 409 when there is no answer to replay
 */
export async function executeOnce(
  request: Request,
  key: string,
  work: HandleRequest,
  identifyCaller: IdentifyCaller,
): Promise<Response> {
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    badRequest({ path: 'Idempotency-Key', message: 'Idempotency-Key must have 1 to 255 visible ASCII characters.' })
  // Only the guard of a tenant's routes can tell later whether the caller may still see the answer.
  const tenant = isGuarded(request) ? await findTenant(request) : undefined
  if (!tenant) return work(request)
  const caller = await identifyCaller(request, tenant)
  const { pathname = '' } = URL.parse(request.url) ?? {}
  const name = sha256([caller.name, pathname.replace(/\/$/, ''), key].join('\n'))
  const queue = getQueue(tenant.db)
  for (let running = queue.get(name); running; running = queue.get(name)) {
    disableIdleTimeout(request)
    await running
  }
  const ownTurn = Promise.withResolvers<void>()
  queue.set(name, ownTurn.promise)
  try {
    return await executeOrReplay({ request, tenant, caller, name, work })
  } finally {
    queue.delete(name)
    ownTurn.resolve()
  }
}

/** Returns the tenant of a request, or undefined when there is none: then the route answers without storing anything. */
async function findTenant(request: Request): Promise<Tenant | undefined> {
  try {
    return await resolveTenant(request)
  } catch (error) {
    // A failure that passes must not let the route do its work without its key.
    if (!isRejection(error)) throw error
  }
}

/** Requests of this process with the same key wait for each other. */
const queuesByDb = new WeakMap<Db, Map<string, Promise<void>>>()
function getQueue(db: Db) {
  const queue = queuesByDb.get(db) ?? new Map<string, Promise<void>>()
  queuesByDb.set(db, queue)
  return queue
}

async function executeOrReplay(call: IdempotentCall) {
  const { request, tenant, name, work } = call
  const hashedRequest = new HashedRequest(request, await deriveKey(tenant.tenant, 'idempotency-fingerprint'))
  const existing = await findKey(tenant, name)
  if (existing) return (await checkAuthorization(hashedRequest.request, work)) ?? replay(call, existing, hashedRequest)
  const claim = new Claim(name, () => hashedRequest.fingerprint)
  attachClaim(hashedRequest.request, claim)
  try {
    const response = await work(hashedRequest.request)
    if (claim.lost) return await replay(call, await findKey(tenant, name), hashedRequest)
    return await storeAnswer(call, claim, response, hashedRequest)
  } finally {
    claim.stopRenewal()
  }
}

/** Returns whether the guard protects a route. Nothing is stored of others, such as those of the operator. */
const isGuarded = ({ url }: Request) => !!URL.parse(url)?.pathname.startsWith('/api/')

async function findKey({ db }: Tenant, name: string): Promise<KeyRow | undefined> {
  const select = `select attempt, fingerprint, answer, created, busy - (select now from clock)
    from idempotency_keys where name = ? and expires > ?`
  return (await db.query(select, [name, now()]))[0] as KeyRow | undefined
}

/**
 * Returns the stored answer as soon as there is one.
 * @throws 422 for another body, 409 when there is no answer, 503 BUSY when the first request was rejected
 */
async function replay(
  call: IdempotentCall,
  existing: KeyRow | undefined,
  hashedRequest: HashedRequest,
): Promise<Response> {
  const { tenant, caller, name } = call
  disableIdleTimeout(hashedRequest.request)
  const fingerprint = await hashedRequest.read()
  // The work of this request was reading the body when another server acquired the claim.
  if (fingerprint === undefined) throw inProgress()
  const until = performance.now() + MAX_WAIT_MS
  for (let row = existing; ; row = await findKey(tenant, name)) {
    // The first request was rejected after all, but the body of this one has been read already.
    if (!row) throw new Busy()
    const [by, firstFingerprint, answer, created, leaseLeft] = row
    if (firstFingerprint !== null && firstFingerprint !== fingerprint) {
      const message = 'This Idempotency-Key was already used for a different request. Use a new key for each request.'
      throw new Problem(422, 'IDEMPOTENCY_KEY_REUSED', message)
    }
    if (answer) return restoreAnswer(tenant, caller, name, answer)
    if (answer === '') throw noAnswer('its response was too large or a stream and was not stored')
    // A folder has one server, so nobody finishes what another run of it has left.
    if (leaseLeft <= 0 || !(config.ATOLL_DATABASE_URL || by.startsWith(SERVER_RUN))) return rebuildAnswer(call, created)
    if (performance.now() > until) throw inProgress()
    await Bun.sleep(POLL_INTERVAL_MS)
  }
}

/**
 * Returns the answer to a create that was interrupted after its commit: the resource as it is now and as the caller may
 * see it.
 * @throws 409 IDEMPOTENCY_NO_ANSWER
 */
async function rebuildAnswer({ request, work }: IdempotentCall, created: string | null): Promise<Response> {
  const response = created === null ? undefined : await work(toReadRequest(request, created))
  if (response?.status !== 200) throw noAnswer('it was interrupted before it could respond')
  const { headers } = response
  headers.set('idempotency-replayed', 'rebuilt')
  return new Response(response.body, { status: 201, headers })
}

/** Returns a GET of a path by the same caller, with the query of the first request. */
function toReadRequest(request: Request, path: string): Request {
  const { origin, search } = new URL(request.url)
  const changes: Record<string, unknown> = { method: 'GET', url: `${origin}${path}${search}`, body: null }
  const readRequest = new Proxy(request, {
    get: (target, key: keyof Request) => {
      if (Object.hasOwn(changes, key)) return changes[key]
      const value = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  linkOriginalRequest(readRequest, request)
  inheritRequestId(readRequest, request)
  return readRequest
}

const noAnswer = (why: string) =>
  new Problem(
    409,
    'IDEMPOTENCY_NO_ANSWER',
    `The first request with this Idempotency-Key was started, but ${why}. Check what it did, then use a new key.`,
  )

/** Statuses of rejections that depend on the moment and not on the request. */
const TRANSIENT_STATUSES = [401, 429]

/** Stores an answer for repeated requests, and returns it. */
async function storeAnswer(
  { tenant: { tenant, write }, caller }: IdempotentCall,
  claim: Claim,
  response: Response,
  hashedRequest: HashedRequest,
) {
  const { status, headers } = response
  const failed = status >= 500 || (status >= 400 && hashedRequest.fingerprint === undefined)
  // Guests could fill the disk with rejections.
  if (failed || TRANSIENT_STATUSES.includes(status) || (caller.isGuest && status >= 400)) {
    // The claim expires.
    if (claim.held) await write((tx) => (failed ? claim.abandon(tx) : claim.release(tx))).catch(() => {})
    return response
  }
  const isJson = /^application\/([\w.]+\+)?json\b/.test(headers.get('content-type') ?? '')
  const text = isJson || !response.body ? await response.text() : undefined
  const isStorable = text !== undefined && text.length <= MAX_STORED_ANSWER_LENGTH
  const answer = isStorable
    ? await encryptAnswer(tenant, claim.name, { status, headers: [...headers], text, rights: caller.rights })
    : ''
  // The work is done, so the answer is sent even if it cannot be stored.
  await write((tx) => claim.storeAnswer(tx, answer)).catch(() => {})
  return text === undefined ? response : new Response(text || null, { status, headers })
}

type StoredAnswer = { status: number; headers: [string, string][]; text: string; rights?: string[] }

/** Encrypts an answer, because it may hold a secret that is stored nowhere else. */
const encryptAnswer = async (tenant: string, name: string, answer: StoredAnswer) =>
  encrypt(await deriveKey(tenant, 'idempotency-answer'), JSON.stringify(answer), name).toString('base64')

async function restoreAnswer(
  { tenant }: Tenant,
  caller: Caller,
  name: string,
  encryptedAnswer: string,
): Promise<Response> {
  const key = await deriveKey(tenant, 'idempotency-answer')
  let answer: StoredAnswer
  try {
    answer = JSON.parse(decrypt(key, Buffer.from(encryptedAnswer, 'base64'), name))
  } catch {
    throw noAnswer('its response was encrypted with a key that is no longer available')
  }
  assertRightsStillHeld(caller.rights, answer.rights ?? [])
  const response = new Response(answer.text || null, { status: answer.status, headers: answer.headers })
  response.headers.set('idempotency-replayed', 'true')
  return response
}
