import { version } from '../../../package.json'
import { Components } from './components'
import { type DocumentParts, operationOf, type Route } from './operation'
import type { Schema } from './schema'

export type Paths = Record<string, Record<string, object>>
export type Document = {
  paths: Paths
  components: { schemas: Record<string, Schema>; [kind: string]: object }
  [part: string]: unknown
}

const API_DESCRIPTION = `Self-hosted, multi-tenant application platform.

**Tenants.** A request belongs to the tenant of its host, or to the tenant in the \`tenant\` header.

**Credentials.** Send a token of \`POST /api/signin\` as a bearer token, an API token as \`x-api-key\`, or let the browser send
the session cookie. Admins can act as a user of the tenant: \`x-impersonate-user\` is the user's ID, and
\`x-impersonate-workspace\` the ID of the workspace to act in.

**Requests.** \`/api/v1/…\` is the same as \`/api/…\`. In queries, an empty value and \`undefined\` count as absent. JSON texts
must not contain U+0000 or half of a surrogate pair, and JSON is nested at most 64 levels deep. PUT and PATCH both merge:
omitted properties are unchanged.

**Errors.** Every error has the body \`{code, message, details?}\`. The \`code\` is stable.`

const TAG_DESCRIPTIONS: Record<string, string> = {
  accounts: 'Sign-in, sign-up, sessions, API tokens, second factors and the caller’s own profile',
  users: 'Administration of users and roles',
  workspaces: 'Workspaces, their members and invitations',
  blueprints: 'Definitions of entities: fields, rules and limitations',
  entities: 'Entities of blueprints',
  charts: 'Aggregates and charts of entities',
  components: 'Components in TypeScript or JSX, and their compiled files',
  blocks: 'Blocks of content and HTML',
  files: 'Uploaded files, and links to their content',
  sites: 'The static site of the tenant, and its deployments',
  configurations: 'Settings of the tenant',
  definitions: 'Blueprints, lambdas, integrations and all other definitions of a tenant, as files',
  events: 'Events of the tenant',
  lambdas: 'Code that runs on the server',
  integrations: 'Integrations, their sources and webhooks',
  payments: 'Plans, coupons, subscriptions, checkout and invoices',
  plugins: 'Plugins and their event deliveries',
  ai: 'Agents, chat completions, threads, vector stores and usage',
  operations: 'For operators of the installation',
}

const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'The `token` of `POST /api/signin`' },
  apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API token of `POST /api/me/api-tokens`' },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'atoll_tenant',
    description: 'Session cookie for browsers, named `atoll_` plus the tenant ID',
  },
  tenant: {
    type: 'apiKey',
    in: 'header',
    name: 'tenant',
    description: 'Tenant ID, if the host does not identify the tenant',
  },
  operator: { type: 'http', scheme: 'bearer', description: 'ATOLL_OPERATOR_TOKEN' },
}

const RESPONSE_HEADERS = {
  Link: { description: 'Link to the next page (`rel="next"`), if there is one', schema: { type: 'string' } },
  TotalCount: { description: 'The total number of items, if `count` is set', schema: { type: 'integer' } },
}

/** Returns the OpenAPI 3.1 document of every route that is not hidden. @see https://spec.openapis.org/oas/v3.1.0 */
export function buildOpenApi(routes: Route[]): Document {
  const parts: DocumentParts = { components: new Components(), responses: {}, parameters: {} }
  const paths: Paths = {}
  for (const route of routes) {
    if (route.hooks.detail?.hide) continue
    const path = route.path.replace(/(.)\/$/, '$1').replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, parts) }
  }
  return assembleDocument(paths, parts)
}

function assembleDocument(paths: Paths, { components, responses, parameters }: DocumentParts): Document {
  const used = JSON.stringify(paths)
  const usedTags = Object.entries(TAG_DESCRIPTIONS).filter(([name]) => used.includes(`"tags":["${name}"]`))
  const usedSchemes = Object.entries(securitySchemes).filter(([name]) => used.includes(`"${name}":[]`))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Atoll',
      version,
      description: API_DESCRIPTION,
      contact: { name: 'Operator of this installation' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'This server' }],
    tags: usedTags.map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: sortByKey(components.schemas),
      responses: sortByKey(responses),
      parameters: sortByKey(parameters),
      headers: RESPONSE_HEADERS,
      securitySchemes: Object.fromEntries(usedSchemes),
    },
  }
}

const sortByKey = <Value>(map: Record<string, Value>): Record<string, Value> =>
  Object.fromEntries(Object.entries(map).sort(([one], [other]) => (one < other ? -1 : 1)))
