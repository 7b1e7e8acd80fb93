import { type Flaw, invalid } from '../core/problem'
import type { FieldType } from './fields/type'
import { types } from './fields/types'
import type { Definition, Field } from './shapes'

/** A change as it is kept while entities are prepared for it. Its fields may still say what they are renamed from. */
export type Change = { name?: string; description?: string; definition: Definition; numbers: Record<string, number> }

/** Why a change was given up. */
export type Refusal = { code: string; message: string; details?: unknown }

/** How a field of the changed blueprint comes by its value in an entity that is there already. */
export type Step = {
  key: string
  /** The field that it is now; a new one is none. */
  from?: string
  /** A value becomes a list of one, or the other way round. */
  list?: 'wrap' | 'unwrap'
  /** What entities without a value get. */
  fill?: unknown
  /** Why it can't be for an entity: it has a value that cannot stay, or lacks one that it needs. */
  never: 'present' | 'absent' | undefined
  /** Values may not fit any more. */
  checked: boolean
}

/** What a change of a blueprint does to its entities. */
export type Alteration = {
  /** Whether entities must be looked at before it can be in force. */
  needed: boolean
  definition: Definition
  steps: Step[]
  /**
   * The fields that get a new number, so that their index is built beside the old one: all by which an entity could be
   * found otherwise than before.
   */
  fresh: Set<string>
  /** Formulas are worked out anew for all entities. */
  recomputes: boolean
}

/** Without what counts only for a change. */
const settled = ({ renamedFrom: _, ...field }: Field): Field => field

export function alterationOf(before: Definition, after: Definition): Alteration {
  const sources = sourcesOf(before.fields, after.fields)
  const renames = new Map([...sources].flatMap(([key, was]) => (was.key === key ? [] : [[was.key, key] as const])))
  const definition = {
    ...after,
    fields: after.fields.map((field) => settled(inherited(field, sources.get(field.key)))),
  }
  const steps = definition.fields.map((field) => stepOf(field, sources.get(field.key), definition))
  const recomputes = recomputesBy(before, definition, steps, renames)
  const isFresh = (field: Field, { fill }: Step) => {
    const was = sources.get(field.key)
    if (
      !was ||
      (field.unique && !was.unique) ||
      fill !== undefined ||
      (recomputes && isComputed(definition, field.key))
    )
      return true
    return !Bun.deepEquals(foundBy(field), foundBy(was))
  }
  const fresh = new Set(definition.fields.filter((field, at) => isFresh(field, steps[at]!)).map(({ key }) => key))
  const needed =
    recomputes ||
    sources.size < before.fields.length ||
    renames.size > 0 ||
    steps.some(({ key, from, checked, never, fill }) =>
      Boolean((from && fresh.has(key)) || checked || never || fill !== undefined),
    )
  return { needed, definition, steps, fresh, recomputes }
}

/** What each field is now, by what it will be. What was renamed once may be sent again. */
function sourcesOf(before: Field[], after: Field[]): Map<string, Field> {
  const old = new Map(before.map((field) => [field.key, field]))
  const renamed = new Map(
    after.flatMap(({ key, renamedFrom: from }) =>
      from && from !== key && old.has(from) ? [[key, old.get(from)!] as const] : [],
    ),
  )
  const taken = new Set(renamed.values())
  const sources = new Map<string, Field>()
  for (const { key } of after) {
    const was = renamed.get(key) ?? old.get(key)
    if (was && (renamed.has(key) || !taken.has(was))) sources.set(key, was)
  }
  return sources
}

/** A new name must not lift the rules of the old one. */
const inherited = (field: Field, was: Field | undefined): Field =>
  was && was.key !== field.key
    ? {
        ...(was.readRoles && { readRoles: was.readRoles }),
        ...(was.writeRoles && { writeRoles: was.writeRoles }),
        ...field,
      }
    : field

