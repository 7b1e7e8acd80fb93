import type { Ctx } from '../accounts/context'
import { yieldToEventLoop } from '../core/event-loop'
import {
  type DefinitionFiles,
  type FileResource,
  formatFiles,
  type LabeledResource,
  toResourcePath,
} from './definition-files'
import { canonicalize, versionOf } from './definition-text'
import { kindNames, kinds } from './kinds'
import type { Definition, KindName, StoredResource } from './kinds/definition-kind'
import { assignLabels } from './labels'
import { maskSecrets } from './secrets'

const RESOURCES_PER_TURN = 100

/** A resource of a tenant. `stored` is its definition with ids. */
export type TenantResource = LabeledResource & { id: string; stored: Definition; file?: FileResource }

/** Versions of definitions by the paths of resources, such as `blueprints/books`. */
export type Versions = Record<string, string>

/** Returns the definitions of a tenant as files, and their versions. */
export async function readDefinitions(ctx: Ctx): Promise<{ files: DefinitionFiles; versions: Versions }> {
  const resources = await readResources(ctx)
  return { files: formatFiles(resources), versions: Object.fromEntries(resources.map(toVersion)) }
}

/** Returns the version of a resource, by its path. */
export const toVersion = (resource: LabeledResource): [string, string] => [
  toResourcePath(resource),
  versionOf(kinds[resource.kind], resource.name, resource.definition),
]

/** Returns the resources of a tenant, in order of dependency. Those that files describe have the labels of these files. */
export async function readResources(ctx: Ctx, files: FileResource[] = []): Promise<TenantResource[]> {
  const stored = new Map<KindName, StoredResource[]>()
  for (const kind of kindNames) {
    stored.set(kind, await kinds[kind].listAll(ctx))
    await yieldToEventLoop()
  }
  const labels = new Map<string, string>()
  const resources: TenantResource[] = []
  for (const kind of kindNames) {
    const own = stored.get(kind)!
    const names = assignLabels(own.map(({ name, fallback }) => name || fallback || kind))
    for (const [n, { id }] of own.entries()) labels.set(`${kind} ${id}`, names[n]!)
    const matched = matchFiles(kind, own, files, labels)
    const free = own.filter(({ id }) => !matched.has(id))
    const taken = [...matched.values()].map(({ label }) => label)
    const freeLabels = assignLabels(
      free.map(({ name, fallback }) => name || fallback || kind),
      taken,
    )
    for (const [id, { label }] of matched) labels.set(`${kind} ${id}`, label)
    for (const [n, { id }] of free.entries()) labels.set(`${kind} ${id}`, freeLabels[n]!)
    for (const [n, one] of own.entries()) {
      if (n % RESOURCES_PER_TURN === RESOURCES_PER_TURN - 1) await yieldToEventLoop()
      const label = labels.get(`${kind} ${one.id}`)!
      const { id, name, definition } = one
      const labeled = toLabeled(kind, definition, labels)
      resources.push({ kind, label, id, name, definition: labeled, stored: definition, file: matched.get(id) })
    }
  }
  return resources
}

/** Returns a definition as it is compared, with labels in place of ids. */
export const toLabeled = (kind: KindName, definition: Definition, labels: Map<string, string>): Definition => {
  const { mapReferences } = kinds[kind]
  const mapped = mapReferences?.(definition, (target, id) => labels.get(`${target} ${id}`) ?? id) ?? definition
  return canonicalize(kinds[kind], mapped)
}

/**
 * Returns the file of each resource by its id. Resources that share a name go to the file that says the same, and then in
 * their order, so that the others keep their ids when one of them is removed.
 */
function matchFiles(kind: KindName, stored: StoredResource[], files: FileResource[], labels: Map<string, string>) {
  const filesByName = Map.groupBy(
    files.filter((file) => file.kind === kind),
    ({ name }) => name,
  )
  const matched = new Map<string, FileResource>()
  for (const [name, own] of Map.groupBy(stored, (resource) => resource.name)) {
    const candidates = new Set(filesByName.get(name))
    if (own.length > 1 || candidates.size > 1)
      for (const { id, definition } of own) {
        const current = maskSecrets(kinds[kind], toLabeled(kind, definition, labels))
        const same = candidates
          .values()
          .find((file) => Bun.deepEquals(maskSecrets(kinds[kind], file.definition), current))
        if (!same) continue
        matched.set(id, same)
        candidates.delete(same)
      }
    for (const { id } of own) {
      const [next] = candidates
      if (matched.has(id) || !next) continue
      matched.set(id, next)
      candidates.delete(next)
    }
  }
  return matched
}
