import { type Static, t } from 'elysia'
import { free, id, line, time } from '../../core/shapes'
import { type Scope, scopes } from './tables'

const maybe = t.Optional
const scope = t.Unsafe<Scope>(t.Union(scopes.map((name) => t.Literal(name))))

export const Store = t.Object({
  _id: id,
  scope,
  subjectId: t.String({ description: 'the thread, user or workspace; of all, the tenant' }),
  externalId: t.String(),
  expirationAfterDays: maybe(t.Number()),
  created: time,
})
export type Store = Static<typeof Store>

export const NewStore = t.Object({
  integrationId: id,
  scope,
  subjectId: maybe({ ...id, description: 'needed unless the scope is tenant' }),
  expirationAfterDays: maybe(t.Number({ exclusiveMinimum: 0, maximum: 36_500, description: 'from when it was made' })),
})
export type NewStore = Static<typeof NewStore>

export const StoreAnswer = t.Object({ success: t.Literal(true), message: t.String(), vectorStore: Store })

const named = {
  integrationId: maybe({ ...id, description: 'its narrowest store that is yours, which is made when there is none' }),
  vectorStoreId: maybe(id),
}

const oneStore = { 'x-schema': { anyOf: [{ required: ['integrationId'] }, { required: ['vectorStoreId'] }] } }

export const Upload = t.Object(
  {
    ...named,
    content: t.Union([t.String(), free, t.Array(t.Unknown())], { description: 'text, Markdown or JSON' }),
    fileName: maybe({ ...line(500), description: 'what ends in .json is read as JSON' }),
    metadata: maybe(free),
  },
  oneStore,
)
export type Upload = Static<typeof Upload>

export const UploadAnswer = t.Object({ success: t.Literal(true), message: t.String(), fileId: id, vectorStoreId: id })

export const Clearing = t.Object(
  { ...named, fileIds: maybe(t.Array(id, { maxItems: 1_000, description: 'default: all files' })) },
  oneStore,
)
export type Clearing = Static<typeof Clearing>

export const ClearAnswer = t.Object({
  success: t.Literal(true),
  message: t.String(),
  clearedCount: t.Number({ description: 'files' }),
  vectorStoreId: id,
})
