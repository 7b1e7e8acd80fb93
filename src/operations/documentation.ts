import type { AnyElysia } from 'elysia'
import { Elysia, t } from 'elysia'
import style from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import script from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import { type Document, describe } from './description/document'
import { describeTenant } from './description/tenant'

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
const start = `SwaggerUIBundle({ url: '/openapi/json' + location.search, dom_id: '#api', persistAuthorization: true, tryItOutEnabled: true })\n`

// Everything comes from this server: the page works without a network, and tells nobody that it was opened.
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const serve = (body: string | Blob, type: string) =>
  new Response(body, { headers: { 'content-type': type, 'content-security-policy': policy } })

const hidden = { detail: { hide: true, 'x-access': 'open' } as object }

/**
 * The description of every route of `app` (OpenAPI 3.1), and a page to read and to try it. With `?tenant=` it has the
 * blueprints of that tenant, too, as the caller may see them.
 */
export const documentation = (app: () => AnyElysia) => {
  let described: Document | undefined
  return new Elysia()
    .get('/openapi', () => serve(page, 'text/html;charset=utf-8'), hidden)
    .get('/openapi/script.js', () => serve(Bun.file(script), 'text/javascript;charset=utf-8'), hidden)
    .get('/openapi/style.css', () => serve(Bun.file(style), 'text/css;charset=utf-8'), hidden)
    .get('/openapi/start.js', () => serve(start, 'text/javascript;charset=utf-8'), hidden)
    .get(
      '/openapi/json',
      ({ query, request, set }) => {
        described ??= describe(app().routes)
        if (!query.tenant) return described
        set.headers['cache-control'] = 'private, no-store'
        return describeTenant(described, request, query.tenant)
      },
      { ...hidden, query: t.Object({ tenant: t.Optional(t.String()) }) },
    )
}
