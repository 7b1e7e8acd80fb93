import { queryClient } from '../api/queries'
import type { Entity } from '../api/schema'
import { isDeleted } from './deletions'

const MAX_OWN_VERSIONS = 1_000

const ownVersions = new Set<string>()
const pendingWrites = new Map<string, number>()

const toVersion = ({ _id, updated }: Entity) => `${_id} ${updated}`

/** Remembers a version as made here, so that its event is not shown as the change of somebody else. */
export function rememberOwnVersion(entity: Entity) {
  ownVersions.add(toVersion(entity))
  if (ownVersions.size > MAX_OWN_VERSIONS) ownVersions.delete(ownVersions.values().next().value!)
}

/** Marks entities as being written here until the work is done. */
export async function trackWrite<Result>(identifiers: string[], work: () => Promise<Result>): Promise<Result> {
  const count = (by: number) => {
    for (const identifier of identifiers) {
      const next = (pendingWrites.get(identifier) ?? 0) + by
      if (next) pendingWrites.set(identifier, next)
      else pendingWrites.delete(identifier)
    }
  }
  count(1)
  try {
    return await work()
  } finally {
    count(-1)
  }
}

/** Returns whether this tab wrote a version of an entity. */
export const isOwnVersion = (entity: Entity) =>
  ownVersions.has(toVersion(entity)) || (pendingWrites.get(entity.identifier) ?? 0) > 0

/** Shows an entity as `change` makes it in all lists that hold it, without a request. */
export function patchRows(blueprint: string, identifier: string, change: (entity: Entity) => Entity) {
  queryClient.setQueriesData<Entity[]>({ queryKey: ['entities', blueprint, 'page'] }, (rows) =>
    rows?.some((row) => row.identifier === identifier)
      ? rows.map((row) => (row.identifier === identifier ? change(row) : row))
      : rows,
  )
}

/** Fetches the lists of a blueprint again, and what depends on its entities. */
export const refreshLists = (blueprint: string) =>
  queryClient.invalidateQueries({
    queryKey: ['entities', blueprint],
    // The panel of a deleted entity is open until it is told so.
    predicate: ({ queryKey: [, , part, identifier] }) => part !== 'one' || !isDeleted(blueprint, `${identifier}`),
  })
