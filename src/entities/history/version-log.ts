import { type EntityHistory, historyOf } from '../../blueprints/history'
import type { Model } from '../../blueprints/model'
import type { Tx } from '../../storage/port'
import { LATEST_VERSION_COLUMNS, type LatestVersion } from '../store/rows'
import { extractDocumentJson, parseHeader, shownInForceSql } from '../store/serializer'
import { lookUpEach, oneOf, toChunks } from '../store/sql-fragments'
import { CHANGED, CREATED, encodeChange, encodeRemoval, type OwnedDocument, REMOVED } from './version'
import { findRemoval } from './version-chain'

const INSERT_VERSION = `insert into entity_versions
  (history, identifier, number, at, since, action, previous, author, former) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`
const MIN_VERSIONS_BETWEEN_CLEANUPS = 16 // versions of an entity between two removals of old ones
const REMOVALS_PER_READ = 100 // entities in memory at a time

/** What the update of an entity sets, right after `appendChange`. Its parameters are the history and number of the version. */
export const SET_LATEST_VERSION = `history = ?, version_number = ?, version_row = (select max(v.seq) from entity_versions v)`

/** A created entity. */
type CreatedEntity = { seq: number; _id: string; identifier: string; at: number; author: string | undefined }

/**
 * Notes for created entities whose identifier is that of a removed one that its versions go on. Others need no version:
 * they are their first one.
 */
export async function appendCreations(tx: Tx, model: Model, created: CreatedEntity[]) {
  const history = historyOf(model)
  // A generated identifier is new.
  const chosen = created.filter(({ _id, identifier }) => _id !== identifier)
  if (!history || !chosen.length) return
  const removed = await readRemoved(
    tx,
    history,
    chosen.map(({ identifier }) => identifier),
  )
  for (const { seq, identifier, at, author } of chosen) {
    const before = removed.get(identifier)
    if (!before) continue
    const number = before.number + 1
    const row = [history.number, identifier, number, at, at, CREATED, before.seq, author ?? null, null]
    const [inserted] = await tx.query(`${INSERT_VERSION} returning seq`, row)
    const update = 'update entities set version_number = ?, version_row = ? where seq = ?'
    await tx.query(update, [number, inserted![0], seq])
  }
}

/** Returns the latest removals of entities, by their identifiers. */
async function readRemoved(tx: Tx, { number: history }: EntityHistory, identifiers: string[]) {
  const removed = new Map<string, { seq: number; number: number }>()
  for (const chunk of toChunks(identifiers)) {
    const condition = `e.history = ? and e.identifier = j.value and e.action = ${REMOVED}`
    const { sql, params } = lookUpEach('entity_versions', condition, chunk, history)
    const rows = (await tx.query(`select identifier, seq, number from ${sql}`, params)) as [string, number, number][]
    for (const [identifier, seq, number] of rows)
      if (seq > (removed.get(identifier)?.seq ?? 0)) removed.set(identifier, { seq, number })
  }
  return removed
}

/** The next version of an entity, with what it replaces. */
export type NextVersion = { number: number; previous: number | null; former: string }

/** Returns the next version of an entity, or undefined when a change does not differ from what was before. */
export function toNextVersion(
  history: EntityHistory,
  before: OwnedDocument & LatestVersion,
  after: OwnedDocument,
): NextVersion | undefined {
  const former = encodeChange(history, before, after)
  return former === undefined ? undefined : { ...toNextPosition(history, before), former }
}

/** The creation of an entity, or what it was before the history, has number 1 and no row. */
const toNextPosition = (
  { number: history }: EntityHistory,
  { history: own, versionNumber, versionRow }: LatestVersion,
) => (own === history ? { number: versionNumber! + 1, previous: versionRow } : { number: 2, previous: null })

/**
 * Keeps what a change replaces, before the entity is updated with `SET_LATEST_VERSION`: no other version may be written in between.
 * Every now and then, it removes versions that are too many.
 */
export async function appendChange(
  tx: Tx,
  history: EntityHistory,
  { number, previous, former }: NextVersion,
  { identifier, at, since, author }: { identifier: string; at: number; since: number; author: string | undefined },
) {
  const row = [history.number, identifier, number, at, since, CHANGED, previous, author ?? null, former]
  await tx.query(INSERT_VERSION, row)
  const interval = Math.max(MIN_VERSIONS_BETWEEN_CLEANUPS, history.versions >> 2)
  if (number % interval === 0 && number > history.versions && previous !== null)
    await removeExcess(tx, history, previous, number)
}

