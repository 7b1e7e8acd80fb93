import { asc, eq } from 'drizzle-orm'
import type { Leaving } from '../accounts/leaving'
import { enqueue } from '../jobs/queue'
import { removeInSlices } from '../jobs/removal'
import type { Work } from '../jobs/work'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { forgetSubject, forgetThread } from './knowledge/removal'
import { messages, threads } from './tables'

/** The kind of jobs that remove the threads of somebody who is no more. */
export const THREADS = 'threads-of-removed'

const PORTION = 100 // threads

/**
 * What somebody has said to models is theirs alone, so it goes with them, and so do the stores of users and workspaces. What
 * they put into stores that others share stays, as their entities do, and so does what it all took.
 */
export async function endKnowledge(tenant: Pick<Tenant, 'tenant'>, tx: Tx, { type, id }: Leaving) {
  await forgetSubject(tx, type, id)
  if (type === 'user') await enqueue(tenant, tx, { kind: THREADS, payload: { user: id } })
}

/** Removes the threads of a user, however many, in slices that let others write. */
export const removingThreads: Work = {
  patience: Number.POSITIVE_INFINITY,
  async run(tenant, { payload }) {
    const { user } = payload as { user: string }
    const those = eq(threads.user, user)
    for (;;) {
      const some = await tenant.db
        .select({ _id: threads._id })
        .from(threads)
        .where(those)
        .orderBy(asc(threads._id))
        .limit(PORTION)
      for (const { _id } of some) {
        await removeInSlices(tenant, messages, messages.number, eq(messages.thread, _id))
        await tenant.write(async (tx) => {
          await forgetThread(tx, _id)
          await tx.delete(threads).where(eq(threads._id, _id))
        })
      }
      if (some.length < PORTION) return { state: 'done' }
    }
  },
}
