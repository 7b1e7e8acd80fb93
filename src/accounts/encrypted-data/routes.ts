import { Elysia, t } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { sendSecret } from '../../core/response-headers'
import { IdParams, jsonObject, toJsonOrNull } from '../../core/shapes'
import { guard } from '../guard'
import * as encrypted from './encrypted-data'

const headers = t.Object({
  'x-encrypted-id': t.Optional(t.String({ description: 'name of the value; defaults to `default`' })),
})
const readRoute = { params: IdParams, headers, response: { 200: t.Nullable(jsonObject), 404: ProblemShape } }
const writeRoute = {
  params: IdParams,
  headers,
  body: jsonObject,
  response: { 200: t.Object({}), 404: ProblemShape, 413: ProblemShape },
}

/** Routes of encrypted data of workspaces and users, which only this installation can read. */
export const encryptedRoutes = new Elysia({ tags: ['accounts'] })
  .use(guard('encrypted'))
  .get(
    '/workspaces/:id/encrypted',
    async ({ ctx, params, headers, set }) =>
      toJsonOrNull(await sendSecret(set, encrypted.get(ctx, 'workspace', params.id, headers['x-encrypted-id']))),
    {
      can: 'privileged',
      ...readRoute,
      detail: { operationId: 'getWorkspaceSecret', summary: 'Get encrypted data of a workspace' },
    },
  )
  .post(
    '/workspaces/:id/encrypted',
    ({ ctx, params, headers, body }) => encrypted.put(ctx, 'workspace', params.id, headers['x-encrypted-id'], body),
    {
      can: 'privileged',
      addsData: true,
      ...writeRoute,
      detail: { operationId: 'putWorkspaceSecret', summary: 'Store encrypted data of a workspace' },
    },
  )
  .get(
    '/users/:id/encrypted',
    async ({ ctx, params, headers, set }) =>
      toJsonOrNull(await sendSecret(set, encrypted.get(ctx, 'user', params.id, headers['x-encrypted-id']))),
    {
      can: 'privileged',
      ...readRoute,
      detail: { operationId: 'getUserSecret', summary: 'Get encrypted data of a user' },
    },
  )
  .post(
    '/users/:id/encrypted',
    ({ ctx, params, headers, body }) => encrypted.put(ctx, 'user', params.id, headers['x-encrypted-id'], body),
    {
      can: 'privileged',
      addsData: true,
      ...writeRoute,
      detail: { operationId: 'putUserSecret', summary: 'Store encrypted data of a user' },
    },
  )
