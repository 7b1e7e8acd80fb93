import { eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { may } from '../../accounts/permissions'
import { users } from '../../accounts/tables'
import { reach } from '../../accounts/workspaces/reach'
import { invalid, missing, Problem } from '../../core/problem'
import { ownThread } from '../threads'
import type { Scope } from './tables'

/** Refuses whoever may read a subject's stores but not write to them, so it need not be hidden that they are there. */
export class ReadOnly extends Problem {
  constructor(message: string) {
    super(403, 'FORBIDDEN', message)
  }
}

/** Lets only those go on who may write to a subject's stores: what stands there is put into the prompts of all who read it. */
type Rule = (ctx: Ctx, subject: string, integration: string) => unknown

const rules: Record<Scope, Rule> = {
  async thread(ctx, id, integration) {
    const thread = await ownThread(ctx, id)
    // Admins read the threads of others, but don't speak in them.
    if (thread.user !== ctx.actor.user) missing('thread')
    if (thread.integration !== integration)
      invalid({ path: '/subjectId', message: 'This thread is one with another integration.' })
  },

  async user({ actor, db }, id) {
    if (id === actor.user) return
    if (!actor.privileged) throw forbidden()
    const those = eq(users._id, id)
    if (!(await db.select({ _id: users._id }).from(users).where(those).get())) missing('user')
  },

  async workspace({ actor, db }, id) {
    const { administers } = await reach(db, actor, id).catch((error) => {
      throw actor.privileged ? error : forbidden()
    })
    if (!administers) throw new ReadOnly('Only admins of the workspace can change its knowledge.')
  },

  tenant({ actor }) {
    if (!may(actor, 'editor') && !may(actor, 'curator'))
      throw new ReadOnly('Only admins and editors can change the knowledge of the whole tenant.')
  },
}

/** @throws 400, 403, 404 for who may not write to the stores of this subject */
export const assertMayWrite = async (ctx: Ctx, scope: Scope, subject: string, integration: string) => {
  await rules[scope](ctx, subject, integration)
}

const forbidden = () =>
  new Problem(403, 'FORBIDDEN', 'This is somebody else’s. Name yourself, or a workspace that you are in.')
