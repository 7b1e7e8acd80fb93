import type { OpenAI } from 'openai'
import { WorkTurns } from '../../accounts/work-turns'
import { config } from '../../config'
import { resolveApiUrl } from '../../connections/kinds/openai'
import { resolveConnection } from '../../connections/resolver'
import { HOUR_MS } from '../../core/clock'
import { Problem } from '../../core/problem'
import { ECHO_SOURCE_ID } from '../../integrations/targets/ai'
import { assertOutgoingAllowed } from '../../tenancy/outgoing-hold'
import type { Tenant } from '../../tenancy/tenants'
import { echo } from './echo'
import { fetchSource } from './source-fetch'

const MAX_RETRIES = 2

/** A source of models and the client to call it with. It holds secrets, so it must not reach any response or log. */
export type Source = {
  _id: string
  client: OpenAI
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
  if (id === ECHO_SOURCE_ID) return getEchoSource(tenant)
  const { metadata, authentication } = await resolveConnection(tenant, id, 'openai')
  const { token } = authentication
  const { embeddingModel, roles = [] } = metadata
  const client = await createClient(resolveApiUrl(metadata), token, (url, init) =>
    fetchSource(tenant.tenant, url, token ? init : withoutAuthorization(init)),
  )
  return { _id: id, client, model: metadata.model ?? metadata.defaultModel ?? DEFAULT_MODEL, embeddingModel, roles }
}

/**
 * Returns the source with this id to call it now.
 * @throws 404 as `getSource` does, 409 OUTGOING_HELD for a copy of a tenant
 */
export async function openSource(tenant: Tenant, id: string): Promise<Source> {
  if (id !== ECHO_SOURCE_ID) await assertOutgoingAllowed(tenant)
  return getSource(tenant, id)
}

const DEFAULT_MODEL = 'gpt-4o-mini'

async function getEchoSource(tenant: Tenant): Promise<Source> {
  if (config.ATOLL_AI_ECHO === 'on')
    return {
      _id: ECHO_SOURCE_ID,
      client: await createClient('http://echo.invalid', ECHO_SOURCE_ID, (url, init) =>
        echo(url, init, new WorkTurns(tenant).run),
      ),
      model: ECHO_SOURCE_ID,
      roles: [],
    }
  const message = 'The built-in source "echo" is disabled. Choose an integration source of the kind openai.'
  throw new Problem(404, 'INTEGRATION_SOURCE_NOT_FOUND', message)
}

type Fetch = (
  url: string,
  init: { method?: string; headers?: unknown; body?: unknown; signal?: AbortSignal | null },
) => Promise<Response>

/** Overrides the settings that the client would read from the environment, and disables its log. */
async function createClient(baseURL: string, apiKey = 'none', fetch: Fetch) {
  const { OpenAI } = await import('openai')
  return new OpenAI({
    ...{ baseURL, apiKey, organization: null, project: null, webhookSecret: null, logLevel: 'off' },
    ...{ maxRetries: MAX_RETRIES, timeout: CLIENT_TIMEOUT_MS, fetch: fetch as typeof globalThis.fetch },
  })
}

/** Effectively none: `fetchSource` limits the time between two chunks instead of the total time. */
const CLIENT_TIMEOUT_MS = 24 * HOUR_MS

const withoutAuthorization = <Init extends { headers?: unknown }>(init: Init) => {
  const headers = new Headers(init.headers as Headers)
  headers.delete('authorization')
  return { ...init, headers }
}
