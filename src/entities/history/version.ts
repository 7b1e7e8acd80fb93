import type { EntityHistory } from '../../blueprints/history'
import type { Model, ModelField } from '../../blueprints/model'
import type { Doc } from '../store/doc'
import type { EntityHeader } from '../store/serializer'

/** What a version did to its entity, as it is stored. */
export const CHANGED = 0
export const CREATED = 1
export const REMOVED = 2

/** A stored version. `at` is in ms since 1970. */
export type Version = { number: number; at: number; author: string | null; action: number; former: string | null }

/** Who owns an entity. */
export type Owners = Pick<EntityHeader, 'user' | 'workspace'>

/** The state of an entity at some time. */
export type EntityState = { header: EntityHeader; doc: Doc }

// System properties have letters where fields have numbers.
const USER = 'u'
const WORKSPACE = 'w'
const CREATED_AT = 'c'
const ID = 'i'

/** Returns what a change of an entity replaces, as JSON, or undefined when nothing differs. */
export function encodeChange(
  { numbers }: EntityHistory,
  before: { owners: Owners; doc: Doc },
  after: { owners: Owners; doc: Doc },
): string | undefined {
  const former: Doc = {}
  for (const key in before.doc)
    if (key in numbers && !Bun.deepEquals(before.doc[key], after.doc[key])) former[numbers[key]!] = before.doc[key]
  for (const key in after.doc) if (key in numbers && before.doc[key] === undefined) former[numbers[key]!] = null
  if (before.owners.user !== after.owners.user) former[USER] = before.owners.user
  if (before.owners.workspace !== after.owners.workspace) former[WORKSPACE] = before.owners.workspace
  for (const _ in former) return JSON.stringify(former)
}

/** Returns all of an entity that is removed, as JSON. */
export function encodeRemoval({ numbers }: EntityHistory, { header, doc }: EntityState): string {
  const former: Doc = {}
  for (const key in doc) if (key in numbers) former[numbers[key]!] = doc[key]
  if (header._id !== header.identifier) former[ID] = header._id
  if (header.user !== null) former[USER] = header.user
  if (header.workspace !== null) former[WORKSPACE] = header.workspace
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
  undo({ action, former, at }: Version) {
    if (action === CREATED) this.state = undefined
    else if (former === null) this.#forget()
    else if (action === REMOVED) this.#restore(JSON.parse(former), at)
    else if (this.state) this.#apply(JSON.parse(former), this.state)
  }

  #forget() {
    this.state = undefined
    this.isKnown = false
  }

  #restore(
    { [ID]: _id = this.identifier, [USER]: user = null, [WORKSPACE]: workspace = null, ...former }: Doc,
    at: number,
  ) {
    const header = { _id, identifier: this.identifier, created: former[CREATED_AT] ?? at, updated: at, user, workspace }
    this.#apply(former, { header: header as EntityHeader, doc: {} })
  }

  #apply(former: Doc, { header, doc }: EntityState) {
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
    this.state = { header: { ...header, user, workspace }, doc: earlier }
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
