import { badRequest, type FieldError, Problem } from '../core/problem'
import { type FileResource, formatOne, type LabeledResource, toResourcePath } from './definition-files'
import { canonicalize } from './definition-text'
import { sortByDependency } from './dependency-order'
import { kindNames, kinds } from './kinds'
import type { Definition, KindName } from './kinds/definition-kind'
import { listSecrets, maskSecrets, toPathText, toVariable } from './secrets'
import { type TenantResource, toVersion, type Versions } from './tenant-definitions'

/** A step of a push. `definition` is what the resource becomes, with its secrets; a removal has none. */
export type PlannedChange = {
  action: 'create' | 'change' | 'remove' | 'rename'
  kind: KindName
  label: string
  name: string | null
  definition?: Definition
  before?: TenantResource
  details: string[]
}

/**
 * `missingSecrets` are the variables without a value that the tenant does not have either, and `keptSecrets` those that
 * it has.
 */
export type Plan = {
  changes: PlannedChange[]
  resources: TenantResource[]
  missingSecrets: string[]
  keptSecrets: string[]
}

export type PlanOptions = {
  prune?: boolean
  /** The values of variables. Without them, no secret counts as changed. */
  secrets?: Record<string, string>
  /** The versions that were last pulled or pushed. */
  versions?: Versions
}

/**
 * Returns what makes a tenant's definitions those of the files, in order of dependency. Only `prune` removes resources.
 * @throws 400 for a reference to nothing, 412 for a resource that has changed since it was pulled
 */
export function planChanges(files: FileResource[], resources: TenantResource[], options: PlanOptions = {}): Plan {
  const removed = options.prune ? resources.filter(isRemovable) : []
  assertReferences(files, resources, removed)
  const currentByFile = new Map(
    resources.flatMap((resource) => (resource.file ? [[resource.file, resource] as const] : [])),
  )
  const secrets = { missing: new Set<string>(), kept: new Set<string>() }
  const changes: PlannedChange[] = []
  for (const kind of kindNames) {
    const own = files.filter((file) => file.kind === kind)
    const resolve = (file: FileResource) => resolveSecrets(file, currentByFile.get(file), options.secrets, secrets)
    const created = own.filter((file) => !currentByFile.has(file))
    const existing = resources.filter((resource) => resource.kind === kind).map(({ label }) => label)
    changes.push(...planCreations(created.map(resolve), existing))
    for (const file of own) {
      const before = currentByFile.get(file)
      if (before) changes.push(...planChange(resolve(file), before))
    }
  }
  if (options.prune) changes.push(...planRemovals(removed))
  for (const change of changes) assertUnchangedSincePull(change, options.versions)
  const { missing, kept } = secrets
  return { changes, resources, missingSecrets: [...missing].sort(), keptSecrets: [...kept.difference(missing)].sort() }
}

/** Of resources that refer to each other, the first is created without these references, and completed after the others. */
function planCreations(files: LabeledResource[], existing: string[]): PlannedChange[] {
  const known = new Set(existing)
  const creations: PlannedChange[] = []
  const completions: PlannedChange[] = []
  for (const { kind, label, name, definition } of sortByDependency(files)) {
    const partial = canonicalize(
      kinds[kind],
      kinds[kind].mapReferences?.(definition, (target, reference) =>
        target !== kind || reference === label || known.has(reference) ? reference : undefined,
      ) ?? definition,
    )
    known.add(label)
    const creation = { action: 'create' as const, kind, label, name, details: [] }
    creations.push({ ...creation, definition: partial })
    if (Bun.deepEquals(partial, definition)) continue
    const details = ['is completed with its relations']
    completions.push({ ...creation, action: 'change', definition, details })
  }
  return [...creations, ...completions]
}

function planChange({ kind: kindName, label, name, definition: after }: LabeledResource, before: TenantResource) {
  if (Bun.deepEquals(after, before.definition)) return []
  const kind = kinds[kindName]
  const { details, isRename } = kind.describe?.(before.definition, after) ?? { details: describe(before, after) }
  const action = isRename ? ('rename' as const) : ('change' as const)
  return [{ action, kind: kindName, label, name, definition: after, before, details }]
}

