import { Elysia, status, t } from 'elysia'
import { guard, streamGuard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { sendPage } from '../core/response-headers'
import { IdParams, SuccessShape } from '../core/shapes'
import { download } from './download'
import * as files from './files'
import { createLink } from './links'
import {
  ContentParams,
  ContentQuery,
  FileChange,
  FileDeletion,
  FileLink,
  FileList,
  FileUpload,
  StoredFile,
} from './shapes'

const binary = { type: 'string' as const, format: 'binary' }
// The content has the type of the file. Generators that know no `*/*` take the first.
const anyBytes = { 'application/octet-stream': { schema: binary }, '*/*': { schema: binary } }
const form = {
  type: 'object' as const,
  required: ['file'],
  properties: { file: binary, keep: { type: 'boolean' as const } },
}

const uploadRoutes = new Elysia({ prefix: '/files', tags: ['files'] })
  .use(streamGuard('files'))
  .post('/', async ({ ctx, query, request }) => status(201, await files.upload(ctx, query, request)), {
    can: 'user',
    addsData: true,
    query: FileUpload,
    response: { 201: StoredFile, 413: ProblemShape, 503: ProblemShape, 507: ProblemShape },
    detail: {
      operationId: 'uploadFile',
      summary: 'Upload a file',
      description:
        'Send the file as the body with `?name=`, or a multipart form with the part `file`. Files that no entity refers to are deleted after a day, unless `keep` is true in the query or as a part.',
      requestBody: {
        required: true,
        content: { 'multipart/form-data': { schema: form }, 'application/octet-stream': { schema: binary } },
      },
    },
  })

/** The files of a tenant. */
export const fileRoutes = [
  uploadRoutes,
  new Elysia({ prefix: '/files', tags: ['files'] })
    .use(guard('files'))
    .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, files.list(ctx, query)), {
      can: 'user',
      query: FileList,
      response: t.Array(StoredFile),
      detail: { operationId: 'listFiles', summary: 'List your files; admins see those of all users' },
    })
    .get('/:id', ({ ctx, params }) => files.get(ctx, params.id), {
      can: 'user',
      params: IdParams,
      response: { 200: StoredFile, 404: ProblemShape },
      detail: { operationId: 'getFile', summary: 'Get a file without its content' },
    })
    .put('/:id', ({ body, ctx, params }) => files.change(ctx, params.id, body), {
      can: 'user',
      params: IdParams,
      body: FileChange,
      response: { 200: StoredFile, 404: ProblemShape },
      detail: { operationId: 'updateFile', summary: 'Set whether an unreferenced file is retained' },
    })
    .delete('/:id', ({ ctx, params, query }) => files.remove(ctx, params.id, query), {
      can: 'user',
      params: IdParams,
      query: FileDeletion,
      response: { 200: SuccessShape, 404: ProblemShape, 409: ProblemShape },
      detail: { operationId: 'deleteFile', summary: 'Delete a file' },
    })
    .post('/:id/token', ({ ctx, params }) => createLink(ctx, params.id), {
      can: 'user',
      params: IdParams,
      response: { 200: FileLink, 404: ProblemShape },
      detail: {
        operationId: 'createFileToken',
        summary: 'Create a token that lets anyone read the content for five minutes',
      },
    })
    .get('/:id/:name', ({ ctx, params, query, request }) => download(ctx, params.id, query, request), {
      anyone: true,
      params: ContentParams,
      query: ContentQuery,
      detail: {
        operationId: 'downloadFile',
        summary: 'Get the content of a file',
        description:
          'Supports `Range`, `If-Range` and conditional requests (RFC 9110). Active content is sent as a download. Thumbnails have the sizes in the `files-configuration`.',
        responses: {
          200: { description: 'The content', content: anyBytes },
          206: { description: 'Partial content', content: anyBytes },
          304: { description: 'The content matches `If-None-Match`, or has not changed since `If-Modified-Since`' },
          412: { description: 'The content does not match `If-Match`, or has changed since `If-Unmodified-Since`' },
          415: { description: 'The file has no thumbnail' },
        },
      },
    }),
]
