import { Elysia, status, t } from 'elysia'
import { guard, streamGuard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { SuccessShape } from '../core/shapes'
import * as deployments from './deployments'
import { Deployment, SiteRollback, SiteUpload } from './shapes'

const archive = { type: 'string' as const, format: 'binary' }

const uploadRoutes = new Elysia({ prefix: '/sites', tags: ['sites'] })
  .use(streamGuard('sites'))
  .put('/', async ({ ctx, query, request }) => status(201, await deployments.deploy(ctx, query, request)), {
    can: 'privileged',
    addsData: true,
    query: SiteUpload,
    response: { 201: Deployment, 413: ProblemShape, 415: ProblemShape, 503: ProblemShape, 507: ProblemShape },
    detail: {
      operationId: 'deploySite',
      summary: 'Deploy a static site',
      description:
        'The body is a tar archive with an `index.html` at its top, or the gzip of one. The site takes effect as a whole.',
      requestBody: {
        required: true,
        description: 'The archive; its type may also be `application/x-tar` or `application/gzip`.',
        content: { 'application/octet-stream': { schema: archive } },
      },
    },
  })

/** The static site of a tenant. */
export const siteRoutes = [
  uploadRoutes,
  new Elysia({ prefix: '/sites', tags: ['sites'] })
    .use(guard('sites'))
    .get('/', ({ ctx, request }) => deployments.list(ctx, request), {
      can: 'privileged',
      response: t.Array(Deployment),
      detail: { operationId: 'listDeployments', summary: 'List recent deployments of the site, newest first' },
    })
    .delete('/', ({ ctx }) => deployments.remove(ctx), {
      can: 'privileged',
      response: { 200: SuccessShape, 404: ProblemShape },
      detail: { operationId: 'removeSite', summary: 'Remove the site and all its deployments' },
    })
    .post('/rollback', ({ ctx, query, request }) => deployments.rollback(ctx, query, request), {
      can: 'privileged',
      query: SiteRollback,
      response: { 200: Deployment, 404: ProblemShape, 409: ProblemShape },
      detail: { operationId: 'rollbackSite', summary: 'Roll back to an earlier deployment' },
    }),
]
