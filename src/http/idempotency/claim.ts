import { now } from '../../core/clock'
import { Problem } from '../../core/problem'
import { PROCESS_ID } from '../../core/process-id'
import type { Store, Tx } from '../../storage/port'
import { wrapWrite } from '../../storage/write-wrapper'

const KEY_RETENTION_MS = 24 * 3_600_000 // ms
const CLAIM_LEASE_MS = 5_000 // ms; a process that renews no claim of its own for so long counts as dead

export const inProgress = () =>
  new Problem(
    409,
    'IDEMPOTENCY_IN_PROGRESS',
    'The first request with this Idempotency-Key is still in progress. Retry later.',
    { headers: { 'retry-after': '5' } },
  )

/**
 * One request's right to be the only one with its key. It is taken by the first write of the work and in its transaction:
 * either both are there, or neither is.
 */
export class Claim {
  readonly attempt = `${PROCESS_ID} ${crypto.randomUUID()}`
  /** Whether it was committed. */
  held = false
  /** Whether somebody else came first. */
  lost = false
  #renewal?: Timer

  constructor(
    readonly name: string,
    private fingerprint: () => string | undefined,
  ) {}

  /** The same `write`, which also takes the claim; it is renewed until `end`. */
  wrapWrite(write: Store['write']): Store['write'] {
    return wrapWrite(write, async (tx, work) => {
      if (!this.held) await this.#acquire(tx)
      claimsByTx.set(tx, this)
      tx.afterCommit(() => {
        this.held = true
        // A renewal that fails is made up for by the next.
        this.#renewal ??= setInterval(() => write((tx) => this.#renew(tx)).catch(() => {}), CLAIM_LEASE_MS / 3).unref()
      })
      return work()
    })
  }

  /** The work has ended, well or not. */
  stopRenewal() {
    clearInterval(this.#renewal)
  }

  /** Where what was made by the work can be read. */
  async recordCreatedPath(tx: Tx, path: string) {
    await tx.query('update idempotency_keys set created = ? where name = ? and attempt = ?', [
      path,
      this.name,
      this.attempt,
    ])
  }

  /** Keeps the answer, and removes some whose time is over. */
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

  /** Nothing was done after all. */
  async release(tx: Tx) {
    await tx.query('delete from idempotency_keys where name = ? and attempt = ?', [this.name, this.attempt])
  }

  /** Something was done, but nobody knows how much. */
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

  /** By the clock of the database, for those of several servers need not agree. */
  async #renew(tx: Tx) {
    await tx.query(
      'update idempotency_keys set busy = (select now from clock) + ? where name = ? and attempt = ? and busy > 0',
      [CLAIM_LEASE_MS, this.name, this.attempt],
    )
  }
}

const claimsByTx = new WeakMap<Tx, Claim>()

/**
 * Notes where what is created in this transaction can be read, by a path such as `/api/plans/…`: after a crash the answer to
 * the request is made again from that. For answers that are the same as that of a GET there, but for the status 201.
 */
export const recordCreatedPath = async (tx: Tx, path: string) => claimsByTx.get(tx)?.recordCreatedPath(tx, path)

const claimsByRequest = new WeakMap<Request, Claim>()

/** Lets the writes of a request's work take this claim. */
export const attachClaim = (request: Request, claim: Claim) => void claimsByRequest.set(request, claim)

/** The tenant for a request: where it has an `Idempotency-Key`, its writes take the claim. */
export function withClaim<T extends Store>(request: Request, tenant: T): T {
  const claim = claimsByRequest.get(request)
  return claim ? { ...tenant, write: claim.wrapWrite(tenant.write) } : tenant
}
