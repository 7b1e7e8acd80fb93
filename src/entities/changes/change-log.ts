import type { Model } from '../../blueprints/model'
import { DAY_MS, HOUR_MS, now } from '../../core/clock'
import type { Lease } from '../../jobs/with-lease'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { shownInForceSql } from '../store/serializer'
import { oneOf } from '../store/sql-fragments'
import { type DerivableFields, readDerivableFields, readIndexKeys } from '../store/stored-keys'

/** An entity with the values of its row. */
export type LoggedEntity = { shown: string; keys: string }

/** Returns an entity with all of its index keys, because its blueprint may have changed when the log is read. */
export const toLogged = (entity: LoggedEntity, of: Model | DerivableFields): LoggedEntity => ({
  shown: entity.shown,
  keys: JSON.stringify(readIndexKeys(entity, of)),
})

/** A change of an entity. Without `before` it was created, without `after` it was removed. */
export type EntityChange = { before?: LoggedEntity; after?: LoggedEntity }

const CHARACTERS_PER_NUMBER = 4_096 // characters that one number stands for
const MAX_RETAINED_NUMBERS = 50_000 // numbers that are kept per tenant
const NUMBERS_PER_CLEANUP = 1_000 // numbers between two cleanups
const RETENTION_MS = DAY_MS // ms that a change is kept, and that a log stays enabled after its last subscriber
export const RENEWAL_MS = HOUR_MS // ms between two renewals of a log that has subscribers
const CHANGES_PER_REMOVAL = 1_000 // changes removed in one write
export const NUMBERS_PER_READ = 1_000 // numbers read by one statement

/** SQL for whether the changes of a blueprint are logged; its parameter is the blueprint's key. */
export const IS_LOGGED = '(select 1 from change_logs l where l.blueprint = ?)'

const LAST_NUMBER_SQL = "coalesce((select version from versions where topic = 'changes'), 0)"
const INSERT_CHANGE = `insert into entity_changes (number, blueprint, made, shown_before, keys_before, shown, keys)
  values (?, ?, ?, ?, ?, ?, ?)`

/** Logs changes of a blueprint in the transaction that makes them, and calls the commit listener after the commit. */
export async function appendChanges(tx: Tx, blueprint: string, changes: EntityChange[]) {
  if (!changes.length) return
  const sizes = changes.map(numbersNeeded)
  const size = sizes.reduce((sum, one) => sum + one, 0)
  // The number is also the version by which other processes notice the change.
  const [[last] = []] = await tx.query(
    `insert into versions (topic, version) values ('changes', ?)
     on conflict ("topic") do update set version = versions.version + excluded.version returning version`,
    [size],
  )
  const [end, madeAt] = [last as number, now()]
  let number = end - size
  const rows = changes.map(({ before, after }, n) => {
    number += sizes[n]!
    return [number, blueprint, madeAt, before?.shown, before?.keys, after?.shown, after?.keys].map((one) => one ?? null)
  })
  await tx.executeMany(INSERT_CHANGE, rows)
  if (Math.floor(end / NUMBERS_PER_CLEANUP) > Math.floor((end - size) / NUMBERS_PER_CLEANUP))
    await removeUpTo(tx, end - MAX_RETAINED_NUMBERS)
  tx.afterCommit((db) => commitListeners.get(db)?.get(blueprint)?.())
}

const numbersNeeded = ({ before, after }: EntityChange) =>
  1 +
  Math.floor(
    [before, after].reduce((sum, one) => sum + (one ? one.shown.length + one.keys.length : 0), 0) /
      CHARACTERS_PER_NUMBER,
  )

async function removeUpTo(tx: Tx, number: number) {
  await tx.query('delete from entity_changes where number <= ?', [number])
  await tx.query('update change_logs set since = ? where since < ?', [number, number])
}

/** Logs the removal of entities that still exist, for the blueprints whose changes are logged. */
export async function appendRemovals(tx: Tx, entities: { blueprint: string; seq: number }[]) {
  const groups = Map.groupBy(entities, ({ blueprint }) => blueprint)
  const logged = await selectLogged(tx, groups.keys())
  for (const [blueprint, group] of groups) {
    if (!logged.has(blueprint)) continue
    const fields = await readDerivableFields(tx, blueprint)
    for (let at = 0; at < group.length; at += REMOVALS_PER_READ) {
      const slice = group.slice(at, at + REMOVALS_PER_READ).map(({ seq }) => seq)
      const { sql, params } = oneOf('e.seq', slice)
      const select = `select ${shownInForceSql('e.')}, e.keys from entities e where ${sql}`
      const rows = (await tx.query(select, params)) as [string, string][]
      await appendChanges(
        tx,
        blueprint,
        rows.map(([shown, keys]) => ({ before: toLogged({ shown, keys }, fields) })),
      )
    }
  }
}

