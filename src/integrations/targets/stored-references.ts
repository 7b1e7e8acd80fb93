import { eq, inArray } from 'drizzle-orm'
import { blueprints } from '../../blueprints/tables'
import { connections } from '../../connections/tables'
import { lambdas } from '../../lambdas/tables'
import type { Tx } from '../../storage/port'
import { integrations } from '../tables'
import type { Referable } from './target-kind'

/** Returns what targets may refer to, as it is stored. */
export const storedReferences = (tx: Tx): Referable => ({
  async findConnectionKind(id) {
    const { _id, kind } = connections
    return (await tx.select({ kind }).from(connections).where(eq(_id, id)).get())?.kind
  },
  async hasLambda(id) {
    const { _id } = lambdas
    return !!(await tx.select({ _id }).from(lambdas).where(eq(_id, id)).get())
  },
  async findToolIds(ids) {
    const { _id, triggerKind } = integrations
    const rows = ids.length ? await tx.select({ _id, triggerKind }).from(integrations).where(inArray(_id, ids)) : []
    return rows.filter(({ triggerKind }) => triggerKind === 'tool').map(({ _id }) => _id)
  },
  async findBlueprintKeys(keys) {
    const { key } = blueprints
    const rows = keys.length ? await tx.select({ key }).from(blueprints).where(inArray(key, keys)) : []
    return rows.map(({ key }) => key)
  },
})
