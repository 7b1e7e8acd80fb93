import { asc, eq } from 'drizzle-orm'
import type { DeletedOwner } from '../accounts/owner-deleted'
import { deleteInBatches } from '../jobs/batch-delete'
import { enqueue } from '../jobs/queue'
import type { JobHandler } from '../jobs/worker'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { expireSubjectStores, expireThreadStores } from './knowledge/store-removal'
import { messages, threads } from './tables'

/** The kind of the jobs that remove the threads of a deleted user. */
export const DELETE_THREADS_JOB = 'threads-of-removed'

const THREADS_PER_BATCH = 100 // threads

/**
 * Schedules the removal of the threads of a deleted user, and expires the vector stores of a deleted user or workspace.
 * Files that the owner uploaded to shared stores stay, as the owner's entities do, and so does the recorded usage.
 */
export async function deleteOwnerData(tenant: Pick<Tenant, 'tenant'>, tx: Tx, { type, id }: DeletedOwner) {
  await expireSubjectStores(tx, type, id)
  if (type === 'user') await enqueue(tenant, tx, { kind: DELETE_THREADS_JOB, payload: { user: id } })
}

/** Removes all threads of a user, in batches that let other writes run in between. */
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
