import type { TSchema } from '@sinclair/typebox'
import { type AnyElysia, Elysia } from 'elysia'
import { accounts } from './accounts/area'
import { bodyShapeLookup } from './accounts/guard'
import { ai } from './ai/area'
import { backups } from './backups/area'
import { blueprints } from './blueprints/area'
import { config } from './config'
import { connections } from './connections/area'
import { content } from './content/area'
import { errorHandler } from './core/problem'
import { mergeListParameters } from './core/query-lists'
import { rejectUnknownKeys } from './core/unknown-keys'
import { requireUtf8Queries } from './core/utf8-queries'
import { definitions } from './definitions/area'
import { entities } from './entities/area'
import { events } from './events/area'
import { files } from './files/area'
import { integrations } from './integrations/area'
import { type Area, compose, mountRoutes, startAreas } from './jobs/area'
import { lambdas } from './lambdas/area'
import { limits } from './limits/area'
import { adminRoutes } from './operations/admin/routes'
import { operations } from './operations/area'
import { certificateRoutes } from './operations/certificate-routes'
import { healthRoutes } from './operations/health'
import { metricsRoutes } from './operations/metrics/routes'
import { openapiRoutes } from './operations/openapi/routes'
import { operatorRoutes } from './operations/operator'
import { readinessRoutes } from './operations/readiness'
import { rootRoutes } from './operations/root'
import { testClockRoutes } from './operations/test-clock'
import { payments } from './payments/area'
import { platform } from './platform/area'
import { plugins } from './plugins/area'
import { platformPaths } from './plugins/plugins'
import { sites } from './sites/area'
import { tls } from './tls/area'
import { workspaces } from './workspaces/area'

let bodyShapes: Map<string, TSchema> | undefined

/** Gives areas access to all routes. */
const routing: Area = {
  name: 'routing',
  provides: [
    bodyShapeLookup.provide((method, route) => {
      bodyShapes ??= new Map(app.routes.map(({ method, path, hooks }) => [`${method} ${path}`, hooks.body]))
      return bodyShapes.get(`${method} ${route}`)
    }),
    platformPaths.provide((segment) => app.routes.some(({ path }) => `${path}/`.startsWith(`/api/${segment}/`))),
  ],
}

/** All areas of the server, in the order in which routes match. */
export const areas: readonly Area[] = [
  ...[routing, platform, tls, limits, backups, accounts, workspaces, blueprints, entities, content, events],
  ...[files, sites, lambdas, connections, integrations, payments, plugins, ai, definitions, operations],
]
compose(areas)

// Elysia assumes that a host has at least ten characters unless `standardHostname` is off.
export const app = new Elysia({ handler: { standardHostname: false }, normalize: 'typebox' })
  .use(errorHandler)
  .use(rejectUnknownKeys((): AnyElysia => app))
  .use(requireUtf8Queries)
  .use(mergeListParameters((): AnyElysia => app))
  .use(healthRoutes)
  .use(readinessRoutes)
  .use(metricsRoutes)
  .use(rootRoutes)
  .use(adminRoutes)
  .use(operatorRoutes)
  .use(certificateRoutes)
  .use(config.ATOLL_TEST_CLOCK === 'on' ? testClockRoutes : new Elysia())
  .use(mountRoutes(areas))
  .use(openapiRoutes((): AnyElysia => app))

/** Starts the background work of this process. */
export const startBackgroundWork = () => startAreas(areas)
