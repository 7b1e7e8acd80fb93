import { type EntityHistory, historyOf } from '../../blueprints/history'
import type { Model } from '../../blueprints/model'
import type { Tx } from '../../storage/port'
import type { StoredEntity } from '../store/rows'
import { type EntityHeader, extractDocumentJson, parseHeader, shownInForceSql } from '../store/serializer'
import { oneOf, toChunks } from '../store/sql-fragments'
import { CHANGED, CREATED, encodeChange, encodeRemoval, REMOVED } from './version'

const INSERT_VERSION = `insert into entity_versions (history, identifier, number, at, author, action, former)
  values (?, ?, ?, ?, ?, ?, ?)`
// For an entity that has no versions yet. One that has been created since has its first version.
const INSERT_FIRST = `${INSERT_VERSION} on conflict (history, identifier, number) do nothing`
// Not "insert … select", for which SQLite makes a temporary table. An entity without versions gets number 2: the first is
// the state that it had.
const INSERT_NEXT = `insert into entity_versions (history, identifier, number, at, author, action, former) values (?, ?,
  coalesce((select max(v.number) from entity_versions v where v.history = ? and v.identifier = ?), 1) + 1, ?, ?, ?, ?)
  returning number`
const VERSIONS_BETWEEN_CLEANUPS = 16 // versions of an entity between two removals of old ones
const REMOVALS_PER_READ = 100 // entities in memory at a time

/** A created entity. */
type CreatedEntity = { _id: string; identifier: string; at: number }

/** Keeps that entities were created. */
export async function appendCreations(tx: Tx, model: Model, author: string | undefined, created: CreatedEntity[]) {
  const history = historyOf(model)
  if (!history) return
  // A generated identifier is new; another one may have been that of an entity that was removed.
  const chosen = created.filter(({ _id, identifier }) => _id !== identifier).map(({ identifier }) => identifier)
  const last = await readLastNumbers(tx, history, chosen)
  await tx.executeMany(
    INSERT_VERSION,
    created.map(({ identifier, at }) => [
      ...[history.number, identifier, (last.get(identifier) ?? 0) + 1, at, author ?? null, CREATED, null],
    ]),
  )
}

/** An entity before and after a change. */
export type ChangedEntity = {
  before: Pick<EntityHeader, 'user' | 'workspace' | 'created' | 'updated'> & { shown: string }
  after: Pick<StoredEntity, 'identifier' | 'user' | 'workspace' | 'shown'>
  at: number
}

/** Keeps what a change replaces, unless nothing differs. Every now and then, it removes versions that are too old. */
export async function appendChange(
  tx: Tx,
  history: EntityHistory,
  author: string | undefined,
  { before, after, at }: ChangedEntity,
) {
  const former = encodeChange(
    history,
    { owners: before, doc: JSON.parse(extractDocumentJson(before.shown)) },
    { owners: after, doc: JSON.parse(extractDocumentJson(after.shown)) },
  )
  if (former === undefined) return
  const { identifier } = after
  const key = [history.number, identifier]
  const [row] = await tx.query(INSERT_NEXT, [...key, ...key, at, author ?? null, CHANGED, former])
  const number = Number(row![0])
  // An entity that was created since has a version of its creation.
  if (number === 2 && before.created <= history.since)
    await tx.query(INSERT_FIRST, toFirstVersion(history, { ...before, identifier }))
  if (number % VERSIONS_BETWEEN_CLEANUPS === 0 && number > history.versions)
    await forgetBefore(tx, history.number, identifier, number - history.versions + 1)
}

/** The state that an entity had when its blueprint got a history is its first version. Nobody knows who made it. */
function toFirstVersion(
  { number, since }: EntityHistory,
  { identifier, created, updated }: Pick<EntityHeader, 'identifier' | 'created' | 'updated'>,
) {
  return [number, identifier, 1, Math.min(updated, since), null, updated === created ? CREATED : CHANGED, null]
}

