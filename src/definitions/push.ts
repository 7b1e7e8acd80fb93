import { Problem } from '../core/problem'
import { formatDefinition, toChange, toDefinition } from './blueprint-definition'
import { fileOf, readFolder, readVersions, writeFolder, writeVersions } from './folder'
import { type Definitions, type PlannedChange, planChanges } from './plan'
import type { DefinitionTarget } from './target'

/** A change as commands print it. `entities` are those of the blueprint. */
export type ChangeReport = {
  action: PlannedChange['action']
  kind: 'blueprint'
  name: string
  details?: string[]
  entities?: number
}
type Plan = { changes: PlannedChange[]; current: Definitions; versions: Map<string, string> }

/** Writes the blueprints of a tenant as files. Returns how many there are. */
export async function pullDefinitions(target: DefinitionTarget, folder: string): Promise<{ blueprints: number }> {
  const { current, versions } = await readTarget(target)
  await writeFolder(folder, current)
  await writeVersions(folder, target.id, versions)
  return { blueprints: current.size }
}

/** Returns the plan of a push. @throws 400 INVALID_INPUT for a file, 412 when a blueprint has changed since it was pulled */
export async function planPush(target: DefinitionTarget, folder: string, prune = false): Promise<Plan> {
  const files = await readFolder(folder)
  const { current, versions } = await readTarget(target)
  const changes = planChanges(files, current, { prune })
  const pulled = await readVersions(folder, target.id)
  for (const { name, definition } of changes)
    if (current.has(name) && pulled.has(name) && pulled.get(name) !== versions.get(name)) {
      const here = definition ? formatDefinition(definition) : 'There is no file.'
      throw changedProblem(name, here, formatDefinition(current.get(name)!))
    }
  return { changes, current, versions }
}

/** Returns what a plan does, and to how many entities. Nothing is changed. */
export const reportPlan = (target: DefinitionTarget, { changes, current }: Plan): Promise<ChangeReport[]> =>
  Promise.all(changes.map((change) => reportChange(target, change, current)))

async function reportChange(
  target: DefinitionTarget,
  { action, name, definition, details }: PlannedChange,
  current: Definitions,
): Promise<ChangeReport> {
  if (!current.has(name)) return { action, kind: 'blueprint', name, ...(details.length && { details }) }
  // New targets of relations do not exist yet; a survey does not look at them.
  const { entities, problems } = await target.survey(name, definition ? toChange(definition) : {})
  const all = [...details, ...problems.map(({ message }) => message)]
  return { action, kind: 'blueprint', name, ...(all.length && { details: all }), entities }
}

/**
 * Makes the changes of a plan one after the other, and keeps the new versions after each. `pruneData` also removes the
 * entities of removed blueprints.
 * @throws the problem of the first change that fails, which says how many are made
 */
export async function push(target: DefinitionTarget, folder: string, { changes, versions }: Plan, pruneData = false) {
  const known = new Map(versions)
  for (const [index, change] of changes.entries()) {
    try {
      await applyChange(target, change, known, pruneData)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const done = `${index} of ${changes.length} changes are made. Correct this one and push again to make the others.`
      throw new Problem(error.status, error.code, `The blueprint "${change.name}": ${error.message} ${done}`, {
        cause: error,
        ...(error.more.details !== undefined && { details: error.more.details }),
      })
    } finally {
      await writeVersions(folder, target.id, known)
    }
  }
}

async function applyChange(
  target: DefinitionTarget,
  { action, name, definition }: PlannedChange,
  versions: Map<string, string>,
  pruneData: boolean,
) {
  const before = versions.get(name)
  versions.delete(name)
  try {
    if (!definition) return await target.remove(name, pruneData, before)
    const { version } =
      action === 'create'
        ? await target.create({ ...definition, key: name })
        : await target.change(name, toChange(definition), before)
    if (version) versions.set(name, version)
  } catch (error) {
    if (before) versions.set(name, before)
    throw error
  }
}

async function readTarget(target: DefinitionTarget): Promise<Omit<Plan, 'changes'>> {
  const stored = (await target.list()).sort((a, b) => (a.blueprint.key < b.blueprint.key ? -1 : 1))
  // Callers who are not editors see a part only, which must not be taken for the whole.
  for (const { blueprint } of stored)
    if (!blueprint.permissions)
      throw new Problem(403, 'FORBIDDEN', 'This token does not show whole blueprints. Use the token of an admin.')
  return {
    current: new Map(stored.map(({ blueprint }) => [blueprint.key, toDefinition(blueprint)])),
    versions: new Map(stored.map(({ blueprint, version }) => [blueprint.key, version])),
  }
}

function changedProblem(name: string, here: string, there: string) {
  const message = `The blueprint "${name}" has changed since you pulled it. Compare both sides, pull, and make your change again.`
  const details = [
    { path: fileOf(name), message: here },
    { path: name, message: there },
  ]
  return new Problem(412, 'VERSION_MISMATCH', message, { details })
}
