import * as blueprints from '../../blueprints/blueprints'
import { type Field, NewBlueprint } from '../../blueprints/shapes'
import * as updates from '../../blueprints/update'
import { type Definition, defineKind } from './definition-kind'

type BlueprintDefinition = Definition & { fields: Field[] }

const DEFAULTS = {
  description: '',
  permissions: [],
  permissionScope: 'user' as const,
  limitations: [],
  computed: {},
  dispatchers: {},
  history: false,
}
const PARTS = ['name', ...Object.keys(DEFAULTS)]

export const blueprint = defineKind({
  folder: 'blueprints',
  nameKey: 'key',
  shape: NewBlueprint,
  defaults: DEFAULTS,
  normalize: (definition) => ({ ...definition, fields: fieldsOf(definition).map(withoutRequiredFalse) }),
  prepare: (definition, { before }) => keepOpenRenames(definition, before && fieldsOf(before)),
  mapReferences: (definition, map) => ({
    ...definition,
    fields: fieldsOf(definition).flatMap((field) => {
      if (!field.target) return [field]
      const target = map('blueprint', field.target)
      return target === undefined ? [] : [{ ...field, target }]
    }),
  }),
  describe(before, after) {
    const details = describeChange(before as BlueprintDefinition, after as BlueprintDefinition)
    const renames = fieldsOf(after).filter(({ renamedFrom }) => renamedFrom)
    return { details, isRename: renames.length > 0 && details.length === renames.length }
  },
  async assessImpact(ctx, key, after) {
    const change = after ? { ...DEFAULTS, ...(after as BlueprintDefinition) } : {}
    const { entities, problems } = await updates.dryRun(ctx, key, change)
    return { entities, details: problems.map(({ message }) => message) }
  },
  async validate(ctx, { key, name: _, description: __, ...definition }, { before }) {
    if (!before) return blueprints.validateNew(definition)
    const { problems } = await updates.dryRun(ctx, key, { ...DEFAULTS, ...definition })
    if (problems.length) throw updates.toProblem(updates.toChangeError(problems))
  },
  async validateRemoval(ctx, key, { pruneData, remaining }) {
    if (pruneData) return
    const pointsHere = ({ target }: Field) => target === key
    const pointing = remaining.find(
      ({ kind, definition }) => kind === 'blueprint' && fieldsOf(definition).some(pointsHere),
    )
    if (pointing) throw blueprints.pointedToProblem(pointing.label)
    await blueprints.assertEmpty(ctx.db, key)
  },
  list: blueprints.list,
  get: blueprints.get,
  toStored: ({ key, name, description, fields, ...parts }) => {
    const { permissions, permissionScope, limitations, computed, dispatchers, history = false } = parts
    const rules = { permissions, permissionScope, limitations, computed, dispatchers, history }
    return { id: key, name: key, definition: { name, description, fields, ...rules } }
  },
  create: blueprints.create,
  change: (ctx, key, { key: _, ...definition }, { ifMatch }) =>
    updates.update(ctx, key, { ...DEFAULTS, ...definition }, { ifMatch }),
  remove: (ctx, key, { pruneData, ifMatch }) => blueprints.remove(ctx, key, { force: pruneData, ifMatch }),
})

const fieldsOf = ({ fields }: Definition) => fields as Field[]
const withoutRequiredFalse = ({ required, ...field }: Field): Field => ({ ...field, ...(required && { required }) })

/** Returns the definition without the previous keys of fields, except of those that `current` still has to rename. */
function keepOpenRenames(definition: Definition, current: Field[] = []): Definition {
  const keys = new Set(current.map(({ key }) => key))
  const fields = fieldsOf(definition).map(({ renamedFrom, ...field }) => ({
    ...field,
    ...(renamedFrom && keys.has(renamedFrom) && !keys.has(field.key) && { renamedFrom }),
  }))
  return { ...definition, fields }
}

function describeChange(before: BlueprintDefinition, after: BlueprintDefinition): string[] {
  const old = new Map(before.fields.map((field) => [field.key, field]))
  const details: string[] = []
  for (const { renamedFrom, ...field } of after.fields) {
    const was = old.get(renamedFrom ?? field.key)
    if (renamedFrom) details.push(`renames the field "${renamedFrom}" to "${field.key}"`)
    if (!was) details.push(`adds the field "${field.key}"`)
    else if (!Bun.deepEquals({ ...was, key: field.key }, field)) details.push(`changes the field "${field.key}"`)
    old.delete(renamedFrom ?? field.key)
  }
  for (const key of old.keys()) details.push(`removes the field "${key}" and its values`)
  for (const part of PARTS) {
    if (Bun.deepEquals(before[part], after[part])) continue
    const endsHistory = part === 'history' && !after.history
    details.push(endsHistory ? 'removes the history of its entities' : `changes ${part}`)
  }
  return details.length ? details : ['changes the order of the fields']
}
