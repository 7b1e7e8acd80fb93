import { now } from '../../core/clock'
import type { Lease } from '../../jobs/holding'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { oneOf } from '../conditions'
import { shownInForce } from '../wire'

/** An entity as its row has it. */
export type Kept = { shown: string; keys: string }

/** What happened to an entity: without `before` it was made, without `after` removed. */
export type Changed = { before?: Kept; after?: Kept }

const ROOM = 4_096 // characters for which a number stands
const MOST = 50_000 // numbers of a tenant that are kept
const TIDY = 1_000 // numbers after which what is over is removed
const AGE = 86_400_000 // ms that a change is kept, and that a blueprint's are after the last who listened
export const RENEWAL = 3_600_000 // ms; who listens on says so this often
const SLICE = 1_000 // changes removed in one write
export const AT_ONCE = 1_000 // numbers read by one statement

/** Whether a blueprint's changes are kept, as a part of a statement; its key is the value. */
export const IS_LOGGED = '(select 1 from change_logs l where l.blueprint = ?)'

const LAST = "coalesce((select version from versions where topic = 'changes'), 0)"
const KEEP = `insert into entity_changes (number, blueprint, made, shown_before, keys_before, shown, keys)
  values (?, ?, ?, ?, ?, ?, ?)`

/** Keeps changes of a blueprint whose changes are kept, in the transaction that makes them; listeners hear of its commit. */
export async function keep(tx: Tx, blueprint: string, changed: Changed[]) {
  if (!changed.length) return
  const sizes = changed.map(roomOf)
  const size = sizes.reduce((sum, one) => sum + one, 0)
  // The count is also the version by which other processes learn of it.
  const [[last] = []] = await tx.ask(
    `insert into versions (topic, version) values ('changes', ?)
     on conflict ("topic") do update set version = versions.version + excluded.version returning version`,
    [size],
  )
  const [end, made] = [last as number, now()]
  let number = end - size
  const rows = changed.map(({ before, after }, n) => {
    number += sizes[n]!
    return [number, blueprint, made, before?.shown, before?.keys, after?.shown, after?.keys].map((one) => one ?? null)
  })
  await tx.each(KEEP, rows)
  if (Math.floor(end / TIDY) > Math.floor((end - size) / TIDY)) await forgetUpTo(tx, end - MOST)
  tx.afterwards((db) => ears.get(db)?.get(blueprint)?.())
}

const roomOf = ({ before, after }: Changed) =>
  1 + Math.floor([before, after].reduce((sum, one) => sum + (one ? one.shown.length + one.keys.length : 0), 0) / ROOM)

async function forgetUpTo(tx: Tx, number: number) {
  await tx.ask('delete from entity_changes where number <= ?', [number])
  await tx.ask('update change_logs set since = ? where since < ?', [number, number])
}

/** Keeps the removal of entities that are still there, of those blueprints whose changes are kept. */
export async function keepRemovals(tx: Tx, entities: number[]) {
  for (let at = 0; at < entities.length; at += READ) {
    const { sql, params } = oneOf('e.seq', entities.slice(at, at + READ))
    const found = (await tx.ask(
      `select e.blueprint, ${shownInForce('e.')}, e.keys from entities e join change_logs l on l.blueprint = e.blueprint where ${sql}`,
      params,
    )) as [string, string, string][]
    for (const [blueprint, some] of Map.groupBy(found, ([blueprint]) => blueprint))
      await keep(
        tx,
        blueprint,
        some.map(([, shown, keys]) => ({ before: { shown, keys } })),
      )
  }
}

const READ = 100 // entities in memory

/** Keeps changes of entities of any blueprints, of those whose changes are kept. */
export async function keepOf(tx: Tx, changes: (Changed & { blueprint: string })[]) {
  const { sql, params } = oneOf('blueprint', [...new Set(changes.map(({ blueprint }) => blueprint))])
  const logged = new Set((await tx.ask(`select blueprint from change_logs where ${sql}`, params)).flat())
  for (const [blueprint, some] of Map.groupBy(changes, (one) => one.blueprint))
    if (logged.has(blueprint)) await keep(tx, blueprint, some)
}

const ears = new WeakMap<Db, Map<string, () => void>>()

/** Has `hear` called whenever this process has committed changes of the blueprint. One at a time may ask that. */
export function hearOf(db: Db, blueprint: string, hear: () => void) {
  const known = ears.get(db) ?? new Map()
  ears.set(db, known.set(blueprint, hear))
  return () => void known.delete(blueprint)
}

/** From now on the changes of a blueprint are kept, for a day at least. Tells the number of the tenant's last one. */
export async function listening({ db, write }: Tenant, blueprint: string): Promise<number> {
  const known = () =>
    db.ask(`select until, ${LAST} from change_logs where blueprint = ?`, [blueprint]) as Promise<[number, number][]>
  const time = now()
  const [found] = await known()
  if (found && found[0] > time + AGE - RENEWAL) return found[1]
  await write((tx) =>
    tx.ask(
      `insert into change_logs (blueprint, since, until) select key, ${LAST}, ? from blueprints where key = ?
       on conflict ("blueprint") do update set until = excluded.until`,
      [time + AGE, blueprint],
    ),
  )
  return (await known())[0]?.[1] ?? 0
}

/** The number of a tenant's last change. */
export const lastOf = async (db: Db) => (await db.ask(`select ${LAST}`))[0]![0] as number

export type LoggedRow = { number: number; before?: Kept; after?: Kept }

/**
 * What happened after a number, as far as number `upto`: a bounded amount of it. `last` is the tenant's last number, and
 * `since` the one after which all are there; what was before it can't be told any more. Nothing when none are kept.
 */
export async function changesAfter(db: Db, blueprint: string, number: number) {
  const upto = number + AT_ONCE
  const rows = (await db.ask(
    `select l.since, ${LAST}, c.number, c.shown_before, c.keys_before, c.shown, c.keys from change_logs l
     left join entity_changes c on c.blueprint = l.blueprint and c.number > ? and c.number <= ?
     where l.blueprint = ? order by c.number asc`,
    [number, upto, blueprint],
  )) as [number, number, number | null, ...(string | null)[]][]
  const [first] = rows
  if (!first) return
  const [since, last] = first
  const changes = rows.flatMap(([, , number, ...[shownBefore, keysBefore, shown, keys]]): LoggedRow[] =>
    number === null ? [] : [{ number, before: keptOf(shownBefore, keysBefore), after: keptOf(shown, keys) }],
  )
  return { since, last, upto: Math.min(upto, last), changes }
}

const keptOf = (shown?: string | null, keys?: string | null) => (shown && keys ? { shown, keys } : undefined)

/** Removes changes that are too old, and those of blueprints that nobody has listened to for a day. */
export async function removeOld({ db, write, signal }: Tenant & Lease) {
  const time = now()
  await write((tx) => tx.ask('delete from change_logs where until < ?', [time]))
  const old = 'select number from entity_changes where made < ? order by number asc limit ?'
  for (let left = SLICE; left === SLICE && !signal.aborted; ) {
    const found = (await db.ask(old, [time - AGE, SLICE])) as number[][]
    left = found.length
    if (left) await write((tx) => forgetUpTo(tx, found.at(-1)![0]!))
  }
}
