import { type BlueprintDefinition, formatDefinition, keepOpenRenames } from './blueprint-definition'

/** A step of a push. `definition` is what the blueprint becomes; a removal has none. */
export type PlannedChange = {
  action: 'create' | 'change' | 'remove' | 'rename'
  name: string
  definition?: BlueprintDefinition
  details: string[]
}
export type Definitions = Map<string, BlueprintDefinition>

/** Returns what makes a tenant's blueprints those of the files, in order of need. Only `prune` removes blueprints. */
export function planChanges(files: Definitions, current: Definitions, { prune = false } = {}): PlannedChange[] {
  const created = sortByNeed(new Map([...files].filter(([name]) => !current.has(name))))
  const removed = prune ? sortByNeed(new Map([...current].filter(([name]) => !files.has(name)))).reverse() : []
  const existing = new Set(current.keys())
  const creations: PlannedChange[] = []
  const completions: PlannedChange[] = []
  for (const [name, file] of created) {
    const whole = keepOpenRenames(file)
    const fields = whole.fields.filter(({ target }) => !target || target === name || existing.has(target))
    existing.add(name)
    if (fields.length === whole.fields.length) {
      creations.push({ action: 'create', name, definition: whole, details: [] })
      continue
    }
    // Of blueprints that point to each other, the first is created without its relations.
    creations.push({ action: 'create', name, definition: { name: whole.name, fields }, details: [] })
    completions.push({ action: 'change', name, definition: whole, details: ['is completed with its relations'] })
  }
  const changes = [...files].flatMap(([name, file]) => planChange(name, file, current.get(name)) ?? [])
  const removals = removed.map(([name]) => ({ action: 'remove' as const, name, details: [] }))
  return [...creations, ...completions, ...changes, ...removals]
}

function planChange(name: string, file: BlueprintDefinition, before?: BlueprintDefinition): PlannedChange | undefined {
  if (!before) return
  const definition = keepOpenRenames(file, before)
  if (formatDefinition(definition) === formatDefinition(before)) return
  const renames = definition.fields.filter(({ renamedFrom }) => renamedFrom)
  const details = describeChange(before, definition)
  return {
    action: renames.length && details.length === renames.length ? 'rename' : 'change',
    name,
    definition,
    details,
  }
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
  const parts = [
    'name',
    'description',
    'permissions',
    'permissionScope',
    'limitations',
    'computed',
    'dispatchers',
  ] as const
  for (const part of parts) if (!Bun.deepEquals(before[part], after[part])) details.push(`changes ${part}`)
  return details.length ? details : ['changes the order of the fields']
}

/** Returns blueprints after those that their relations point to. */
function sortByNeed(definitions: Definitions): [string, BlueprintDefinition][] {
  const sorted = new Map<string, BlueprintDefinition>()
  const visited = new Set<string>()
  const visit = (name: string) => {
    const definition = definitions.get(name)
    if (!definition || visited.has(name)) return
    visited.add(name)
    for (const { target } of definition.fields) if (target) visit(target)
    sorted.set(name, definition)
  }
  for (const name of [...definitions.keys()].sort()) visit(name)
  return [...sorted]
}
