import { eq } from 'drizzle-orm'
import { t } from 'elysia'
import { id } from '../../core/shapes'
import { toResponse } from '../../lambdas/response'
import { runLambda } from '../../lambdas/run'
import { lambdas } from '../../lambdas/tables'
import type { TargetKind } from './target-kind'

const shape = t.Object({ lambdaId: id })

/** A lambda. The caller receives its response. */
export const lambda: TargetKind<typeof shape> = {
  shape,
  area: 'lambdas',
  maxAttempts: 10,
  async validate(tx, { lambdaId }) {
    const row = await tx.select({ _id: lambdas._id }).from(lambdas).where(eq(lambdas._id, lambdaId)).get()
    return row ? [] : [{ path: '/lambdaId', message: 'There is no lambda with this id.' }]
  },
  run: async (ctx, { lambdaId }, { input, trigger, event, request }) =>
    toResponse(await runLambda(ctx, lambdaId, input, { trigger, event, request })),
}
