import { badRequest, type FieldError } from '../core/problem'
import { typeOfField } from './fields'
import { namesFiles } from './file-fields'
import type { Definition, Field } from './shapes'

/** A stored change for which entities are being prepared. Its fields may contain `renamedFrom`. */
export type PendingChange = {
  name?: string
  description?: string
  definition: Definition
  numbers: Record<string, number>
}

/** The reason why a change was given up. */
export type ChangeError = { code: string; message: string; details?: unknown }

/** How a field of the changed blueprint gets its value in an existing entity. */
export type FieldMapping = {
  key: string
  /** The key of the current field; a new field has none. */
  from?: string
  /** Wraps a value in a list, or takes it out of a list. */
  list?: 'wrap' | 'unwrap'
  /** The value for entities without one. */
  fill?: unknown
  /** When the change is impossible for an entity: it has a value that cannot stay, or lacks a required one. */
  blockedWhen: 'present' | 'absent' | undefined
  /** Whether existing values may have become invalid. */
  revalidate: boolean
  /** Whether the field names files from now on: nobody has checked whether the writers of its values may read them. */
  beginsToNameFiles?: boolean
}

/** The effect of a change of a blueprint on its entities. */
export type SchemaDiff = {
  /** Whether all entities must be processed before the change can be in force. */
  needsBackfill: boolean
  definition: Definition
  steps: FieldMapping[]
  /**
   * The fields that get a new number, so that their index is built beside the old one: all fields whose index entries
   * may change.
   */
  reindexedKeys: Set<string>
  /** Whether formulas are evaluated again for all entities. */
  recomputes: boolean
}

/** Returns a field without `renamedFrom`, which counts only in a change. */
const withoutRenamedFrom = ({ renamedFrom: _, ...field }: Field): Field => field

/** Returns the effect of a change. `rebuilt`: fields whose index is built again in any case. */
export function diffDefinitions(before: Definition, after: Definition, rebuilt: string[] = []): SchemaDiff {
  const sources = mapSourceFields(before.fields, after.fields)
  const renames = new Map([...sources].flatMap(([key, was]) => (was.key === key ? [] : [[was.key, key] as const])))
  const definition = {
    ...after,
    fields: after.fields.map((field) => withoutRenamedFrom(inheritRoles(field, sources.get(field.key)))),
  }
  const steps = definition.fields.map((field) => mapField(field, sources.get(field.key), definition, before))
  const recomputes = needsRecompute(before, definition, steps, renames)
  const needsReindex = (field: Field, { fill }: FieldMapping) => {
    const was = sources.get(field.key)
    if (
      !was ||
      rebuilt.includes(field.key) ||
      (field.unique && !was.unique) ||
      fill !== undefined ||
      (recomputes && isComputed(definition, field.key))
    )
      return true
    return !Bun.deepEquals(indexSignature(definition, field), indexSignature(before, was))
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

/** Returns the current fields by their future keys. A `renamedFrom` that has been applied may be sent again. */
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

/** A rename must not lift the roles of a field. */
const inheritRoles = (field: Field, was: Field | undefined): Field =>
  was && was.key !== field.key
    ? {
        ...(was.readRoles && { readRoles: was.readRoles }),
        ...(was.writeRoles && { writeRoles: was.writeRoles }),
        ...field,
      }
    : field

function mapField(field: Field, was: Field | undefined, definition: Definition, before: Definition): FieldMapping {
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
    ...(namesFiles(definition, field) && !namesFiles(before, was) && { beginsToNameFiles: true }),
    // Access to the entity of a relation was checked against the old target when the value was written.
    blockedWhen: field.target && field.target !== was.target ? 'present' : step.blockedWhen,
  }
}

const isComputed = ({ computed }: Definition, key: string) => !!computed && Object.hasOwn(computed, key)

/** Returns what the index of a field depends on; when this changes, the index does. */
function indexSignature(definition: Definition, field: Field) {
  const { multi, indexed, target } = field
  const { toIndexKey, isSearchable } = typeOfField(field)
  return [toIndexKey, !!isSearchable, !!multi, indexed !== false || !!target, namesFiles(definition, field)]
}

/** Returns whether every value that was valid before is still valid. */
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

/** Returns whether changed formulas, or changed inputs of them, make existing values wrong. */
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

/** Returns the definition before a change, with the new keys of renamed fields. @throws 400 for an invalid rename */
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

/** @throws 400 when a formula that is not part of the change refers to a field that the change removes */
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
