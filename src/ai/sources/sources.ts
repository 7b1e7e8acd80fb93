import { WorkTurns } from '../../accounts/work-turns'
import { config } from '../../config'
import { resolveApiUrl } from '../../connections/kinds/openai'
import { resolveConnection } from '../../connections/resolver'
import type { UpstreamBody } from '../../core/http-stream'
import { Problem } from '../../core/problem'
import { ECHO_SOURCE_ID } from '../../integrations/targets/ai'
import { cached } from '../../tenancy/cache'
import { assertOutgoingAllowed } from '../../tenancy/outgoing-hold'
import type { Tenant } from '../../tenancy/tenants'
import { echo } from './echo'
import { postToSource, type SourceRequest } from './source-request'

/** A source of models. */
export type Source = {
  _id: string
  /** Posts to a path of OpenAI's API, and returns the body of the response. @throws what `postToSource` throws */
  post: (path: string, request: SourceRequest) => Promise<UpstreamBody>
  /** The default model. */
  model: string
  /** The model for embeddings, if the source has one. */
  embeddingModel?: string
  /** The roles that may call the source directly; if empty, every signed-in user. */
  roles: string[]
}

/**
 * Returns the source with this id: a connection of the kind `openai`, or the built-in `echo`.
 * @throws 404 INTEGRATION_SOURCE_NOT_FOUND, also for `echo` when ATOLL_AI_ECHO is off
 */
export async function getSource(tenant: Tenant, id: string): Promise<Source> {
  return id === ECHO_SOURCE_ID
    ? getEchoSource(tenant)
    : cached(tenant, 'connections', `source ${id}`, () => readSource(tenant, id))
}

async function readSource(tenant: Tenant, id: string): Promise<Source> {
  const { metadata, authentication } = await resolveConnection(tenant, id, 'openai')
  const { token } = authentication
  const { embeddingModel, roles = [] } = metadata
  const address = { tenant: tenant.tenant, apiUrl: resolveApiUrl(metadata), token }
  return {
    _id: id,
    post: (path, request) => postToSource(address, path, request),
    model: metadata.model ?? metadata.defaultModel ?? DEFAULT_MODEL,
    embeddingModel,
    roles,
  }
}

/**
 * Returns the source with this id to call it now.
 * @throws 404 as `getSource` does, 409 OUTGOING_HELD for a copy of a tenant
 */
export async function openSource(tenant: Tenant, id: string): Promise<Source> {
  if (id !== ECHO_SOURCE_ID) await assertOutgoingAllowed(tenant)
  return getSource(tenant, id)
}

/** Posts to a source and returns its answer, which may be any JSON. @throws what `post` throws, SyntaxError */
export const requestAnswer = async (source: Pick<Source, 'post'>, path: string, request: SourceRequest) =>
  (await new Response(await source.post(path, request)).json()) as unknown

const DEFAULT_MODEL = 'gpt-4o-mini'

function getEchoSource(tenant: Tenant): Source {
  if (config.ATOLL_AI_ECHO === 'on')
    return {
      _id: ECHO_SOURCE_ID,
      post: (path, request) => echo(path, request, new WorkTurns(tenant).run),
      model: ECHO_SOURCE_ID,
      roles: [],
    }
  const message = 'The built-in source "echo" is disabled. Choose an integration source of the kind openai.'
  throw new Problem(404, 'INTEGRATION_SOURCE_NOT_FOUND', message)
}
