import { Elysia, status, t } from 'elysia'
import { uploadGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import * as files from '../knowledge/files'
import { ClearAnswer, Clearing, NewStore, StoreAnswer, Upload, UploadAnswer } from '../knowledge/shapes'
import * as stores from '../knowledge/stores'

const source = t.Object({ sourceId: t.String() })
const refusals = { 404: ProblemShape, 409: ProblemShape }
const failures = { ...refusals, 429: ProblemShape, 502: ProblemShape, 503: ProblemShape, 504: ProblemShape }

export const storageRoutes = new Elysia({ prefix: '/ai/sources/:sourceId/storage', tags: ['ai'] })
  .use(uploadGuard('ai'))
  .post(
    '/',
    async ({ ctx, params, body }) => {
      const { fresh, answer } = await stores.create(ctx, params.sourceId, body)
      return status(fresh ? 201 : 200, answer)
    },
    {
      can: 'user',
      params: source,
      body: NewStore,
      response: { 200: StoreAnswer, 201: StoreAnswer, ...refusals },
      detail: {
        operationId: 'createVectorStore',
        summary: 'Create a vector store',
        description: 'Answers 200 with the existing store if there is one for this scope.',
      },
    },
  )
  .post(
    '/upload',
    async ({ ctx, params, body, request }) => status(201, await files.upload(ctx, params.sourceId, body, request)),
    {
      can: 'user',
      params: source,
      body: Upload,
      response: { 201: UploadAnswer, ...failures },
      detail: { operationId: 'uploadToVectorStore', summary: 'Upload a file to a vector store' },
    },
  )
  .post('/clear', ({ ctx, params, body, request }) => files.clear(ctx, params.sourceId, body, request), {
    can: 'user',
    params: source,
    body: Clearing,
    response: { 200: ClearAnswer, ...refusals },
    detail: { operationId: 'clearVectorStore', summary: 'Remove files from a vector store' },
  })
