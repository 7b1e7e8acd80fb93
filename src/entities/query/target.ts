import type { FieldType } from '../../blueprints/fields/field-type'
import type { ModelField } from '../../blueprints/model'
import type { LikePattern } from './like-pattern'
import type { PartType } from './object-paths'

/** Where a value is kept: a column of the entity, or the texts of a field. */
export type Target =
  | { at: 'column'; column: 'e._id' | 'e.identifier' | 'e."user"' | 'e.workspace' | 'e.created' | 'e.updated' }
  | { at: 'field'; field: ModelField; path: string; label: string; single: boolean; indexed: boolean }

/** One thing that is asked of every entity. */
export type Condition = { target: Target } & (Predicate | { is: 'present' } | { is: 'absent' })
/** What can be asked of a value. */
export type Predicate =
  | { is: 'in' | 'not in'; values: (string | number)[] }
  | { is: 'between'; from?: Bound; to?: Bound }
type Bound = { value: string | number; open: boolean }

/** A pattern for texts. No engine judges it: `like-filter.ts` finds the texts that match, so that letters are compared alike everywhere. */
export type LikeCondition = { target: Target; pattern: LikePattern }

export type Order = { target: Target; descending: boolean }

/** A name of a query: where its values are, and of which kind; parts of objects are of the type that a schema says, or of any. */
export type ResolvedName = { target: Target; kind: FieldType | undefined; part?: PartType }

/** Which target it is: two of the same name are the same. */
export const targetKey = (target: Target) => (target.at === 'column' ? target.column : target.label)

/** What a query calls a target. */
export const targetName = (target: Target) =>
  target.at === 'column'
    ? target.column.slice(2).replaceAll('"', '')
    : target.field.key + (target.path && `.${target.path}`)
