import { Elysia, status, t } from 'elysia'
import { guard, uploadGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { listParameter } from '../../core/query-lists'
import { sendPage } from '../../core/response-headers'
import { id } from '../../core/shapes'
import { listQuery } from '../../storage/pagination'
import * as files from '../knowledge/files'
import * as inventory from '../knowledge/inventory'
import {
  KnowledgeFile,
  NewVectorStore,
  StoredVectorStore,
  VectorStoreClear,
  VectorStoreCleared,
  VectorStoreCreated,
  VectorStoreUpload,
  VectorStoreUploaded,
} from '../knowledge/shapes'
import * as stores from '../knowledge/stores'

const storeParams = t.Object({ sourceId: t.String(), id })
const sourceParams = t.Object({ sourceId: t.String() })
const conflictResponses = { 404: ProblemShape, 409: ProblemShape }
const uploadErrorResponses = {
  ...conflictResponses,
  422: ProblemShape,
  429: ProblemShape,
  502: ProblemShape,
  503: ProblemShape,
  504: ProblemShape,
}

/** Reads for admins: whose files there are. */
export const vectorStoreListRoutes = new Elysia({ prefix: '/ai/sources/:sourceId/storage', tags: ['ai'] })
  .use(guard('ai'))
  .get(
    '/',
    ({ ctx, params, query, request, set }) =>
      sendPage({ request, set }, inventory.listStores(ctx, params.sourceId, query)),
    {
      can: 'privileged',
      params: sourceParams,
      query: t.Object({ ...listQuery, integration: listParameter('several values') }),
      response: { 200: t.Array(StoredVectorStore), 404: ProblemShape },
      detail: {
        operationId: 'listVectorStores',
        summary: 'List the vector stores of a source',
        description: 'Newest first, those of all users.',
      },
    },
  )
  .get(
    '/:id/files',
    ({ ctx, params, query, request, set }) =>
      sendPage({ request, set }, inventory.listFiles(ctx, params.sourceId, params.id, query)),
    {
      can: 'privileged',
      params: storeParams,
      query: t.Object(listQuery),
      response: { 200: t.Array(KnowledgeFile), 404: ProblemShape },
      detail: {
        operationId: 'listVectorStoreFiles',
        summary: 'List the files of a vector store',
        description: 'Newest first, without their content.',
      },
    },
  )

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
      addsData: true,
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
      costly: true,
      addsData: true,
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
