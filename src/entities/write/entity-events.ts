import type { PublicCtx } from '../../accounts/context'
import type { Dispatchers, References } from '../../blueprints/references'
import { emitAll } from '../../jobs/outbox'
import type { Tx } from '../../storage/port'
import type { EntityHeader } from '../store/serializer'
import { oneOf, toChunks } from '../store/sql-fragments'

/** In which tenant something happens to entities, and by whom, if by somebody. */
export type EventAuthor = { tenant: string; actor?: Pick<NonNullable<PublicCtx['actor']>, 'user' | 'workspace'> }

/** What is told of an entity. Not its properties, for who reads events may not be who may read those. */
export type EventEntity = Pick<EntityHeader, '_id' | 'identifier' | 'user' | 'workspace'> & { version: number }

/** Writes down what happens to entities of a blueprint that wants it told, in the transaction in which it happens. */
export const emitEntityEvents = (
  tx: Tx,
  { tenant, actor }: EventAuthor,
  eventName: keyof Dispatchers,
  blueprint: string,
  entities: EventEntity[],
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
export async function emitUpdateEvents(
  tx: Tx,
  author: EventAuthor,
  { dispatchers }: References,
  entities: (EventEntity & { blueprint: string })[],
) {
  for (const [blueprint, group] of Map.groupBy(entities, (one) => one.blueprint))
    if (dispatchers.get(blueprint)?.update) await emitEntityEvents(tx, author, 'update', blueprint, group)
}

/** The same of entities that are going to be removed, but still there. */
export async function emitDeleteEvents(
  tx: Tx,
  author: EventAuthor,
  { dispatchers }: Pick<References, 'dispatchers'>,
  entities: { seq: number; blueprint: string }[],
) {
  for (const [blueprint, group] of Map.groupBy(entities, (one) => one.blueprint)) {
    if (!dispatchers.get(blueprint)?.delete) continue
    for (const chunk of toChunks(group.map(({ seq }) => seq))) {
      const { sql, params } = oneOf('seq', chunk)
      const columns = '_id, identifier, "user", workspace, version'
      const rows = await tx.query(`select ${columns} from entities where ${sql} order by seq asc`, params)
      const removed = rows.map(([_id, identifier, user, workspace, version]) => ({
        ...{ _id, identifier, user, workspace, version },
      }))
      await emitEntityEvents(tx, author, 'delete', blueprint, removed as EventEntity[])
    }
  }
}
