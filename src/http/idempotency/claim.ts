import { HOUR_MS, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import { PROCESS_ID } from '../../core/process-id'
import type { Store, Tx } from '../../storage/port'
import { wrapWrite } from '../../storage/write-wrapper'

const KEY_RETENTION_MS = 24 * HOUR_MS
const CLAIM_LEASE_MS = 5_000 // ms; a process that does not renew its claim for this long counts as dead

/** Returns the error for a request that repeats one which is not answered yet. */
export const inProgress = () =>
  new Problem(
    409,
    'IDEMPOTENCY_IN_PROGRESS',
    'The first request with this Idempotency-Key is still in progress. Retry later.',
    { headers: { 'retry-after': '5' } },
  )

/**
 * The right of one request to be the only one with its key. The first write of its work acquires the claim in the same
 * transaction: either both are committed, or neither is.
 */
export class Claim {
  readonly attempt = `${PROCESS_ID} ${crypto.randomUUID()}`
  /** Whether the claim was committed. */
  held = false
  /** Whether another request has the claim. */
  lost = false
  #renewal?: Timer
  #hasEnded = false

  constructor(
    readonly name: string,
    private fingerprint: () => string | undefined,
  ) {}

  /** Returns a `write` that also acquires the claim, which is then renewed until `stopRenewal`. */
  wrapWrite(write: Store['write']): Store['write'] {
    return wrapWrite(write, async (tx, work) => {
      if (!this.held) await this.#acquire(tx)
      claimsByTx.set(tx, this)
      tx.afterCommit(() => {
        this.held = true
        // A streamed response may write for the first time after its beginning was stored as the answer.
        if (this.#hasEnded) return
        // The next renewal makes up for a failed one.
        this.#renewal ??= setInterval(() => write((tx) => this.#renew(tx)).catch(() => {}), CLAIM_LEASE_MS / 3).unref()
      })
      return work()
    })
  }

  /** Is called when the work has ended, successfully or not. */
  stopRenewal() {
    this.#hasEnded = true
    clearInterval(this.#renewal)
  }

  /** Records where the created resource can be read. */
  async recordCreatedPath(tx: Tx, path: string) {
    await tx.query('update idempotency_keys set created = ? where name = ? and attempt = ?', [
      path,
      this.name,
      this.attempt,
    ])
  }

  /** Stores the answer, and removes some expired keys. */
  async storeAnswer(tx: Tx, answer: string) {
    const expiredKeys = 'select name from idempotency_keys where expires <= ? order by expires limit 20'
    await tx.query(`delete from idempotency_keys where name in (${expiredKeys})`, [now()])
    await tx.query(
      `insert into idempotency_keys (name, attempt, fingerprint, answer, busy, expires) values (?, ?, ?, ?, ?, ?)
       on conflict (name) do update set fingerprint = excluded.fingerprint, answer = excluded.answer
       where idempotency_keys.attempt = excluded.attempt`,
      [this.name, this.attempt, this.fingerprint() ?? null, answer, 0, now() + KEY_RETENTION_MS],
    )
  }

  /** Deletes the claim when nothing was done after all. */
  async release(tx: Tx) {
    await tx.query('delete from idempotency_keys where name = ? and attempt = ?', [this.name, this.attempt])
  }

  /** Ends the claim without an answer when it is unknown how much was done. */
  async abandon(tx: Tx) {
    await tx.query('update idempotency_keys set busy = 0 where name = ? and attempt = ?', [this.name, this.attempt])
  }

  async #acquire(tx: Tx) {
    const time = now()
    await tx.query('delete from idempotency_keys where name = ? and expires <= ?', [this.name, time])
    await tx.query(
      `insert into idempotency_keys (name, attempt, fingerprint, busy, expires)
       values (?, ?, ?, (select now from clock) + ?, ?) on conflict (name) do nothing`,
      [this.name, this.attempt, this.fingerprint() ?? null, CLAIM_LEASE_MS, time + KEY_RETENTION_MS],
    )
    const [row] = await tx.query('select attempt from idempotency_keys where name = ?', [this.name])
    this.lost = row?.[0] !== this.attempt
    if (this.lost) throw inProgress()
  }

  /** Uses the clock of the database, because the clocks of several servers may differ. */
  async #renew(tx: Tx) {
    await tx.query(
      'update idempotency_keys set busy = (select now from clock) + ? where name = ? and attempt = ? and busy > 0',
      [CLAIM_LEASE_MS, this.name, this.attempt],
    )
  }
}

const claimsByTx = new WeakMap<Tx, Claim>()

/**
 * Records where a resource that is created in this transaction can be read, by a path such as `/api/plans/…`. After a
 * crash the answer to the request is rebuilt from that. It is for answers that equal that of a GET there, except for
 * the status 201.
 */
export const recordCreatedPath = async (tx: Tx, path: string) => claimsByTx.get(tx)?.recordCreatedPath(tx, path)

const claimsByRequest = new WeakMap<Request, Claim>()

/** Makes the writes of a request acquire this claim. */
export const attachClaim = (request: Request, claim: Claim) => void claimsByRequest.set(request, claim)

/**
 * Returns the tenant for a request. If the request has an `Idempotency-Key`, writes of the tenant acquire its claim.
 */
export function withClaim<T extends Store>(request: Request, tenant: T): T {
  const claim = claimsByRequest.get(request)
  return claim ? { ...tenant, write: claim.wrapWrite(tenant.write) } : tenant
}
