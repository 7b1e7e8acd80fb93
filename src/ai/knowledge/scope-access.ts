import { eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { getWorkspaceAccess } from '../../accounts/memberships/workspace-access'
import { hasPermission } from '../../accounts/permissions'
import { users } from '../../accounts/tables'
import { badRequest, notFound, Problem } from '../../core/problem'
import { getThreadRow } from '../threads'
import type { StoreScope } from './tables'

/** The caller may read the stores of a subject but not write to them, so their existence need not be hidden. */
export class ReadOnlyProblem extends Problem {
  constructor(message: string) {
    super(403, 'FORBIDDEN', message)
  }
}

/** Throws unless the caller may write to a subject's stores, whose content gets into the prompts of all their readers. */
type WriteRule = (ctx: Ctx, subject: string, integration: string) => unknown

const writeRules: Record<StoreScope, WriteRule> = {
  async thread(ctx, id, integration) {
    const thread = await getThreadRow(ctx, id)
    // Admins may read the threads of others, but not write to them.
    if (thread.user !== ctx.actor.user) notFound('thread')
    if (thread.integration !== integration)
      badRequest({ path: '/subjectId', message: 'This thread belongs to another integration.' })
  },

  async user({ actor, db }, id) {
    if (id === actor.user) return
    if (!actor.privileged) throw foreignSubjectProblem()
    const byId = eq(users._id, id)
    if (!(await db.select({ _id: users._id }).from(users).where(byId).get())) notFound('user')
  },

  async workspace({ actor, db }, id) {
    const { administers } = await getWorkspaceAccess(db, actor, id).catch((error) => {
      throw actor.privileged ? error : foreignSubjectProblem()
    })
    if (!administers) throw new ReadOnlyProblem('Only admins of the workspace can change its knowledge.')
  },

  tenant({ actor }) {
    if (!hasPermission(actor, 'editor') && !hasPermission(actor, 'curator'))
      throw new ReadOnlyProblem('Only admins and editors can change the knowledge of the whole tenant.')
  },
}

/** @throws 400, 403, 404 when the caller may not write to the stores of this subject */
export const assertMayWrite = async (ctx: Ctx, scope: StoreScope, subject: string, integration: string) => {
  await writeRules[scope](ctx, subject, integration)
}

const foreignSubjectProblem = () =>
  new Problem(403, 'FORBIDDEN', 'You may only name yourself, or a workspace that you are a member of.')
