import { badRequest, type FieldError } from '../core/problem'
import { fieldTypes } from './fields'
import type { FieldType } from './fields/field-type'
import type { Definition, Field } from './shapes'

/** A change as it is kept while entities are prepared for it. Its fields may still say what they are renamed from. */
export type PendingChange = {
  name?: string
  description?: string
  definition: Definition
  numbers: Record<string, number>
}

/** Why a change was given up. */
export type ChangeError = { code: string; message: string; details?: unknown }

/** How a field of the changed blueprint comes by its value in an entity that is there already. */
export type FieldMapping = {
  key: string
  /** The field that it is now; a new one is none. */
  from?: string
  /** A value becomes a list of one, or the other way round. */
  list?: 'wrap' | 'unwrap'
  /** What entities without a value get. */
  fill?: unknown
  /** Why it can't be for an entity: it has a value that cannot stay, or lacks one that it needs. */
  blockedWhen: 'present' | 'absent' | undefined
  /** Values may not fit any more. */
  revalidate: boolean
}

/** What a change of a blueprint does to its entities. */
export type SchemaDiff = {
  /** Whether entities must be looked at before it can be in force. */
  needsBackfill: boolean
  definition: Definition
  steps: FieldMapping[]
  /**
   * The fields that get a new number, so that their index is built beside the old one: all by which an entity could be
   * found otherwise than before.
   */
  reindexedKeys: Set<string>
  /** Formulas are worked out anew for all entities. */
  recomputes: boolean
}

/** Without what counts only for a change. */
const withoutRenamedFrom = ({ renamedFrom: _, ...field }: Field): Field => field

export function diffDefinitions(before: Definition, after: Definition): SchemaDiff {
  const sources = mapSourceFields(before.fields, after.fields)
  const renames = new Map([...sources].flatMap(([key, was]) => (was.key === key ? [] : [[was.key, key] as const])))
  const definition = {
    ...after,
    fields: after.fields.map((field) => withoutRenamedFrom(inheritRoles(field, sources.get(field.key)))),
  }
  const steps = definition.fields.map((field) => mapField(field, sources.get(field.key), definition))
  const recomputes = needsRecompute(before, definition, steps, renames)
  const needsReindex = (field: Field, { fill }: FieldMapping) => {
    const was = sources.get(field.key)
    if (
      !was ||
      (field.unique && !was.unique) ||
      fill !== undefined ||
      (recomputes && isComputed(definition, field.key))
    )
      return true
    return !Bun.deepEquals(indexSignature(field), indexSignature(was))
  }
  const reindexedKeys = new Set(
    definition.fields.filter((field, at) => needsReindex(field, steps[at]!)).map(({ key }) => key),
  )
  const needsBackfill =
    recomputes ||
    sources.size < before.fields.length ||
    renames.size > 0 ||
    steps.some(({ key, from, revalidate, blockedWhen, fill }) =>
      Boolean((from && reindexedKeys.has(key)) || revalidate || blockedWhen || fill !== undefined),
    )
  return { needsBackfill, definition, steps, reindexedKeys, recomputes }
}

/** What each field is now, by what it will be. What was renamed once may be sent again. */
function mapSourceFields(before: Field[], after: Field[]): Map<string, Field> {
  const old = new Map(before.map((field) => [field.key, field]))
  const renamed = new Map(
    after.flatMap(({ key, renamedFrom: from }) =>
      from && from !== key && old.has(from) ? [[key, old.get(from)!] as const] : [],
    ),
  )
  const usedSources = new Set(renamed.values())
  const sources = new Map<string, Field>()
  for (const { key } of after) {
    const was = renamed.get(key) ?? old.get(key)
    if (was && (renamed.has(key) || !usedSources.has(was))) sources.set(key, was)
  }
  return sources
}

/** A new name must not lift the rules of the old one. */
const inheritRoles = (field: Field, was: Field | undefined): Field =>
  was && was.key !== field.key
    ? {
        ...(was.readRoles && { readRoles: was.readRoles }),
        ...(was.writeRoles && { writeRoles: was.writeRoles }),
        ...field,
      }
    : field