/** Makes a version the oldest of its entity. What was before it is no longer known. */
export async function forgetBefore(tx: Tx, history: number, identifier: string, oldest: number) {
  const key = [history, identifier, oldest]
  await tx.query('delete from entity_versions where history = ? and identifier = ? and number < ?', key)
  await tx.query(
    'update entity_versions set former = null where history = ? and identifier = ? and number = ? and former is not null',
    key,
  )
}

/** Keeps the removal of entities that still exist, with all that they have. */
export async function appendRemovals(
  tx: Tx,
  histories: ReadonlyMap<string, EntityHistory>,
  author: string | undefined,
  at: number,
  entities: { seq: number; blueprint: string }[],
) {
  const kept = entities.filter(({ blueprint }) => histories.has(blueprint)).map(({ seq }) => seq)
  for (let from = 0; from < kept.length; from += REMOVALS_PER_READ) {
    const { sql, params } = oneOf('e.seq', kept.slice(from, from + REMOVALS_PER_READ))
    const select = `select e.blueprint, ${shownInForceSql('e.')} from entities e where ${sql}`
    const rows = (await tx.query(select, params)) as [string, string][]
    for (const [blueprint, group] of Map.groupBy(rows, ([blueprint]) => blueprint)) {
      const history = histories.get(blueprint)!
      const removed = group.map(([, shown]) => ({
        header: parseHeader(shown),
        doc: JSON.parse(extractDocumentJson(shown)),
      }))
      const names = removed.map(({ header }) => header.identifier)
      const last = await readLastNumbers(tx, history, names)
      const unversioned = removed.filter(({ header }) => !last.has(header.identifier))
      await tx.executeMany(
        INSERT_VERSION,
        unversioned.map(({ header }) => toFirstVersion(history, header)),
      )
      await tx.executeMany(
        INSERT_VERSION,
        removed.map((state) => {
          const { identifier } = state.header
          const number = (last.get(identifier) ?? 1) + 1
          return [history.number, identifier, number, at, author ?? null, REMOVED, encodeRemoval(history, state)]
        }),
      )
    }
  }
}

/** Returns the numbers of the latest versions of entities, by their identifiers. */
async function readLastNumbers(tx: Tx, { number }: EntityHistory, identifiers: string[]): Promise<Map<string, number>> {
  const last = new Map<string, number>()
  for (const chunk of toChunks(identifiers)) {
    const { sql, params } = oneOf('identifier', chunk)
    const select = `select identifier, max(number) from entity_versions where history = ? and ${sql} group by identifier`
    for (const [identifier, latest] of await tx.query(select, [number, ...params]))
      last.set(identifier as string, Number(latest))
  }
  return last
}

/** Removes the versions of entities: all, or those since they were last created. Returns how many entities had any. */
export async function eraseVersions(
  tx: Tx,
  histories: ReadonlyMap<string, EntityHistory>,
  entities: { blueprint: string; identifier: string }[],
  extent: 'all' | 'since creation' = 'all',
) {
  const keys: unknown[][] = []
  for (const [blueprint, group] of Map.groupBy(entities, (entity) => entity.blueprint)) {
    const history = histories.get(blueprint)
    if (!history) continue
    const versioned = [
      ...(
        await readLastNumbers(
          tx,
          history,
          group.map(({ identifier }) => identifier),
        )
      ).keys(),
    ]
    keys.push(...versioned.map((identifier) => [history.number, identifier]))
  }
  if (extent === 'all') await tx.executeMany('delete from entity_versions where history = ? and identifier = ?', keys)
  else
    await tx.executeMany(
      `delete from entity_versions where history = ? and identifier = ? and number >= (select max(v.number)
         from entity_versions v where v.history = ? and v.identifier = ? and v.action = ${CREATED})`,
      keys.map((key) => [...key, ...key]),
    )
  return keys.length
}
