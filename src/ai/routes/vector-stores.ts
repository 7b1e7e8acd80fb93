import { Elysia, status, t } from 'elysia'
import { uploadGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import * as files from '../knowledge/files'
import {
  NewVectorStore,
  VectorStoreClear,
  VectorStoreCleared,
  VectorStoreCreated,
  VectorStoreUpload,
  VectorStoreUploaded,
} from '../knowledge/shapes'
import * as stores from '../knowledge/stores'

const sourceParams = t.Object({ sourceId: t.String() })
const conflictResponses = { 404: ProblemShape, 409: ProblemShape }
const uploadErrorResponses = {
  ...conflictResponses,
  429: ProblemShape,
  502: ProblemShape,
  503: ProblemShape,
  504: ProblemShape,
}

export const vectorStoreRoutes = new Elysia({ prefix: '/ai/sources/:sourceId/storage', tags: ['ai'] })
  .use(uploadGuard('ai'))
  .post(
    '/',
    async ({ ctx, params, body }) => {
      const { isNew, answer } = await stores.create(ctx, params.sourceId, body)
      return status(isNew ? 201 : 200, answer)
    },
    {
      can: 'user',
      params: sourceParams,
      body: NewVectorStore,
      response: { 200: VectorStoreCreated, 201: VectorStoreCreated, ...conflictResponses },
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
      params: sourceParams,
      body: VectorStoreUpload,
      response: { 201: VectorStoreUploaded, ...uploadErrorResponses },
      detail: { operationId: 'uploadToVectorStore', summary: 'Upload a file to a vector store' },
    },
  )
  .post('/clear', ({ ctx, params, body, request }) => files.clear(ctx, params.sourceId, body, request), {
    can: 'user',
    params: sourceParams,
    body: VectorStoreClear,
    response: { 200: VectorStoreCleared, ...conflictResponses },
    detail: { operationId: 'clearVectorStore', summary: 'Remove files from a vector store' },
  })
