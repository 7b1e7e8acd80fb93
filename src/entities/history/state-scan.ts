import type { Model } from '../../blueprints/model'
import { Problem } from '../../core/problem'
import type { Db } from '../../storage/port'
import { storedColumns, toStored } from '../store/rows'
import { extractDocumentJson } from '../store/serializer'
import { takeWithinSize } from '../store/sql-fragments'
import type { EntityState, Version } from './version'
import { requireHistory, type StateAsOf, StateSearch, toVersion } from './version-reads'

const ENTITIES_PER_READ = 300 // entities of one statement
const VERSIONS_PER_READ = 1_000 // versions of one statement
const MAX_BYTES_PER_READ = 1 << 20 // bytes of entities in memory, unless a single one is larger
const MAX_ROWS = 200_000 // entities and versions that one list reads

/** The state of an entity as of a time, and whether it is the present one. */
export type ScannedState = StateAsOf & { isPresent: boolean }

/**
 * Yields the states of all entities of a blueprint as of a time, in the order of their identifiers: those that exist, and
 * those that were removed since. Entities are read before their versions, so that a change in between is undone like any
 * other. @throws 400 AS_OF_TOO_COSTLY
 */
export async function* scanStatesAsOf(db: Db, model: Model, at: number): AsyncGenerator<ScannedState, void> {
  let rows = 0
  const count = (more: number) => {
    rows += more
    if (rows > MAX_ROWS)
      throw new Problem(
        400,
        'AS_OF_TOO_COSTLY',
        `Lists with $asOf read at most ${MAX_ROWS} entities and versions, and "${model.key}" has more. Read single entities.`,
      )
  }
  for (let after = ''; ; ) {
    const present = await readNextEntities(db, model, after)
    count(present.size)
    const upto = [...present.keys()].at(-1)
    const left = new Map(present)
    for await (const [identifier, versions] of readVersionGroups(db, model, { after, upto, at }, count)) {
      yield searchState(model, identifier, present.get(identifier), versions, at)
      left.delete(identifier)
    }
    for (const [identifier, state] of left) yield searchState(model, identifier, state, [], at)
    if (upto === undefined) return
    after = upto
  }
}

function searchState(
  model: Model,
  identifier: string,
  state: EntityState | undefined,
  versions: Version[],
  at: number,
): ScannedState {
  const search = new StateSearch(model, identifier, state, at)
  for (const version of versions.toReversed()) if (search.take(version)) break
  return { ...search.result, isPresent: !!state && !versions.some((version) => version.at > at) }
}

/** Reads the next entities in the order of their identifiers. */
async function readNextEntities(db: Db, model: Model, after: string): Promise<Map<string, EntityState>> {
  const from = 'from entities where blueprint = ? and identifier > ?'
  const sizes = `select identifier, octet_length(shown) ${from} order by identifier limit ?`
  const listed = (await db.query(sizes, [model.key, after, ENTITIES_PER_READ])) as [string, number][]
  const last = takeWithinSize(listed, MAX_BYTES_PER_READ, ([, size]) => Number(size)).at(-1)
  if (!last) return new Map()
  const select = `select ${storedColumns(model)} ${from} and identifier <= ? order by identifier`
  const rows = (await db.query(select, [model.key, after, last[0]])).map(toStored)
  return new Map(
    rows.map((header) => [header.identifier, { header, doc: JSON.parse(extractDocumentJson(header.shown)) }]),
  )
}

type VersionRange = { after: string; upto?: string; at: number }

/** Yields the versions of each entity in a range of identifiers, the oldest first. */
async function* readVersionGroups(
  db: Db,
  model: Model,
  { after, upto, at }: VersionRange,
  count: (rows: number) => void,
): AsyncGenerator<[identifier: string, versions: Version[]], void> {
  const { number: history } = requireHistory(model)
  const limits = upto === undefined ? '' : ' and identifier <= ?'
  const select = `select identifier, number, at, author, action, case when at > ? then former end from entity_versions
    where history = ? and (identifier, number) > (?, ?)${limits} order by identifier, number limit ?`
  let group: Version[] = []
  for (let [identifier, number] = [after, Number.MAX_SAFE_INTEGER]; ; ) {
    const params = [at, history, identifier, number, ...(upto === undefined ? [] : [upto]), VERSIONS_PER_READ]
    const rows = await db.query(select, params)
    count(rows.length)
    for (const [name, ...row] of rows) {
      if (name !== identifier && group.length) yield [identifier, group]
      if (name !== identifier) group = []
      identifier = name as string
      group.push(toVersion(row))
      number = group.at(-1)!.number
    }
    if (rows.length === VERSIONS_PER_READ) continue
    if (group.length) yield [identifier, group]
    return
  }
}
