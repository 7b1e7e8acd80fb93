import { Elysia } from 'elysia'
import { uploadGuard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { disableIdleTimeout } from '../tenancy/client-connection'
import { diff, push } from './push'
import { DefinitionDiff, DefinitionDiffResult, DefinitionPush, DefinitionPushResult, Definitions } from './shapes'
import { readDefinitions } from './tenant-definitions'

const errorResponses = { 400: ProblemShape, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape }

export const definitionRoutes = new Elysia({ prefix: '/definitions', tags: ['definitions'] })
  .use(uploadGuard('definitions'))
  .get('/', ({ ctx }) => readDefinitions(ctx), {
    can: 'privileged',
    costly: true,
    response: Definitions,
    detail: {
      operationId: 'getDefinitions',
      summary: 'Get the definitions of the tenant as files',
      description: 'Secrets are placeholders, and resources refer to each other by name.',
    },
  })
  .post('/diff', ({ ctx, body }) => diff(ctx, body), {
    canRead: 'privileged',
    costly: true,
    body: DefinitionDiff,
    response: { 200: DefinitionDiffResult, ...errorResponses },
    detail: {
      operationId: 'diffDefinitions',
      summary: 'Compare definitions with those of the tenant',
      description: 'Changes nothing. Secret values are compared only for callers who can push.',
    },
  })
  .post('/push', ({ ctx, body }) => push(ctx, body), {
    beforeHandle: ({ request }) => disableIdleTimeout(request),
    can: 'privileged',
    costly: true,
    addsData: true,
    body: DefinitionPush,
    response: { 200: DefinitionPushResult, ...errorResponses },
    detail: {
      operationId: 'pushDefinitions',
      summary: 'Replace the definitions of the tenant',
      description:
        'Changes are made one after the other, in order of dependency. Send the same request again to make those that remain, also after a failure.',
    },
  })
