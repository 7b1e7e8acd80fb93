import type { LabeledThing } from './definition-files'
import { kinds } from './kinds'

/** Returns things of one kind after those of the same kind that they refer to. */
export function sortByDependency<Thing extends LabeledThing>(things: Thing[]): Thing[] {
  const byLabel = new Map(things.map((thing) => [thing.label, thing]))
  const sorted = new Set<Thing>()
  const visited = new Set<Thing>()
  const visit = (thing: Thing) => {
    if (visited.has(thing)) return
    visited.add(thing)
    for (const label of listOwnReferences(thing)) {
      const needed = byLabel.get(label)
      if (needed) visit(needed)
    }
    sorted.add(thing)
  }
  for (const label of [...byLabel.keys()].sort()) visit(byLabel.get(label)!)
  return [...sorted]
}

function listOwnReferences({ kind, definition }: LabeledThing): string[] {
  const references: string[] = []
  kinds[kind].mapReferences?.(definition, (target, label) => {
    if (target === kind) references.push(label)
    return label
  })
  return references
}
