const deletions = new Set<string>()
const toPlace = (blueprint: string, identifier: string) => `${blueprint} ${identifier}`

/** Deletes an entity by `work`. Late events of its last versions no longer fetch it. */
export async function trackDeletion<Result>(blueprint: string, identifier: string, work: () => Promise<Result>) {
  const place = toPlace(blueprint, identifier)
  deletions.add(place)
  try {
    return await work()
  } catch (error) {
    deletions.delete(place)
    throw error
  }
}

/** Another entity may get the identifier of one that was deleted. */
export const forgetDeletion = (blueprint: string, identifier: string) =>
  deletions.delete(toPlace(blueprint, identifier))

/** Returns whether this tab deletes or deleted an entity. */
export const isDeleted = (blueprint: string, identifier: string) => deletions.has(toPlace(blueprint, identifier))
