import type { OpenCtx } from '../accounts/guard'
import type { Dispatchers, References } from '../blueprints/references'
import { emitAll } from '../jobs/outbox'
import type { Tx } from '../storage/port'
import { inPortions, oneOf } from './conditions'
import type { System } from './wire'

/** In which tenant something happens to entities, and by whom, if by somebody. */
export type Author = { tenant: string; actor?: Pick<NonNullable<OpenCtx['actor']>, 'user' | 'workspace'> }

/** What is told of an entity. Not its properties, for who reads events may not be who may read those. */
export type Told = Pick<System, '_id' | 'identifier' | 'user' | 'workspace'> & { version: number }

/** Writes down what happens to entities of a blueprint that wants it told, in the transaction in which it happens. */
export const dispatch = (
  tx: Tx,
  { tenant, actor }: Author,
  eventName: keyof Dispatchers,
  blueprint: string,
  entities: Told[],
) =>
  emitAll(
    { tenant },
    tx,
    entities.map(({ _id, identifier, user, workspace, version }) => ({
      source: 'blueprints',
      kind: blueprint,
      eventName,
      metadata: { _id, identifier, user, workspace, version },
      user: actor?.user,
      workspace: actor?.workspace?._id,
    })),
  )

/** The same of entities that relations have changed. */
export async function dispatchCleared(
  tx: Tx,
  author: Author,
  { dispatchers }: References,
  entities: (Told & { blueprint: string })[],
) {
  for (const [blueprint, some] of Map.groupBy(entities, (one) => one.blueprint))
    if (dispatchers.get(blueprint)?.update) await dispatch(tx, author, 'update', blueprint, some)
}

/** The same of entities that are going to be removed, but still there. */
export async function dispatchRemovals(
  tx: Tx,
  author: Author,
  { dispatchers }: Pick<References, 'dispatchers'>,
  entities: { seq: number; blueprint: string }[],
) {
  for (const [blueprint, some] of Map.groupBy(entities, (one) => one.blueprint)) {
    if (!dispatchers.get(blueprint)?.delete) continue
    for (const portion of inPortions(some.map(({ seq }) => seq))) {
      const { sql, params } = oneOf('seq', portion)
      const columns = '_id, identifier, "user", workspace, version'
      const rows = await tx.ask(`select ${columns} from entities where ${sql} order by seq asc`, params)
      const told = rows.map(([_id, identifier, user, workspace, version]) => ({
        ...{ _id, identifier, user, workspace, version },
      }))
      await dispatch(tx, author, 'delete', blueprint, told as Told[])
    }
  }
}
