import { Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'

/** Finds what goes by a connection, in a sentence's words, such as `the integration "Orders"`. */
export type Users = (tx: Tx, connection: string) => Promise<string[]>

const all: Users[] = []

/** Says who may go by connections: one of those can't be removed. */
export const connectionsAreUsedBy = (...users: Users[]) => void all.push(...users)

/** @throws 409 INTEGRATION_SOURCE_IN_USE */
export async function refuseUsed(tx: Tx, connection: string) {
  const users = (await Promise.all(all.map((find) => find(tx, connection)))).flat()
  if (!users.length) return
  const [first] = users
  const more = users.length > 1 ? ` and ${users.length - 1} more` : ''
  const message = `It is used by ${first}${more}. Change or remove what uses it first.`
  throw new Problem(409, 'INTEGRATION_SOURCE_IN_USE', message, { details: { usedBy: users.slice(0, 20) } })
}
