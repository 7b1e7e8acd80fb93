import type { AnyElysia } from 'elysia'
import { Elysia, t } from 'elysia'
import styleFile from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import scriptFile from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import type { Document } from './document'

const PAGE_HTML = `<!doctype html>
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
const START_SCRIPT = `SwaggerUIBundle({ url: '/openapi/json' + location.search, dom_id: '#api', persistAuthorization: true, tryItOutEnabled: true })\n`

// Everything comes from this server: the page works without the internet, and notifies no other server.
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const toResponse = (body: string | Blob, type: string) =>
  new Response(body, { headers: { 'content-type': type, 'content-security-policy': CONTENT_SECURITY_POLICY } })

const HIDDEN_ROUTE = { detail: { hide: true, 'x-access': 'open' } as object }

/**
 * Returns the routes of the OpenAPI 3.1 document of `app`, and of a page to read it and try it out. With `?tenant=` the
 * document includes the tenant's blueprints that the caller may see.
 */
export const openapiRoutes = (app: () => AnyElysia) => {
  let document: Document | undefined
  return new Elysia()
    .get('/openapi', () => toResponse(PAGE_HTML, 'text/html;charset=utf-8'), HIDDEN_ROUTE)
    .get('/openapi/script.js', () => toResponse(Bun.file(scriptFile), 'text/javascript;charset=utf-8'), HIDDEN_ROUTE)
    .get('/openapi/style.css', () => toResponse(Bun.file(styleFile), 'text/css;charset=utf-8'), HIDDEN_ROUTE)
    .get('/openapi/start.js', () => toResponse(START_SCRIPT, 'text/javascript;charset=utf-8'), HIDDEN_ROUTE)
    .get(
      '/openapi/json',
      async ({ query, request }) => {
        const { buildOpenApi } = await import('./document')
        document ??= buildOpenApi(app().routes)
        if (!query.tenant) return document
        const { buildTenantOpenApi } = await import('./tenant-document')
        const json = await buildTenantOpenApi(document, request, query.tenant)
        return new Response(json, {
          headers: {
            'content-type': 'application/json;charset=utf-8',
            'content-length': `${json.byteLength}`,
            'cache-control': 'private, no-store',
          },
        })
      },
      { ...HIDDEN_ROUTE, query: t.Object({ tenant: t.Optional(t.String()) }) },
    )
}
