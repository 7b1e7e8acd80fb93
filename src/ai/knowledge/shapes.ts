import { type Static, t } from 'elysia'
import { id, jsonObject, line, time } from '../../core/shapes'
import { type StoreScope, storeScopes } from './tables'

const maybe = t.Optional
const scope = t.Unsafe<StoreScope>(t.Union(storeScopes.map((name) => t.Literal(name))))

export const VectorStore = t.Object({
  _id: id,
  scope,
  subjectId: t.String({ description: 'the thread, user or workspace; for the scope tenant, the tenant' }),
  externalId: t.String(),
  expirationAfterDays: maybe(t.Number()),
  created: time,
})
export type VectorStore = Static<typeof VectorStore>

export const NewVectorStore = t.Object({
  integrationId: id,
  scope,
  subjectId: maybe({ ...id, description: 'required unless the scope is tenant' }),
  expirationAfterDays: maybe(
    t.Number({ exclusiveMinimum: 0, maximum: 36_500, description: 'days after its creation' }),
  ),
})
export type NewVectorStore = Static<typeof NewVectorStore>

export const VectorStoreCreated = t.Object({ success: t.Literal(true), message: t.String(), vectorStore: VectorStore })

const storeReference = {
  integrationId: maybe({
    ...id,
    description: 'the narrowest store of this integration that you may write to; created if there is none',
  }),
  vectorStoreId: maybe(id),
}

const requiresStoreReference = {
  'x-schema': {
    anyOf: [
      { 'x-name': 'by integration', required: ['integrationId'] },
      { 'x-name': 'by store', required: ['vectorStoreId'] },
    ],
  },
}

export const KnowledgeContent = t.Union([t.String(), jsonObject, t.Array(t.Unknown())], {
  ...{ description: 'text, Markdown or JSON', 'x-schema': {} },
})

export const VectorStoreUpload = t.Object(
  {
    ...storeReference,
    content: KnowledgeContent,
    fileName: maybe({ ...line(500), description: 'a name that ends in .json is parsed as JSON' }),
    metadata: maybe(jsonObject),
  },
  requiresStoreReference,
)
export type VectorStoreUpload = Static<typeof VectorStoreUpload>

export const VectorStoreUploaded = t.Object({
  success: t.Literal(true),
  message: t.String(),
  fileId: id,
  vectorStoreId: id,
})

export const VectorStoreClear = t.Object(
  { ...storeReference, fileIds: maybe(t.Array(id, { maxItems: 1_000, description: 'default: all files' })) },
  requiresStoreReference,
)
export type VectorStoreClear = Static<typeof VectorStoreClear>

export const VectorStoreCleared = t.Object({
  success: t.Literal(true),
  message: t.String(),
  clearedCount: t.Number({ description: 'files' }),
  vectorStoreId: id,
})

/** A store with the number of what it holds. */
export const StoredVectorStore = t.Object({
  ...VectorStore.properties,
  integration: t.String(),
  embeddingModel: t.Nullable(t.String(), { description: 'null while no chunk has a vector' }),
  files: t.Number(),
  chunks: t.Number({ description: 'the parts of its files that are found' }),
  expires: t.Nullable(time),
})
export type StoredVectorStore = Static<typeof StoredVectorStore>

export const KnowledgeFile = t.Object({
  _id: id,
  fileName: t.Nullable(t.String()),
  metadata: jsonObject,
  user: t.String({ description: 'who uploaded it' }),
  chunks: t.Number(),
  created: time,
})
export type KnowledgeFile = Static<typeof KnowledgeFile>

export const KnowledgeSearch = t.Object({
  question: t.String({ minLength: 1, maxLength: 100_000 }),
  threadId: maybe(t.Nullable(id)),
})
export type KnowledgeSearch = Static<typeof KnowledgeSearch>

export const KnowledgeExcerpt = t.Object({
  fileId: id,
  fileName: t.Nullable(t.String()),
  chunk: t.Number({ description: 'its number in the file, from 0' }),
  text: t.String(),
  score: t.Number({ description: 'by reciprocal rank fusion; higher is better' }),
})
export type KnowledgeExcerpt = Static<typeof KnowledgeExcerpt>
