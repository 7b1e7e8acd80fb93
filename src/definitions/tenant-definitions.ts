import type { Ctx } from '../accounts/context'
import { yieldToEventLoop } from '../core/event-loop'
import { type DefinitionFiles, type FileThing, formatFiles, type LabeledThing, toThingPath } from './definition-files'
import { canonicalize, versionOf } from './definition-text'
import { kindNames, kinds } from './kinds'
import type { Definition, KindName, StoredThing } from './kinds/definition-kind'
import { assignLabels } from './labels'
import { maskSecrets } from './secrets'

const THINGS_PER_TURN = 100

/** A thing of a tenant. `stored` is its definition with ids. */
export type TenantThing = LabeledThing & { id: string; stored: Definition; file?: FileThing }

/** Versions of definitions by the paths of things, such as `blueprints/books`. */
export type Versions = Record<string, string>

/** Returns the definitions of a tenant as files, and their versions. */
export async function readDefinitions(ctx: Ctx): Promise<{ files: DefinitionFiles; versions: Versions }> {
  const things = await readThings(ctx)
  return { files: formatFiles(things), versions: Object.fromEntries(things.map(toVersion)) }
}

/** Returns the version of a thing, by its path. */
export const toVersion = (thing: LabeledThing): [string, string] => [
  toThingPath(thing),
  versionOf(kinds[thing.kind], thing.name, thing.definition),
]

/** Returns the things of a tenant, in order of dependency. Those that files describe have the labels of these files. */
export async function readThings(ctx: Ctx, files: FileThing[] = []): Promise<TenantThing[]> {
  const stored = new Map<KindName, StoredThing[]>()
  for (const kind of kindNames) {
    stored.set(kind, await kinds[kind].listAll(ctx))
    await yieldToEventLoop()
  }
  const labels = new Map<string, string>()
  const things: TenantThing[] = []
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
      if (n % THINGS_PER_TURN === THINGS_PER_TURN - 1) await yieldToEventLoop()
      const label = labels.get(`${kind} ${one.id}`)!
      const { id, name, definition } = one
      const labeled = toLabeled(kind, definition, labels)
      things.push({ kind, label, id, name, definition: labeled, stored: definition, file: matched.get(id) })
    }
  }
  return things
}

/** Returns a definition as it is compared, with labels in place of ids. */
export const toLabeled = (kind: KindName, definition: Definition, labels: Map<string, string>): Definition => {
  const { mapReferences } = kinds[kind]
  const mapped = mapReferences?.(definition, (target, id) => labels.get(`${target} ${id}`) ?? id) ?? definition
  return canonicalize(kinds[kind], mapped)
}

/**
 * Returns the file of each thing by its id. Things that share a name go to the file that says the same, and then in
 * their order, so that the others keep their ids when one of them is removed.
 */
function matchFiles(kind: KindName, stored: StoredThing[], files: FileThing[], labels: Map<string, string>) {
  const filesByName = Map.groupBy(
    files.filter((file) => file.kind === kind),
    ({ name }) => name,
  )
  const matched = new Map<string, FileThing>()
  for (const [name, own] of Map.groupBy(stored, (thing) => thing.name)) {
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