function mapField(field: Field, was: Field | undefined, definition: Definition): FieldMapping {
  const { key, required, multi } = field
  const lacks = !!required && !was?.required && !isComputed(definition, key)
  const fill = lacks && field.default !== null ? field.default : undefined
  const step: FieldMapping = { key, revalidate: false, blockedWhen: undefined, fill }
  if (lacks && fill === undefined) step.blockedWhen = 'absent'
  if (!was) return step
  return {
    ...step,
    from: was.key,
    ...(!!multi !== !!was.multi && { list: multi ? 'wrap' : 'unwrap' }),
    revalidate: !isRelaxed(field, was),
    // Who may see what it leads to was checked when it was written.
    blockedWhen: field.target && field.target !== was.target ? 'present' : step.blockedWhen,
  }
}

const isComputed = ({ computed }: Definition, key: string) => !!computed && Object.hasOwn(computed, key)

/** By what a field's values are found; when this is another one, so is their index. */
function indexSignature({ type, multi, indexed, target }: Field) {
  const { toIndexKey, isSearchable } = fieldTypes[type] as FieldType
  return [toIndexKey, !!isSearchable, !!multi, indexed !== false || !!target]
}

/** Whether all that fitted before fits still. */
function isRelaxed(field: Field, was: Field) {
  const same = (name: keyof Field) => Bun.deepEquals(field[name], was[name])
  const isUnsetOrSame = (name: keyof Field) => field[name] === undefined || same(name)
  const choices = new Set(field.enum?.map((choice) => JSON.stringify(choice)))
  return (
    same('type') &&
    !!field.multi === !!was.multi &&
    (['min', 'max', 'pattern', 'schema'] as const).every(isUnsetOrSame) &&
    (!field.enum || !!was.enum?.every((choice) => choices.has(JSON.stringify(choice))))
  )
}

/** Whether other formulas, or other values that they see, make existing values wrong. */
function needsRecompute(before: Definition, after: Definition, steps: FieldMapping[], renames: Map<string, string>) {
  const formulas = Object.entries(after.computed ?? {})
  if (!formulas.length) return false
  const formulasBefore = renameKeys(before.computed ?? {}, renames)
  return (
    formulas.some(([key, text]) => formulasBefore[key] !== text) ||
    steps.some(
      ({ key, fill, list, revalidate }) => fill !== undefined || list || (revalidate && isComputed(after, key)),
    )
  )
}

const renameKeys = <Value>(of: Record<string, Value>, renames: Map<string, string>) =>
  Object.fromEntries(Object.entries(of).map(([key, value]) => [renames.get(key) ?? key, value]))

/** What a change leaves as it is, but for the new names of fields. @throws 400 for a field that cannot be renamed so */
export function applyRenames(before: Definition, fields: Field[] = before.fields): Definition {
  validateRenames(before.fields, fields)
  const sources = mapSourceFields(before.fields, fields)
  const renames = new Map([...sources].map(([key, was]) => [was.key, key]))
  const { limitations, computed } = before
  const newKeyOf = (key: string) => renames.get(key) ?? key
  return {
    ...before,
    ...(limitations && {
      limitations: limitations.map(({ properties, ...rest }) => ({
        ...rest,
        ...(properties && { properties: properties.map(newKeyOf) }),
      })),
    }),
    ...(computed && { computed: renameKeys(computed, renames) }),
  }
}

function validateRenames(before: Field[], after: Field[]) {
  const errors: FieldError[] = []
  const usedSources = new Set<string>()
  for (const [index, { key, renamedFrom: from }] of after.entries()) {
    const addError = (message: string) => errors.push({ path: `/fields/${index}/renamedFrom`, message })
    if (from === undefined || from === key) continue
    const exists = before.some((field) => field.key === from)
    if (!exists && !before.some((field) => field.key === key)) addError(`There is no field "${from}" to rename.`)
    if (exists && usedSources.has(from)) addError(`"${from}" is renamed twice.`)
    usedSources.add(from)
  }
  if (errors.length) badRequest(...errors)
}

/** Formulas that were not sent with a change must not mention what it takes away. @throws 400 */
export function assertFormulaReferences(before: Definition, after: Definition, mentions: Map<string, Set<string>>) {
  const remainingKeys = new Set(after.fields.map(({ key }) => key))
  const removedKeys = before.fields.map(({ key }) => key).filter((key) => !remainingKeys.has(key))
  const errors = [...mentions].flatMap(([key, names]) =>
    removedKeys
      .filter((name) => names.has(name))
      .map((name) => ({
        path: `/computed/${key}`,
        message: `The formula of "${key}" uses the field "${name}", which this change removes. Send "computed" as well.`,
      })),
  )
  if (errors.length) badRequest(...errors.slice(0, 100))
}
