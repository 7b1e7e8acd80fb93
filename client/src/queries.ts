import type { Entity } from './entity'

/** What a client knows about a blueprint. */
export interface Kind {
  entity: object
  properties: object
  draft: object
  change: object
  relations: object
  filters: object
  sorted: string
  searched: string
}
export type Kinds<B> = { [Key in keyof B]: Kind }

type SystemField = Exclude<keyof Entity, 'metadata'>
type Comparison<Value> = { $lt?: Value; $lte?: Value; $gt?: Value; $gte?: Value }
type Choice<Value> = { $ne?: Value; $in?: readonly Value[]; $nin?: readonly Value[]; $exists?: boolean }

/** Which entities match: by values of fields, by parts of objects (`address.city`), and by words. */
export type Filters<K extends Kind> = {
  [Name in keyof K['filters']]?: K['filters'][Name] | (Comparison<K['filters'][Name]> & Choice<K['filters'][Name]>)
} & { [Name in SystemField]?: string | (Comparison<string> & Choice<string>) } & {
  /** Words that must all occur in texts that the caller may read; the last one may be the beginning of a word. */
  $q?: string
  /** In which text fields the words are searched for. */
  $qProps?: readonly K['searched'][]
  /** Time zone for dates without a time in filters, such as Europe/Lisbon; default: UTC. */
  $timezone?: string
}

/** Relations, with dots for relations of their entities: `author.country`. */
export type Paths<K extends Kind> = (keyof K['relations'] & string) | `${keyof K['relations'] & string}.${string}`

/** What a response contains of an entity, and of the entities that its relations point to. */
export type EntityView<S, P> = {
  /** The properties to return; default: all. */
  $select?: readonly S[]
  /** The relations whose identifiers are replaced by the entities. */
  $populate?: readonly P[]
  /** Shows the state as of this time, written as in `updated`. Needs a blueprint with a history; excludes `$populate` and `$q`. */
  $asOf?: string
}

type SortField<K extends Kind> = K['sorted'] | SystemField
export type Query<K extends Kind, S, P> = Filters<K> &
  EntityView<S, P> & {
    /** Fields to sort by, with "-" for descending order; default: newest first. */
    $sort?: Order<K> | readonly Order<K>[]
    /** How many entities to return; default: 100, maximum: 1000. */
    $limit?: number
    $skip?: number
  }
type Order<K extends Kind> = SortField<K> | `-${SortField<K>}`

type PathHead<Path> = Path extends `${infer First}.${string}` ? First : Path
type PathTail<Path, First> = First extends string ? (Path extends `${First}.${infer Others}` ? Others : never) : never

/** An entity that was removed, or that the caller may not read, stays an identifier. */
type PopulatedValue<Value, Other> = Value extends readonly (infer One)[]
  ? (One | Other)[]
  : Value extends string
    ? Value | Other
    : Value
type Populated<B extends Kinds<B>, K extends Kind, P> = {
  [Name in keyof K['properties']]: Name extends PathHead<P> & keyof K['relations']
    ? K['relations'][Name] extends keyof B
      ? PopulatedValue<K['properties'][Name], FullEntity<B, B[K['relations'][Name]], PathTail<P, Name>>>
      : K['properties'][Name]
    : K['properties'][Name]
}
type FullEntity<B extends Kinds<B>, K extends Kind, P> = [P] extends [never]
  ? K['entity']
  : Omit<Entity, 'metadata'> & { metadata: Populated<B, K, P> } & Populated<B, K, P>
type SelectedKeys<K extends Kind, S> = Extract<
  S | ('metadata' extends S ? keyof K['properties'] : never),
  keyof K['properties']
>

/** An entity with the selected properties and the populated relations. */
export type EntityResult<B extends Kinds<B>, K extends Kind, S, P> = [S] extends [never]
  ? FullEntity<B, K, P>
  : Pick<Entity, '_id' | 'identifier' | Extract<S, SystemField>> & {
      metadata: Pick<Populated<B, K, P>, SelectedKeys<K, S>>
    } & Pick<Populated<B, K, P>, SelectedKeys<K, S>>
export type Selectable<K extends Kind> = (keyof K['properties'] & string) | SystemField | 'metadata'

/** What a write did to an entity. */
export type EntityVersion<K extends Kind> = {
  version: number
  action: 'create' | 'change' | 'remove'
  at: string
  /** The id of the user; null for guests, the server, and what was before the history. */
  by: string | null
  changes: { [Name in keyof K['properties'] | 'user' | 'workspace']?: { from: unknown; to: unknown } }
  /** The entity as it was then, with `$entity`, unless it was removed. */
  entity?: K['entity']
}

export type Operation<K extends Kind> =
  | { op: 'create'; identifier?: string; data: K['draft'] }
  | { op: 'update'; identifier: string; data: K['change'] }
  | { op: 'upsert'; identifier: string; data: K['draft'] | K['change'] }
  | { op: 'delete'; identifier: string }
export type Result<K extends Kind> = {
  op: Operation<K>['op']
  identifier: string
  status: number
  /** Absent when the entity was removed. */
  entity?: K['entity']
}
export type Report = { imported: number; failed: number; errors: { line: number; code: string; message: string }[] }

// Parameters of the server that may also be names of fields.
const RESERVED_PARAMETERS = ['bypassAdmin', 'format', 'confirm', 'x', 'sum', 'groupBy', 'interval']

/** Returns the query of a list. */
export function toQueryString(query: object): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (name.startsWith('$')) {
      if (!Array.isArray(value)) parameters.append(name, String(value))
      else if (value.length) parameters.append(name, toListText(value))
    } else if (value !== null && typeof value === 'object') {
      for (const [operator, other] of Object.entries(value))
        if (other !== undefined)
          parameters.append(`${name}[${operator}]`, Array.isArray(other) ? joinList(other) : toFilterText(name, other))
    } else if (RESERVED_PARAMETERS.includes(name))
      parameters.append(`${name}[$in]`, joinList([toFilterText(name, value)]))
    else parameters.append(name, toFilterText(name, value))
  }
  return parameters.size ? `?${parameters}` : ''
}

/** To the server these values are no filter, so it would return all entities. */
function toFilterText(name: string, value: unknown) {
  if (value === '' || value === 'undefined' || value === null)
    throw new TypeError(`"${name}" cannot be filtered by ${JSON.stringify(value)}.`)
  return String(value)
}

function joinList(values: readonly unknown[]) {
  if (!values.length) throw new TypeError('A list in a query must not be empty.')
  return toListText(values)
}

/** Returns several values as the text of one parameter. Commas would tear some of them; those are in a JSON array. */
export const toListText = (values: readonly unknown[]): string =>
  values.some((value) => /^$|,|^\[|^\s|\s$/.test(String(value))) ? JSON.stringify(values.map(String)) : values.join()
