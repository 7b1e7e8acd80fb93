import { t } from 'elysia'
import { id } from '../../core/shapes'
import { toResponse } from '../../lambdas/response'
import { runLambda } from '../../lambdas/run'
import type { TargetKind } from './target-kind'

const shape = t.Object({ lambdaId: id })

/** A lambda. The caller receives its response. */
export const lambda: TargetKind<typeof shape> = {
  shape,
  area: 'lambdas',
  maxAttempts: 10,
  validate: async ({ hasLambda }, { lambdaId }) =>
    (await hasLambda(lambdaId)) ? [] : [{ path: '/lambdaId', message: 'There is no lambda with this id.' }],
  run: async (ctx, { lambdaId }, { input, trigger, event, request }) =>
    toResponse(await runLambda(ctx, lambdaId, input, { trigger, event, request })),
}
