import { eq } from 'drizzle-orm'
import { t } from 'elysia'
import { id } from '../../../core/shapes'
import { responseOf } from '../../lambdas/answer'
import { run } from '../../lambdas/run'
import { lambdas } from '../../lambdas/tables'
import type { TargetKind } from './target'

const shape = t.Object({ lambdaId: id })

/** Code of the tenant's. Whoever called gets its answer. */
export const lambda: TargetKind<typeof shape> = {
  shape,
  area: 'lambdas',
  attempts: 10,
  async flaws(tx, { lambdaId }) {
    const known = await tx.select({ _id: lambdas._id }).from(lambdas).where(eq(lambdas._id, lambdaId)).get()
    return known ? [] : [{ path: '/lambdaId', message: 'There is no lambda with this id.' }]
  },
  run: async (ctx, { lambdaId }, { asked, trigger, event, request }) =>
    responseOf(await run(ctx, lambdaId, asked, { trigger, event, request })),
}
