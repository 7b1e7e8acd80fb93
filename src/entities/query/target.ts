import type { FieldType } from '../../blueprints/fields/field-type'
import { isTruncated, textKey } from '../../blueprints/fields/index-key-codec'
import { isAltering, type Model, type ModelField } from '../../blueprints/model'
import { fieldLabel, isIndexed, isSingleValued } from '../store/index-keys'
import type { LikePattern } from './like-pattern'
import type { PartType } from './object-paths'

/** Where a value is stored: in a column of the entity, or in the index keys of a field. */
export type Target =
  | { at: 'column'; column: 'e._id' | 'e.identifier' | 'e."user"' | 'e.workspace' | 'e.created' | 'e.updated' }
  | {
      at: 'field'
      field: ModelField
      path: string
      label: string
      single: boolean
      indexed: boolean
      /** The form of entities whose document is in the column `altered`, during an alteration. */
      form: number | undefined
    }

/** A condition on a target. */
export type Condition = { target: Target } & (Predicate | { is: 'present' } | { is: 'absent' })
/** A test of a value. */
export type Predicate =
  | { is: 'in' | 'not in'; values: (string | number)[] }
  | { is: 'between'; from?: Bound; to?: Bound }
/** `text` is the whole text of a value that the index has only the beginning of. */
type Bound = { value: string | number; open: boolean; text?: string }

/** Returns whether the index cannot tell which values are in a range, because a bound is longer than what it has of texts. */
export const hasLongBound = (condition: Condition) =>
  condition.is === 'between' && [condition.from, condition.to].some((bound) => bound?.text !== undefined)

/** Returns whether the values of a target are texts, of which the index has at most the beginning. */
export const isText = (target: Target): target is Extract<Target, { at: 'field' }> =>
  target.at === 'field' && target.single && target.field.kind.toIndexKey === textKey

/** Returns whether a value of a target is longer than what the index has of texts. */
export const isLongText = (target: Target, value: unknown) =>
  typeof value === 'string' && isTruncated(value) && isText(target)

/**
 * A text pattern. `like-filter.ts` finds the matching texts, not the database, so that letters compare alike
 * everywhere.
 */
export type LikeCondition = { target: Target; pattern: LikePattern }

export type Order = { target: Target; descending: boolean }

/** A resolved name of a query: its target and its kind. Paths into objects have the type in the schema, or any type. */
export type ResolvedName = { target: Target; kind: FieldType | undefined; part?: PartType }

/** Returns the target of a field, or of a path into it. */
export const toFieldTarget = (model: Model, field: ModelField, path = '') => ({
  ...{ at: 'field' as const, field, path, label: fieldLabel(field, path) },
  ...{ single: isSingleValued(field), indexed: isIndexed(field), form: isAltering(model) ? model.form : undefined },
})

/** Returns the identity of a target; targets with equal keys are the same. */
export const targetKey = (target: Target) => (target.at === 'column' ? target.column : target.label)

/** Returns the name of a target in queries. */
export const targetName = (target: Target) =>
  target.at === 'column'
    ? target.column.slice(2).replaceAll('"', '')
    : target.field.key + (target.path && `.${target.path}`)
