import { Elysia } from 'elysia'
import { uploadGuard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
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
      description: 'Secrets are placeholders, and things refer to each other by name.',
    },
  })
  .post('/diff', ({ ctx, body }) => diff(ctx, body), {
    canRead: 'privileged',
    costly: true,
    body: DefinitionDiff,
    response: { 200: DefinitionDiffResult, ...errorResponses },
    detail: {
      operationId: 'diffDefinitions',
      summary: 'Find out what a push of definitions would change',
      description: 'Nothing is changed. Values of secrets are compared only for callers who may push.',
    },
  })
  .post('/push', ({ ctx, body, request }) => push(ctx, body, { request }), {
    can: 'privileged',
    costly: true,
    addsData: true,
    body: DefinitionPush,
    response: { 200: DefinitionPushResult, ...errorResponses },
    detail: {
      operationId: 'pushDefinitions',
      summary: "Make the tenant's definitions those of files",
      description:
        'Changes are made one after the other, in order of need. The same request makes those that remain, or that a failure has left.',
    },
  })
