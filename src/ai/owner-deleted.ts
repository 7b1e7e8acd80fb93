import { asc, eq } from 'drizzle-orm'
import type { DeletedOwner } from '../accounts/owner-deleted'
import { deleteInBatches } from '../jobs/batch-delete'
import { enqueue } from '../jobs/queue'
import type { JobHandler } from '../jobs/worker'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { expireSubjectStores, expireThreadStores } from './knowledge/store-removal'
import { messages, threads } from './tables'

/** The kind of jobs that remove the threads of somebody who is no more. */
export const DELETE_THREADS_JOB = 'threads-of-removed'

const THREADS_PER_BATCH = 100 // threads

/**
 * What somebody has said to models is theirs alone, so it goes with them, and so do the stores of users and workspaces. What
 * they put into stores that others share stays, as their entities do, and so does what it all took.
 */
export async function deleteOwnerData(tenant: Pick<Tenant, 'tenant'>, tx: Tx, { type, id }: DeletedOwner) {
  await expireSubjectStores(tx, type, id)
  if (type === 'user') await enqueue(tenant, tx, { kind: DELETE_THREADS_JOB, payload: { user: id } })
}

/** Removes the threads of a user, however many, in slices that let others write. */
export const deleteThreadsJob: JobHandler = {
  retryFor: Number.POSITIVE_INFINITY,
  async run(tenant, { payload }) {
    const { user } = payload as { user: string }
    const ofUser = eq(threads.user, user)
    for (;;) {
      const batch = await tenant.db
        .select({ _id: threads._id })
        .from(threads)
        .where(ofUser)
        .orderBy(asc(threads._id))
        .limit(THREADS_PER_BATCH)
      for (const { _id } of batch) {
        await deleteInBatches(tenant, messages, messages.number, eq(messages.thread, _id))
        await tenant.write(async (tx) => {
          await expireThreadStores(tx, _id)
          await tx.delete(threads).where(eq(threads._id, _id))
        })
      }
      if (batch.length < THREADS_PER_BATCH) return { state: 'done' }
    }
  },
}