function describe({ kind: kindName, definition }: TenantResource, after: Definition): string[] {
  const kind = kinds[kindName]
  const [shown, shownAfter] = [maskSecrets(kind, definition), maskSecrets(kind, after)]
  const keys = [...new Set([...Object.keys(shown), ...Object.keys(shownAfter)])].sort()
  const changed = keys.filter((key) => !Bun.deepEquals(shown[key], shownAfter[key]))
  const secrets = listSecrets(kind, definition)
  const changedSecrets = [...listSecrets(kind, after)].filter(([path, value]) => secrets.get(path) !== value)
  return [
    ...changed.map((key) => `changes ${key}`),
    ...changedSecrets.map(([path]) => `${secrets.has(path) ? 'changes' : 'sets'} the secret ${path}`),
  ]
}

const planRemovals = (removed: TenantResource[]): PlannedChange[] =>
  kindNames.toReversed().flatMap((kind) =>
    sortByDependency(removed.filter((resource) => resource.kind === kind))
      .reverse()
      .map((before) => ({ action: 'remove', kind, label: before.label, name: before.name, before, details: [] })),
  )

const isRemovable = ({ kind, file, id, name, definition }: TenantResource) =>
  !file && !kinds[kind].isKept?.({ id, name, definition })

/** Returns the file's resource with the values of its secrets: those given, or else those that the tenant has. */
function resolveSecrets(
  { kind: kindName, label, name, definition, path }: FileResource,
  before: TenantResource | undefined,
  values: Record<string, string> = {},
  found: Record<'missing' | 'kept', Set<string>>,
): LabeledResource {
  const kind = kinds[kindName]
  const current = before ? listSecrets(kind, before.definition) : new Map<string, string>()
  const resolve = (secretPath: string[], text: string) => {
    const variable = toVariable(path, secretPath, text)
    const mayKeep = !before || (kind.mayKeepSecret?.(secretPath, before.definition, definition) ?? true)
    const kept = mayKeep ? current.get(toPathText(secretPath)) : undefined
    if (kept !== undefined) found.kept.add(variable)
    const value = (Object.hasOwn(values, variable) ? values[variable] : undefined) ?? kept
    if (value === undefined) found.missing.add(variable)
    return value ?? ''
  }
  const resolved = kind.mapSecrets?.(definition, resolve) ?? definition
  const prepared = kind.prepare?.(resolved, { name, before: before?.definition }) ?? resolved
  return { kind: kindName, label, name, definition: canonicalize(kind, prepared) }
}

function assertReferences(files: FileResource[], resources: TenantResource[], removed: TenantResource[]) {
  const toKey = ({ kind, label }: LabeledResource) => `${kind} ${label}`
  const known = new Set([...files, ...resources].map(toKey))
  const lost = new Set(removed.filter(({ kind }) => !kinds[kind].isArchived).map(toKey))
  const errors: FieldError[] = []
  for (const { kind, definition, path } of files)
    kinds[kind].mapReferences?.(definition, (target, label) => {
      if (!known.has(`${target} ${label}`))
        errors.push({ path, message: `"${path}" refers to the ${target} "${label}", which does not exist.` })
      else if (lost.has(`${target} ${label}`)) {
        const message = `"${path}" refers to the ${target} "${label}", which has no file and would be removed. Add its file, or remove the reference.`
        errors.push({ path, message })
      }
      return label
    })
  if (errors.length) badRequest(...errors)
}

/** @throws 412 with both sides when somebody else has changed the resource since it was pulled */
function assertUnchangedSincePull({ before, ...change }: PlannedChange, versions: Versions = {}) {
  if (!before) return
  const [path, version] = toVersion(before)
  if (versions[path] && versions[path] !== version) throw changedProblem(change, before)
}

/** Returns a 412 whose details are both sides, without secrets. */
export function changedProblem({ definition, ...change }: Omit<PlannedChange, 'before'>, before: TenantResource) {
  const message = `The ${change.kind} "${change.label}" has changed since you pulled it. Compare both sides, pull, and make your change again.`
  const here = definition ? formatOne({ ...change, definition }) : 'There is no file.'
  const details = [
    { path: toResourcePath(change), message: here },
    { path: change.label, message: formatOne(before) },
  ]
  return new Problem(412, 'VERSION_MISMATCH', message, { details })
}
