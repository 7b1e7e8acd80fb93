import type { EntityHistory } from '../../blueprints/history'
import type { Model } from '../../blueprints/model'
import { toChunks } from '../../core/chunks'
import { Problem } from '../../core/problem'
import type { Db } from '../../storage/port'
import { takeWithinSize } from '../store/sql-fragments'
import { REMOVED } from './version'
import { readContents, readLinks, sortLinks, type VersionLink, withinHistory } from './version-chain'
import {
  type PresentEntity,
  presentColumns,
  requireHistory,
  type StateAsOf,
  StateSearch,
  toPresent,
} from './version-reads'

const ENTITIES_PER_READ = 300 // entities of one statement
const CHAINS_PER_READ = 100 // entities whose versions one statement reads
const REMOVALS_PER_READ = 1_000 // removals of one statement
const MAX_BYTES_PER_READ = 1 << 20 // bytes of entities in memory, unless a single one is larger
const MAX_ROWS = 200_000 // entities and versions that one list reads

/** The state of an entity as of a time, and whether it is the present one. */
export type ScannedState = StateAsOf & { isPresent: boolean }

/** An entity whose state is searched, and the row of its latest version. */
type Candidate = { identifier: string; present?: PresentEntity; head: number | null }

/**
 * Yields the states of all entities of a blueprint as of a time: those that exist, in the order of their identifiers, and
 * those that were removed since. Only versions that are later are read. @throws 400 AS_OF_TOO_COSTLY
 */
export async function* scanStatesAsOf(db: Db, model: Model, at: number): AsyncGenerator<ScannedState, void> {
  let left = MAX_ROWS
  const count = (rows: number) => {
    left -= rows
    if (left < 0)
      throw new Problem(
        400,
        'AS_OF_TOO_COSTLY',
        `Lists with $asOf read at most ${MAX_ROWS} entities and versions, and "${model.key}" has more. Read single entities.`,
      )
  }
  const history = requireHistory(model)
  for (let after = ''; ; ) {
    const present = await readNextEntities(db, model, after)
    count(present.size)
    const upto = [...present.keys()].at(-1)
    const removed = await readRemovals(db, history, { after, upto, at }, count)
    const candidates: Candidate[] = [...present].map(([identifier, entity]) => ({
      ...{ identifier, present: entity, head: entity.header.updated > at ? entity.head : null },
    }))
    for (const [identifier, head] of removed) if (!present.has(identifier)) candidates.push({ identifier, head })
    for (const some of toChunks(candidates, CHAINS_PER_READ)) {
      const heads = some.flatMap(({ head }) => head ?? [])
      const links = await readLinks(db, history, heads, { at, limit: left + 1 })
      count(links.length)
      yield* searchStates(db, model, some, links, at)
    }
    if (upto === undefined) return
    after = upto
  }
}

/** Undoes the versions of several entities. */
async function* searchStates(db: Db, model: Model, candidates: Candidate[], links: VersionLink[], at: number) {
  const history = requireHistory(model)
  const chains = Map.groupBy(sortLinks(links), ({ identifier }) => identifier)
  const contents = readContents(
    db,
    candidates.flatMap(({ identifier }) => chains.get(identifier) ?? []),
  )
  for (const { identifier, present, head } of candidates) {
    const search = new StateSearch(model, identifier, present, at)
    const chain = chains.get(identifier) ?? []
    let isOver = search.isFound
    for (const _ of chain) {
      const { value } = await contents.next()
      if (value && !isOver) isOver = search.take(withinHistory(value, history, chain[0]!.number))
    }
    if (!isOver) search.end(head)
    yield { ...search.result, isPresent: !!present && !chain.some((link) => link.at > at) }
  }
}

/** Reads the next entities in the order of their identifiers. */
async function readNextEntities(db: Db, model: Model, after: string): Promise<Map<string, PresentEntity>> {
  const from = 'from entities where blueprint = ? and identifier > ?'
  const sizes = `select identifier, octet_length(shown) ${from} order by identifier limit ?`
  const listed = (await db.query(sizes, [model.code, after, ENTITIES_PER_READ])) as [string, number][]
  const last = takeWithinSize(listed, MAX_BYTES_PER_READ, ([, size]) => Number(size)).at(-1)
  if (!last) return new Map()
  const select = `select ${presentColumns(model)} ${from} and identifier <= ? order by identifier`
  const rows = (await db.query(select, [model.code, after, last[0]])).map((row) => toPresent(model, row))
  return new Map(rows.map((entity) => [entity.header.identifier, entity]))
}

type RemovalRange = { after: string; upto?: string; at: number }

/** Returns the rows of the latest removals, after a time, of entities in a range of identifiers. */
async function readRemovals(
  db: Db,
  { number: history }: EntityHistory,
  { after, upto, at }: RemovalRange,
  count: (rows: number) => void,
): Promise<Map<string, number>> {
  const limits = upto === undefined ? '' : ' and identifier <= ?'
  const select = `select identifier, seq, at from entity_versions where history = ? and action = ${REMOVED}
    and (identifier, seq) > (?, ?)${limits} order by identifier, seq limit ?`
  const heads = new Map<string, number>()
  for (let [identifier, seq] = [after, Number.MAX_SAFE_INTEGER]; ; ) {
    const params = [history, identifier, seq, ...(upto === undefined ? [] : [upto]), REMOVALS_PER_READ]
    const rows = (await db.query(select, params)) as [string, number, number][]
    for (const [name, row, time] of rows) if (time > at) heads.set(name, row)
    // Those that count are counted with the other versions of their entities.
    count(rows.filter(([, , time]) => time <= at).length)
    if (rows.length < REMOVALS_PER_READ) return heads
    ;[identifier, seq] = rows.at(-1)!
  }
}
