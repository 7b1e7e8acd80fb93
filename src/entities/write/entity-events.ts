import type { PublicCtx } from '../../accounts/context'
import type { Dispatchers, References } from '../../blueprints/references'
import { emitAll } from '../../jobs/outbox'
import type { Tx } from '../../storage/port'
import { type EntityHeader, idSql } from '../store/serializer'
import { oneOf, toChunks } from '../store/sql-fragments'

/** The tenant of an event, and the user who caused it, if any. */
export type EventAuthor = { tenant: string; actor?: Pick<NonNullable<PublicCtx['actor']>, 'user' | 'workspace'> }

/**
 * The data of an event about an entity. It has no properties, because readers of events may not be allowed to read
 * them.
 */
export type EventEntity = Pick<EntityHeader, '_id' | 'identifier' | 'user' | 'workspace'> & {
  version: number
  /** The keys of the fields that a change of the entity touched. */
  changed?: string[]
}

/** Emits an event for each of the entities, in the transaction that changes them. */
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
    entities.map(({ _id, identifier, user, workspace, version, changed }) => ({
      source: 'blueprints',
      kind: blueprint,
      eventName,
      metadata: { _id, identifier, user, workspace, version, ...(changed && { changed }) },
      user: actor?.user,
      workspace: actor?.workspace?._id,
    })),
  )

/** Emits `update` events for entities whose relations were cleared, for the blueprints that dispatch them. */
export async function emitUpdateEvents(
  tx: Tx,
  author: EventAuthor,
  { dispatchers }: References,
  entities: (EventEntity & { blueprint: string })[],
) {
  for (const [blueprint, group] of Map.groupBy(entities, (one) => one.blueprint))
    if (dispatchers.get(blueprint)?.update) await emitEntityEvents(tx, author, 'update', blueprint, group)
}

/** Emits `delete` events for entities that are about to be removed, for the blueprints that dispatch them. */
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
      const columns = `${idSql()}, identifier, "user", workspace, version`
      const rows = await tx.query(`select ${columns} from entities where ${sql} order by seq asc`, params)
      const removed = rows.map(([_id, identifier, user, workspace, version]) => ({
        ...{ _id, identifier, user, workspace, version },
      }))
      await emitEntityEvents(tx, author, 'delete', blueprint, removed as EventEntity[])
    }
  }
}
