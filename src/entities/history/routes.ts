import { Elysia, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { jsonContent, toParameter } from '../parameters'
import { Entity } from '../shapes'
import * as history from './history'
import { EntityVersion, versionParameters } from './shapes'

const entityParams = t.Object({ key: t.String(), identifier: t.String() })
const versionParams = t.Object({ key: t.String(), identifier: t.String(), version: t.String() })

export const historyRoutes = new Elysia({ prefix: '/blueprints/:key/entities/:identifier/history', tags: ['entities'] })
  .use(guard('entities'))
  .get('/', ({ ctx, params, request }) => history.list(ctx, params.key, params.identifier, request), {
    anyone: true,
    params: entityParams,
    detail: {
      operationId: 'listEntityVersions',
      summary: 'List the versions of an entity',
      description:
        'Returns versions, newest first. Callers who can read an entity can read its versions, except for fields that they cannot read. ' +
        'Versions of deleted entities are available by identifier.',
      parameters: versionParameters.map(toParameter),
      responses: { 200: jsonContent(t.Array(EntityVersion), 'The versions') },
    },
  })
  .post(
    '/:version/restore',
    ({ ctx, params, request }) => history.restore(ctx, params.key, params.identifier, params.version, request),
    {
      anyone: true,
      params: versionParams,
      detail: {
        operationId: 'restoreEntityVersion',
        summary: 'Restore a version of an entity',
        description:
          'Updates the entity to the values of that version. A deleted entity is created again with its identifier.',
        responses: {
          200: jsonContent(Entity, 'The entity as it was in this version'),
          201: jsonContent(Entity, 'The deleted entity, created again'),
          409: jsonContent(ProblemShape, ''),
          412: jsonContent(ProblemShape, ''),
        },
      },
    },
  )
