import { Elysia, t } from 'elysia'

const LINKS = {
  api: '/api',
  documentation: '/openapi',
  description: '/openapi/json',
  health: '/health',
  readiness: '/ready',
}

const PathShape = t.String()
const LinksShape = t.Object({
  name: t.String(),
  api: PathShape,
  documentation: PathShape,
  description: PathShape,
  health: PathShape,
  readiness: PathShape,
})

const PAGE_HTML = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Atoll</title>
<body style="font: 1rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 4rem auto; padding: 0 1rem; color-scheme: light dark">
<h1>Atoll is running</h1>
<p>This server answers an HTTP API below <code>/api</code>.</p>
<ul>
<li><a href="/admin">Admin page</a></li>
<li><a href="/openapi">Documentation of the API</a></li>
<li><a href="/openapi/json">Description of the API for programs (OpenAPI)</a></li>
<li><a href="/health">Health of the server</a></li>
</ul>
`

const CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

/** Describes the server at its root URL: a page for browsers, JSON for other clients. */
export const rootRoutes = new Elysia({ tags: ['operations'] })
  .get('/', ({ request }) => describeServer(request), {
    detail: {
      'x-access': 'open',
      operationId: 'describeServer',
      summary: 'Get links to the API and its documentation',
      description: 'Returns HTML to browsers and JSON to all other clients.',
      responses: {
        200: {
          description: 'Links to the API, its documentation and the health check',
          content: { 'application/json': { schema: LinksShape }, 'text/html': { schema: { type: 'string' } } },
        },
      },
    } as object,
  })
  .get('/favicon.ico', () => new Response(null, { status: 204, headers: { 'cache-control': 'max-age=86400' } }), {
    detail: { 'x-access': 'open', hide: true } as object,
  })

function describeServer({ headers }: Request) {
  if (!headers.get('accept')?.includes('text/html')) return Response.json({ name: 'Atoll', ...LINKS })
  return new Response(PAGE_HTML, {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': CONTENT_SECURITY_POLICY,
      vary: 'accept',
    },
  })
}
