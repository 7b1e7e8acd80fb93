import type { LabeledResource } from './definition-files'
import { kinds } from './kinds'

/** Returns resources of one kind after those of the same kind that they refer to. */
export function sortByDependency<Resource extends LabeledResource>(resources: Resource[]): Resource[] {
  const byLabel = new Map(resources.map((resource) => [resource.label, resource]))
  const sorted = new Set<Resource>()
  const visited = new Set<Resource>()
  const visit = (resource: Resource) => {
    if (visited.has(resource)) return
    visited.add(resource)
    for (const label of listOwnReferences(resource)) {
      const needed = byLabel.get(label)
      if (needed) visit(needed)
    }
    sorted.add(resource)
  }
  for (const label of [...byLabel.keys()].sort()) visit(byLabel.get(label)!)
  return [...sorted]
}

function listOwnReferences({ kind, definition }: LabeledResource): string[] {
  const references: string[] = []
  kinds[kind].mapReferences?.(definition, (target, label) => {
    if (target === kind) references.push(label)
    return label
  })
  return references
}
