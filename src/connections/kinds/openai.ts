import { t } from 'elysia'
import { line } from '../../core/shapes'
import { defineKind, keyText, optionalUrl, originOf } from './connection-kind'
import { joinUrl, probe, toBearerInit } from './probe'

const OPENAI_URL = 'https://api.openai.com/v1'

/** Returns the base URL of an OpenAI-compatible server. */
export const resolveApiUrl = ({ apiUrl = OPENAI_URL }: { apiUrl?: string }) => apiUrl

/** An OpenAI-compatible server. A self-hosted one may need no token. */
export const openai = defineKind({
  metadata: t.Object({
    apiUrl: optionalUrl(`default: ${OPENAI_URL}`),
    model: t.Optional(
      t.String({ minLength: 1, maxLength: 200, description: 'the model for requests and agents without a model' }),
    ),
    defaultModel: t.Optional(t.String({ minLength: 1, maxLength: 200, description: 'the same as `model`' })),
    embeddingModel: t.Optional(t.String({ minLength: 1, maxLength: 200 })),
    roles: t.Optional(
      t.Array(line(100, 1), { maxItems: 100, description: 'roles that may call it directly; default: all users' }),
    ),
  }),
  authentication: t.Object({ token: keyText }),
  serverOf: ({ apiUrl }) => originOf(apiUrl, OPENAI_URL),
  check: ({ tenant, metadata, authentication }) =>
    probe(tenant, joinUrl(resolveApiUrl(metadata), 'models'), toBearerInit(authentication.token)),
})