function stepOf(field: Field, was: Field | undefined, definition: Definition): Step {
  const { key, required, multi } = field
  const lacks = !!required && !was?.required && !isComputed(definition, key)
  const fill = lacks && field.default !== null ? field.default : undefined
  const step: Step = { key, checked: false, never: undefined, fill }
  if (lacks && fill === undefined) step.never = 'absent'
  if (!was) return step
  return {
    ...step,
    from: was.key,
    ...(!!multi !== !!was.multi && { list: multi ? 'wrap' : 'unwrap' }),
    checked: !isLooser(field, was),
    // Who may see what it leads to was checked when it was written.
    never: field.target && field.target !== was.target ? 'present' : step.never,
  }
}

const isComputed = ({ computed }: Definition, key: string) => !!computed && Object.hasOwn(computed, key)

/** By what a field's values are found; when this is another one, so is their index. */
function foundBy({ type, multi, indexed, target }: Field) {
  const { key, searched } = types[type] as FieldType
  return [key, !!searched, !!multi, indexed !== false || !!target]
}

/** Whether all that fitted before fits still. */
function isLooser(field: Field, was: Field) {
  const same = (name: keyof Field) => Bun.deepEquals(field[name], was[name])
  const gone = (name: keyof Field) => field[name] === undefined || same(name)
  const choices = new Set(field.enum?.map((choice) => JSON.stringify(choice)))
  return (
    same('type') &&
    !!field.multi === !!was.multi &&
    (['min', 'max', 'pattern', 'schema'] as const).every(gone) &&
    (!field.enum || !!was.enum?.every((choice) => choices.has(JSON.stringify(choice))))
  )
}

/** Whether other formulas, or other values that they see, make existing values wrong. */
function recomputesBy(before: Definition, after: Definition, steps: Step[], renames: Map<string, string>) {
  const formulas = Object.entries(after.computed ?? {})
  if (!formulas.length) return false
  const known = renamedIn(before.computed ?? {}, renames)
  return (
    formulas.some(([key, text]) => known[key] !== text) ||
    steps.some(({ key, fill, list, checked }) => fill !== undefined || list || (checked && isComputed(after, key)))
  )
}

const renamedIn = <Value>(of: Record<string, Value>, renames: Map<string, string>) =>
  Object.fromEntries(Object.entries(of).map(([key, value]) => [renames.get(key) ?? key, value]))

/** What a change leaves as it is, but for the new names of fields. @throws 400 for a field that cannot be renamed so */
export function carried(before: Definition, fields: Field[] = before.fields): Definition {
  refuseRenames(before.fields, fields)
  const sources = sourcesOf(before.fields, fields)
  const renames = new Map([...sources].map(([key, was]) => [was.key, key]))
  const { limitations, computed } = before
  const named = (key: string) => renames.get(key) ?? key
  return {
    ...before,
    ...(limitations && {
      limitations: limitations.map(({ properties, ...rest }) => ({
        ...rest,
        ...(properties && { properties: properties.map(named) }),
      })),
    }),
    ...(computed && { computed: renamedIn(computed, renames) }),
  }
}

function refuseRenames(before: Field[], after: Field[]) {
  const flaws: Flaw[] = []
  const taken = new Set<string>()
  for (const [index, { key, renamedFrom: from }] of after.entries()) {
    const refuse = (message: string) => flaws.push({ path: `/fields/${index}/renamedFrom`, message })
    if (from === undefined || from === key) continue
    const there = before.some((field) => field.key === from)
    if (!there && !before.some((field) => field.key === key)) refuse(`There is no field "${from}" to be renamed.`)
    if (there && taken.has(from)) refuse(`"${from}" is renamed twice.`)
    taken.add(from)
  }
  if (flaws.length) invalid(...flaws)
}

/** Formulas that were not sent with a change must not mention what it takes away. @throws 400 */
export function refuseMentions(before: Definition, after: Definition, mentions: Map<string, Set<string>>) {
  const left = new Set(after.fields.map(({ key }) => key))
  const gone = before.fields.map(({ key }) => key).filter((key) => !left.has(key))
  const flaws = [...mentions].flatMap(([key, names]) =>
    gone
      .filter((name) => names.has(name))
      .map((name) => ({
        path: `/computed/${key}`,
        message: `The formula of "${key}" mentions "${name}", which this change takes away. Send "computed" along with it.`,
      })),
  )
  if (flaws.length) invalid(...flaws.slice(0, 100))
}
