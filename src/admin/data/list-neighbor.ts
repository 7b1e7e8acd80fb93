import { createContext } from 'react'

/** Returns the identifier of the entity before or after another one in the list, where that is loaded. */
export const ListNeighbor = createContext<(identifier: string, by: 1 | -1) => string | undefined>(() => undefined)
