import { eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { users } from '../../accounts/tables'
import { reach } from '../../accounts/workspaces/reach'
import { invalid, missing, Problem } from '../../core/problem'
import { ownThread } from '../threads'
import type { Scope } from './tables'

/** Whether somebody may take out what others have put in, and say when it ends. */
type Reached = { administers: boolean }

/** Whose stores somebody may write to: their own; admins, those of all. */
type Rule = (ctx: Ctx, subject: string, integration: string) => Reached | Promise<Reached>

const rules: Record<Scope, Rule> = {
  async thread(ctx, id, integration) {
    const thread = await ownThread(ctx, id)
    // Admins read the threads of others, but don't speak in them.
    if (thread.user !== ctx.actor.user) missing('thread')
    if (thread.integration !== integration)
      invalid({ path: '/subjectId', message: 'This thread is one with another integration.' })
    return { administers: true }
  },

  async user({ actor, db }, id) {
    if (id === actor.user) return { administers: true }
    if (!actor.privileged) throw forbidden()
    const those = eq(users._id, id)
    if (!(await db.select({ _id: users._id }).from(users).where(those).get())) missing('user')
    return { administers: true }
  },

  async workspace({ actor, db }, id) {
    const { administers } = await reach(db, actor, id).catch((error) => {
      throw actor.privileged ? error : forbidden()
    })
    return { administers }
  },

  tenant: ({ actor }) => ({ administers: actor.privileged }),
}

/** @throws 403, 404 */
export const refuseOthers = async (ctx: Ctx, scope: Scope, subject: string, integration: string): Promise<Reached> =>
  rules[scope](ctx, subject, integration)

const forbidden = () =>
  new Problem(403, 'FORBIDDEN', 'This is somebody else’s. Name yourself, or a workspace that you are in.')
