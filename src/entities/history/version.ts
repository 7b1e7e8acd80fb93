import type { EntityHistory } from '../../blueprints/history'
import type { Model, ModelField } from '../../blueprints/model'
import type { Doc } from '../store/doc'
import { type EntityHeader, extractDocumentJson } from '../store/serializer'

/** What a version did to its entity, as it is stored. */
export const CHANGED = 0
export const CREATED = 1
export const REMOVED = 2

/** A version. `at` is in ms since 1970, and `since` is when the state before was last written. */
export type Version = {
  number: number
  at: number
  since: number
  author: string | null
  action: number
  former: string | null
  /** The row of the version before, if there is one. */
  previous: number | null
  /** Whether more versions came before it than are kept. */
  isOldest?: boolean
}

/** Who owns an entity. */
export type Owners = Pick<EntityHeader, 'user' | 'workspace'>

/** The state of an entity at some time, and who created it, if that is known. */
export type EntityState = { header: EntityHeader; doc: Doc; creator: string | null }

// System properties have letters where fields have numbers.
const USER = 'u'
const WORKSPACE = 'w'
const CREATED_AT = 'c'
const ID = 'i'
const CREATOR = 'a'

/** An entity before or after a change. */
export type OwnedDocument = Owners & { shown: string }

/** Returns what a change of an entity replaces, as JSON, or undefined when nothing differs. */
export function encodeChange(
  { numbers }: EntityHistory,
  before: OwnedDocument,
  after: OwnedDocument,
): string | undefined {
  const former: Doc = {}
  const [one, other] = [extractDocumentJson(before.shown), extractDocumentJson(after.shown)]
  if (one !== other) {
    const [old, changed]: Doc[] = [JSON.parse(one), JSON.parse(other)]
    for (const key in old)
      if (key in numbers && !Bun.deepEquals(old[key], changed![key])) former[numbers[key]!] = old[key]
    for (const key in changed) if (key in numbers && old![key] === undefined) former[numbers[key]!] = null
  }
  if (before.user !== after.user) former[USER] = before.user
  if (before.workspace !== after.workspace) former[WORKSPACE] = before.workspace
  for (const _ in former) return JSON.stringify(former)
}

/** Returns all of an entity that is removed, as JSON. */
export function encodeRemoval({ numbers }: EntityHistory, { header, doc, creator }: EntityState): string {
  const former: Doc = {}
  for (const key in doc) if (key in numbers) former[numbers[key]!] = doc[key]
  if (header._id !== header.identifier) former[ID] = header._id
  if (header.user !== null) former[USER] = header.user
  if (header.workspace !== null) former[WORKSPACE] = header.workspace
  if (creator !== null) former[CREATOR] = creator
  return JSON.stringify({ ...former, [CREATED_AT]: header.created })
}

/**
 * The state of an entity, from which one version after the other is undone, the latest first. Former values appear as the
 * fields that the blueprint has now.
 */
export class Rewind {
  /** The state before the versions that were undone; undefined when there was no such entity. */
  state: EntityState | undefined
  /** Whether the state is known. It is not where earlier versions are no longer kept. */
  isKnown = true
  #fields: Map<string, ModelField>

  constructor(
    model: Model,
    private identifier: string,
    state: EntityState | undefined,
  ) {
    this.state = state
    this.#fields = fieldsByNumber(model)
  }

  /** Undoes a version. States that were read before do not change. */
  undo({ action, former, since }: Version) {
    if (action === CREATED) this.state = undefined
    else if (former === null) this.forget()
    else if (action === REMOVED) this.#restore(JSON.parse(former), since)
    else if (this.state) this.#apply(JSON.parse(former), this.state, since)
  }

  /** Notes that the state before is not known. */
  forget() {
    this.state = undefined
    this.isKnown = false
  }

  #restore(former: Doc, since: number) {
    const { [ID]: _id = this.identifier, [CREATED_AT]: created = since, [CREATOR]: creator = null } = former
    const header = { _id, identifier: this.identifier, created, user: null, workspace: null }
    this.#apply(former, { header: header as EntityHeader, doc: {}, creator: creator as string | null }, since)
  }

  #apply(former: Doc, { header, doc, creator }: EntityState, updated: number) {
    const user = (USER in former ? former[USER] : header.user) as string | null
    const workspace = (WORKSPACE in former ? former[WORKSPACE] : header.workspace) as string | null
    const earlier = { ...doc }
    for (const number in former) {
      const field = this.#fields.get(number)
      if (!field) continue
      const value = toPresentForm(field, former[number])
      if (value === undefined) delete earlier[field.key]
      else earlier[field.key] = value
    }
    this.state = { header: { ...header, updated, user, workspace }, doc: earlier, creator }
  }
}

const cachedFields = new WeakMap<Model, Map<string, ModelField>>()

function fieldsByNumber(model: Model): Map<string, ModelField> {
  const existing = cachedFields.get(model)
  if (existing) return existing
  const numbers = model.historyFields?.numbers ?? {}
  const fields = new Map(model.fields.map((field) => [`${numbers[field.key]}`, field]))
  cachedFields.set(model, fields)
  return fields
}

/** A field may have become a list since, or may have stopped to be one. */
function toPresentForm({ multi, kind }: ModelField, value: unknown) {
  if (value === null) return undefined
  if (multi) return Array.isArray(value) ? value : [value]
  return Array.isArray(value) && kind.toIndexKey && value.length < 2 ? value[0] : value
}
