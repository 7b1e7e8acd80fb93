import { t } from 'elysia'
import { line } from '../../../core/shapes'
import { bearer, greet, joined } from './asking'
import { address, kind, secretText } from './kind'

const OPENAI = 'https://api.openai.com/v1'

/** Where an OpenAI-compatible server is asked. */
export const baseOf = ({ apiUrl = OPENAI }: { apiUrl?: string }) => apiUrl

/** Any server that speaks as OpenAI's does; one of one's own may need no token. */
export const openai = kind({
  metadata: t.Object({
    apiUrl: address(`${OPENAI} unless told`),
    model: t.Optional(
      t.String({ minLength: 1, maxLength: 200, description: 'the model of requests and agents that name none' }),
    ),
    defaultModel: t.Optional(t.String({ minLength: 1, maxLength: 200, description: 'the same as `model`' })),
    embeddingModel: t.Optional(t.String({ minLength: 1, maxLength: 200 })),
    roles: t.Optional(
      t.Array(line(100, 1), { maxItems: 100, description: 'who may ask it directly; anybody unless it names some' }),
    ),
  }),
  authentication: t.Object({ token: secretText }),
  check: ({ tenant, metadata, authentication }) =>
    greet(tenant, joined(baseOf(metadata), 'models'), bearer(authentication.token)),
})
