import { type EntityHistory, historyOf } from '../../blueprints/history'
import type { Model } from '../../blueprints/model'
import { isInScope, type RowScope } from '../../blueprints/permissions'
import { DAY_MS, now, parseIsoDateTime, toIsoString } from '../../core/clock'
import { badRequest, Problem } from '../../core/problem'
import type { Db } from '../../storage/port'
import { readColumns, type StoredEntity, storedColumns, toStored } from '../store/rows'
import { extractDocumentJson } from '../store/serializer'
import { CREATED, type EntityState, type Owners, REMOVED, Rewind, type Version } from './version'
import { findRemoval, readChain, toFirstVersion } from './version-chain'

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

/** One version of an entity with the states before and after it, and the owners who judge who may see it. */
export type VersionStep = {
  version: Version
  before: EntityState | undefined
  after: EntityState | undefined
  /** Whether the state before is known. */
  isKnown: boolean
  owners: Owners | undefined
}

/** An entity as it is, and the row of its latest version in the history of its blueprint. */
export type PresentEntity = EntityState & { header: StoredEntity; head: number | null }

/** Returns the columns of an entity as it is, for `toPresent`. */
export const presentColumns = (model: Model) => `${storedColumns(model)}, creator`

/** Returns the entity of a row of `presentColumns`. */
export function toPresent({ historyNumber }: Model, row: unknown[]): PresentEntity {
  const header = toStored(row)
  return {
    ...{ header, doc: JSON.parse(extractDocumentJson(header.shown)), creator: row.at(-1) as string | null },
    head: header.history === historyNumber ? header.versionRow : null,
  }
}

/** Reads the present state of an entity, by identifier or `_id`. */
export async function readPresent(db: Db, model: Model, name: string): Promise<PresentEntity | undefined> {
  const row = await readColumns(db, model, name, presentColumns(model))
  return row && toPresent(model, row)
}

const findHead = (db: Db, history: EntityHistory, identifier: string, present: PresentEntity | undefined) =>
  present ? present.head : findRemoval(db, history, identifier)

/**
 * Yields the versions of an entity that are in the row scope, the latest first. An entity that was removed is judged by
 * its last owners: another one may have got its identifier since. Versions of other owners are left out, and so is what
 * a transfer from them has replaced.
 */
export async function* walkVersions(
  db: Db,
  model: Model,
  rowScope: RowScope,
  identifier: string,
  present: PresentEntity | undefined,
): AsyncGenerator<VersionStep, void> {
  const history = requireHistory(model)
  const rewind = new Rewind(model, identifier, present)
  let owners: Owners | undefined = present?.header
  const head = await findHead(db, history, identifier, present)
  let last: Version | undefined
  if (head)
    for await (const version of readChain(db, history, identifier, head)) {
      last = version
      const after = rewind.state
      rewind.undo(version)
      const { state: before, isKnown } = rewind
      if (version.action === REMOVED) owners = before?.header
      if (owners && isInScope(rowScope, owners) && isOfScope(rowScope, after ?? before))
        yield { version, before, after, isKnown: isKnown && isOfScope(rowScope, before), owners }
      if (version.action === CREATED) owners = undefined
      if (!isKnown) return
    }
  const after = rewind.state
  const isWhole = head ? last?.previous === null : present?.header.history === history.number
  if (!after || !isWhole || !owners || !isInScope(rowScope, owners) || !isOfScope(rowScope, after)) return
  const version = toFirstVersion(history, after, last)
  yield { version, before: undefined, after, isKnown: version.action === CREATED, owners }
}

/** Returns whether the owners that an entity had in a state, if it was there, are in the row scope. */
export const isOfScope = (rowScope: RowScope, state: EntityState | undefined) =>
  !state || isInScope(rowScope, state.header)

/** The state of an entity as of some time: absent, no longer known, or its state with its last owners. */
export type StateAsOf = { known: false; owners?: Owners } | { known: true; state?: EntityState; owners?: Owners }

/** Undoes versions that are later than a time, one after the other. */
export class StateSearch {
  #rewind: Rewind
  #owners: Owners | undefined
  #last: Version | undefined

  constructor(
    private model: Model,
    identifier: string,
    present: PresentEntity | undefined,
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
    this.#last = version
    if (version.action === CREATED) this.#owners = undefined
    this.#rewind.undo(version)
    if (version.action === CREATED && version.isOldest) this.#rewind.forget()
    if (version.action === REMOVED) this.#owners = this.#rewind.state?.header
    return !this.#rewind.isKnown || this.isFound
  }

  /** Whether no version before can tell more. */
  get isFound() {
    const { state } = this.#rewind
    return !!state && state.header.updated <= this.at
  }

  /** Ends the search when there is no further version; `head` is where those of the entity begin. */
  end(head: number | null | undefined) {
    const { state } = this.#rewind
    if (!state || this.isFound) return
    if (head && this.#last?.previous !== null) this.#rewind.forget()
    else this.#settle(toFirstVersion(requireHistory(this.model), state))
  }

  /** The state that was found holds since this version. */
  #settle({ at }: Pick<Version, 'at'>) {
    const { state } = this.#rewind
    if (state && !this.isFound) this.#rewind.state = { ...state, header: { ...state.header, updated: at } }
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
  present: PresentEntity | undefined,
  at: number,
): Promise<StateAsOf> {
  const history = requireHistory(model)
  const search = new StateSearch(model, identifier, present, at)
  if (search.isFound) return search.result
  const head = await findHead(db, history, identifier, present)
  if (head)
    for await (const version of readChain(db, history, identifier, head, at))
      if (search.take(version)) return search.result
  search.end(head)
  return search.result
}
