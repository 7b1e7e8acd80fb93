import { Elysia } from 'elysia'
import { COOKIE_PREFIX } from '../../accounts/cookies'
import { generateToken } from '../../core/crypto'
import { Problem } from '../../core/problem'
import { getAssets, respondWithAsset } from './assets'
import { assertOperatorHost } from './page-host'

/** Only files of this server and styles with the nonce of the response take effect, and no page can frame this one. */
const contentSecurityPolicy = (nonce: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ')

type PageFlags = { hasSession: boolean; isForOperator: boolean }

const toPage = (
  script: string,
  stylesheet: string,
  nonce: string,
  { hasSession, isForOperator }: PageFlags,
) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="csp-nonce" nonce="${nonce}">
<title>Atoll</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/admin/assets/${stylesheet}">
<script type="module" src="/admin/assets/${script}"></script>
</head>
<body>
<div id="root"${hasSession ? ' data-session' : ''}${isForOperator ? ' data-operator' : ''}></div>
<noscript>The admin page needs JavaScript.</noscript>
</body>
</html>
`

/** The operator's page is at hosts without scripts of tenants only, and shares no window with other pages. */
async function respondWithOperatorPage({ request }: { request: Request }) {
  await assertOperatorHost(request)
  return respondWithPage({ request }, true)
}

async function respondWithPage({ request }: { request: Request }, isForOperator = false) {
  const names = [...(await getAssets()).keys()]
  const nameOf = (extension: string) => names.find((name) => name.startsWith('main-') && name.endsWith(extension))!
  const nonce = generateToken().slice(0, 22)
  // Without it the page need not ask who is signed in.
  const hasSession = SESSION_COOKIE.test(request.headers.get('cookie') ?? '')
  return new Response(toPage(nameOf('.js'), nameOf('.css'), nonce, { hasSession, isForOperator }), {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentSecurityPolicy(nonce),
      'x-frame-options': 'DENY',
      'cache-control': 'no-store',
      ...(isForOperator && { 'cross-origin-opener-policy': 'same-origin' }),
    },
  })
}

async function respondWithFile(name: string, request: Request) {
  const response = await respondWithAsset(name, request.headers.get('accept-encoding') ?? '')
  if (response) return response
  throw new Problem(404, 'FILE_NOT_FOUND', 'The admin page has no such file. Reload the page.')
}

/** The name of the session cookie of any tenant; that of a known device goes on after the id. */
const SESSION_COOKIE = new RegExp(`(?:^|[ ;-])${COOKIE_PREFIX}[a-z0-9-]+=`)

const detail = { 'x-access': 'open', hide: true } as object

/** The admin page: one document for all its places, and the files that it loads. */
export const adminRoutes = new Elysia()
  .get('/admin/assets/:name', ({ params, request }) => respondWithFile(params.name, request), { detail })
  .get('/admin', ({ request }) => respondWithPage({ request }), { detail })
  .get('/admin/operator', respondWithOperatorPage, { detail })
  .get('/admin/operator/*', respondWithOperatorPage, { detail })
  .get('/admin/*', ({ request }) => respondWithPage({ request }), { detail })
