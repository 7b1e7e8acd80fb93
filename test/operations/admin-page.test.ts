import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import { handleRequest } from '../../src/gateway'
import { bundleChangedAssets } from '../../src/operations/admin/bundle'
import { signInForCookie } from '../accounts/session-fixtures'
import { createTestTenant } from '../test-tenant'

const home = await createTestTenant()
const get = (path: string, headers: Record<string, string> = {}) =>
  handleRequest(new Request(`${home.origin}${path}`, { headers: { host: `${home.id}.test`, ...headers } }))
const getPage = async (headers = {}) => (await get('/admin', headers)).text()
const assetsOf = (page: string) => [...page.matchAll(/"(\/admin\/assets\/[^"]+)"/g)].map(([, path]) => path!)

describe('GET /admin', () => {
  test('every place of the page answers the same document, which only loads files of this server', async () => {
    for (const path of ['/admin', '/admin/', '/admin/home', '/admin/data/contacts/ada', '/admin/set-up']) {
      const response = await get(path)
      expect([response.status, response.headers.get('content-type')], path).toEqual([200, 'text/html; charset=utf-8'])
      const page = await response.text()
      expect(page).not.toMatch(/<script(?![^>]* src="\/admin\/assets\/)|<style|\son\w+=|https?:/)
      expect(assetsOf(page)).toHaveLength(2)
    }
  })

  test('its policy allows no inline code and no frame, and has another nonce for each response', async () => {
    const policies = await Promise.all(
      [1, 2].map(async () => (await get('/admin')).headers.get('content-security-policy')!),
    )
    for (const policy of policies) {
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("script-src 'self';")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toContain('unsafe')
    }
    expect(policies[0]).not.toBe(policies[1])
    const response = await get('/admin')
    const nonce = /'nonce-([^']+)'/.exec(response.headers.get('content-security-policy')!)![1]!
    expect(await response.text()).toContain(`nonce="${nonce}"`)
    expect(response.headers.get('x-frame-options')).toBe('DENY')
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  test('the document says whether the browser has a session, so that the page need not ask', async () => {
    expect(await getPage()).not.toContain('data-session')
    expect(await getPage(await signInForCookie(home, 'user'))).toContain('data-session')
  })
})

describe('GET /admin/assets/:name', () => {
  test('files are compressed as the client accepts it, and may be kept forever', async () => {
    const [stylesheet = '', script = ''] = assetsOf(await getPage())
    for (const [path, type] of [
      [script, 'text/javascript'],
      [stylesheet, 'text/css'],
    ] as const) {
      const brotli = await get(path, { 'accept-encoding': 'gzip, br' })
      expect([brotli.status, brotli.headers.get('content-encoding')]).toEqual([200, 'br'])
      expect(brotli.headers.get('content-type')).toStartWith(type)
      expect(brotli.headers.get('cache-control')).toContain('immutable')
      expect(brotli.headers.get('vary')).toContain('accept-encoding')
      const plain = new Uint8Array(await (await get(path)).arrayBuffer())
      expect(new Uint8Array(brotliDecompressSync(await brotli.arrayBuffer()))).toEqual(plain)
      const gzip = await get(path, { 'accept-encoding': 'gzip' })
      expect(Bun.gunzipSync(await gzip.arrayBuffer())).toEqual(plain)
    }
  })

  test('the first screen loads at most 300 KB', async () => {
    const sizes = await Promise.all(
      assetsOf(await getPage()).map(
        async (path) => (await (await get(path, { 'accept-encoding': 'br' })).bytes()).length,
      ),
    )
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(300_000)
  })

  test('the style sheet has the rules of every component that the page uses', async () => {
    const classesOf = (text: string) => new Set(text.match(/\bm_[0-9a-f]{6,8}\b/g))
    const assets = await bundleChangedAssets()
    const read = (ending: string) =>
      [...assets].filter(([name]) => name.endsWith(ending)).map(([, bytes]) => brotliDecompressSync(bytes).toString())
    const used = classesOf(read('.js').join('\n'))
    const defined = classesOf(readFileSync(Bun.resolveSync('@mantine/core/styles.css', import.meta.dir), 'utf8'))
    const present = classesOf(read('.css').join('\n'))
    expect(used.size).toBeGreaterThan(100)
    expect([...used].filter((name) => defined.has(name) && !present.has(name))).toEqual([])
  })

  test('a file that does not exist answers 404, also one whose name climbs out of the folder', async () => {
    for (const name of ['main.js', 'main-00000000.js', '..%2f..%2fpackage.json', '%2e%2e%2fmain.tsx'])
      expect((await get(`/admin/assets/${name}`)).status).toBe(404)
  })
})
