import type { Actor } from '../../../src/accounts/actors'
import { retrieveKnowledge } from '../../../src/ai/knowledge/retrieval'
import { createTestTenant, type TestUser } from '../../test-tenant'

/** Creates a tenant with shortcuts for agents, their vector stores and retrieval. */
export async function createKnowledgeFixture() {
  const own = await createTestTenant()
  const admin = own.as('admin')
  const create = async (path: string, body: object) => {
    const answer = await admin.post(path, body)
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return answer.body
  }
  const agent = (vectorStores: string[], more: object = {}, rest: object = {}) =>
    create('/integrations', {
      trigger: { kind: 'chat' },
      target: { kind: 'ai', sourceId: 'echo', vectorStores, ...more },
      ...rest,
    })
  type Agent = Awaited<ReturnType<typeof agent>>
  const actor = (name: TestUser, more: Partial<Actor> = {}): Actor => ({
    ...{ user: own.users[name], roles: [], privileged: name === 'admin', workspace: null, via: 'api-key', scopes: [] },
    ...more,
  })
  const path = (source = 'echo') => `/ai/sources/${source}/storage`
  return {
    ...own,
    admin,
    made: create,
    agent,
    path,
    /** Creates a connection to another OpenAI server, and returns its id. */
    source: async (apiUrl: string, embeddingModel?: string): Promise<string> =>
      (
        await create('/integration-sources', {
          ...{ name: 'models', kind: 'openai', metadata: { apiUrl, ...(embeddingModel && { embeddingModel }) } },
          authentication: { token: 'sk-1' },
        })
      )._id,
    /** Returns what a chat of this user would retrieve. */
    retrieve: (
      name: TestUser | undefined,
      integration: Agent,
      question: string,
      more: Partial<Actor> & { thread?: string } = {},
    ) => {
      const { thread, ...actorFields } = more
      return retrieveKnowledge(
        { ...own.tenant, ...(name && { actor: actor(name, actorFields) }) },
        { integration, question, ...(thread && { thread }) },
      )
    },
    /** Creates a store as this user, and returns its id. */
    store: async (
      name: TestUser,
      integrationId: string,
      scope: string,
      subjectId?: string,
      source?: string,
    ): Promise<string> => {
      const { status, body } = await own
        .as(name)
        .post(path(source), { integrationId, scope, ...(subjectId && { subjectId }) })
      if (status > 201) throw new Error(JSON.stringify(body))
      return body.vectorStore._id
    },
    /** Uploads a file, and returns its id. */
    upload: async (
      name: TestUser,
      vectorStoreId: string,
      content: unknown,
      fileName?: string,
      source?: string,
    ): Promise<string> => {
      const { status, body } = await own.as(name).post(`${path(source)}/upload`, { vectorStoreId, content, fileName })
      if (status !== 201) throw new Error(JSON.stringify(body))
      return body.fileId
    },
  }
}
export type KnowledgeFixture = Awaited<ReturnType<typeof createKnowledgeFixture>>
