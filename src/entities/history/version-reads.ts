import { type EntityHistory, historyOf } from '../../blueprints/history'
import type { Model } from '../../blueprints/model'
import { isInScope, type RowScope } from '../../blueprints/permissions'
import { DAY_MS, now, parseIsoDateTime, toIsoString } from '../../core/clock'
import { badRequest, Problem } from '../../core/problem'
import type { Db } from '../../storage/port'
import { readStored } from '../store/rows'
import { extractDocumentJson } from '../store/serializer'
import { takeWithinSize } from '../store/sql-fragments'
import { CREATED, type EntityState, type Owners, REMOVED, Rewind, type Version } from './version'

const VERSIONS_PER_READ = 100 // versions of one statement
const MAX_CHARACTERS_PER_READ = 1 << 20 // characters of versions in memory, unless a single one is larger

/** Returns the history of a blueprint. @throws 400 HISTORY_OFF */
export function requireHistory(model: Model): EntityHistory {
  const history = historyOf(model)
  if (history) return history
  throw new Problem(
    400,
    'HISTORY_OFF',
    `The blueprint "${model.key}" keeps no history of its entities. Switch it on with "history": true.`,
  )
}

/**
 * Returns a time of `$asOf` in ms. @throws 400 INVALID_INPUT, 400 HISTORY_OFF, 410 HISTORY_NOT_KEPT when it is before
 * what is kept
 */
export function parseAsOf(model: Model, text: string): number {
  const { since, days } = requireHistory(model)
  const at = parseIsoDateTime(text)
  if (at === undefined)
    return badRequest({ path: '$asOf', message: '$asOf must be a time in ISO 8601, such as 2026-01-31T12:00:00Z.' })
  const time = now()
  if (at > time) badRequest({ path: '$asOf', message: '$asOf must not lie in the future.' })
  const first = Math.max(since, time - days * DAY_MS)
  if (at < first) throw notKept(`The history of "${model.key}" begins at ${toIsoString(first)}.`)
  return at
}

/** Returns the error for a state that is no longer known. */
export const notKept = (message: string) => new Problem(410, 'HISTORY_NOT_KEPT', message)

/** Yields the versions of an entity, the latest first. */
export async function* readVersions(
  db: Db,
  { number: history }: EntityHistory,
  identifier: string,
): AsyncGenerator<Version, void> {
  const sizes = `select number, coalesce(octet_length(former), 0) from entity_versions
    where history = ? and identifier = ? and number < ? order by number desc limit ?`
  const select = `select number, at, author, action, former from entity_versions
    where history = ? and identifier = ? and number < ? and number >= ? order by number desc`
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const listed = (await db.query(sizes, [history, identifier, before, VERSIONS_PER_READ])) as [number, number][]
    const last = takeWithinSize(listed, MAX_CHARACTERS_PER_READ, ([, size]) => Number(size)).at(-1)
    if (!last) return
    for (const row of await db.query(select, [history, identifier, before, last[0]])) yield toVersion(row)
    before = Number(last[0])
  }
}

/** Returns the version of a row of number, time, author, action and former values. */
export const toVersion = ([number, at, author, action, former]: unknown[]): Version => ({
  ...{ number: Number(number), at: Number(at), action: Number(action) },
  ...{ author: author as string | null, former: former as string | null },
})

/** One version of an entity with the states before and after it, and the owners who judge who may see it. */
export type VersionStep = {
  version: Version
  before: EntityState | undefined
  after: EntityState | undefined
  /** Whether the state before is known. */
  isKnown: boolean
  owners: Owners | undefined
}

/** Reads the present state of an entity, by identifier or `_id`. */
export async function readPresent(db: Db, model: Model, name: string): Promise<EntityState | undefined> {
  const stored = await readStored(db, model, name)
  return stored && { header: stored, doc: JSON.parse(extractDocumentJson(stored.shown)) }
}

/**
 * Yields the versions of an entity that are in the row scope, the latest first. An entity that was removed is judged by
 * its last owners: another one may have got its identifier since.
 */
export async function* walkVersions(
  db: Db,
  model: Model,
  rowScope: RowScope,
  identifier: string,
  present: EntityState | undefined,
): AsyncGenerator<VersionStep, void> {
  const rewind = new Rewind(model, identifier, present)
  let owners: Owners | undefined = present?.header
  for await (const version of readVersions(db, requireHistory(model), identifier)) {
    const after = rewind.state
    rewind.undo(version)
    const { state: before, isKnown } = rewind
    if (version.action === REMOVED) owners = before?.header
    if (owners && isInScope(rowScope, owners)) yield { version, before, after, isKnown, owners }
    if (version.action === CREATED) owners = undefined
    if (!isKnown) return
  }
}

/** The state of an entity as of some time: absent, no longer known, or its state with its last owners. */
export type StateAsOf = { known: false; owners?: Owners } | { known: true; state?: EntityState; owners?: Owners }

/** Undoes versions that are later than a time, one after the other. */
export class StateSearch {
  #rewind: Rewind
  #owners: Owners | undefined
  #wasUndone = false

  constructor(
    model: Model,
    identifier: string,
    present: EntityState | undefined,
    private at: number,
  ) {
    this.#rewind = new Rewind(model, identifier, present)
    this.#owners = present?.header
  }

  /** Takes the next version, from the latest on. Returns whether the state is found. */
  take(version: Version): boolean {
    if (version.at <= this.at) {
      this.#settle(version)
      return true
    }
    if (version.action === CREATED) this.#owners = undefined
    this.#rewind.undo(version)
    this.#wasUndone = true
    if (version.action === REMOVED) this.#owners = this.#rewind.state?.header
    return !this.#rewind.isKnown
  }

  /** The state that was found holds since this version. */
  #settle({ at }: Version) {
    const { state } = this.#rewind
    if (state && (this.#wasUndone || state.header.updated > this.at))
      this.#rewind.state = { ...state, header: { ...state.header, updated: at } }
  }

  get result(): StateAsOf {
    const { isKnown, state } = this.#rewind
    if (!isKnown) return { known: false, owners: this.#owners }
    if (!state || state.header.created > this.at) return { known: true }
    const updated = Math.min(state.header.updated, this.at)
    return { known: true, state: { ...state, header: { ...state.header, updated } }, owners: this.#owners }
  }
}

/** Returns the state of an entity as of a time. */
export async function readStateAsOf(
  db: Db,
  model: Model,
  identifier: string,
  present: EntityState | undefined,
  at: number,
): Promise<StateAsOf> {
  const search = new StateSearch(model, identifier, present, at)
  for await (const version of readVersions(db, requireHistory(model), identifier)) if (search.take(version)) break
  return search.result
}