const REMOVALS_PER_READ = 100 // entities in memory at a time

/** Logs changes of entities of any blueprints, for the blueprints whose changes are logged. */
export async function appendLoggedChanges(tx: Tx, changes: (EntityChange & { blueprint: string })[]) {
  const groups = Map.groupBy(changes, ({ blueprint }) => blueprint)
  const logged = await selectLogged(tx, groups.keys())
  for (const [blueprint, group] of groups) if (logged.has(blueprint)) await appendChanges(tx, blueprint, group)
}

/** Returns those of the blueprints whose changes are logged. */
async function selectLogged(tx: Tx, blueprints: Iterable<string>) {
  const keys = [...blueprints]
  if (!keys.length) return new Set<string>()
  const { sql, params } = oneOf('blueprint', keys)
  return new Set((await tx.query(`select blueprint from change_logs where ${sql}`, params)).flat() as string[])
}

const commitListeners = new WeakMap<Db, Map<string, () => void>>()

/**
 * Calls the listener whenever this process has committed changes of the blueprint. A blueprint has one listener at a
 * time. Returns a function that removes the listener.
 */
export function onCommit(db: Db, blueprint: string, listener: () => void) {
  const listeners = commitListeners.get(db) ?? new Map()
  commitListeners.set(db, listeners.set(blueprint, listener))
  return () => void listeners.delete(blueprint)
}

/** Logs the changes of a blueprint from now on, for at least a day. Returns the number of the tenant's last change. */
export async function enableLog({ db, write }: Tenant, blueprint: string): Promise<number> {
  const readState = () =>
    db.query(`select until, ${LAST_NUMBER_SQL} from change_logs where blueprint = ?`, [blueprint]) as Promise<
      [number, number][]
    >
  const time = now()
  const [state] = await readState()
  if (state && state[0] > time + RETENTION_MS - RENEWAL_MS) return state[1]
  await write((tx) =>
    tx.query(
      `insert into change_logs (blueprint, since, until) select key, ${LAST_NUMBER_SQL}, ? from blueprints where key = ?
       on conflict ("blueprint") do update set until = excluded.until`,
      [time + RETENTION_MS, blueprint],
    ),
  )
  return (await readState())[0]?.[1] ?? 0
}

/** Returns the number of a tenant's last change. */
export const readLastNumber = async (db: Db) => (await db.query(`select ${LAST_NUMBER_SQL}`))[0]![0] as number

export type NumberedChange = { number: number; before?: LoggedEntity; after?: LoggedEntity }

/**
 * Returns a bounded page of the changes after a number, up to number `upto`. `last` is the tenant's last number, and
 * the log is complete after number `since`. Returns undefined when the blueprint's changes are not logged.
 */
export async function readChangesAfter(db: Db, blueprint: string, number: number) {
  const upto = number + NUMBERS_PER_READ
  const rows = (await db.query(
    `select l.since, ${LAST_NUMBER_SQL}, c.number, c.shown_before, c.keys_before, c.shown, c.keys from change_logs l
     left join entity_changes c on c.blueprint = l.blueprint and c.number > ? and c.number <= ?
     where l.blueprint = ? order by c.number asc`,
    [number, upto, blueprint],
  )) as [number, number, number | null, ...(string | null)[]][]
  const [first] = rows
  if (!first) return
  const [since, last] = first
  const changes = rows.flatMap(([, , number, ...[shownBefore, keysBefore, shown, keys]]): NumberedChange[] =>
    number === null
      ? []
      : [{ number, before: toLoggedEntity(shownBefore, keysBefore), after: toLoggedEntity(shown, keys) }],
  )
  return { since, last, upto: Math.min(upto, last), changes }
}

const toLoggedEntity = (shown?: string | null, keys?: string | null) => (shown && keys ? { shown, keys } : undefined)

/** Removes changes that are too old, and the logs of blueprints that have had no subscriber for a day. */
export async function removeOld({ db, write, signal }: Tenant & Lease) {
  const time = now()
  await write((tx) => tx.query('delete from change_logs where until < ?', [time]))
  const old = 'select number from entity_changes where made < ? order by number asc limit ?'
  for (let count = CHANGES_PER_REMOVAL; count === CHANGES_PER_REMOVAL && !signal.aborted; ) {
    const rows = (await db.query(old, [time - RETENTION_MS, CHANGES_PER_REMOVAL])) as number[][]
    count = rows.length
    if (count) await write((tx) => removeUpTo(tx, rows.at(-1)![0]!))
  }
}
