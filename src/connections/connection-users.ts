import { extensions } from '../core/extension'
import { Problem } from '../core/problem'
import type { Tx } from '../storage/port'

/** Finds what goes by a connection, in a sentence's words, such as `the integration "Orders"`. */
export type FindConnectionUsers = (tx: Tx, connection: string) => Promise<string[]>

/** A connection that one of these finds in use cannot be removed. */
export const connectionUsers = extensions<FindConnectionUsers>('users of connections')

/** @throws 409 INTEGRATION_SOURCE_IN_USE */
export async function assertUnused(tx: Tx, connection: string) {
  const users = (await Promise.all(connectionUsers().map((find) => find(tx, connection)))).flat()
  if (!users.length) return
  const [first] = users
  const more = users.length > 1 ? ` and ${users.length - 1} more` : ''
  const message = `The integration source is used by ${first}${more}. Change or remove what uses it first.`
  throw new Problem(409, 'INTEGRATION_SOURCE_IN_USE', message, { details: { usedBy: users.slice(0, 20) } })
}
