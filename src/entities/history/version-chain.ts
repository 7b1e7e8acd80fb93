import type { EntityHistory } from '../../blueprints/history'
import type { Db } from '../../storage/port'
import { oneOf, takeWithinSize } from '../store/sql-fragments'
import { CHANGED, CREATED, type EntityState, REMOVED, type Version } from './version'

const VERSIONS_PER_READ = 100 // versions whose contents are read by one statement
const MAX_BYTES_PER_READ = 1 << 20 // bytes of versions in memory, unless a single one is larger

/** A version without what it replaced. */
export type VersionLink = Omit<Version, 'former'> & {
  seq: number
  identifier: string
  previous: number | null
  size: number
}

const COLUMNS = ['seq', 'identifier', 'number', 'at', 'since', 'action', 'previous', 'author']
const select = (row: string) => COLUMNS.map((column) => `${row}.${column}`).join(', ')

/**
 * Reads the versions of entities from their latest ones back, as far as they tell what was at a time. Returns at most
 * `limit` of them, in no order.
 */
export async function readLinks(
  db: Pick<Db, 'query'>,
  { number: history }: EntityHistory,
  heads: number[],
  { at = -1, limit }: { at?: number; limit: number },
): Promise<VersionLink[]> {
  if (!heads.length) return []
  const { sql, params } = oneOf('h.seq', heads)
  const rows = await db.query(
    `with recursive chain (${COLUMNS.join(', ')}, size) as (
       select ${select('h')}, coalesce(octet_length(h.former), 0) from entity_versions h where h.history = ? and ${sql}
       union all
       select ${select('v')}, coalesce(octet_length(v.former), 0) from chain c join entity_versions v on v.seq = c.previous
       where c.since > ? and v.history = ? and v.identifier = c.identifier
     ) select * from chain limit ?`,
    [history, ...params, at, history, limit],
  )
  return rows.map(([seq, identifier, number, at, since, action, previous, author, size]) => ({
    ...{ seq: Number(seq), identifier: identifier as string, number: Number(number), at: Number(at) },
    ...{ since: Number(since), action: Number(action), previous: previous === null ? null : Number(previous) },
    ...{ author: author as string | null, size: Number(size) },
  }))
}

/** Yields versions with what they replaced, in the order of their links. One that was removed meanwhile has nothing. */
export async function* readContents(db: Db, links: VersionLink[]): AsyncGenerator<Version & VersionLink, void> {
  for (let from = 0; from < links.length; ) {
    const slice = takeWithinSize(links.slice(from, from + VERSIONS_PER_READ), MAX_BYTES_PER_READ, ({ size }) => size)
    const { sql, params } = oneOf(
      'seq',
      slice.map(({ seq }) => seq),
    )
    const formers = new Map(
      (await db.query(`select seq, former from entity_versions where ${sql}`, params)) as [number, string | null][],
    )
    for (const link of slice) yield { ...link, former: formers.get(link.seq) ?? null }
    from += slice.length
  }
}

/** Returns the latest versions first. */
export const sortLinks = (links: VersionLink[]) => links.sort((one, other) => other.number - one.number)

/** Yields the versions of an entity, the latest first, as far as they tell what was at a time, and without those that are too many. */
export async function* readChain(
  db: Db,
  history: EntityHistory,
  identifier: string,
  head: number,
  at?: number,
): AsyncGenerator<Version, void> {
  let latest: number | undefined
  for (let next: number | null = head; next !== null; ) {
    const read: VersionLink[] = await readLinks(db, history, [next], { at, limit: VERSIONS_PER_READ })
    const links = sortLinks(read.filter((link) => link.identifier === identifier))
    for await (const version of readContents(db, links)) {
      latest ??= version.number
      yield withinHistory(version, history, latest)
      if (isOldest(version, history, latest)) return
    }
    next = links.at(-1)?.previous ?? null
  }
}

/** Tells whether a version is the oldest of those that the history keeps of an entity. */
const isOldest = ({ number }: Pick<Version, 'number'>, { versions }: EntityHistory, latest: number) =>
  number > 1 && number <= latest - versions + 1

/** Returns a version as the history shows it: before the oldest that it keeps, nothing is known. */
export const withinHistory = (version: Version & VersionLink, history: EntityHistory, latest: number): Version =>
  isOldest(version, history, latest) ? { ...version, former: null, previous: null, isOldest: true } : version

/** Returns the row of the latest removal of an entity. */
export async function findRemoval(
  db: Pick<Db, 'query'>,
  { number: history }: EntityHistory,
  identifier: string,
): Promise<number | undefined> {
  const [found] = await db.query(
    `select seq from entity_versions where history = ? and identifier = ? and action = ${REMOVED} order by seq desc limit 1`,
    [history, identifier],
  )
  return found?.[0] as number | undefined
}

/**
 * Returns the first version of an entity where no row says what it was: its creation, or what it was when the history
 * was switched on, which nobody is known to have made. `next` is the version after it.
 */
export function toFirstVersion(
  { since: begin }: EntityHistory,
  { header: { created, updated }, creator }: EntityState,
  next?: Version,
): Version {
  const first = { number: next ? next.number - 1 : 1, since: created, author: null, former: null, previous: null }
  if (created >= begin) return { ...first, at: created, action: CREATED, author: creator }
  return { ...first, at: Math.min(updated, begin), action: updated === created ? CREATED : CHANGED }
}
