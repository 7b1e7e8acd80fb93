import type { AnyElysia } from 'elysia'
import { Elysia } from 'elysia'
import style from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import script from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import { version } from '../../package.json'

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Atoll API</title>
<link rel="stylesheet" href="/openapi/style.css">
</head>
<body>
<div id="api"></div>
<script src="/openapi/script.js"></script>
<script src="/openapi/start.js"></script>
</body>
</html>
`
const start = `SwaggerUIBundle({ url: '/openapi/json', dom_id: '#api', persistAuthorization: true, tryItOutEnabled: true })\n`

// Everything comes from this server: the page works without a network, and tells nobody that it was opened.
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const serve = (body: string | Blob, type: string) =>
  new Response(body, { headers: { 'content-type': type, 'content-security-policy': policy } })

const hidden = { detail: { hide: true, 'x-access': 'open' } as object }

/** The description of every route of `app` (OpenAPI 3.1), and a page to read and to try it. */
export const documentation = (app: () => AnyElysia) => {
  let described: Promise<object> | undefined
  return new Elysia()
    .get('/openapi', () => serve(page, 'text/html;charset=utf-8'), hidden)
    .get('/openapi/script.js', () => serve(Bun.file(script), 'text/javascript;charset=utf-8'), hidden)
    .get('/openapi/style.css', () => serve(Bun.file(style), 'text/css;charset=utf-8'), hidden)
    .get('/openapi/start.js', () => serve(start, 'text/javascript;charset=utf-8'), hidden)
    .get('/openapi/json', () => (described ??= describe(app())), hidden)
}

const schemes = {
  apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
  bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
}
const needed = Object.keys(schemes).map((name) => ({ [name]: [] }))

type Parameter = { name: string; in: string }
type Operation = {
  'x-access'?: string
  security?: object[]
  parameters?: Parameter[]
  responses?: Record<string, object>
}

type Paths = Record<string, Record<string, Operation>>

const VERSION = '3.1.0'
const description = `A self-hosted application platform for many tenants.

Admins may send any request that needs credentials as one of the tenant's users: the header \`x-impersonate-user\` has the
user's id, \`x-impersonate-workspace\` the id of the workspace to be in. It may do what that user may; what it writes is
recorded as an event.`

/** OpenAPI of the app's shapes; with who may call each operation. @see https://spec.openapis.org/oas/v3.1.0 */
export async function describe(app: AnyElysia): Promise<object> {
  const { toOpenAPISchema } = await import('@elysiajs/openapi')
  const { paths, components } = toOpenAPISchema(app, { staticFile: false }, undefined, undefined, VERSION)
  for (const { method, path, hooks } of app.routes) {
    const operation = (paths as Paths)[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    const [told, known] = [(hooks.detail?.parameters ?? []) as Parameter[], operation?.parameters ?? []]
    // Those of the path have pushed out what a route tells of its query.
    const others = told.filter((one) => !known.some((other) => other.name === one.name && other.in === one.in))
    if (!operation) continue
    if (others.length) operation.parameters = [...known, ...others]
    // And those that have shapes, what it tells of the others.
    operation.responses = { ...hooks.detail?.responses, ...operation.responses }
  }
  for (const operations of Object.values(paths as Paths))
    for (const operation of Object.values(operations)) {
      const access = operation['x-access']
      if (access === 'open') operation.security = []
      else operation.security = access === 'anyone' ? [{}, ...needed] : needed
    }
  return {
    openapi: VERSION,
    info: { title: 'Atoll', version, description },
    paths,
    components: { ...components, securitySchemes: schemes },
  }
}
