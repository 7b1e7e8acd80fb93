import { Problem } from '../core/problem'
import type { Tx } from '../storage/port'

/** Finds what goes by a connection, in a sentence's words, such as `the integration "Orders"`. */
export type FindConnectionUsers = (tx: Tx, connection: string) => Promise<string[]>

const userFinders: FindConnectionUsers[] = []

/** Says who may go by connections: one of those can't be removed. */
export const registerConnectionUsers = (...finders: FindConnectionUsers[]) => void userFinders.push(...finders)

/** @throws 409 INTEGRATION_SOURCE_IN_USE */
export async function assertUnused(tx: Tx, connection: string) {
  const users = (await Promise.all(userFinders.map((find) => find(tx, connection)))).flat()
  if (!users.length) return
  const [first] = users
  const more = users.length > 1 ? ` and ${users.length - 1} more` : ''
  const message = `The integration source is used by ${first}${more}. Change or remove what uses it first.`
  throw new Problem(409, 'INTEGRATION_SOURCE_IN_USE', message, { details: { usedBy: users.slice(0, 20) } })
}
