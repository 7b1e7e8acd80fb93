import { now } from '../../core/clock'
import { Problem } from '../../core/problem'
import type { Store, Tx } from '../../storage/port'

const KEPT = 24 * 3_600_000 // ms
const BUSY = 60_000 // ms; without a write for so long, work counts as interrupted

/** This process, among those that share a database. */
export const PROCESS = crypto.randomUUID()

export const inProgress = () =>
  new Problem(409, 'IDEMPOTENCY_IN_PROGRESS', 'The first request with this key is still under way. Ask again later.', {
    headers: { 'retry-after': '5' },
  })

/**
 * One request's right to be the only one with its key. It is taken by the first write of the work and in its transaction:
 * either both are there, or neither is.
 */
export class Claim {
  readonly attempt = `${PROCESS} ${crypto.randomUUID()}`
  /** Whether it was committed. */
  held = false
  /** Whether somebody else came first. */
  lost = false
  #renewed = 0

  constructor(
    readonly name: string,
    private fingerprint: () => string | undefined,
  ) {}

  /** The same `write`, which also takes or renews the claim. */
  writing(write: Store['write']): Store['write'] {
    return async (work) => {
      const result = await write(async (tx) => {
        if (!this.held) await this.#take(tx)
        else if (now() - this.#renewed > BUSY / 3) await this.#renew(tx)
        return work(tx)
      })
      this.held = true
      return result
    }
  }

  /** Keeps the answer, and removes some whose time is over. */
  async settle(tx: Tx, answer: string) {
    const over = 'select name from idempotency_keys where expires <= ? order by expires limit 20'
    await tx.ask(`delete from idempotency_keys where name in (${over})`, [now()])
    await tx.ask(
      `insert into idempotency_keys (name, attempt, fingerprint, answer, busy, expires) values (?, ?, ?, ?, ?, ?)
       on conflict (name) do update set fingerprint = excluded.fingerprint, answer = excluded.answer
       where idempotency_keys.attempt = excluded.attempt`,
      [this.name, this.attempt, this.fingerprint() ?? null, answer, 0, now() + KEPT],
    )
  }

  /** Nothing was done after all. */
  async release(tx: Tx) {
    await tx.ask('delete from idempotency_keys where name = ? and attempt = ?', [this.name, this.attempt])
  }

  /** Something was done, but nobody knows how much. */
  async giveUp(tx: Tx) {
    await tx.ask('update idempotency_keys set busy = 0 where name = ? and attempt = ?', [this.name, this.attempt])
  }

  async #take(tx: Tx) {
    const time = now()
    await tx.ask('delete from idempotency_keys where name = ? and expires <= ?', [this.name, time])
    await tx.ask(
      `insert into idempotency_keys (name, attempt, fingerprint, busy, expires) values (?, ?, ?, ?, ?)
       on conflict (name) do nothing`,
      [this.name, this.attempt, this.fingerprint() ?? null, time + BUSY, time + KEPT],
    )
    const [row] = await tx.ask('select attempt from idempotency_keys where name = ?', [this.name])
    this.lost = row?.[0] !== this.attempt
    if (this.lost) throw inProgress()
    this.#renewed = time
  }

  async #renew(tx: Tx) {
    this.#renewed = now()
    const until = this.#renewed + BUSY
    await tx.ask('update idempotency_keys set busy = ? where name = ? and attempt = ?', [
      until,
      this.name,
      this.attempt,
    ])
  }
}

const claims = new WeakMap<Request, Claim>()

/** Lets the writes of a request's work take this claim. */
export const claimFor = (request: Request, claim: Claim) => void claims.set(request, claim)

/** The tenant for a request: where it has an `Idempotency-Key`, its writes take the claim. */
export function claiming<T extends Store>(request: Request, tenant: T): T {
  const claim = claims.get(request)
  return claim ? { ...tenant, write: claim.writing(tenant.write) } : tenant
}