/** Removes the versions before the oldest one that is kept, which then tells only that its entity was changed. */
async function removeExcess(tx: Tx, { versions }: EntityHistory, previous: number, number: number) {
  const chain = await readChainRows(tx, [previous])
  const oldest = number - versions + 1
  await removeVersions(
    tx,
    chain.filter((row) => row.number < oldest).map(({ seq }) => seq),
  )
  const kept = chain.find((row) => row.number === oldest)
  if (kept) await forgetBefore(tx, [kept.seq])
}

/** Makes versions the oldest of their entities. What was before them is no longer known. */
export const forgetBefore = (tx: Tx, rows: number[]) =>
  tx.executeMany(
    'update entity_versions set previous = null, former = null where seq = ?',
    rows.map((seq) => [seq]),
  )

/** Returns the rows of the versions that some go back to, in no order, or only of those since the creation. */
async function readChainRows(tx: Tx, heads: number[], extent: 'all' | 'since creation' = 'all') {
  const rows: { seq: number; number: number }[] = []
  for (const chunk of toChunks(heads)) {
    const { sql, params } = oneOf('h.seq', chunk)
    const until = extent === 'all' ? '' : `where c.action <> ${CREATED}`
    const select = `with recursive chain (seq, number, previous, action, identifier) as (
        select h.seq, h.number, h.previous, h.action, h.identifier from entity_versions h where ${sql}
        union all
        select v.seq, v.number, v.previous, v.action, v.identifier
        from chain c join entity_versions v on v.seq = c.previous and v.identifier = c.identifier ${until}
      ) select seq, number from chain`
    for (const [seq, number] of (await tx.query(select, params)) as [number, number][]) rows.push({ seq, number })
  }
  return rows
}

/** Keeps the removal of entities that still exist, with all that they have. */
export async function appendRemovals(
  tx: Tx,
  histories: ReadonlyMap<string, EntityHistory>,
  author: string | undefined,
  at: number,
  entities: { seq: number; blueprint: string }[],
) {
  const blueprints = new Map(entities.map(({ seq, blueprint }) => [seq, blueprint]))
  const kept = entities.filter(({ blueprint }) => histories.has(blueprint)).map(({ seq }) => seq)
  for (let from = 0; from < kept.length; from += REMOVALS_PER_READ) {
    const { sql, params } = oneOf('e.seq', kept.slice(from, from + REMOVALS_PER_READ))
    const select = `select e.seq, ${shownInForceSql('e.')}, e.creator, ${LATEST_VERSION_COLUMNS} from entities e where ${sql}`
    const rows = (await tx.query(select, params)) as RemovedRow[]
    await tx.executeMany(
      INSERT_VERSION,
      rows.map(([seq, shown, creator, own, versionNumber, versionRow]) => {
        const history = histories.get(blueprints.get(seq)!)!
        const [header, doc] = [parseHeader(shown), JSON.parse(extractDocumentJson(shown))]
        const former = encodeRemoval(history, { header, doc, creator })
        const { number, previous } = toNextPosition(history, { history: own, versionNumber, versionRow })
        const key = [history.number, header.identifier, number]
        return [...key, at, header.updated, REMOVED, previous, author ?? null, former]
      }),
    )
  }
}

type RemovedRow = [
  seq: number,
  shown: string,
  creator: string | null,
  history: number | null,
  versionNumber: number | null,
  versionRow: number | null,
]

/** Removes the versions of entities that exist: all, or those since they were last created. */
export async function eraseVersions(
  tx: Tx,
  histories: ReadonlyMap<string, EntityHistory>,
  entities: { seq: number; blueprint: string }[],
  extent: 'all' | 'since creation' = 'all',
) {
  const heads: number[] = []
  for (const [blueprint, group] of Map.groupBy(entities, (entity) => entity.blueprint)) {
    const history = histories.get(blueprint)
    if (!history) continue
    for (const chunk of toChunks(group.map(({ seq }) => seq))) {
      const { sql, params } = oneOf('seq', chunk)
      const select = `select version_row from entities where history = ? and version_row is not null and ${sql}`
      heads.push(...((await tx.query(select, [history.number, ...params])).flat() as number[]))
    }
  }
  await removeChains(tx, heads, extent)
}

/** Removes the versions of an entity that was removed. Returns whether there were any. */
export async function eraseRemoved(tx: Tx, history: EntityHistory, identifier: string): Promise<boolean> {
  const head = await findRemoval(tx, history, identifier)
  if (head !== undefined) await removeChains(tx, [head], 'all')
  return head !== undefined
}

async function removeChains(tx: Tx, heads: number[], extent: 'all' | 'since creation') {
  const rows = await readChainRows(tx, heads, extent)
  await removeVersions(
    tx,
    rows.map(({ seq }) => seq),
  )
}

/** Removes versions by their rows. */
export const removeVersions = (tx: Tx, rows: number[]) =>
  tx.executeMany(
    'delete from entity_versions where seq = ?',
    rows.map((seq) => [seq]),
  )
