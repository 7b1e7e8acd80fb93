import type { Actor } from '../../../src/accounts/actors'
import { retrieved } from '../../../src/ai/knowledge/retrieval'
import { house, type Name } from '../../house'

/** A tenant with agents, and short ways to what they know. */
export async function archive() {
  const own = await house()
  const admin = own.as('admin')
  const made = async (path: string, body: object) => {
    const answer = await admin.post(path, body)
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    return answer.body
  }
  const agent = (vectorStores: string[], more: object = {}, rest: object = {}) =>
    made('/integrations', {
      trigger: { kind: 'chat' },
      target: { kind: 'ai', sourceId: 'echo', vectorStores, ...more },
      ...rest,
    })
  type Agent = Awaited<ReturnType<typeof agent>>
  const actor = (name: Name, more: Partial<Actor> = {}): Actor => ({
    ...{ user: own.users[name], roles: [], privileged: name === 'admin', workspace: null, via: 'api-key', scopes: [] },
    ...more,
  })
  const path = (source = 'echo') => `/ai/sources/${source}/storage`
  return {
    ...own,
    admin,
    made,
    agent,
    path,
    /** Another server of models, as a connection. */
    source: async (apiUrl: string, embeddingModel?: string): Promise<string> =>
      (
        await made('/integration-sources', {
          ...{ name: 'models', kind: 'openai', metadata: { apiUrl, ...(embeddingModel && { embeddingModel }) } },
          authentication: { token: 'sk-1' },
        })
      )._id,
    /** What a chat of somebody's would be told. */
    asked: (
      name: Name | undefined,
      integration: Agent,
      question: string,
      more: Partial<Actor> & { thread?: string } = {},
    ) => {
      const { thread, ...actorToo } = more
      return retrieved(
        { ...own.tenant, ...(name && { actor: actor(name, actorToo) }) },
        { integration, question, ...(thread && { thread }) },
      )
    },
    /** A store of somebody's; its id. */
    store: async (
      name: Name,
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
    /** Adds a file; its id. */
    upload: async (
      name: Name,
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
export type Archive = Awaited<ReturnType<typeof archive>>
